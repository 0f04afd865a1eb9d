"""How intervals decide, from stated intervals; and whole runs of the stated model, whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import synthetic
from judge.device import answers, parts, verdicts
from transpose_study.analysis import aggregate
from transpose_study.analysis.judge.decide import CANNOT_BE_TOLD, DOES_NOT_HOLD, HOLDS, NOT_MEASURED, combine, compare, within
from transpose_study.analysis.judge.measure import STUDENT_T, Measure, largest, mean_interval, smallest
from transpose_study.experiment import Experiment
from transpose_study.records import read_csv, write_csv

M = Measure.between


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (M(1.0, 0.98, 1.02), HOLDS),
        (M(1.0, 0.97, 1.03), HOLDS),  # the ends belong to it
        (M(1.2, 1.1, 1.3), DOES_NOT_HOLD),
        (M(0.9, 0.85, 0.95), DOES_NOT_HOLD),
        (M(1.02, 1.0, 1.04), CANNOT_BE_TOLD),
        (M(1.02, 1.01, 1.025, floor=0.01), CANNOT_BE_TOLD),  # 1.025 + 0.0102 passes 1.03
        (M(1.04, 1.035, 1.05, floor=0.01), CANNOT_BE_TOLD),  # further from 1.03 than its interval, not than the noise floor
    ],
)
def test_within_a_range(measured, verdict):
    assert within(measured, (0.97, 1.03)) == verdict


@pytest.mark.parametrize(
    ("left", "sign", "right", "verdict"),
    [
        (M(1.02, 1.01, 1.03), ">", Measure.exact(1), HOLDS),
        (M(0.98, 0.97, 0.99), ">", Measure.exact(1), DOES_NOT_HOLD),
        (M(1.02, 0.99, 1.03), ">", Measure.exact(1), CANNOT_BE_TOLD),
        (M(1.002, 1.001, 1.003, floor=0.005), ">", Measure.exact(1), CANNOT_BE_TOLD),  # a difference below the noise floor counts as none
        (M(5, 4, 6), "<", M(8, 7, 9), HOLDS),
        (M(5, 4, 7.5), "<", M(8, 7, 9), CANNOT_BE_TOLD),
        (Measure.exact(8), "<=", Measure.exact(8), HOLDS),
        (Measure.exact(8), "<", Measure.exact(8), DOES_NOT_HOLD),
        (Measure.exact(8), ">=", Measure.exact(9), DOES_NOT_HOLD),
    ],
)
def test_orders(left, sign, right, verdict):
    assert compare(left, sign, right) == verdict


def test_the_weakest_part_decides():
    assert combine([HOLDS, NOT_MEASURED, CANNOT_BE_TOLD, DOES_NOT_HOLD]) == DOES_NOT_HOLD
    assert combine([HOLDS, NOT_MEASURED, CANNOT_BE_TOLD]) == CANNOT_BE_TOLD
    assert combine([HOLDS, NOT_MEASURED]) == NOT_MEASURED
    assert combine([HOLDS, HOLDS]) == HOLDS


def test_interval_arithmetic_covers_every_combination():
    a, b = M(2, -1, 3), M(5, 4, 8)
    assert (a * b).interval == (-8, 24) and (a - b).interval == (-9, -1) and (a + b).interval == (3, 11) and (a / b).interval == (-0.25, 0.75)
    assert abs(a).interval == (0, 3) and abs(M(-5, -6, -4)).interval == (4, 6) and (-a).interval == (-3, 1)
    assert smallest(a, b).interval == (-1, 3) and largest(a, b).interval == (4, 8)
    assert not a and b and not Measure.exact(0)


@pytest.mark.parametrize("freedom", [1, 2, 9, 29, 30])
def test_quantiles_of_students_t(freedom):
    """The probability between the ends, integrated over the density of Student's t, is 95 %, as far as three decimals go."""
    scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
    x = np.linspace(-STUDENT_T[freedom - 1], STUDENT_T[freedom - 1], 200001)
    assert np.trapezoid(scale * (1 + x**2 / freedom) ** (-(freedom + 1) / 2), x) == pytest.approx(0.95, abs=1e-4)


def test_interval_of_a_counter():
    # 2.262 = Student's t for 9 degrees of freedom
    half = 2.262 * 2 / math.sqrt(10)
    assert mean_interval({"mean": "10", "std": "2", "launches": "10"}) == pytest.approx((10 - half, 10 + half))
    assert mean_interval({"mean": "10", "std": "", "launches": "1"}) == (10, 10)
    assert mean_interval({"mean": "10", "std": "1", "launches": "400"}) == pytest.approx((10 - 1.96 / 20, 10 + 1.96 / 20))


# -- whole runs -------------------------------------------------------------------------------------------------------------


def run_of(folder, model, config=None) -> Experiment:
    experiment = synthetic.make_run(folder, config or synthetic.base_config(shapes=[{"rows": 4096, "cols": 4096}]), model)
    aggregate(experiment)
    return experiment


@pytest.fixture(scope="module")
def agreeing(tmp_path_factory):
    return run_of(tmp_path_factory.mktemp("rtx5060") / "run", synthetic.rtx5060())


@pytest.fixture(scope="module")
def contrary(tmp_path_factory):
    return run_of(tmp_path_factory.mktemp("contrary") / "run", synthetic.contrary())


# What the models state (see synthetic.py): bandwidths, counters, write share.
DIFFERENT = {
    "loop-matches-copy": (HOLDS, DOES_NOT_HOLD),  # 302.1 of 306.9 GB/s against 220 of 306.9
    "loop-beats-naive": (HOLDS, DOES_NOT_HOLD),  # 302.1 over 176.7 against 220 over 282
    "loop-over-naive": (HOLDS, DOES_NOT_HOLD),
    "block-rows-8-best": (HOLDS, DOES_NOT_HOLD),  # factors 1 / 1.0258 and 1 / 1.0129 against 1.06 and 1.02
    "unchecked-no-gain": (HOLDS, DOES_NOT_HOLD),  # 1.002 against 290 / 220
    "unchecked-fewer-instructions": (HOLDS, DOES_NOT_HOLD),
    "naive-l2-hits": (HOLDS, DOES_NOT_HOLD),  # 76.5 % against 2 %
    "write-deficit": (HOLDS, DOES_NOT_HOLD),  # 0.9 against 1.001 of the matrix
    "loop-wavefronts": (HOLDS, DOES_NOT_HOLD),
    "stall-ratio-denominator": (HOLDS, DOES_NOT_HOLD),
    "naive-read-sectors": (HOLDS, HOLDS),
    "padding-no-conflict": (HOLDS, HOLDS),
    "unpadded-32way": (HOLDS, HOLDS),
    "occupancy-not-speed": (HOLDS, HOLDS),
}


def test_verdicts_follow_the_model(agreeing, contrary):
    first, second = verdicts(agreeing), verdicts(contrary)
    assert {c: (first[c]["verdict"], second[c]["verdict"]) for c in DIFFERENT} == DIFFERENT
    assert all((r["reason"] == "") == (r["verdict"] == HOLDS) for rows in (first, second) for r in rows.values())


def test_a_timing_is_judged_by_its_paired_interval_and_the_noise_floor(agreeing):
    verdicts(agreeing)
    (part,) = parts(agreeing, "loop-near-copy")
    (noise,) = [r for r in read_csv(agreeing.paths.table("noise")) if r["cache_mode"] == "hot"]
    (row,) = [
        r for r in read_csv(agreeing.paths.table("timings"))
        if (r["variant"], r["block_rows"], r["cache_mode"]) == ("tiled_padded", "8", "hot")
    ]  # fmt: skip
    # The same pair stands in timings.csv as ratio_to_copy: another seed of the bootstrap, the same median.
    assert part["measured"] == row["ratio_to_copy"] and part["noise_floor_pct"] == noise["floor_pct"]
    assert float(part["low"]) < float(part["measured"]) < float(part["high"]) and part["cache_mode"] == "hot"
    assert (float(part["threshold_low"]), float(part["threshold_high"])) == pytest.approx((0.9705, 1.0105))


def test_two_equal_cells_cannot_be_told_apart(tmp_path):
    model = synthetic.rtx5060()
    model = synthetic.Model(bandwidth={**model.bandwidth, "tiled_padded_b4": 302.1, "tiled_padded_b8": 302.1}, counters=model.counters)
    row = verdicts(run_of(tmp_path / "run", model))["block-rows-8-best"]
    assert row["verdict"] == CANNOT_BE_TOLD and "A/A noise floor" in row["reason"]


def test_one_sample_decides_nothing(tmp_path):
    row = verdicts(run_of(tmp_path / "run", synthetic.Model(processes=1, rounds=1)))["loop-beats-naive"]
    assert (row["verdict"], row["reason"]) == (CANNOT_BE_TOLD, "a single sample has no interval")


def test_no_counters_name_the_reason(tmp_path):
    why = "ERR_NVGPUCTRPERM: this user may not read counters"
    judged = verdicts(run_of(tmp_path / "run", synthetic.Model(no_value={"*": why})))
    assert judged["naive-read-sectors"]["verdict"] == NOT_MEASURED and judged["naive-read-sectors"]["reason"] == why
    assert judged["loop-beats-naive"]["verdict"] == HOLDS
    assert {r["verdict"] for r in judged.values() if "speedup" not in r["expected"]} == {NOT_MEASURED}


def test_a_wrong_kernel_is_not_measured(tmp_path):
    judged = verdicts(run_of(tmp_path / "run", synthetic.Model(wrong={"tiled_padded_b8": "mismatch"})))
    assert judged["loop-beats-naive"]["verdict"] == NOT_MEASURED and "wrong result at 1x1" in judged["loop-beats-naive"]["reason"]


def test_a_variant_left_out_of_the_configuration(tmp_path):
    config = synthetic.base_config(shapes=[{"rows": 4096, "cols": 4096}], variants=["copy", "tiled_padded", "memcpy"])
    judged = verdicts(run_of(tmp_path / "run", synthetic.Model(), config))
    assert judged["conflict-slower"]["verdict"] == NOT_MEASURED and "tiled" in judged["conflict-slower"]["reason"]
    assert judged["loop-beats-naive"]["reason"].endswith("no cell naive_write_coalesced, block_rows 32 at 4096x4096")
    assert judged["tiling-coalesces-both"]["verdict"] == HOLDS  # of the tiles this run has


def test_the_judge_reads_tidy_tables_alone(agreeing, tmp_path):
    before = verdicts(agreeing)
    for name in ("timing", "counters"):
        (agreeing.paths.folder / "raw" / name).rename(tmp_path / name)
    try:
        after = verdicts(agreeing)
    finally:
        for name in ("timing", "counters"):
            (tmp_path / name).rename(agreeing.paths.folder / "raw" / name)
    for row in [*before.values(), *after.values()]:
        del row["run_id"]  # the digest of the raw data, which are gone
    assert after == before


def test_a_perturbed_table_flips_the_verdict(agreeing):
    path = agreeing.paths.table("counters")
    rows = read_csv(path)
    try:
        for row in rows:
            if row["variant"] == "tiled_xor" and row["quantity"] == "shared_conflicts_exact":
                row["mean"] = row["min"] = row["max"] = "7"
        write_csv(path, list(rows[0]), rows)
        assert verdicts(agreeing)["xor-no-conflict"]["verdict"] == DOES_NOT_HOLD
    finally:
        aggregate(agreeing)
    assert verdicts(agreeing)["xor-no-conflict"]["verdict"] == HOLDS


# -- the open questions -----------------------------------------------------------------------------------------------------


def of(rows, variant, block_rows):
    (row,) = [r for r in rows if (r["variant"], r["block_rows"]) == (variant, block_rows)]
    return float(row["value"])


def test_residual_conflicts(agreeing):
    verdicts(agreeing)
    assert of(answers(agreeing, "residual-conflicts", "exact_conflicts"), "tiled", "8") == 31 * 524288  # 32 wavefronts for the ideal one of each load
    assert of(answers(agreeing, "residual-conflicts", "exact_conflicts"), "tiled_padded", "8") == 0
    # published: 526170.8 + 524288 wavefronts, of which 2 x 524,288 are needed
    assert of(answers(agreeing, "residual-conflicts", "arbitration_wavefronts"), "tiled_padded", "8") == pytest.approx(1882.8)
    assert of(answers(agreeing, "residual-conflicts", "unexplained_conflicts"), "tiled_padded", "8") == pytest.approx(0, abs=0.1)


def test_removed_instructions(agreeing):
    verdicts(agreeing)
    (total,) = [r for r in answers(agreeing, "removed-instructions", "removed_instructions") if r["block_rows"] == "8"]
    # (15,990,889.1 - 9,961,472) warp instructions of 131,072 warps
    assert float(total["value"]) == pytest.approx((15990889.1 - 9961472) / 131072) and total["other"] == "tiled_padded_unchecked_b8"
    (imad,) = [r for r in answers(agreeing, "removed-instructions", "checked_IMAD") if r["block_rows"] == "8"]
    assert imad["value"] == "6"  # the model's


def test_bytes_in_flight(agreeing):
    verdicts(agreeing)
    assert of(answers(agreeing, "bytes-in-flight", "resident_threads_per_sm"), "tiled_padded", "8") == 6 * 256
    assert of(answers(agreeing, "bytes-in-flight", "wait_cycles"), "copy", "") == pytest.approx(56.084 * 8388608 / (4096 * 4096 / 32), rel=2e-3)
    # Little's law: latency x half the peak of 384 GB/s over 26 SMs; the model's clock is 1,980 MHz
    latency_ns = 56.084 * 16 / 1980 * 1000
    assert of(answers(agreeing, "bytes-in-flight", "bytes_needed"), "copy", "") == pytest.approx(latency_ns * 384 / 2 / 26, rel=5e-3)
    (row,) = [r for r in answers(agreeing, "bytes-in-flight", "bytes_in_flight_resident") if (r["variant"], r["block_rows"]) == ("tiled_padded", "8")]
    assert row["value"] == "" and "load_bytes_in_flight" in row["reason"]  # the model compiles nothing, so there is no machine code to read


def test_stalls_by_instruction_and_by_cycle(agreeing):
    verdicts(agreeing)
    ratio = of(answers(agreeing, "stalls", "stall_barrier_per_instruction"), "tiled_padded", "8")
    assert ratio == pytest.approx(6.173, rel=2e-3)
    assert of(answers(agreeing, "stalls", "stall_barrier_per_cycle"), "tiled_padded", "8") == pytest.approx(6.173 * 0.29949, rel=4e-3)


def test_best_loop_has_intervals_in_both_cache_modes(agreeing):
    verdicts(agreeing)
    rows = answers(agreeing, "best-loop", "ratio_to_copy_vectorized")
    assert {r["cache_mode"] for r in rows} == {"hot", "cold"} and all(float(r["low"]) < float(r["value"]) < float(r["high"]) for r in rows)


def test_write_deficit(contrary):
    verdicts(contrary)
    assert of(answers(contrary, "write-deficit", "written_to_matrix"), "tiled_padded", "8") == pytest.approx(1.001, rel=2e-3)
    assert of(answers(contrary, "write-deficit", "matrix_to_l2"), "tiled_padded", "8") == 2  # 64 MiB of a 32 MiB L2
