"""Looks up measured quantities in the finished tables: of one cell, of a pair of cells, of device and shape."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from transpose_study.analysis.formulas import Missing
from transpose_study.analysis.raw import Key
from transpose_study.analysis.run import NOT_MEASURED, OK, Run
from transpose_study.analysis.tables import Row
from transpose_study.analysis.timings import STATISTICS, paired
from transpose_study.errors import StudyError, nearest
from transpose_study.registry import Cell

PAIRED = {"speedup": "median", "speedup_low": "low", "speedup_high": "high"}  # how many times faster than the other cell
MODE = "hot"  # what the study timed: back-to-back launches on the same buffers


@dataclass(frozen=True)
class Tables:
    """The rows of the finished tables, ``scans`` by axis."""

    timings: list[Row]
    counters: list[Row]
    occupancy: list[Row]
    scans: Mapping[str, list[Row]]


@dataclass
class Used:
    """Which kernels and tables a looked-up figure came from, in order of use."""

    kernels: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)


class Measured:
    """Measured quantities by cell; a value that is not there raises :class:`Missing` with the reason of its table."""

    def __init__(self, run: Run, tables: Tables, where: str) -> None:
        self.run, self.where = run, where
        self.units = {r["quantity"]: r["unit"] for r in tables.counters}
        self._timings = {self._key(r): r for r in tables.timings if r["cache_mode"] == MODE}
        self._occupancy = {self._key(r): r for r in tables.occupancy}
        self._scans = {a: {self._key(r): r for r in rows if r["cache_mode"] == MODE} for a, rows in tables.scans.items()}
        self._counters: dict[Key, dict[str, Row]] = {}
        for row in tables.counters:
            self._counters.setdefault(self._key(row), {})[row["quantity"]] = row

    def _key(self, row: Row) -> Key:
        return tuple(str(row[c]) for c in self.run.study.key_columns)

    def of_cell(self, quantity: str, cell: Cell, used: Used) -> float:
        """A quantity of a cell: a column of timings.csv or occupancy.csv, or a quantity of counters.csv (its mean)."""
        key = self.run.key(cell)
        counters, occupancy = self._counters.get(key, {}), self._occupancy[key]
        if quantity == "blocks":
            used.tables.append("run_config")
            return float(self.run.study.geometry(cell).blocks)
        sources = []
        if quantity in STATISTICS:
            row = self._timings.get(key) or {"reason": f"{NOT_MEASURED}: the cache mode {MODE} is not configured"}
            sources.append(("timings", row.get(quantity), row["reason"]))
        if quantity in counters:
            sources.append(("counters", counters[quantity].get("mean"), counters[quantity]["reason"]))
        if quantity in occupancy:
            sources.append(("occupancy", occupancy[quantity], occupancy["reason"]))
        if quantity == "ncu_launches":
            launches = max((r["launches"] for r in counters.values()), default=0)
            sources.append(("counters", launches or None, next((r["reason"] for r in counters.values() if r["reason"]), "")))
        if not sources:
            known = [*STATISTICS, *counters, *occupancy, *PAIRED, "blocks", "ncu_launches"]
            raise StudyError(f"{quantity!r} is no measured quantity; {nearest(quantity, known)}", where=self.where)
        for table, value, _ in sources:
            if value is not None and not math.isnan(value):
                used.tables.append(table)
                return float(value)
        raise Missing(next((reason for *_, reason in sources if reason), NOT_MEASURED))

    def of_pair(self, quantity: str, first: Cell, second: Cell, used: Used) -> float:
        """How many times faster the first cell is than the second, paired by round: median, or an end of its interval."""
        group = self.run.study.group_name(first.group)
        ratio = paired(self.run, group, second, first, MODE)
        if ratio is None:
            status = [s for c in (first, second) if (s := self.run.status(group, c, MODE)).status != OK]
            raise Missing(status[0].reason if status else f"{NOT_MEASURED}: no round holds both kernels")
        value = float(getattr(ratio, PAIRED[quantity]))
        if math.isnan(value):
            raise Missing("one pair of samples has no interval")
        used.tables.append("timings")
        return value

    def of_scan(self, axis: str, quantity: str, cell: Cell, used: Used) -> float:
        """A column of an axis's own table."""
        row = self._scans.get(axis, {}).get(self.run.key(cell))
        if row is None:
            raise Missing(f"{NOT_MEASURED}: the cache mode {MODE} is not configured")
        if row.get(quantity) is None:
            raise Missing(row["reason"] or f"the table {axis} has no {quantity}")
        used.tables.append(axis)
        return float(row[quantity])

    def fact(self, name: str, group: str, used: Used) -> float:
        """A fact of the device, or of a shape: its axes, elements and bytes."""
        gpu = self.run.experiment.gpu | {"peak_gb_s": self.run.experiment.peak_gb_s}
        if isinstance(gpu.get(name), int | float):
            used.tables.append("environment")
            return float(gpu[name])
        study = self.run.study
        facts = {"elements": study.element_count, "matrix_bytes": study.matrix_bytes, "effective_bytes": study.effective_bytes}
        if name not in facts and name not in study.group_axes:
            raise Missing(f"no formula says how {name} is computed ({self.where}, formulas)")
        values = self._group(group)
        used.tables.append("run_config")
        return float(facts[name](values) if name in facts else values[name])

    def cell(self, group: str, variant: str, values: dict[str, int | str]) -> Cell:
        """The configured cell of that variant and axis values."""
        self._group(group)
        cell = self.run.find(group, variant, values)
        if cell is None:
            text = ", ".join([variant, *(f"{a} {v}" for a, v in values.items())])
            raise Missing(f"{NOT_MEASURED}: {text} is not configured at {group}")
        return cell

    def _group(self, group: str) -> dict[str, int]:
        if group not in self.run.experiment.groups:
            raise Missing(f"{NOT_MEASURED}: the published {group} is not configured")
        return self.run.experiment.groups[group].values
