"""Reading of the raw files: check verdicts, timing samples, counter values, build records; every mistake named by line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.records import read_csv, read_json
from transpose_study.registry import Cell, Study
from transpose_study.stats import Series

Key = tuple[str, ...]

CHECK_COLUMNS = ["status", "reason", "row", "col", "expected", "got"]
CHECK_STATUS = ("ok", "not measured", "skipped", "failed", "wrong")
TIMING_COLUMNS = [
    "cache_mode", "replicate", "process", "round", "order", "launches", "sample_us",
    "sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w", "throttle_reasons",
]  # fmt: skip
COUNTER_COLUMNS = ["batch", "launch", "quantity", "metric", "value", "unit", "reason"]
UNKNOWN = -1  # throttle reasons that the driver does not tell
SENSORS = ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w")


def cell_key(study: Study, cell: Cell) -> Key:
    """The cell's identifying columns as the raw files write them."""
    return tuple(str(v) for v in study.key(cell).values())


@dataclass(frozen=True)
class Samples:
    """Timing samples of one cell, cache mode and replicate, in the order of process and round (all shape n)."""

    series: Series
    launches: NDArray[np.int64]
    sensors: Mapping[str, NDArray[np.float64]]
    throttle: NDArray[np.int64]


@dataclass(frozen=True)
class Timing:
    """All samples of one group by (cell, cache mode, replicate); ``absent`` says why there are none at all."""

    path: Path
    samples: Mapping[tuple[Key, str, str], Samples] = field(default_factory=dict)
    absent: str = ""


@dataclass(frozen=True)
class CounterValue:
    """One value that ncu read in one launch; NaN with a reason where it read none."""

    launch: int
    metric: str
    batch: str
    unit: str
    value: float
    reason: str


@dataclass(frozen=True)
class Counters:
    """All counter values of one group by cell and quantity; ``absent`` says why there are none at all."""

    path: Path
    values: Mapping[Key, Mapping[str, Sequence[CounterValue]]] = field(default_factory=dict)
    absent: str = ""


def _missing(experiment: Experiment, path: Path, stage: str) -> str:
    """The reason for a missing raw file in a replay; in a live run it is an error."""
    if experiment.replay:
        return f"not measured: not in {experiment.target['archive']}"
    raise StudyError("this raw file is missing", where=str(path), hint=f"run the step that makes it ({stage}), or snakemake again")


class _Table:
    """Rows of a raw CSV, and its mistakes named by line and column."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path, self.rows = path, read_csv(path, columns)

    def wrong(self, row: Mapping[str, str], column: str, what: str) -> StudyError:
        """The error for one field; a quoted field of several lines before it counts as so many lines."""
        number = next(i for i, r in enumerate(self.rows) if r is row)
        line = 2 + number + sum(field.count("\n") for r in self.rows[:number] for field in r.values())
        return StudyError(f"line {line}, column {column}: {row[column]!r} is {what}", where=str(self.path))

    def real(self, row: Mapping[str, str], column: str) -> float:
        """A field as a finite number."""
        try:
            value = float(row[column])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.wrong(row, column, "no number")
        return value

    def whole(self, row: Mapping[str, str], column: str, base: int = 10) -> int:
        """A field as a whole number."""
        try:
            return int(row[column], base)
        except ValueError:
            raise self.wrong(row, column, "no whole number" if base == 10 else "no hexadecimal number") from None


def read_check(experiment: Experiment) -> dict[Key, dict[str, str]]:
    """The verdict of every checked cell, edge shapes included, by cell key."""
    path = experiment.paths.check
    if not path.exists():
        _missing(experiment, path, "check")
        return {}
    columns = experiment.study.key_columns
    table = _Table(path, [*columns, *CHECK_COLUMNS])
    found: dict[Key, dict[str, str]] = {}
    for row in table.rows:
        if row["status"] not in CHECK_STATUS:
            raise table.wrong(row, "status", f"none of {', '.join(CHECK_STATUS)}")
        key = tuple(row[c] for c in columns)
        # A shape may stand there twice, as an edge shape and as a configured one: the worse verdict counts.
        if key not in found or CHECK_STATUS.index(row["status"]) > CHECK_STATUS.index(found[key]["status"]):
            found[key] = row
    return found


def read_timing(experiment: Experiment, group: str) -> Timing:
    """The timing samples of a group."""
    path = experiment.paths.timing(group)
    if not path.exists():
        return Timing(path, absent=_missing(experiment, path, "time"))
    columns = experiment.study.key_columns
    table = _Table(path, [*columns, *TIMING_COLUMNS])
    found: dict[tuple[Key, str, str], list[tuple[float, ...]]] = {}
    for row in table.rows:
        sample = table.real(row, "sample_us")
        if sample <= 0:
            raise table.wrong(row, "sample_us", "no duration above 0")
        place = [table.whole(row, c) for c in ("process", "round")]
        sensors = [table.real(row, c) if row[c] else math.nan for c in SENSORS]
        throttle = table.whole(row, "throttle_reasons", 16) if row["throttle_reasons"] else UNKNOWN
        key = (tuple(row[c] for c in columns), row["cache_mode"], row["replicate"])
        found.setdefault(key, []).append((*place, sample, table.whole(row, "launches"), *sensors, throttle))
    return Timing(path, {key: _samples(key, rows, path) for key, rows in found.items()})


def _samples(key: tuple[Key, str, str], rows: list[tuple[float, ...]], path: Path) -> Samples:
    table = np.array(sorted(rows), dtype=float)
    process, number = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    again = (np.diff(process) == 0) & (np.diff(number) == 0)
    if again.any():
        at = int(np.argmax(again))
        cell = ", ".join([*(k for k in key[0] if k), *key[1:]])
        raise StudyError(f"holds two samples of {cell} for process {process[at]}, round {number[at]}", where=str(path))
    sensors = {name: table[:, 4 + i] for i, name in enumerate(SENSORS)}
    throttle = table[:, 4 + len(SENSORS)].astype(np.int64)
    return Samples(Series(table[:, 2], process, number), table[:, 3].astype(np.int64), sensors, throttle)


def read_counters(experiment: Experiment, group: str) -> Counters:
    """The counter values of a group; empty with a reason where profiling is off."""
    path = experiment.paths.counters(group)
    if not experiment.config.profile.enabled:
        return Counters(path, absent="profiling is switched off in the configuration")
    if not path.exists():
        return Counters(path, absent=_missing(experiment, path, "profile"))
    columns = experiment.study.key_columns
    table = _Table(path, [*columns, *COUNTER_COLUMNS])
    found: dict[Key, dict[str, list[CounterValue]]] = {}
    for row in table.rows:
        value, reason = math.nan, row["reason"] or "the raw file gives neither a value nor a reason"
        if row["value"]:
            value, reason = table.real(row, "value"), row["reason"]
        launch = table.whole(row, "launch") if row["launch"] else 0
        entry = CounterValue(launch, row["metric"], row["batch"], row["unit"], value, reason)
        found.setdefault(tuple(row[c] for c in columns), {}).setdefault(row["quantity"], []).append(entry)
    for quantities in found.values():
        for entries in quantities.values():
            entries.sort(key=lambda e: (e.launch, e.metric, e.reason, e.value))
    return Counters(path, found)


def read_build(experiment: Experiment, cell: Cell) -> dict[str, Any]:
    """The build record of the cell's kernel; ``{}`` for a copy that the driver makes."""
    if cell.variant.no_kernel:
        return {}
    path = experiment.paths.kernel(experiment.architecture, experiment.study.kernel_name(cell), "json")
    if not path.exists():
        raise StudyError("this build record is missing", where=str(path), hint="run the step build, or snakemake again")
    record = read_json(path)
    if not isinstance(record, dict) or "status" not in record:
        raise StudyError("is no build record: it has no status", where=str(path), hint="delete it and run snakemake again")
    return record
