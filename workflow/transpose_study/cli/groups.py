"""Which groups (shapes, experiments) a command may mean: those that a study's configuration names, or one read by its pattern of names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from transpose_study.errors import StudyError
from transpose_study.records import read_yaml
from transpose_study.registry import Study, Variant


def configuration_of(study: Study) -> tuple[Path | None, dict[str, Any]]:
    """The configuration file of this study, and what it holds."""
    for path in (Path("config") / "config.yaml", Path("config") / f"{study.name}.yaml"):
        data = read_yaml(path) if path.is_file() else None
        if isinstance(data, dict) and data.get("study", "transpose") == study.name:
            return path, data
    return None, {}


def configured_groups(study: Study, variant: Variant) -> dict[str, dict[str, Any]]:
    """The groups of the study's configuration that hold the variant, by name."""
    configured = {}
    shapes = configuration_of(study)[1].get("shapes")
    for entry in shapes if isinstance(shapes, list) else ():
        if isinstance(entry, dict) and set(study.group_axes) <= set(entry) and variant.name in (entry.get("variants") or (variant.name,)):
            group = {a: entry[a] for a in study.group_axes}
            configured[study.group_name(group)] = group
    return configured


def group_named(study: Study, variant: Variant, shape: str | None) -> dict[str, Any]:
    """The group of that name: a configured one, else one read by the study's pattern of names. Without a name the variant's only one.

    A word (an experiment) must be configured: the pattern stands for numbers.
    """
    configured = configured_groups(study, variant)
    if shape is None and len(configured) == 1:
        return next(iter(configured.values()))
    hint = f"configured for {variant.name}: {', '.join(configured) or 'none'}"
    if shape is None:
        raise StudyError("a measurement needs a shape", where="--shape", hint=hint)
    if shape in configured:
        return configured[shape]
    pattern = study.group_name({a: f"(?P<{a}>[0-9]{{1,20}})" for a in study.group_axes})
    match = re.fullmatch(pattern, shape, re.ASCII)
    if match is None or any(study.axes[a].words for a in study.group_axes):
        raise StudyError(f"{shape!r} is no shape", where="--shape", hint=hint)
    return {a: int(v) for a, v in match.groupdict().items()}
