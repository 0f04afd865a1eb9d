"""What the tidy tables of a run know of one cell: measured, else predicted, else the reason why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transpose_study.analysis.diagnose.limits import STALLS
from transpose_study.errors import StudyError
from transpose_study.paths import RunPaths
from transpose_study.records import read_csv, read_yaml
from transpose_study.registry import Study

TABLES = ("counters", "timings", "occupancy", "predictions")
HOT, COLD = "hot", "cold"
MEASURED, PREDICTED, COMPUTED, NOTHING = "measured", "predicted", "computed", "nothing there"
Row = Mapping[str, str]


@dataclass(frozen=True)
class Fact:
    """A value and where it is from; None with the ``reason`` where there is none."""

    value: float | None
    source: str = MEASURED
    reason: str = ""


class Facts(dict[str, Fact]):
    """Facts by name. ``gpu`` holds the device's facts (see :class:`transpose_study.device.Device`)."""

    def __init__(self, values: Mapping[str, Fact], gpu: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.gpu = dict(gpu)

    def __missing__(self, name: str) -> Fact:
        return Fact(None, reason="the run's metric batches do not ask for it")

    def value(self, name: str) -> float | None:
        """A fact's value, None where there is none."""
        return self[name].value


def find_row(folder: Path, study: Study, variant: str, shape: str | None, axes: Mapping[str, tuple[str, bool]]) -> tuple[dict[str, str], int]:
    """The key columns of the cell meant, and how many there were to choose from; the slowest one where several remain.

    ``axes`` maps an axis to its wanted value and whether the user asked for it; a mere default gives way where it was not measured.
    :class:`StudyError` names what there is for a variant, shape or value that was not measured.
    """
    path = RunPaths(folder).table("timings")
    names = study.key_columns
    rows = [r for r in read_csv(path, [*names, "cache_mode", "median_us", "status", "reason"]) if r["variant"] == variant]
    if not rows:
        raise StudyError(f"the run has no {variant}", where=str(path), hint="name another run with --run, or measure with --measure")
    rows = _narrow(rows, lambda r: study.group_name({a: r[a] for a in study.group_axes}), shape, "--shape")
    for axis, (value, asked) in axes.items():
        if asked or any(r[axis] == value for r in rows):
            rows = _narrow(rows, lambda r, axis=axis: r[axis], value, f"--{axis.replace('_', '-')}")
    timed = [r for r in rows if r["median_us"]]
    if not timed:
        raise StudyError(f"{variant} was not timed: {rows[0]['reason'] or rows[0]['status']}", where=str(path))
    slowest = max(timed, key=lambda r: float(r["median_us"]))
    return {n: slowest[n] for n in names}, len({tuple(r[n] for n in names) for r in rows})


def _narrow(rows: list[dict[str, str]], named: Callable[[Row], str], wanted: str | None, option: str) -> list[dict[str, str]]:
    if wanted is None:
        return rows
    found = [r for r in rows if named(r) == wanted]
    if not found:
        known = dict.fromkeys(named(r) or "none" for r in rows)
        raise StudyError(f"{wanted} was not measured", where=option, hint="measured: " + ", ".join(known))
    return found


def facts_of(folder: Path, key: Mapping[str, str]) -> Facts:
    """Everything known of the cell with these key columns."""
    paths = RunPaths(folder)
    target = read_yaml(paths.run_config)["target"]
    rows = {t: [r for r in read_csv(paths.table(t), list(key)) if all(r[c] == v for c, v in key.items())] for t in TABLES}
    facts: dict[str, Fact] = {}
    for row in rows["predictions"]:
        if row["predicted"]:
            facts[row["quantity"]] = Fact(float(row["predicted"]), PREDICTED)
    for row in rows["counters"]:
        if row["mean"]:
            facts[row["quantity"]] = Fact(float(row["mean"]))
        else:
            facts.setdefault(row["quantity"], Fact(None, reason=row["reason"] or "not measured"))
    for row in rows["occupancy"][:1]:
        for column in ("warps_per_block", "registers_per_thread", "shared_bytes"):
            if row.get(column):
                facts.setdefault(column, Fact(float(row[column])))
    _add_timings(facts, rows["timings"], target["gpu"])
    _add_computed(facts, target["gpu"])
    return Facts(facts, target["gpu"])


def _add_timings(facts: dict[str, Fact], rows: Sequence[Row], gpu: Mapping[str, Any]) -> None:
    by_mode = {r["cache_mode"]: r for r in rows if r["median_us"]}
    for mode, row in by_mode.items():
        facts[f"time_{mode}_us"] = Fact(float(row["median_us"]))
        facts[f"bandwidth_{mode}_gb_s"] = Fact(float(row["bandwidth_gb_s"]))
    first = by_mode.get(HOT) or next(iter(by_mode.values()))
    facts["time_us"] = Fact(float(first["median_us"]))
    facts["effective_bytes"] = Fact(float(first["bandwidth_gb_s"]) * float(first["median_us"]) * 1e3, COMPUTED)
    if first.get("footprint_to_l2"):  # input and output together
        facts["host_bytes"] = Fact(float(first["footprint_to_l2"]) * float(gpu["l2_bytes"]), COMPUTED)


def _add_computed(facts: dict[str, Fact], gpu: Mapping[str, Any]) -> None:
    def compute(name: str, inputs: Sequence[str], formula: Callable[..., float]) -> None:
        found = [facts.get(n, Fact(None, reason=f"{n}: the run's metric batches do not ask for it")) for n in inputs]
        missing = next((f for f in found if f.value is None), None)
        if missing:
            facts[name] = Fact(None, COMPUTED, missing.reason)
            return
        try:
            source = PREDICTED if any(f.source == PREDICTED for f in found) else COMPUTED
            facts[name] = Fact(formula(*(f.value for f in found)), source)
        except ZeroDivisionError:
            facts[name] = Fact(None, NOTHING, f"{inputs[-1]} is 0")

    facts["sm_count"] = Fact(float(gpu["sm_count"]))
    busiest = ("memory_throughput_pct",) if facts.get("memory_throughput_pct", Fact(None)).value is not None else ()
    compute("l2_own_throughput_pct", ("l2_throughput_pct", *busiest), lambda *values: min(values))
    compute("shared_conflict_ways", ("shared_wavefronts_exact", "shared_wavefronts_ideal"), lambda exact, ideal: exact / ideal)
    compute("achieved_of_theoretical_pct", ("achieved_occupancy_pct", "theoretical_occupancy_pct"), lambda got, could: 100 * got / could)
    compute(
        "waves",
        ("warps_launched", "warps_per_block", "sm_count", "resident_blocks_per_sm"),
        lambda warps, each, sms, resident: warps / each / (sms * resident),
    )
    stalls = [f"stall_{r}" for _, reasons, _ in STALLS.values() for r in reasons]
    for name, (_, reasons, _) in STALLS.items():
        own = [f"stall_{r}" for r in reasons]
        compute(name, [*own, *stalls], lambda *values: 100 * sum(values[: -len(stalls)]) / sum(values[-len(stalls) :]))
    compute("dram_bytes", ("dram_read_bytes", "dram_write_bytes"), lambda read, write: read + write)
    compute("dram_of_needed", ("dram_bytes", "effective_bytes"), lambda moved, needed: moved / needed)
