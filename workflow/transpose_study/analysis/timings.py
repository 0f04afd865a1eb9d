"""tables/timings.csv, noise.csv and rounds.csv: times, bandwidths, paired ratios, the A/A noise floor, and drift."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transpose_study.analysis.raw import SENSORS, UNKNOWN, Samples
from transpose_study.analysis.run import NOT_MEASURED, OK, A, B, Run
from transpose_study.analysis.tables import Row, write_table
from transpose_study.errors import StudyError
from transpose_study.registry import Cell
from transpose_study.stats import Interval, mean_shift, median_interval, paired_ratio, seed_of

SKEWED = 0.03  # mean and median further apart than this: a heavy tail
OFF_NCU_US, OFF_NCU_SHARE = 1.0, 0.03  # hot median further than this from ncu's duration with the caches left alone
DURATION = "duration_ns"
CLOCK_DRIFT = 0.03  # SM clock of a cell's samples spread (5th to 95th percentile) over more than this share
# Bits of nvmlClocksEventReasons that take clock away: power cap, HW slowdown, SW and HW thermal, power brake (nvml.h).
THROTTLED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80

STATISTICS = [
    "n", "processes", "launches", "mean_us", "median_us", "median_low_us", "median_high_us", "min_us", "q25_us", "q75_us", "std_us",
    "interval_width_pct", "bandwidth_gb_s", "bandwidth_gb_s_low", "bandwidth_gb_s_high", "mean_bandwidth_gb_s", "percent_of_peak",
]  # fmt: skip
CIRCUMSTANCES = ["footprint_to_l2", *SENSORS, "throttle_reasons", "flags"]


def paired(run: Run, group: str, top: Cell, bottom: Cell, cache_mode: str) -> Interval | None:
    """Interval of ``time of top / time of bottom``, paired by process and round; None where either has no samples."""
    numerator, denominator = run.samples(group, top, cache_mode), run.samples(group, bottom, cache_mode)
    if numerator is None or denominator is None:
        return None
    seed = seed_of("pair", cache_mode, *run.key(top), *run.key(bottom))
    return paired_ratio(numerator.series, denominator.series, seed=seed)


def write_timings(run: Run) -> list[Row]:
    """Write timings.csv, one row for each configured cell and cache mode, and return its rows."""
    ratios = [f"ratio_to_{b}{end}" for b in run.study.baselines for end in ("", "_low", "_high")]
    columns = [*run.study.key_columns, "cache_mode", "status", "reason", *STATISTICS, *ratios, *CIRCUMSTANCES]
    modes = run.experiment.config.timing.cache_modes
    rows = [_timing_row(run, group, cell, mode) for group, cell in run.all_cells() for mode in modes]
    write_table(run.experiment.paths.table("timings"), columns, rows, run.provenance)
    return rows


def _footprint(run: Run, cell: Cell) -> float | None:
    """Input and output over the L2's size; None where a precondition rules out an axis value for which the sizes mean nothing."""
    try:
        return (run.study.input_bytes(cell) + run.study.matrix_bytes(cell)) / int(run.experiment.gpu["l2_bytes"])
    except StudyError:
        if run.study.cell_refusal(cell):
            return None
        raise


def _timing_row(run: Run, group: str, cell: Cell, mode: str) -> Row:
    status = run.status(group, cell, mode)
    row: Row = {**run.columns(cell), "cache_mode": mode, "status": status.status, "reason": status.reason}
    row["footprint_to_l2"] = _footprint(run, cell)
    samples = run.samples(group, cell, mode)
    if samples is None:
        return row
    times = samples.series.samples
    interval = median_interval(times, samples.series.processes, seed=seed_of("median", mode, *run.key(cell)))
    moved = run.study.effective_bytes(cell) / 1e3  # bytes / us / 10^3 = GB/s
    quarter, three_quarters = np.quantile(times, [0.25, 0.75])
    row |= {
        "n": interval.n,
        "processes": len(np.unique(samples.series.processes)),
        "launches": np.median(samples.launches),
        "mean_us": times.mean(),
        "median_us": interval.median,
        "median_low_us": interval.low,
        "median_high_us": interval.high,
        "min_us": times.min(),
        "q25_us": quarter,
        "q75_us": three_quarters,
        "std_us": times.std(ddof=1) if interval.n > 1 else None,
        "interval_width_pct": 100 * interval.width,
        "bandwidth_gb_s": moved / interval.median,
        "bandwidth_gb_s_low": moved / interval.high,
        "bandwidth_gb_s_high": moved / interval.low,
        "mean_bandwidth_gb_s": moved / times.mean(),
        "percent_of_peak": 100 * moved / interval.median / run.experiment.peak_gb_s,
        "throttle_reasons": _reasons(samples.throttle),
        **{name: np.nanmedian(values) for name, values in samples.sensors.items() if not np.isnan(values).all()},
    }
    for baseline, variant in run.study.baselines.items():
        reference = run.find(group, variant, {})
        ratio = paired(run, group, reference, cell, mode) if reference else None
        if ratio:
            name = f"ratio_to_{baseline}"
            row |= {name: ratio.median, f"{name}_low": ratio.low, f"{name}_high": ratio.high}
    flags = _flags(samples, interval, row["percent_of_peak"], run.experiment.config.timing.interval)
    row["flags"] = ";".join(flags + (_off_ncu(run, group, cell, interval.median) if mode == "hot" else []))
    return row


def _flags(samples: Samples, interval: Interval, percent_of_peak: float, wanted: float) -> list[str]:
    """What a reader must know about the samples; each is a name, some with a figure in parentheses."""
    flags = []
    if percent_of_peak > 100:
        flags.append("above_peak")  # the data came out of a cache
    if (samples.throttle[samples.throttle != UNKNOWN] & THROTTLED).any():
        flags.append("throttled")
    if not interval.width <= wanted:  # also where there is no interval
        flags.append(f"unconverged ({100 * interval.width:.2g} %)" if interval.n > 1 else "unconverged (one sample)")
    shift = mean_shift(samples.series.samples)
    if abs(shift) > SKEWED:
        flags.append(f"skewed ({100 * shift:+.2g} %)")
    clock = samples.sensors["sm_clock_mhz"]
    clock = clock[~np.isnan(clock)]
    if clock.size:
        low, middle, high = np.quantile(clock, [0.05, 0.5, 0.95])
        if middle and (high - low) / middle > CLOCK_DRIFT:
            flags.append(f"clock_drift ({100 * (high - low) / middle:.2g} %)")
    return flags


def _off_ncu(run: Run, group: str, cell: Cell, median: float) -> list[str]:
    """A flag where the hot median (us) is not what ncu says that one launch takes, whose caches are as the launch before left them."""
    durations = [v.value for v in run.counters[group].values.get(run.key(cell), {}).get(DURATION, ()) if not np.isnan(v.value)]
    if run.other_code(cell) or not durations:
        return []
    expected = float(np.mean(durations)) / 1e3
    off = median - expected
    return [f"off_ncu ({100 * off / expected:+.2g} %)"] if abs(off) > OFF_NCU_US + OFF_NCU_SHARE * expected else []


def write_noise(run: Run) -> list[Row]:
    """Write noise.csv: the A/A pair's ratio b / a in each group and cache mode; ``floor_pct`` is its interval's far end."""
    columns = [*run.study.key_columns, "cache_mode", "ratio", "ratio_low", "ratio_high", "floor_pct", "n", "reason"]
    rows: list[Row] = []
    for group in run.cells if run.study.noise_pairs else ():
        wanted = dict(run.experiment.noise_pair(group))
        cell = run.find(group, str(wanted.pop("variant")), wanted)
        for mode in run.experiment.config.timing.cache_modes:
            rows.append(_noise_row(run, group, cell, mode))
    write_table(run.experiment.paths.table("noise"), columns, rows, run.provenance)
    return rows


def _noise_row(run: Run, group: str, cell: Cell | None, mode: str) -> Row:
    if cell is None:
        wanted = run.experiment.noise_pair(group)
        fixed = {a.name: a.value for a in run.study.axes.values() if a.value is not None}
        values = {**run.experiment.groups[group].values, **fixed, **wanted}
        reason = f"{NOT_MEASURED}: the cell of the A/A pair is not configured at this shape"
        return {c: values.get(c, "") for c in run.study.key_columns} | {"cache_mode": mode, "n": 0, "reason": reason}
    row: Row = {**run.columns(cell), "cache_mode": mode, "n": 0}
    first, second = (run.samples(group, cell, mode, r) for r in (A, B))
    ratio = None
    if first and second:
        ratio = paired_ratio(second.series, first.series, seed=seed_of("noise", mode, *run.key(cell)))
    if ratio is None:
        status = run.status(group, cell, mode)
        reason = f"{NOT_MEASURED}: the cell was not timed twice in one round" if status.status == OK else status.reason
        return row | {"reason": reason}
    floor = 100 * max(abs(ratio.low - 1), abs(ratio.high - 1)) if ratio.n > 1 else None
    return row | {"ratio": ratio.median, "ratio_low": ratio.low, "ratio_high": ratio.high, "floor_pct": floor, "n": ratio.n}


def write_rounds(run: Run) -> None:
    """Write rounds.csv: each round's times relative to the cells' medians, with clocks and power, so that drift shows."""
    columns = [
        *run.study.group_axes, "cache_mode", "process", "round", "samples", "relative_time", "relative_time_q25", "relative_time_q75",
        *SENSORS, "throttle_reasons",
    ]  # fmt: skip
    rows: list[Row] = []
    for group in run.cells:
        for mode in run.experiment.config.timing.cache_modes:
            rows += _round_rows(run, group, mode)
    write_table(run.experiment.paths.table("rounds"), columns, rows, run.provenance)


def _round_rows(run: Run, group: str, mode: str) -> list[Row]:
    found = [s for c in run.cells[group] if (s := run.samples(group, c, mode))]
    if not found:
        return []
    place = np.concatenate([np.stack([s.series.processes, s.series.rounds], axis=1) for s in found])
    relative = np.concatenate([s.series.samples / np.median(s.series.samples) for s in found])
    throttle = np.concatenate([s.throttle for s in found])
    sensors = {name: np.concatenate([s.sensors[name] for s in found]) for name in SENSORS}
    places, which = np.unique(place, axis=0, return_inverse=True)
    rows = []
    for i, (process, number) in enumerate(places.tolist()):
        mine = which.reshape(-1) == i
        low, middle, high = np.quantile(relative[mine], [0.25, 0.5, 0.75])
        rows.append(
            dict(run.experiment.groups[group].values)
            | {"cache_mode": mode, "process": process, "round": number, "samples": int(mine.sum())}
            | {"relative_time": middle, "relative_time_q25": low, "relative_time_q75": high}
            | {name: _median(values[mine]) for name, values in sensors.items()}
            | {"throttle_reasons": _reasons(throttle[mine])}
        )
    return rows


def _median(values: NDArray[np.float64]) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else None


def _reasons(throttle: NDArray[np.int64]) -> str | None:
    """All throttle reasons that any sample shows, as the driver's bit mask."""
    known = throttle[throttle != UNKNOWN]
    return hex(int(np.bitwise_or.reduce(known))) if known.size else None
