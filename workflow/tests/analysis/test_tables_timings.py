"""timings.csv, noise.csv, rounds.csv and the scan's table against the model that made the raw files."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic
from synthetic import Model, base_config, full_config, make_run, small_config
from transpose_study.analysis import aggregate
from transpose_study.provenance import run_id
from transpose_study.records import write_csv

QUIET = {"noise": 0.0, "round_noise": 0.0, "process_noise": 0.0}
MAIN = {"rows": 4096, "cols": 4096}
BYTES = 2 * 4096 * 4096 * 4


def test_every_configured_cell_and_cache_mode_has_one_row(make, table):
    experiment = make(full_config())
    timings = table(experiment, "timings")
    # Three variants without block_rows and eight with four values of it make 35 cells; 8 shapes, 2 cache modes.
    assert len(timings) == (3 + 8 * 4) * 8 * 2
    assert not timings.duplicated([*experiment.study.key_columns, "cache_mode"]).any()
    assert list(timings.columns[:6]) == ["variant", "rows", "cols", "dtype", "block_rows", "cache_mode"]
    skipped = timings[timings.status != "ok"]
    assert set(skipped.variant) == {"tiled_padded_unchecked"} and set(zip(skipped.rows, skipped.cols, strict=True)) == {(4095, 4097)}
    assert set(skipped.reason) == {"without bounds checks rows and cols must be multiples of 32"}
    assert skipped.median_us.isna().all() and len(skipped) == 8


def test_figures_follow_from_the_time_alone(make, table, one):
    experiment = make(model=Model(**QUIET))
    timings = table(experiment, "timings")
    for variant, rows, bandwidth in [("copy", np.nan, 306.9), ("tiled_padded", 8, 302.1), ("tiled_padded", 32, 302.1 * 0.6937)]:
        picked = timings[timings.block_rows.isna()] if np.isnan(rows) else timings[timings.block_rows == rows]
        row = one(picked, variant=variant, cache_mode="hot", **MAIN)
        assert row.bandwidth_gb_s == pytest.approx(bandwidth)
        assert row.median_us == row.mean_us == row.min_us == row.median_low_us == row.median_high_us == pytest.approx(BYTES / bandwidth / 1e3)
        assert (row.n, row.processes, row["std_us"], row.interval_width_pct) == (30, 3, pytest.approx(0, abs=1e-9), 0)
        assert row.percent_of_peak == pytest.approx(100 * bandwidth / 384)
        assert row.ratio_to_copy == row.ratio_to_copy_low == row.ratio_to_copy_high == pytest.approx(bandwidth / 306.9)
        assert row.ratio_to_copy_vectorized == pytest.approx(bandwidth / 318)
        assert row.ratio_to_memcpy == pytest.approx(bandwidth / 320)
        assert row.footprint_to_l2 == 2 * 4096 * 4096 * 4 / (32 * 2**20) == 4
        assert row.launches == max(1, int(400 / row.median_us))  # the model fills a window of timing.window_us
        cold = one(picked, variant=variant, cache_mode="cold", **MAIN)
        assert cold.bandwidth_gb_s == pytest.approx(bandwidth / 1.05) and cold.launches == 1


def test_mean_and_median_part_under_a_heavy_tail(make, table, one):
    experiment = make(model=Model(tail=0.2, tail_factor=4.0))
    row = one(table(experiment, "timings"), variant="copy", cache_mode="hot", **MAIN)
    _, raw = synthetic.read_rows(experiment.paths.timing("4096x4096"))
    samples = np.array([float(r["sample_us"]) for r in raw if r["variant"] == "copy" and r["cache_mode"] == "hot"])
    assert row.mean_us == pytest.approx(samples.mean()) and row.median_us == pytest.approx(np.median(samples))
    assert row.std_us == pytest.approx(samples.std(ddof=1))
    assert (row.q25_us, row.q75_us) == (pytest.approx(np.quantile(samples, 0.25)), pytest.approx(np.quantile(samples, 0.75)))
    assert row.mean_bandwidth_gb_s == pytest.approx(BYTES / samples.mean() / 1e3)
    assert f"skewed ({100 * (row.mean_us / row.median_us - 1):+.2g} %)" in row["flags"].split(";")


def test_paired_ratios_are_narrower_than_the_times_they_come_from(make, table, one):
    experiment = make(model=Model(noise=0.0005, round_noise=0.05))
    row = one(table(experiment, "timings"), variant="copy_vectorized", cache_mode="hot", **MAIN)
    assert row.interval_width_pct > 2  # rounds differ by 5 %
    assert (row.ratio_to_copy_high - row.ratio_to_copy_low) / row.ratio_to_copy < 0.003  # which both cells share
    assert row.ratio_to_copy_low < 318 / 306.9 < row.ratio_to_copy_high


@pytest.mark.parametrize(
    ("model", "shape", "flag"),
    [
        (Model(), {"rows": 1024, "cols": 1024}, "above_peak"),  # 8 MiB in an L2 of 32 MiB
        (Model(throttle_reasons="0x4"), MAIN, "throttled"),  # software power cap
        (Model(noise=0.05), MAIN, "unconverged"),
        (Model(tail=0.3), MAIN, "skewed"),
    ],
)
def test_flags(make, table, one, model, shape, flag):
    timings = table(make(model=model), "timings")
    row = one(timings, variant="copy", cache_mode="hot", **shape)
    assert flag in [f.split(" ")[0] for f in str(row["flags"]).split(";")]


def test_quiet_samples_carry_no_flag(make, table, one):
    # 0x1 is "GPU idle", no throttling; a large shape is not above the peak.
    timings = table(make(model=Model(throttle_reasons="0x1")), "timings")
    assert pd.isna(one(timings, variant="copy", cache_mode="cold", **MAIN)["flags"])


def test_clock_drift_is_flagged(make, table, one):
    experiment = make()
    path = experiment.paths.timing("4096x4096")
    columns, rows = synthetic.read_rows(path)
    for row in rows:
        row["sm_clock_mhz"] = "1980" if row["process"] == "0" else "1700"
    write_csv(path, columns, rows)
    aggregate(experiment)
    row = one(table(experiment, "timings"), variant="copy", cache_mode="hot", **MAIN)
    assert row["flags"] == f"clock_drift ({100 * 280 / 1700:.2g} %)" and row.sm_clock_mhz == 1700


def test_missing_sensors_leave_their_columns_empty(make, table, one):
    experiment = make()
    path = experiment.paths.timing("4096x4096")
    columns, rows = synthetic.read_rows(path)
    for row in rows:
        row.update(dict.fromkeys(("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w", "throttle_reasons"), ""))
    write_csv(path, columns, rows)
    aggregate(experiment)
    row = one(table(experiment, "timings"), variant="copy", cache_mode="hot", **MAIN)
    assert np.isnan(row.sm_clock_mhz) and pd.isna(row.throttle_reasons) and pd.isna(row["flags"]) and row.n == 30
    rounds = table(experiment, "rounds")
    assert rounds[rounds.rows == 4096][["sm_clock_mhz", "throttle_reasons"]].isna().all(axis=None)


def test_replicate_b_serves_the_noise_floor_alone(make, table):
    experiment = make(model=Model(**QUIET))
    first = table(experiment, "timings").drop(columns="run_id")
    noise = table(experiment, "noise")
    assert len(noise) == 2 * 2 and (noise.ratio == 1).all() and (noise.floor_pct == 0).all() and (noise.n == 30).all()
    experiment = make(model=Model(**QUIET, replicate_b_factor=1.02))
    noise = table(experiment, "noise")
    assert noise.ratio.tolist() == [pytest.approx(1.02)] * 4 and noise.floor_pct.tolist() == [pytest.approx(2)] * 4
    assert table(experiment, "timings").drop(columns="run_id").equals(first)


def test_noise_floor_of_a_cell_that_is_not_configured_says_so(make, table):
    noise = table(make(small_config(variants=["copy", "copy_vectorized", "memcpy"])), "noise")
    assert set(noise.reason) == {"not measured: the cell of the A/A pair is not configured at this shape"}
    assert set(noise.variant) == {"tiled_padded"} and len(noise) == 4


def test_baselines_that_are_not_configured_leave_their_ratios_empty(make, table):
    timings = table(make(small_config(variants=["copy", "tiled_padded"])), "timings")
    assert timings.ratio_to_copy.notna().all() and timings.ratio_to_memcpy.isna().all()


def test_rounds_show_a_slow_round(make, table, one):
    experiment = make(model=Model(**QUIET))
    path = experiment.paths.timing("4096x4096")
    columns, rows = synthetic.read_rows(path)
    for row in rows:
        if (row["process"], row["round"], row["cache_mode"]) == ("1", "4", "hot"):
            row["sample_us"] = repr(1.5 * float(row["sample_us"]))
    write_csv(path, columns, rows)
    aggregate(experiment)
    rounds = table(experiment, "rounds")
    assert len(rounds) == 2 * 2 * 30
    slow = one(rounds, cache_mode="hot", process=1, round=4, **MAIN)
    assert slow.relative_time == pytest.approx(1.5) and slow["samples"] == 19
    assert (rounds.drop(slow.name).relative_time == 1).all()


def test_scan_compares_with_the_fastest_value(make, table, one):
    experiment = make(base_config(), Model(**QUIET))
    scan = table(experiment, "block_rows")
    assert len(scan) == 8 * 4 * 3 * 2  # variants that take the axis, its values, shapes, cache modes
    best = {4: 2.58, 8: 0.0, 16: 1.29, 32: 100 * (1 / 0.6937 - 1)}  # the model's factors
    for rows, slower in best.items():
        row = one(scan, variant="tiled_padded", block_rows=rows, cache_mode="hot", **MAIN)
        assert row.slower_than_best_pct == row.slower_than_best_pct_low == pytest.approx(slower, abs=1e-6)
        assert row.slower_than_published_best_pct == pytest.approx(slower, abs=1e-6)
        assert (row.threads_per_block, row.elements_per_thread) == (32 * rows, 32 // rows)
        assert row.best == (rows == 8)
        assert row.median_ms == pytest.approx(BYTES / 302.1e6 * (1 + slower / 100))
    naive = one(scan, variant="naive_write_coalesced", block_rows=16, cache_mode="hot", **MAIN)
    assert (naive.threads_per_block, naive.elements_per_thread) == (512, 1)
    ragged = one(scan, variant="tiled_padded", block_rows=8, cache_mode="hot", rows=4095, cols=4097)
    assert ragged.elements_per_thread == 4  # of a full block, although the last ones hang over the edge


def test_scan_where_another_value_is_the_fastest(make, table, one):
    model = Model(**QUIET, block_rows_factor={4: 1.0, 8: 1.0, 16: 1.25, 32: 1.0})
    scan = table(make(model=model), "block_rows")
    eight = one(scan, variant="tiled_padded", block_rows=8, cache_mode="hot", **MAIN)
    sixteen = one(scan, variant="tiled_padded", block_rows=16, cache_mode="hot", **MAIN)
    assert eight.slower_than_best_pct == pytest.approx(25) and eight.slower_than_published_best_pct == 0 and not eight.best
    assert sixteen.best and sixteen.slower_than_published_best_pct == pytest.approx(-20)


def test_same_bytes_from_rows_in_another_order(make):
    experiment = make(model=Model(tail=0.05))

    def tables() -> dict[str, bytes]:  # but for the digest of the raw files, which are others
        found = {p.name: p.read_bytes() for p in sorted((experiment.paths.folder / "tables").iterdir())}
        return {name: data.replace(run_id(experiment).encode(), b"") for name, data in found.items()}

    before = tables()
    assert set(before) == {f"{name}.csv" for name in experiment.tables()} and len(before) == 12
    synthetic.shuffle_rows([experiment.paths.check, *Path(experiment.paths.folder, "raw").glob("*/*.csv")])
    aggregate(experiment)
    assert tables() == before


def test_whole_default_study_is_aggregated_quickly(tmp_path):
    experiment = make_run(tmp_path / "run", full_config())
    start = time.process_time()
    aggregate(experiment)
    assert time.process_time() - start < 6  # seconds of CPU; about 4 on two slow cores
