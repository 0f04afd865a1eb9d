"""One table for each axis that selects code: how a variant's time changes along it, against its fastest value."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from transpose_study.analysis.run import Run
from transpose_study.analysis.tables import Row, write_table
from transpose_study.analysis.timings import paired
from transpose_study.cells import Axis
from transpose_study.registry import Cell, Value
from transpose_study.stats import Interval

SLOWER_THAN = re.compile(r"slower_than_(?P<value>\w+)_pct")
ALIGNED = 1024  # a multiple of every tile and block in use


def scan_axes(run: Run) -> list[Axis]:
    """The axes that select code and that a configured variant takes: each has a table of its name."""
    return [run.study.axes[a] for a in run.experiment.scan_axes()]


def published_scan(run: Run, axis: Axis) -> list[dict[str, Any]]:
    """The published scan of that axis (``<axis>_scan`` in the reference file), or an empty list."""
    return list((run.experiment.published or {}).get(f"{axis.name}_scan", []))


def published_best(run: Run, axis: Axis) -> Value | None:
    """The axis value that the published scan compares with, read from its key ``slower_than_<value>_pct``."""
    for entry in published_scan(run, axis):
        for key in entry:
            match = SLOWER_THAN.fullmatch(key)
            if match:
                text = match["value"]
                return int(text) if text.isdigit() else text
    return None


def elements_per_thread(run: Run, cell: Cell) -> int | float | None:
    """Elements a thread handles in a full block: at sizes rounded up so that no block hangs over the edge."""
    group = {a: -(-v // ALIGNED) * ALIGNED if isinstance(v, int) else v for a, v in cell.group.items()}
    whole = Cell(cell.variant, cell.kernel_values, group)
    geometry = run.study.geometry(whole)
    threads = geometry.blocks * geometry.threads
    if not threads:
        return None
    count = Fraction(run.study.element_count(group), threads)
    return int(count) if count.denominator == 1 else float(count)


def write_scans(run: Run, timings: list[Row]) -> dict[str, list[Row]]:
    """Write one table for each scan axis; return the rows by axis name."""
    by_cell = {(*(str(r[c]) for c in run.study.key_columns), r["cache_mode"]): r for r in timings}
    tables: dict[str, list[Row]] = {}
    for axis in scan_axes(run):
        slower = [
            f"slower_than_{what}_pct{end}"
            for what in ("best", *(["published_best"] if published_best(run, axis) is not None else []))
            for end in ("", "_low", "_high")
        ]
        columns = [
            *run.study.key_columns, "cache_mode", "threads_per_block", "elements_per_thread", "mean_ms", "median_ms", *slower,
            "best", "status", "reason",
        ]  # fmt: skip
        rows: list[Row] = []
        for cells in run.cells.values():
            for cell in cells:
                if axis.name in cell.variant.takes:
                    rows += [_row(run, axis, cell, mode, by_cell) for mode in run.experiment.config.timing.cache_modes]
        write_table(run.experiment.paths.table(axis.name), columns, rows, run.provenance)
        tables[axis.name] = rows
    return tables


def _row(run: Run, axis: Axis, cell: Cell, mode: str, by_cell: dict[tuple[str, ...], Row]) -> Row:
    group = run.study.group_name(cell.group)
    timing = by_cell[(*run.key(cell), mode)]
    row: Row = {**run.columns(cell), "cache_mode": mode, "status": timing["status"], "reason": timing["reason"]}
    if not run.study.cell_refusal(cell):
        row["threads_per_block"] = run.study.geometry(cell).threads
        row["elements_per_thread"] = elements_per_thread(run, cell)
    if "median_us" not in timing:
        return row
    family = [
        c
        for c in run.cells[group]
        if c.variant.name == cell.variant.name
        and all(c.kernel_values[a] == v for a, v in cell.kernel_values.items() if a != axis.name)
        and "median_us" in by_cell[(*run.key(c), mode)]
    ]
    best = min(family, key=lambda c: by_cell[(*run.key(c), mode)]["median_us"])
    row |= {"mean_ms": timing["mean_us"] / 1e3, "median_ms": timing["median_us"] / 1e3, "best": best is cell}
    row |= _slower("slower_than_best_pct", paired(run, group, cell, best, mode))
    wanted = published_best(run, axis)
    reference = next((c for c in family if c.kernel_values[axis.name] == wanted), None)
    if reference:
        row |= _slower("slower_than_published_best_pct", paired(run, group, cell, reference, mode))
    return row


def _slower(name: str, ratio: Interval | None) -> Row:
    """Per cent by which the time is longer, from a ratio of times."""
    if ratio is None:
        return {}
    return {f"{name}{end}": 100 * (v - 1) for end, v in (("", ratio.median), ("_low", ratio.low), ("_high", ratio.high))}
