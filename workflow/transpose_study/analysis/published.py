"""tables/published.csv: every figure of the reference file beside the same figure measured on this device.

How a section is read follows from its form: quantity -> kernel -> figure; kernel -> figure (the section is the
quantity); name -> figure (computed by the file's ``formulas``); a list of entries (a scan of the axis ``<axis>_scan``).
``null`` is a figure the publication does not give; text is no figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from transpose_study.analysis.formulas import Missing, evaluate
from transpose_study.analysis.run import NOT_MEASURED, OK, Run
from transpose_study.analysis.scan import SLOWER_THAN
from transpose_study.analysis.tables import Row, write_table
from transpose_study.analysis.timings import STATISTICS, paired
from transpose_study.errors import StudyError, nearest
from transpose_study.registry import Cell

COLUMNS = ["section", "kernel", "quantity", "published", "measured", "unit", "ratio", "cell", "source_table", "reason"]
NO_FIGURES = {"study", "kernels", "formulas", "scans"}
PAIRED = {"speedup": "median", "speedup_low": "low", "speedup_high": "high"}
MODE = "hot"  # what the study timed: back-to-back launches on the same buffers
UNITS = {"_pct": "%", "_gb_s": "GB/s", "_mb": "MB", "_ms": "ms", "_us": "us", "_bytes": "bytes", "_per_request": "sectors/request"}


@dataclass
class _Used:
    """Which kernels and tables a measured figure came from."""

    kernels: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)


def write_published(run: Run, timings: list[Row], counters: list[Row], occupancy: list[Row], scans: Mapping[str, list[Row]]) -> list[Row]:
    """Write published.csv and return its rows; without a reference file it has only its header."""
    data = run.experiment.published
    rows = _Reference(run, data, timings, counters, occupancy, scans).rows() if data else []
    write_table(run.experiment.paths.table("published"), COLUMNS, rows)
    return rows


class _Reference:
    """The reference file together with this device's tables."""

    def __init__(
        self, run: Run, data: dict[str, Any], timings: list[Row], counters: list[Row], occupancy: list[Row], scans: Mapping[str, list[Row]]
    ) -> None:
        self.run, self.data, self.scans = run, data, scans
        self.where = f"config/reference/{run.experiment.config.report.published}.yaml"
        names = run.study.key_columns

        def key(row: Row) -> tuple[str, ...]:
            return tuple(str(row[c]) for c in names)

        self.timings = {key(r): r for r in timings if r["cache_mode"] == MODE}
        self.occupancy = {key(r): r for r in occupancy}
        self.counters: dict[tuple[str, ...], dict[str, Row]] = {}
        for row in counters:
            self.counters.setdefault(key(row), {})[row["quantity"]] = row
        self.units = {r["quantity"]: r["unit"] for r in counters}
        self.group = run.study.group_name({a: data["protocol"][a] for a in run.study.group_axes})
        self.kernels: dict[str, str] = {k: str(v["cell"]) for k, v in data.get("kernels", {}).items()}

    def rows(self) -> list[Row]:
        """One row for each figure."""
        return [row for section, content in self.data.items() if section not in NO_FIGURES for row in self._section(section, content)]

    def _section(self, section: str, content: Any) -> Iterator[Row]:
        if isinstance(content, list):
            for entry in content:
                if isinstance(entry, dict):
                    yield from self._scan_entry(section, entry)
        elif isinstance(content, dict) and content and set(content) <= set(self.kernels):
            for kernel, value in content.items():
                yield self._row(section, kernel, section, value)
        elif isinstance(content, dict):
            for quantity, value in content.items():
                if isinstance(value, dict):
                    for kernel, figure in value.items():
                        yield self._row(section, kernel, quantity, figure)
                elif not isinstance(value, str):
                    yield self._row(section, "", quantity, value)

    def _row(self, section: str, kernel: str, quantity: str, value: Any) -> Row:
        formula = str(self.data.get("formulas", {}).get(quantity, quantity))
        used = _Used()
        measured, reason = None, ""
        try:
            measured = evaluate(formula, lambda q, k: self._lookup(q, k or ((kernel,) if kernel else ()), used), where=f"{self.where}, {quantity}")
        except Missing as missing:
            reason = str(missing)
        unit = "yes = 1" if isinstance(value, bool) else self._unit(quantity, formula)
        return self._finish(section, kernel, quantity, value, measured, reason, unit, used)

    def _finish(
        self, section: str, kernel: str, quantity: str, value: Any, measured: float | None, reason: str, unit: str, used: _Used
    ) -> Row:
        published = float(value) if isinstance(value, bool | int | float) else None
        if value is None and not reason:
            reason = "the publication gives no figure here"
        ratio = None
        if published and measured is not None and not isinstance(value, bool):
            ratio = measured / published
        cells = "; ".join(dict.fromkeys(self.kernels.get(k, k) for k in used.kernels))
        return {
            "section": section, "kernel": kernel, "quantity": quantity, "published": published, "measured": measured, "unit": unit,
            "ratio": ratio, "cell": cells, "source_table": "; ".join(dict.fromkeys(used.tables)), "reason": reason,
        }  # fmt: skip

    def _unit(self, quantity: str, formula: str) -> str:
        if quantity in self.units or formula in self.units:
            return self.units.get(quantity) or self.units[formula]
        return next((u for suffix, u in UNITS.items() if quantity.endswith(suffix)), "")

    # -- where a measured value comes from ---------------------------------------------------------------------------

    def _lookup(self, quantity: str, kernels: tuple[str, ...], used: _Used) -> float:
        if not kernels:
            return self._fact(quantity, used)
        used.kernels += kernels
        cells = [self._cell(k) for k in kernels]
        if quantity in PAIRED:
            if len(cells) != 2:
                raise StudyError(f"{quantity} compares two kernels: {quantity}[kernel, other]", where=self.where)
            return self._paired(quantity, *cells, used)
        if len(cells) != 1:
            raise StudyError(f"{quantity} is of one kernel: {quantity}[kernel]", where=self.where)
        return self._of_cell(quantity, cells[0], used)

    def _of_cell(self, quantity: str, cell: Cell, used: _Used) -> float:
        key = self.run.key(cell)
        counters = self.counters.get(key, {})
        sources = []
        if quantity in STATISTICS:
            row = self.timings.get(key)
            sources.append(("timings", row.get(quantity) if row else None, row["reason"] if row else f"{NOT_MEASURED}: {MODE} is not configured"))
        if quantity in counters:
            sources.append(("counters", counters[quantity].get("mean"), counters[quantity]["reason"]))
        if quantity in self.occupancy[key]:
            sources.append(("occupancy", self.occupancy[key][quantity], self.occupancy[key]["reason"]))
        if quantity == "ncu_launches":
            launches = max((r["launches"] for r in counters.values()), default=0)
            sources.append(("counters", launches or None, next((r["reason"] for r in counters.values() if r["reason"]), NOT_MEASURED)))
        if quantity == "blocks":
            return float(self.run.study.geometry(cell).blocks)
        if not sources:
            known = [*STATISTICS, *counters, *self.occupancy[key], *PAIRED, "blocks", "ncu_launches"]
            raise StudyError(f"{quantity!r} is no measured quantity; {nearest(quantity, known)}", where=self.where)
        for table, value, _ in sources:
            if value is not None and not (isinstance(value, float) and math.isnan(value)):
                used.tables.append(table)
                return float(value)
        raise Missing(next((reason for *_, reason in sources if reason), NOT_MEASURED))

    def _paired(self, quantity: str, first: Cell, second: Cell, used: _Used) -> float:
        ratio = paired(self.run, self.group, second, first, MODE)
        if ratio is None:
            status = [s for c in (first, second) if (s := self.run.status(self.group, c, MODE)).status != OK]
            raise Missing(status[0].reason if status else f"{NOT_MEASURED}: no round holds both kernels")
        value = float(getattr(ratio, PAIRED[quantity]))
        if math.isnan(value):
            raise Missing("one pair of samples has no interval")
        used.tables.append("timings")
        return value

    def _fact(self, name: str, used: _Used) -> float:
        gpu = self.run.experiment.gpu | {"peak_gb_s": self.run.experiment.peak_gb_s}
        if isinstance(gpu.get(name), int | float):
            used.tables.append("environment")
            return float(gpu[name])
        study, group = self.run.study, self.run.experiment.groups.get(self.group)
        facts = {"elements": study.element_count, "matrix_bytes": study.matrix_bytes, "effective_bytes": study.effective_bytes}
        if name in facts or name in study.group_axes:
            if group is None:
                raise Missing(self._unconfigured())
            used.tables.append("run_config")
            return float(facts[name](group.values) if name in facts else group.values[name])
        raise Missing(f"no formula says how {name} is computed ({self.where}, formulas)")

    def _unconfigured(self) -> str:
        return f"{NOT_MEASURED}: the published {self.group} is not configured"

    def _cell(self, kernel: str) -> Cell:
        """The configured cell that a published kernel is."""
        if kernel not in self.kernels:
            raise StudyError(f"unknown kernel {kernel!r}; {nearest(kernel, self.kernels)}", where=self.where)
        name, *axes = (p.strip() for p in self.kernels[kernel].split(","))
        values = dict(_axis_value(a, f"{self.where}, kernel {kernel}") for a in axes)
        variant = self.run.study.variant(name)
        if set(values) != set(variant.takes):
            raise StudyError(f"{name} takes {', '.join(variant.takes) or 'no axis'}, the cell names {', '.join(values) or 'none'}",
                             where=f"{self.where}, kernel {kernel}")  # fmt: skip
        return self._configured(name, values)

    def _configured(self, name: str, values: dict[str, int | str]) -> Cell:
        if self.group not in self.run.cells:
            raise Missing(self._unconfigured())
        cell = self.run.find(self.group, name, values)
        if cell is None:
            text = ", ".join([name, *(f"{a} {v}" for a, v in values.items())])
            raise Missing(f"{NOT_MEASURED}: {text} is not configured at {self.group}")
        return cell

    # -- scans ---------------------------------------------------------------------------------------------------------

    def _scan_entry(self, section: str, entry: dict[str, Any]) -> Iterator[Row]:
        axis = section.removesuffix("_scan")
        if axis not in entry:
            raise StudyError(f"an entry of the scan {section} lacks {axis}", where=self.where)
        variant = self.data.get("scans", {}).get(section)
        if variant is None:
            raise StudyError(f"does not say which variant {section} scans", where=self.where, hint=f"add scans: {{{section}: VARIANT}}")
        label = f"{axis} {entry[axis]}"
        for quantity, value in entry.items():
            if quantity == axis:
                continue
            used = _Used(kernels=[f"{variant}, {label}"])
            measured, reason = None, ""
            try:
                measured = self._scanned(variant, axis, entry[axis], quantity)
                used.tables.append(axis)
            except Missing as missing:
                reason = str(missing)
            yield self._finish(section, label, quantity, value, measured, reason, self._unit(quantity, quantity), used)

    def _scanned(self, variant: str, axis: str, value: Any, quantity: str) -> float:
        slower = SLOWER_THAN.fullmatch(quantity)
        if slower:  # by the means, as published; the scan's table has the paired medians beside it
            other = slower["value"]
            other_value = int(other) if other.isdigit() else other
            own, reference = (self._scanned(variant, axis, v, "mean_ms") for v in (value, other_value))
            return 100 * (own / reference - 1)
        key = self.run.key(self._configured(variant, {axis: value}))
        row = next((r for r in self.scans.get(axis, ()) if tuple(str(r[c]) for c in self.run.study.key_columns) == key and r["cache_mode"] == MODE), None)
        if row is None:
            raise Missing(f"{NOT_MEASURED}: {MODE} is not configured")
        if row.get(quantity) is None:
            raise Missing(row["reason"] or f"the table {axis} has no {quantity}")
        return float(row[quantity])


def _axis_value(text: str, where: str) -> tuple[str, int | str]:
    axis, _, value = text.partition(" ")
    if not value:
        raise StudyError(f"{text!r} is no axis with a value", where=where, hint="write variant, axis value")
    return axis, int(value) if value.isdigit() else value
