"""Bootstrap intervals against cases whose answer is known by counting, and against their promised coverage."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from transpose_study.stats import Series, mean_shift, median_interval, paired_ratio, resampled_medians, seed_of


def shares(medians):
    values, counts = np.unique(medians, return_counts=True)
    return dict(zip(values.tolist(), (counts / len(medians)).tolist(), strict=True))


def near(share, resamples):
    """Five standard deviations of a binomial share: the test fails once in a million seeds."""
    return pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / resamples))


def test_two_samples_of_one_process_by_counting():
    # Drawing two of {0, 1} with replacement: both 0 in 1 of 4 cases, both 1 in 1 of 4, else the median is 0.5.
    found = shares(resampled_medians([0.0, 1.0], [0, 0], resamples=20000))
    assert found == {0.0: near(0.25, 20000), 0.5: near(0.5, 20000), 1.0: near(0.25, 20000)}


def test_processes_are_resampled_first():
    # Three processes with constant times 1, 2, 3: the median is 1 when at least two of three draws hit the first: 7 of 27.
    samples, processes = np.repeat([1.0, 2.0, 3.0], 10), np.repeat([0, 1, 2], 10)
    found = shares(resampled_medians(samples, processes, resamples=20000))
    assert found == {1.0: near(7 / 27, 20000), 2.0: near(13 / 27, 20000), 3.0: near(7 / 27, 20000)}
    interval = median_interval(samples, processes)
    assert (interval.median, interval.low, interval.high, interval.n) == (2.0, 1.0, 3.0, 30)


def test_processes_with_different_numbers_of_rounds():
    # Ten samples of 1 and one of 5: only when both draws hit the second process is the median 5.
    found = shares(resampled_medians([1.0] * 10 + [5.0], [0] * 10 + [1], resamples=20000))
    assert found == {1.0: near(0.75, 20000), 5.0: near(0.25, 20000)}


@pytest.mark.parametrize("rounds", [5, 10, 40])
def test_coverage_is_at_least_the_promised_95_per_cent(rounds):
    # Rounds without a process effect: the hierarchical interval is then on the wide side, so coverage is 95 % or more.
    rng = np.random.default_rng(rounds)
    processes = np.repeat(np.arange(6), rounds)
    hits = 0
    for trial in range(200):
        interval = median_interval(rng.normal(100, 1, processes.size), processes, seed=trial, resamples=400)
        hits += interval.low <= 100 <= interval.high
    assert hits >= 200 * 0.95 - 3 * math.sqrt(200 * 0.95 * 0.05)


def test_interval_narrows_with_the_square_root_of_the_samples():
    rng = np.random.default_rng(0)
    widths = [median_interval(rng.normal(100, 1, n), np.zeros(n, int), resamples=4000).width for n in (100, 10000)]
    # The median of n normal samples has the standard error 1.2533 sigma / sqrt(n); the interval spans 3.92 of them.
    for n, width in zip((100, 10000), widths, strict=True):
        assert width == pytest.approx(3.92 * 1.2533 / math.sqrt(n) / 100, rel=0.25)


def test_the_order_of_samples_does_not_matter():
    rng = np.random.default_rng(3)
    samples, processes = rng.normal(10, 1, 45), np.repeat([0, 1, 2], 15)
    shuffled = rng.permutation(45)
    assert median_interval(samples, processes, seed=9) == median_interval(samples[shuffled], processes[shuffled], seed=9)
    assert (resampled_medians(samples, processes, seed=9) != resampled_medians(samples, processes, seed=10)).any()


def test_long_runs_are_resampled_in_parts(monkeypatch):
    from transpose_study import stats

    monkeypatch.setattr(stats, "_CHUNK", 100)
    found = shares(resampled_medians([0.0, 1.0], [0, 0], resamples=20000))
    assert found == {0.0: near(0.25, 20000), 0.5: near(0.5, 20000), 1.0: near(0.25, 20000)}
    assert resampled_medians([0.0, 1.0], [0, 0], resamples=73).shape == (73,)


def test_one_sample_has_no_interval():
    interval = median_interval([4.0], [0])
    assert interval.median == 4.0
    assert math.isnan(interval.low) and math.isnan(interval.width)


def test_empty_or_uneven_input_is_refused():
    with pytest.raises(ValueError, match="one length"):
        resampled_medians([], [])
    with pytest.raises(ValueError, match="one length"):
        resampled_medians([1.0, 2.0], [0])


def test_seeds_do_not_depend_on_the_process():
    code = "from transpose_study.stats import seed_of; print(seed_of('median', 'hot', 8))"
    for hash_seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert int(done.stdout) == seed_of("median", "hot", 8)
    assert seed_of("a", "bc") != seed_of("ab", "c")


def test_stats_need_no_pandas():
    code = "import sys, transpose_study.stats; sys.exit('pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, check=True)


def series(samples, processes, rounds):
    return Series(np.array(samples, float), np.array(processes), np.array(rounds))


def test_paired_ratio_cancels_what_a_round_shares():
    rng = np.random.default_rng(4)
    drift = np.exp(0.3 * rng.standard_normal(30))
    processes, rounds = np.repeat([0, 1, 2], 10), np.tile(np.arange(10), 3)
    ratio = paired_ratio(series(2 * drift, processes, rounds), series(drift, processes, rounds))
    assert ratio is not None
    assert (ratio.median, ratio.low, ratio.high, ratio.n) == (pytest.approx(2), pytest.approx(2), pytest.approx(2), 30)


def test_paired_ratio_uses_common_rounds_only():
    top = series([2, 4, 100], [0, 0, 1], [0, 1, 0])
    bottom = series([8, 1], [0, 0], [1, 0])  # (process 0, round 1) and (process 0, round 0)
    ratio = paired_ratio(top, bottom)
    assert ratio is not None
    assert (ratio.n, ratio.median) == (2, pytest.approx((2 / 1 + 4 / 8) / 2))
    assert paired_ratio(top, series([1], [2], [0])) is None


def test_mean_shift_shows_a_heavy_tail():
    assert mean_shift([1, 1, 1, 1, 6]) == pytest.approx(1.0)  # mean 2, median 1
    assert mean_shift([1, 2, 3]) == pytest.approx(0)
