"""What the tidy tables of a run know of one cell: measured, else predicted, else the reason why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from transpose_study.analysis.diagnose.limits import STALLS
from transpose_study.errors import StudyError
from transpose_study.paths import RunPaths
from transpose_study.records import read_csv, read_yaml
from transpose_study.registry import Study

TABLES = {  # and the columns of each that are read beside those that identify a cell
    "counters": ("quantity", "mean", "reason"),
    "timings": ("cache_mode", "status", "reason", "median_us", "bandwidth_gb_s", "footprint_to_l2", "sm_clock_mhz"),
    "occupancy": ("warps_per_block",),
    "predictions": ("quantity", "predicted"),
}
HOT, COLD = "hot", "cold"
MEASURED, PREDICTED, COMPUTED, ESTIMATED, NOTHING = "measured", "predicted", "computed", "from counts and time", "nothing there"
SCHEDULERS = 4  # of an SM, each issuing one instruction a cycle, on every architecture since compute capability 7.0
SECTORS_A_WAVEFRONT = 4  # of 32 bytes: the data stage of L1 moves 128 bytes a cycle
Row = Mapping[str, str]
NOT_READ = "the run's metric batches do not ask for it"


def figure(value: float) -> str:
    """Three significant digits, whole above 1000, and never with an exponent."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{Decimal(f'{value:.3g}'):,f}"


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
        return Fact(None, reason=NOT_READ)

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
    rows = [r for r in read_csv(path, [*names, *TABLES["timings"]]) if r["variant"] == variant]
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
    gpu = _gpu(paths)
    rows = {t: [r for r in read_csv(paths.table(t), [*key, *more]) if all(r[c] == v for c, v in key.items())] for t, more in TABLES.items()}
    facts: dict[str, Fact] = {}
    for row in rows["predictions"]:
        if row["predicted"]:
            facts[row["quantity"]] = Fact(_number(row, "predicted"), PREDICTED)
    for row in rows["counters"]:
        if row["mean"]:
            facts[row["quantity"]] = Fact(_number(row, "mean"))
        else:
            facts.setdefault(row["quantity"], Fact(None, reason=row["reason"] or "not measured"))
    for row in rows["occupancy"][:1]:
        if row["warps_per_block"]:
            facts.setdefault("warps_per_block", Fact(_number(row, "warps_per_block")))
    _add_timings(facts, rows["timings"], gpu)
    _add_estimates(facts, gpu)
    _add_computed(facts, gpu)
    return Facts(facts, gpu)


def _gpu(paths: RunPaths) -> dict[str, Any]:
    try:
        gpu: dict[str, Any] = read_yaml(paths.run_config)["target"]["gpu"]
        return gpu | {name: float(gpu[name]) for name in ("sm_count", "l2_bytes", "peak_gb_s")}
    except (TypeError, KeyError, ValueError):
        raise StudyError("does not say on which GPU the run was measured", where=str(paths.run_config)) from None


def _number(row: Row, column: str) -> float:
    try:
        return float(row[column])
    except ValueError:
        raise StudyError(f"{column} of {row['variant']} is {row[column]!r}, which is no number", where="the run's tables") from None


def _add_timings(facts: dict[str, Fact], rows: Sequence[Row], gpu: Mapping[str, Any]) -> None:
    by_mode = {r["cache_mode"]: r for r in rows if r["median_us"]}
    for mode, row in by_mode.items():
        facts[f"time_{mode}_us"] = Fact(_number(row, "median_us"))
        facts[f"bandwidth_{mode}_gb_s"] = Fact(_number(row, "bandwidth_gb_s"))
    first = by_mode.get(HOT) or next(iter(by_mode.values()))
    facts["time_us"] = Fact(_number(first, "median_us"))
    facts["effective_bytes"] = Fact(_number(first, "bandwidth_gb_s") * _number(first, "median_us") * 1e3, COMPUTED)
    facts["host_bytes"] = Fact(_number(first, "footprint_to_l2") * gpu["l2_bytes"], COMPUTED)  # input and output together
    clock = by_mode.get(COLD, first)["sm_clock_mhz"]
    facts["sm_clock_mhz"] = Fact(_number(first, "sm_clock_mhz") if clock else float(gpu["clock_khz"]) / 1e3)


def _add_estimates(facts: dict[str, Fact], gpu: Mapping[str, Any]) -> None:
    """Shares of a peak that no counter gave, from counts (measured or predicted) and time; what is not counted makes them too low."""

    def known(name: str) -> float | None:
        return facts.get(name, Fact(None)).value

    def estimate(name: str, done: float | None, peak: float | None) -> None:
        if known(name) is None and done is not None and peak:
            facts[name] = Fact(100 * done / peak, ESTIMATED)

    profiled, cold, clock = known("profiled_duration_ns"), known(f"time_{COLD}_us"), known("sm_clock_mhz")
    time = profiled / 1e3 if profiled else cold
    cycles = gpu["sm_count"] * time * clock if time and clock else None  # of all SMs
    estimate("issue_active_pct", known("warp_instructions"), SCHEDULERS * cycles if cycles else None)
    sectors = [known(f"global_{way}_sectors") or 0.0 for way in ("load", "store")]
    wavefronts = known("shared_wavefronts_exact")
    estimate("l1tex_throughput_pct", None if wavefronts is None else wavefronts + sum(sectors) / SECTORS_A_WAVEFRONT, cycles)
    estimate("dram_throughput_pct", known("host_bytes"), gpu["peak_gb_s"] * cold * 1e3 if cold else None)


def _add_computed(facts: dict[str, Fact], gpu: Mapping[str, Any]) -> None:
    def compute(name: str, inputs: Sequence[str], formula: Callable[..., float]) -> None:
        found = [facts.get(n, Fact(None, reason=f"{n}: {NOT_READ}")) for n in inputs]
        missing = next((f for f in found if f.value is None), None)
        if missing:
            facts[name] = Fact(None, COMPUTED, missing.reason)
            return
        try:
            source = PREDICTED if any(f.source == PREDICTED for f in found) else COMPUTED
            facts[name] = Fact(formula(*(f.value for f in found)), source)
        except ZeroDivisionError:
            facts[name] = Fact(None, NOTHING, f"{inputs[-1]} is 0")

    facts["sm_count"] = Fact(gpu["sm_count"])
    busiest = ("memory_throughput_pct",) if facts.get("memory_throughput_pct", Fact(None)).value is not None else ()
    compute("l2_own_throughput_pct", ("l2_throughput_pct", *busiest), lambda *values: min(values))
    compute("shared_conflict_ways", ("shared_wavefronts_exact", "shared_wavefronts_ideal"), lambda exact, ideal: exact / ideal)
    compute("achieved_of_theoretical_pct", ("achieved_occupancy_pct", "theoretical_occupancy_pct"), lambda got, could: 100 * got / could)
    compute(
        "waves",
        ("warps_launched", "warps_per_block", "sm_count", "resident_blocks_per_sm"),
        lambda warps, each, sms, resident: warps / each / (sms * resident),
    )
    compute(
        "cycles_per_block",  # of an SM, between the starts of two blocks
        ("time_us", "sm_clock_mhz", "sm_count", "warps_per_block", "warps_launched"),
        lambda time, clock, sms, each, warps: time * clock * sms * each / warps,
    )
    stalls = [f"stall_{r}" for _, reasons, _ in STALLS.values() for r in reasons]
    for name, (_, reasons, _) in STALLS.items():
        own = [f"stall_{r}" for r in reasons]
        compute(name, [*own, *stalls], lambda *values: 100 * sum(values[: -len(stalls)]) / sum(values[-len(stalls) :]))
    compute("dram_bytes", ("dram_read_bytes", "dram_write_bytes"), lambda read, write: read + write)
    compute("counted_of_footprint", ("effective_bytes", "host_bytes"), lambda counted, footprint: counted / footprint)
    compute("dram_of_needed", ("dram_bytes", "effective_bytes"), lambda moved, needed: moved / needed)
