"""Which cells a claim speaks of: selectors such as ``tiled, block 8, group 64x64, mode cold``, and the ways to combine them.

A selector is a variant (or a kernel of the published reference), then ``axis value`` for axes it takes. An axis that is
left out stays open: every configured value counts, and selectors used together share it. ``axis LOW..HIGH`` leaves it open
between two whole numbers. ``group`` defaults to the run's main group, for a variant that is not configured there to the first
group that has it, and ``mode`` to hot; ``*`` leaves them open in the same way. A list of selectors means each of them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transpose_study.analysis.measured import MODE
from transpose_study.errors import StudyError, nearest
from transpose_study.experiment import Experiment
from transpose_study.registry import Cell, Kernel, Value

ANY = "*"
GROUP, CACHE_MODE = "group", "mode"
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


@dataclass(frozen=True)
class Place:
    """One cell in one cache mode; ``free`` holds what its selector left open, which others used with it must share."""

    cell: Cell
    group: str
    mode: str
    free: tuple[tuple[str, Value], ...]


Binding = Mapping[str, Place]


@dataclass(frozen=True)
class Selector:
    """One alternative: a variant with the axes it fixes, and the ends of those it leaves open within ``ranges``."""

    text: str
    variant: str
    axes: Mapping[str, Value]
    ranges: Mapping[str, tuple[int, int]]
    group: str
    mode: str

    def means(self, cell: Cell) -> bool:
        """Whether the cell is one of those that the selector names, its group left aside."""
        values = cell.kernel_values
        if cell.variant.name != self.variant or any(values[a] != v for a, v in self.axes.items()):
            return False
        return all(low <= int(values[a]) <= high for a, (low, high) in self.ranges.items())


def parse_selectors(experiment: Experiment, given: Any, where: str) -> tuple[Selector, ...]:
    """The alternatives of a selector or of a list of them; unknown names are a StudyError with the nearest known one."""
    texts = given if isinstance(given, list) else [given]
    if not texts or not all(isinstance(t, str) for t in texts):
        raise StudyError(f"{given!r} names no cells", where=where, hint="write a variant and its axis values, or a list of such texts")
    return tuple(_parse(experiment, t, where) for t in texts)


def _parse(experiment: Experiment, text: str, where: str) -> Selector:
    study = experiment.study
    name, *rest = (p.strip() for p in text.split(","))
    published = (experiment.published or {}).get("kernels", {})
    if name not in study.variants and name in published:
        name, *more = (p.strip() for p in str(published[name]["cell"]).split(","))
        rest = [*more, *rest]
    if name not in study.variants:
        raise StudyError(f"unknown cell {name!r}; {nearest(name, [*study.variants, *published])}", where=where)
    takes = study.variants[name].takes
    values: dict[str, Value] = {}
    ranges: dict[str, tuple[int, int]] = {}
    for part in rest:
        key, _, value = (p.strip() for p in part.partition(" "))
        if key not in (*takes, GROUP, CACHE_MODE) or not value:
            what = f"{part!r} in {text!r} is no axis of {name} with a value" if key in takes or not value else f"unknown axis {key!r} in {text!r}"
            raise StudyError(f"{what}; {nearest(key, [*takes, GROUP, CACHE_MODE])}", where=where)
        between = _RANGE.fullmatch(value)
        if between and key in takes and not study.axes[key].words:
            ranges[key] = int(between[1]), int(between[2])
        else:
            values[key] = int(value) if value.isdigit() else value
    group, mode = str(values.pop(GROUP, _group_of(experiment, name))), str(values.pop(CACHE_MODE, MODE))
    if mode not in ("hot", "cold", ANY):
        raise StudyError(f"unknown cache mode {mode!r}; {nearest(mode, ['hot', 'cold', ANY])}", where=where)
    refusal = study.kernel_refusal(Kernel(study.variants[name], values))
    if refusal:
        raise StudyError(f"there is no cell {text!r}: {refusal}", where=where)
    return Selector(text, name, values, ranges, group, mode)


def _group_of(experiment: Experiment, variant: str) -> str:
    """The main group where it has the variant, else the first group that does, else the main group."""
    having = [g for g in experiment.groups if variant in (v.name for v in experiment.variants(g))]
    return having[0] if having and experiment.main_group not in having else experiment.main_group


def places(experiment: Experiment, selectors: Iterable[Selector]) -> list[Place]:
    """Every configured cell that a selector means, each once, in the order of selectors and registry."""
    found: dict[tuple[Cell, str, str], Place] = {}
    for s in selectors:
        for group in experiment.groups if s.group == ANY else [s.group]:
            if group not in experiment.groups:
                continue
            for mode in experiment.config.timing.cache_modes if s.mode == ANY else [s.mode]:
                for cell in experiment.cells(group):
                    if s.means(cell):
                        free = [(a, v) for a, v in cell.kernel_values.items() if a not in s.axes]
                        free += [(GROUP, group)] * (s.group == ANY) + [(CACHE_MODE, mode)] * (s.mode == ANY)
                        found.setdefault((cell, group, mode), Place(cell, group, mode, tuple(free)))
    return list(found.values())


def bindings(choices: Mapping[str, Sequence[Place]]) -> list[Binding]:
    """Every combination of one place for each alias in which what two of them leave open agrees."""
    found = []
    for combination in itertools.product(*choices.values()):
        shared: dict[str, Value] = {}
        if all(shared.setdefault(key, value) == value for place in combination for key, value in place.free):
            found.append(dict(zip(choices, combination, strict=True)))
    return found
