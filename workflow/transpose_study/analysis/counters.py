"""tables/counters.csv and opcodes.csv: means over ncu launches, derived quantities, instructions by opcode."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from transpose_study.analysis.raw import CounterValue
from transpose_study.analysis.run import FAILED, NOT_MEASURED, SKIPPED, Run
from transpose_study.analysis.tables import Row, write_table
from transpose_study.metrics import COLD, OBSERVED, Quantity
from transpose_study.registry import Cell

OPCODE = re.compile(r"instructions_by_opcode\[(?P<opcode>.+)\]")
BY_OPCODE = "instructions_by_opcode"
DERIVED = "derived"
NO_KERNEL = "{} has no kernel to profile"  # as the profiling says it

PerLaunch = dict[int, float]


@dataclass(frozen=True)
class Derived:
    """A quantity computed launch by launch from others of the same launch."""

    key: str
    unit: str
    inputs: tuple[str, ...]
    formula: Callable[..., float]


def _ratio(top: float, bottom: float) -> float:
    return top / bottom if bottom else math.nan


DERIVED_QUANTITIES = (
    Derived("global_load_sectors_per_request", "sectors/request", ("global_load_sectors", "global_load_requests"), _ratio),
    Derived("global_store_sectors_per_request", "sectors/request", ("global_store_sectors", "global_store_requests"), _ratio),
    Derived(
        "resident_blocks_per_sm", "blocks", ("limit_blocks", "limit_registers", "limit_shared_memory", "limit_warps"), lambda *limits: min(limits)
    ),
    Derived("shared_conflicts_exact", "wavefronts", ("shared_wavefronts_exact", "shared_wavefronts_ideal"), lambda exact, ideal: exact - ideal),
)


def write_counters(run: Run) -> list[Row]:
    """Write counters.csv, one row for each configured cell and quantity, measured or not, and return its rows."""
    columns = [*run.study.key_columns, "quantity", "metric", "batch", "mean", "min", "max", "std", "launches", "unit", "reason"]
    read = run.experiment.batch_names()
    quantities = [q for b in run.experiment.batches.values() if b.name in read or not b.optional for q in b.quantities if q.key != BY_OPCODE]
    metrics = _metrics_seen(run)
    rows: list[Row] = []
    for group, cell in run.all_cells():
        measured = _measured(run, group, cell)
        otherwise = _why_not(run, group, cell)
        series: dict[str, PerLaunch] = {}
        reasons: dict[str, str] = {}
        for quantity in quantities:
            if quantity.metric == OBSERVED and quantity.key.removesuffix(COLD) not in {o.name for o in cell.variant.observes}:
                continue
            values = measured.get(quantity.key, ())
            reason = _reason(run, quantity, values, otherwise)
            series[quantity.key] = {v.launch: v.value for v in values if not math.isnan(v.value)}
            reasons[quantity.key] = reason
            head = {"quantity": quantity.key, "metric": metrics.get(quantity.key, quantity.metric), "batch": quantity.batch}
            rows.append({**run.columns(cell), **head, **_summary(series[quantity.key]), "unit": quantity.unit, "reason": reason})
        rows += [{**run.columns(cell), **_derived(d, series, reasons)} for d in DERIVED_QUANTITIES if set(d.inputs) <= set(series)]
    write_table(run.experiment.paths.table("counters"), columns, rows, run.provenance)
    return rows


def _metrics_seen(run: Run) -> dict[str, str]:
    """The ncu name of each quantity as the raw files give it (it differs between chips)."""
    seen: dict[str, str] = {}
    for counters in run.counters.values():
        for key in sorted(counters.values):
            for quantity, values in counters.values[key].items():
                seen.setdefault(quantity, values[0].metric)
    return seen


def _measured(run: Run, group: str, cell: Cell) -> Mapping[str, Sequence[CounterValue]]:
    """The cell's values by quantity; nothing of a kernel whose results are wrong or whose code is another by now."""
    return {} if run.status(group, cell).status == FAILED or run.other_code(cell) else run.counters[group].values.get(run.key(cell), {})


def _why_not(run: Run, group: str, cell: Cell) -> str:
    """The reason for a counter that the raw file does not even mention."""
    status = run.status(group, cell)
    if status.status in (SKIPPED, FAILED) or run.other_code(cell):
        return status.reason
    if run.counters[group].absent:
        return run.counters[group].absent
    if cell.variant.no_kernel:
        return NO_KERNEL.format(cell.variant.no_kernel)
    if run.experiment.replay:
        return f"{NOT_MEASURED}: not in {run.experiment.target['archive']}"
    return f"{NOT_MEASURED}: not in {run.counters[group].path.relative_to(run.experiment.paths.folder)}"


def _reason(run: Run, quantity: Quantity, values: Sequence[CounterValue], otherwise: str) -> str:
    missing = [v for v in values if math.isnan(v.value)]
    if values and not missing:
        return ""
    if values and len(missing) < len(values):
        return f"{len(missing)} of {len(values)} launches without a value: {missing[0].reason}"
    if values:
        return missing[0].reason
    if run.experiment.config.profile.enabled and quantity.batch not in run.experiment.batch_names():
        return f"the metric batch {quantity.batch} is not configured (profile.batches)"
    return otherwise


def _summary(series: PerLaunch) -> Row:
    if not series:
        return {"launches": 0}
    values = np.array([series[launch] for launch in sorted(series)])
    spread = values.std(ddof=1) if values.size > 1 else None
    return {"mean": values.mean(), "min": values.min(), "max": values.max(), "std": spread, "launches": values.size}


def _derived(what: Derived, series: Mapping[str, PerLaunch], reasons: Mapping[str, str]) -> Row:
    shared = set.intersection(*(set(series[q]) for q in what.inputs))
    values = {launch: what.formula(*(series[q][launch] for q in what.inputs)) for launch in shared}
    known = {launch: v for launch, v in values.items() if not math.isnan(v)}
    reason = ""
    if not known:
        reason = next((reasons[q] for q in what.inputs if reasons[q]), "")
        reason = reason or (f"{what.inputs[-1]} is 0" if shared else f"{' and '.join(what.inputs)} share no launch")
    return {"quantity": what.key, "metric": DERIVED, "batch": DERIVED, **_summary(known), "unit": what.unit, "reason": reason}


def write_opcodes(run: Run) -> list[Row]:
    """Write opcodes.csv, warp instructions of each opcode in one launch and for each warp of the grid; return its rows."""
    columns = [*run.study.key_columns, "opcode", "instructions", "instructions_per_warp", "launches", "reason"]
    rows: list[Row] = []
    for group, cell in run.all_cells():
        measured = _measured(run, group, cell)
        found: dict[str, Sequence[CounterValue]] = {}
        for quantity, values in sorted(measured.items()):
            match = OPCODE.fullmatch(quantity)
            if match:
                found[match["opcode"]] = values
        counted = {o: s for o, values in found.items() if (s := _summary({v.launch: v.value for v in values if not math.isnan(v.value)}))["launches"]}
        if not counted:
            quantity = next((q for b in run.experiment.batches.values() for q in b.quantities if q.key == BY_OPCODE), None)
            silent = measured.get(BY_OPCODE) or next(iter(found.values()), ())
            reason = _reason(run, quantity, silent, _why_not(run, group, cell)) if quantity else f"{run.experiment.metrics_file} does not ask for it"
            rows.append({**run.columns(cell), "launches": 0, "reason": reason})
            continue
        geometry = run.study.geometry(cell)
        warps = geometry.blocks * -(-geometry.threads // 32)
        rows += [
            {**run.columns(cell), "opcode": o, "instructions": s["mean"], "instructions_per_warp": s["mean"] / warps, "launches": s["launches"]}
            for o, s in sorted(counted.items())
        ]
    write_table(run.experiment.paths.table("opcodes"), columns, rows, run.provenance)
    return rows
