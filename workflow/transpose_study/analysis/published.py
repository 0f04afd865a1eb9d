"""tables/published.csv: every figure of the reference file beside the same figure measured on this device.

How a section is read follows from its form: quantity -> kernel -> figure; kernel -> figure (the section is the
quantity); name -> figure (computed by the file's ``formulas``); a list of entries (a scan, ``<axis>_scan``).
``null`` is a figure the publication does not give; text is no figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from transpose_study.analysis.formulas import Missing, evaluate
from transpose_study.analysis.measured import PAIRED, Measured, Tables, Used
from transpose_study.analysis.run import Run
from transpose_study.analysis.scan import SLOWER_THAN
from transpose_study.analysis.tables import Row, write_table
from transpose_study.errors import StudyError, nearest
from transpose_study.registry import Cell

COLUMNS = ["section", "kernel", "quantity", "published", "measured", "unit", "ratio", "cell", "source_table", "reason"]
NO_FIGURES = {"study", "kernels", "formulas", "scans"}
UNITS = {"_pct": "%", "_gb_s": "GB/s", "_mb": "MB", "_ms": "ms", "_us": "us", "_bytes": "bytes", "_per_request": "sectors/request"}


def write_published(run: Run, tables: Tables) -> list[Row]:
    """Write published.csv and return its rows; without a reference file it has only its header."""
    rows = list(_Reference(run, tables).rows()) if run.experiment.published else []
    write_table(run.experiment.paths.table("published"), COLUMNS, rows, run.provenance)
    return rows


@dataclass(frozen=True)
class _Figure:
    """One figure of the file; ``value`` is None where the publication gives none."""

    section: str
    kernel: str
    quantity: str
    value: float | bool | None


class _Reference:
    """The reference file, and what this device's tables have for its figures."""

    def __init__(self, run: Run, tables: Tables) -> None:
        self.study, self.data = run.study, run.experiment.published or {}
        self.where = f"config/reference/{run.experiment.config.report.published}.yaml"
        self.measured = Measured(run, tables, self.where)
        self.kernels: dict[str, str] = {k: str(v["cell"]) for k, v in self.data.get("kernels", {}).items()}
        protocol = self.data.get("protocol", {})
        missing = [a for a in run.study.group_axes if a not in protocol]
        if missing:
            raise StudyError(f"its protocol lacks {', '.join(missing)}", where=self.where)
        self.group = run.study.group_name({a: protocol[a] for a in run.study.group_axes})

    def rows(self) -> Iterator[Row]:
        """One row for each figure, in the file's order."""
        for section, content in self.data.items():
            if section not in NO_FIGURES:
                yield from self._section(section, content)

    def _section(self, section: str, content: Any) -> Iterator[Row]:
        if isinstance(content, list):
            for entry in content:
                if isinstance(entry, dict):
                    yield from self._scan_entry(section, entry)
        elif isinstance(content, dict) and content and set(content) <= set(self.kernels):
            for kernel, value in content.items():
                yield self._computed(_Figure(section, kernel, section, value))
        elif isinstance(content, dict):
            for quantity, value in content.items():
                if isinstance(value, dict):
                    for kernel, figure in value.items():
                        yield self._computed(_Figure(section, kernel, quantity, figure))
                elif not isinstance(value, str):
                    yield self._computed(_Figure(section, "", quantity, value))

    def _computed(self, figure: _Figure) -> Row:
        formula = str(self.data.get("formulas", {}).get(figure.quantity, figure.quantity))
        own = (figure.kernel,) if figure.kernel else ()

        def compute(used: Used) -> float:
            return evaluate(formula, lambda q, k: self._lookup(q, k or own, used), where=f"{self.where}, {figure.quantity}")

        return self._row(figure, compute, self._unit(figure, formula))

    def _row(self, figure: _Figure, compute: Callable[[Used], float], unit: str) -> Row:
        used, measured, ratio = Used(), None, None
        reason = "" if figure.value is not None else "the publication gives no figure here"
        try:
            measured = compute(used)
        except Missing as missing:
            reason = str(missing)
        published = float(figure.value) if figure.value is not None else None
        if published and measured is not None and not isinstance(figure.value, bool):
            ratio = measured / published
        cells = dict.fromkeys(self.kernels.get(k, k) for k in used.kernels)
        return {
            "section": figure.section, "kernel": figure.kernel, "quantity": figure.quantity, "published": published, "measured": measured,
            "unit": unit, "ratio": ratio, "cell": "; ".join(cells), "source_table": "; ".join(dict.fromkeys(used.tables)), "reason": reason,
        }  # fmt: skip

    def _unit(self, figure: _Figure, formula: str) -> str:
        if isinstance(figure.value, bool):
            return "yes = 1"
        unit = self.measured.units.get(figure.quantity) or self.measured.units.get(formula)
        if unit is None and figure.quantity.startswith("percent_"):
            unit = "%"
        return unit or next((u for suffix, u in UNITS.items() if figure.quantity.endswith(suffix)), "")

    def _lookup(self, quantity: str, kernels: tuple[str, ...], used: Used) -> float:
        if not kernels:
            return self.measured.fact(quantity, self.group, used)
        used.kernels += kernels
        wanted = 2 if quantity in PAIRED else 1
        if len(kernels) != wanted:
            form = f"{quantity}[kernel, other]" if wanted == 2 else f"{quantity}[kernel]"
            raise StudyError(f"{quantity} is written {form}", where=f"{self.where}, formulas")
        cells = [self._cell(k) for k in kernels]
        if wanted == 2:
            return self.measured.of_pair(quantity, cells[0], cells[1], used)
        return self.measured.of_cell(quantity, cells[0], used)

    def _cell(self, kernel: str) -> Cell:
        """The configured cell that a published kernel is, from text such as ``variant, axis value``."""
        where = f"{self.where}, kernels"
        if kernel not in self.kernels:
            raise StudyError(f"unknown kernel {kernel!r}; {nearest(kernel, self.kernels)}", where=where)
        name, *axes = (p.strip() for p in self.kernels[kernel].split(","))
        values = {}
        for text in axes:
            axis, _, value = text.partition(" ")
            values[axis] = _axis_value(value)
        if name not in self.study.variants:
            raise StudyError(f"unknown variant {name!r}; {nearest(name, self.study.variants)}", where=where)
        takes = self.study.variants[name].takes
        if set(values) != set(takes):
            raise StudyError(f"{name} takes {', '.join(takes) or 'no axis'}, the cell of {kernel} gives {', '.join(values) or 'none'}", where=where)
        return self.measured.cell(self.group, name, values)

    def _scan_entry(self, section: str, entry: dict[str, Any]) -> Iterator[Row]:
        axis = section.removesuffix("_scan")
        if axis not in entry:
            raise StudyError(f"an entry of {section} lacks {axis}", where=self.where)
        variant = self.data.get("scans", {}).get(section)
        if variant is None:
            raise StudyError(f"does not say which variant {section} is of", where=self.where, hint=f"add scans: {{{section}: VARIANT}}")
        label = f"{axis} {entry[axis]}"
        for quantity, value in entry.items():
            if quantity == axis:
                continue

            def compute(used: Used, quantity: str = quantity) -> float:
                used.kernels.append(f"{variant}, {label}")
                return self._scanned(variant, {axis: entry[axis]}, quantity, used)

            figure = _Figure(section, label, quantity, value)
            yield self._row(figure, compute, self._unit(figure, quantity))

    def _scanned(self, variant: str, place: dict[str, Any], quantity: str, used: Used) -> float:
        (axis,) = place
        slower = SLOWER_THAN.fullmatch(quantity)
        if slower:  # by the means, as published; the scan's own table has the paired medians beside it
            other = {axis: _axis_value(slower["value"])}
            own, reference = (self._scanned(variant, p, "mean_ms", used) for p in (place, other))
            return 100 * (own / reference - 1)
        return self.measured.of_scan(axis, quantity, self.measured.cell(self.group, variant, place), used)


def _axis_value(text: str) -> int | str:
    return int(text) if text.isdigit() else text
