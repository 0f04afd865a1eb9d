"""Checks of an experiment's meaning, before any work: names, sizes, and every expression of the registry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from transpose_study.config import NAME
from transpose_study.errors import StudyError, nearest
from transpose_study.registry import Cell, Study
from transpose_study.target import WHERE

if TYPE_CHECKING:
    from transpose_study.experiment import Experiment


def validate(experiment: Experiment) -> None:
    """Raise :class:`StudyError` for the first mistake, with its key and the nearest known name.

    Sizes that cannot run (zero, larger than memory or a launch's limits) are no mistakes: their cells carry the reason.
    """
    config, study = experiment.config, experiment.study
    if config.variants != "all":
        for name in config.variants:
            study.variant(name)
    for axis, values in config.axes.items():
        if axis not in study.axes or axis in study.group_axes:
            free = [a for v in study.variants.values() for a in v.takes]
            raise StudyError(f"unknown axis {axis!r}; {nearest(axis, set(free))}", where=f"{WHERE}, key axes")
        least = 1 if any(axis in v.code_axes for v in study.variants.values()) else 0
        wrong = sorted({v for v in values if v < least or values.count(v) > 1})
        if wrong or not values:
            given = f"; given: {', '.join(map(str, wrong))}{' (twice or too small)' if wrong else 'none'}"
            raise StudyError(f"needs one or more different values of at least {least}{given}", where=f"{WHERE}, key axes.{axis}")
    for variant in experiment.variants():
        for axis in variant.takes:
            if axis not in config.axes:
                raise StudyError(f"{variant.name} takes the axis {axis}, which has no values", where=f"{WHERE}, key axes")
    names: set[str] = set()
    for number, group in enumerate(config.shapes):
        where = f"{WHERE}, key shapes[{number}]"
        for key, value in group.values.items():
            if key not in study.group_axes:
                raise StudyError(f"unknown key {key!r}; {nearest(key, [*study.group_axes, 'variants', 'launches'])}", where=where)
            if isinstance(value, str) != study.axes[key].words:
                raise StudyError(f"{key} should be {'a word' if study.axes[key].words else 'a whole number'} (got {value!r})", where=where)
            if isinstance(value, int) and value < 0:
                raise StudyError(f"{key} is {value}; a size is not negative", where=where)
        missing = set(study.group_axes) - set(group.values)
        if missing:
            raise StudyError(f"lacks {', '.join(sorted(missing))}", where=where)
        for name in group.variants or ():
            study.variant(name)
        _known_batches(experiment, group.launches, where)
        name = study.group_name(group.values)
        if not re.fullmatch(NAME, name):
            raise StudyError(f"{name!r} would be part of file names, so letters, digits, _, . and - only", where=where)
        if name in names:
            raise StudyError(f"{name} is listed twice", where=where)
        names.add(name)
    if config.report.group and config.report.group not in experiment.groups:
        known = nearest(config.report.group, experiment.groups)
        raise StudyError(f"{config.report.group!r} is no configured shape; {known}", where=f"{WHERE}, key report.group")
    _ = experiment.published  # a misspelt name is said before any work
    _known_batches(experiment, config.profile.launches, f"{WHERE}, key profile.launches")
    _known_batches(experiment, dict.fromkeys(config.profile.batches or (), 1), f"{WHERE}, key profile.batches")
    for variant in experiment.variants():
        for group in config.shapes:
            for cell in study.cells(group.values, [variant.name], config.axes):
                study.cell_refusal(cell)  # evaluates the expressions of a launch, so that a bad one is said before any work
        study.code_digest(variant)  # reads every source
        for kernel in experiment.kernels(variant):
            study.macros(kernel)
    for name in experiment.groups:
        for cell in experiment.cells(name):
            if not study.cell_refusal(cell):
                _expressions(study, cell)


def _expressions(study: Study, cell: Cell) -> None:
    """Evaluate everything a cell that can run is measured with, and refuse values that mean nothing."""
    where = f"{study.path}, variant {cell.variant.name}"
    study.arguments_of(cell)
    values = {"shared_bytes": (study.dynamic_shared_bytes(cell), 0), "elements": (study.element_count(cell), 1)}
    values |= {"input_elements": (study.input_count(cell), 1), "bytes": (study.effective_bytes(cell), 1)}
    values |= {f"observes.{o.name}.per": (study.observed_per(cell), 1) for o in cell.variant.observes}
    if cell.variant.allocates is not None:
        values["allocates"] = study.allocated_bytes(cell), 1
    for key, (value, least) in values.items():
        if value < least:
            raise StudyError(f"{key} is {value} for {study.cell_name(cell)}; it must be at least {least}", where=where)
    if cell.variant.allocates is None:
        study.check_reference(cell)


def _known_batches(experiment: Experiment, launches: Mapping[str, int], where: str) -> None:
    for name, count in launches.items():
        if name not in experiment.batches:
            raise StudyError(f"unknown metric batch {name!r}; {nearest(name, experiment.batches)}", where=where)
        if count < 1:
            raise StudyError(f"{name} needs at least one launch", where=where)
