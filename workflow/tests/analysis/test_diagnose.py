"""``diagnose``: the limiter of recorded kernels from an archive's counters, of each kind from stated ones, and what the page says of it."""

import csv
import re

import pytest
from analysis.diagnosing import ARCHIVE, QUIET, diagnose
from hypothesis import given
from hypothesis import strategies as st
from projects import ROOT
from transpose_study.analysis.diagnose import Fact, Facts, facts_of, find_row, judge, unread
from transpose_study.analysis.diagnose.facts import ESTIMATED, TABLES, figure
from transpose_study.analysis.diagnose.limits import LIMITERS, LIMITS, PCIE_GB_S, STALLS
from transpose_study.container import Container
from transpose_study.metrics import load_metrics
from transpose_study.records import write_csv
from transpose_study.registry import Study

MICRO = Study(ROOT / "kernels" / "micro" / "variants.yaml")


# -- recorded kernels ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "limiter", "because"),
    [
        # it moves what it must (1.00 bytes of DRAM for each needed) at 84.8 % of the peak
        (["copy_vectorized", "--shape", "16384x16384"], "DRAM", "dram_throughput_pct is 84.8 %"),
        # the same bytes as the copy, waiting at barriers in between: below the peak, and DRAM is still the busiest unit
        (["tiled_padded", "--block-rows", "8", "--shape", "16384x16384"], "DRAM", "at 73.2 % (dram_throughput_pct)"),
        # 33 wavefronts for 2: L1's data stage is at 97 %; with blocks of 1024 threads waiting at barriers it is not kept that full
        (["tiled", "--block-rows", "8", "--shape", "16384x16384"], "L1/shared", "l1tex_throughput_pct is 96.7 %"),
        (["tiled", "--block-rows", "32", "--shape", "16384x16384"], "L1/shared", "at 60.4 % (l1tex_throughput_pct)"),
        # 32 sectors a store request go to L2 one by one, while DRAM is at 10 %
        (["naive_read_coalesced", "--block-rows", "8", "--shape", "4096x4096"], "L2", "l2_own_throughput_pct is 85.5 %"),
        # 32 sectors a load request, of which 78 % hit in L1
        (["naive_write_coalesced", "--block-rows", "8", "--shape", "4096x4096"], "L1/shared", "l1tex_throughput_pct is 95.1 %"),
        # one load a thread in flight: 49 % of DRAM's peak, and 86 % of the waiting warps wait for it
        (["copy", "--shape", "4096x4096"], "latency", "86 % wait for global memory (long scoreboard)"),
        # two blocks of 1024 threads an SM, which hold their places until their slowest warp ends
        (["copy_looped", "--block-rows", "32", "--shape", "4096x4096"], "occupancy", "achieved_of_theoretical_pct is 58.5 %"),
        # 256 blocks of 256 threads, where the device holds 132 x 8
        (["copy_vectorized", "--shape", "1024x1024"], "launch", "the grid is 0.242 waves"),
        # three waves, but over within 4.4 us
        (["copy", "--shape", "1024x1024"], "launch", "a launch takes 4.43 us"),
        # index arithmetic for the XOR: the schedulers issue in 70 % of the cycles
        (["tiled_xor", "--block-rows", "8", "--shape", "4096x4096"], "issue", "at 70.3 % (issue_active_pct)"),
    ],
)  # fmt: skip
def test_limiters_of_the_recorded_run(arguments, limiter, because, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    status, out, _ = diagnose(capsys, *arguments, "--run", ARCHIVE)
    assert status == 0
    assert f"Limiter: {limiter}; " in out and because in out


def test_every_limiter_has_its_counter_threshold_and_reason_on_the_page(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    _, out, _ = diagnose(capsys, "tiled", "--block-rows", "8", "--shape", "4096x4096", "--run", ARCHIVE)
    for limit in LIMITS:
        assert limit.key in out and f"{limit.sign} {limit.threshold:g} {limit.unit}" in out and limit.reason in out
    assert [x.limiter for x in LIMITS] == sorted((x.limiter for x in LIMITS), key=LIMITERS.index) and {x.limiter for x in LIMITS} == set(LIMITERS)
    assert "threads_per_instruction not measured < 24 lanes" in out and "metric batches do not ask for it" in out
    assert "Remove the bank conflicts (16.5 wavefronts for each needed)" in out  # (1 + 32) wavefronts for 2


def test_the_configured_archive_is_read_where_no_run_is(monkeypatch, capsys, project):
    """The replay archive that the configuration names, where results/ holds no run; without --shape the slowest."""
    monkeypatch.chdir(project.root)
    status, out, _ = diagnose(capsys, "tiled")
    assert status == 0 and "tiled, block_rows 8 at 4096x4096" in out and project.path("results/archive").name in out


# -- stated counters ----------------------------------------------------------------------------------------------------------

def verdict(folder):
    with (folder / "tables" / "occupancy.csv").open() as table:
        row = next(csv.DictReader(table))
    row.pop("warps_per_block")
    return judge(facts_of(folder, row))


@pytest.mark.parametrize(
    ("changed", "limiter", "because"),
    [
        ({"dram_throughput_pct": 85, "memory_throughput_pct": 85}, "DRAM", "dram_throughput_pct is 85.0 %"),
        # L2 passes on what DRAM moves: of equals the farther unit is named
        ({"dram_throughput_pct": 85, "l2_throughput_pct": 95, "memory_throughput_pct": 85}, "DRAM", "dram_throughput_pct is 85.0 %"),
        ({"l2_throughput_pct": 85, "memory_throughput_pct": 85}, "L2", "l2_own_throughput_pct is 85.0 %"),
        ({"l2_throughput_pct": 85}, "latency", "no unit is at 60 %"),  # the memory's busiest component is at 30 %
        ({"l2_throughput_pct": 85, "memory_throughput_pct": None}, "L2", "l2_own_throughput_pct is 85.0 %"),
        ({"l1tex_throughput_pct": 95}, "L1/shared", "l1tex_throughput_pct is 95.0 %"),
        ({"stall_short_scoreboard": 9}, "L1/shared", "50 % wait for shared memory"),
        ({"issue_active_pct": 90, "eligible_warps": 3}, "issue", "issue_active_pct is 90.0 %"),
        ({"sm_throughput_pct": 90}, "issue", "sm_throughput_pct is 90.0 %"),
        ({"issue_active_pct": 70}, "issue", "at 70.0 % (issue_active_pct) it is the busiest unit"),
        ({}, "latency", "80 % wait for global memory"),
        ({"stall_barrier": 20}, "latency", "wait for barriers"),
        ({"achieved_occupancy_pct": 40}, "occupancy", "achieved_of_theoretical_pct is 40.0 %"),
        ({"achieved_occupancy_pct": 30, "theoretical_occupancy_pct": 31}, "occupancy", "theoretical_occupancy_pct is 31.0 %"),
        ({"achieved_occupancy_pct": 40, "eligible_warps": 1.5}, "latency", "no unit"),  # enough warps are ready: more would not help
        ({"threads_per_instruction": 9}, "divergence", "an instruction works for 9 of 32 lanes"),
        ({"threads_per_instruction": 9, "issue_active_pct": 95}, "divergence", "an instruction works for 9 of 32 lanes"),
        ({"threads_per_instruction": 9, "dram_throughput_pct": 85}, "DRAM", "dram_throughput_pct"),  # fewer instructions would not move fewer bytes
        ({"warps_launched": 100 * 8 * 4}, "launch", "0.5 waves"),  # 400 blocks of 8 warps, where 800 fit
        ({"time_us": 3.0}, "launch", "a launch takes 3 us"),
        # 100,000 cycles of 100 SMs for 50,000 blocks are 200 each, where an SM takes 160 to start one: places stay empty since starts are slow
        ({"achieved_occupancy_pct": 40, "warps_launched": 50_000 * 8}, "launch", "starts 500 a microsecond, an SM one in 200 cycles"),
        ({"achieved_occupancy_pct": 20, "theoretical_occupancy_pct": 50, "warps_launched": 50_000 * 8}, "launch", "blocks end before others start"),
        ({"achieved_occupancy_pct": 40, "warps_launched": 40_000 * 8}, "occupancy", "achieved_of_theoretical_pct is 40.0 %"),  # 250 cycles each
        ({"achieved_occupancy_pct": 70, "warps_launched": 50_000 * 8}, "latency", "80 % wait for global memory"),  # the places are taken
    ],
)  # fmt: skip
def test_each_limiter_from_stated_counters(stated, changed, limiter, because):
    found = verdict(stated(**changed))
    assert found.limiter == limiter and because in found.because


def test_without_throughputs_counts_and_time_tell(stated, capsys, monkeypatch):
    """A share of a peak is what was done over what 100 SMs at 1 GHz can do in the time: 10^5 cycles in 100 us, 10^7 of all SMs."""
    monkeypatch.chdir(ROOT)
    none = dict.fromkeys(QUIET)
    assert verdict(stated(time_us=200.0, **none)).limiter == ""  # 128 MB in 200 us are 32 % of 2000 GB/s, and nothing else is known
    assert "what the warps wait for was not measured, nor l2_own_throughput_pct" in verdict(stated(time_us=200.0, **none)).because
    assert verdict(stated(time_us=75.0, **none)).limiter == "DRAM"  # 85 %
    counts = {"threads_per_instruction": 32, "profiled_duration_ns": 200e3}
    assert verdict(stated(time_us=200.0, **{**none, **counts, "warp_instructions": 4 * 2e7 * 0.9})).limiter == "issue"
    found = verdict(stated(time_us=200.0, **{**none, **counts, "shared_wavefronts_exact": 1.7e7, "shared_wavefronts_ideal": 1e6}))
    assert found.limiter == "L1/shared" and "l1tex_throughput_pct is 85.0 %" in found.because
    folder = stated(time_us=200.0, predicted={"warp_instructions": 4 * 2e7 * 0.9}, **none)  # without ncu
    assert "issue_active_pct 90 % >= 80 % reached, from counts and time" in diagnose(capsys, "tiled", "--run", folder)[1]


def test_estimates_agree_with_the_recorded_counters(tmp_path):
    """At 16384 x 16384, where starting and ending do not count: DRAM within a point where each byte moves once, issue within two."""
    container = Container(ARCHIVE)
    for name in ("run_config.yaml", *(f"tables/{t}.csv" for t in TABLES)):
        container.extract(name, tmp_path / name)
    study = Study(ROOT / "kernels" / "transpose" / "variants.yaml")
    cells = [("copy_vectorized", {}), *((v, {"block_rows": ("8", True)}) for v in ("tiled", "tiled_padded", "tiled_rotated"))]
    keys = [find_row(tmp_path, study, v, "16384x16384", axes)[0] for v, axes in cells]
    measured = [facts_of(tmp_path, k) for k in keys]
    table = tmp_path / "tables" / "counters.csv"
    rows = [r for r in csv.DictReader(table.read_text().splitlines()) if not r["quantity"].endswith(("_throughput_pct", "issue_active_pct"))]
    write_csv(table, list(rows[0]), rows)
    for with_counters, key in zip(measured, keys, strict=True):
        estimated = facts_of(tmp_path, key)
        for name, off in (("dram_throughput_pct", 1), ("issue_active_pct", 2)):
            assert estimated[name].source == ESTIMATED and abs(estimated.value(name) - with_counters.value(name)) < off
        assert 0 < estimated.value("l1tex_throughput_pct") <= with_counters.value("l1tex_throughput_pct")


def test_predicted_values_fill_in_and_are_marked(stated, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    folder = stated(threads_per_instruction=None, predicted={"threads_per_instruction": 8})
    assert verdict(folder).limiter == "divergence"
    assert "8 lanes < 24 lanes reached, predicted" in diagnose(capsys, "tiled", "--run", folder)[1]


def test_every_stall_reason_of_the_metrics_belongs_to_one_group():
    keys = [q.key for b in load_metrics(ROOT / "config" / "metrics.yaml").values() for q in b.quantities]
    assert sorted(f"stall_{r}" for _, reasons, _ in STALLS.values() for r in reasons) == sorted(k for k in keys if k.startswith("stall_"))


def test_the_share_of_a_round_trip(stated, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    folder = stated()
    _, out, _ = diagnose(capsys, "tiled", "--run", folder, "--transfer-gb-s", "12.8")
    # 128 MB at 12.8 GB/s are 10 ms; the kernel's 100 us are 100 of 10,100
    assert "(128 MB together) cross to the device and back, that takes 10,000 us at 12.8 GB/s (as given); the kernel's 100 us are 0.99 %" in out
    _, out, _ = diagnose(capsys, "tiled", "--run", folder)
    assert f"{128e6 / PCIE_GB_S / 1e3:,.0f} us at 63 GB/s (PCIe 5.0 x16, an assumption" in out


@pytest.mark.parametrize("threads", [32, 64, 96, 128])
def test_small_blocks_that_wait_for_their_start_are_to_grow(threads, monkeypatch, capsys):
    """The second study's: copies by blocks that are as slow as their number, 1,590 to 1,650 a microsecond whatever they hold."""
    monkeypatch.chdir(ROOT)
    _, out, _ = diagnose(capsys, "block_memory", "--study", "micro", "--ilp", 1, "--threads", threads)
    assert "Limiter: launch; " in out and "larger blocks, or more work a block" in out and "smaller blocks" not in out
    assert 1500 < float(re.search(r"starts ([0-9,]+) a microsecond", out)[1].replace(",", "")) < 1700


def test_large_blocks_that_wait_for_their_last_warp_are_to_shrink(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    _, out, _ = diagnose(capsys, "copy_looped", "--block-rows", 32, "--shape", "4096x4096", "--run", ARCHIVE)
    assert "smaller blocks" in out and "larger blocks" not in out


@pytest.mark.parametrize("limits", [{}, {"limit_registers": 4, "limit_shared_memory": 1}])
@pytest.mark.parametrize("achieved", [10, 30])  # below and above 60 % of the theoretical one
def test_low_occupancy_has_two_cures(stated, capsys, monkeypatch, limits, achieved):
    monkeypatch.chdir(ROOT)
    folder = stated(achieved_occupancy_pct=achieved, theoretical_occupancy_pct=31, **limits)
    _, out, _ = diagnose(capsys, "tiled", "--run", folder)
    assert "Limiter: occupancy" in out and "Have more warps resident" in out and "several independent loads or operations" in out
    assert ("binds, shared memory (1 block an SM)" in out) == bool(limits)
    assert ("smaller blocks" in out) == (achieved == 10)


def test_warps_that_wait_for_special_functions_are_told_of_them(stated, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    _, out, _ = diagnose(capsys, "tiled", "--run", stated(stall_short_scoreboard=9))
    assert "50 % wait for shared memory, special functions and L1's queues" in out and "Where special functions (such as" in out


# -- what was not read, and figures -----------------------------------------------------------------------------------------------


def test_a_batch_that_the_run_left_out_is_named(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    _, out, _ = diagnose(capsys, "branch_short", "--study", "micro", "--lanes", 1)
    assert "Limiter: cannot be told" in out
    assert "Run this again with --measure, which also reads what this run left out: the batch limits of config/metrics-micro.yaml." in out
    assert "into a metric batch" not in out and "allow them" not in out


def test_what_no_batch_reads_and_what_was_refused_are_said():
    file = ROOT / "config" / "metrics-micro.yaml"
    batches = load_metrics(file)
    telling = [q.key for q in batches["limits"].quantities]
    read = Facts({q: Fact(1.0) for q in telling}, {})
    assert unread(read, batches, file) == []
    refused = Facts(read | {"stall_wait": Fact(None, reason="not permitted")}, {})
    assert unread(refused, batches, file) == ["Have the counters read that were refused: allow them (README, Counters), then measure with --measure."]
    (line,) = unread(Facts({}, {}), batches, file)
    assert "--measure" in line and f"the batch limits of {file}" in line
    del batches["limits"]
    (line,) = unread(Facts({q: f for q, f in read.items() if q != "stall_wait"}, {}), batches, file)
    assert line == f"Put stall_wait into a metric batch of the study ({file} shows how), then measure with --measure."


@given(st.floats(1e-12, 1e15))
def test_figures_have_no_exponent_and_three_digits(value):
    for number in (value, -value):
        text = figure(number)
        assert re.fullmatch(r"-?[0-9,]+(\.[0-9]+)?", text) and float(text.replace(",", "")) == pytest.approx(number, rel=0.00501)


@pytest.mark.parametrize("size", [1e-9, 1e-5, 0.9996, 99.96, 999.6, 1e4, 1e9])
def test_no_figure_of_the_page_has_an_exponent(stated, capsys, monkeypatch, size):
    monkeypatch.chdir(ROOT)
    for changed in (
        dict.fromkeys(QUIET, size),
        {"time_us": size},
        {"warps_launched": size},
        {"threads_per_instruction": size},
        {"limit_warps": size},
    ):
        _, out, _ = diagnose(capsys, "tiled", "--run", stated(**changed), "--transfer-gb-s", size)
        assert "Limiter:" in out and not re.search(r"[0-9]e[+-]?[0-9]", out), changed
    _, out, _ = diagnose(capsys, "tiled", "--run", stated(time_us=7.94), "--transfer-gb-s", 1e6)  # 128 MB take 0.128 us
    assert "the kernel's 7.94 us are 98.4 % of the round trip" in out


def test_a_bandwidth_is_held_against_dram_where_it_can_come_from_there(stated, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert "1,280 GB/s, 64 % of the nominal DRAM peak" in diagnose(capsys, "tiled", "--run", stated())[1]
    out = diagnose(capsys, "tiled", "--run", stated(time_us=50.0))[1]  # 128 MB in 50 us, where the peak is 2000 GB/s
    assert "2,560 GB/s, above the nominal DRAM peak: some of it came from caches" in out and "% of the nominal DRAM peak" not in out
    for variant in (v for v in MICRO.variants.values() if v.name.startswith("bank_")):  # these count bytes of shared memory
        for line in (x for x in diagnose(capsys, variant.name, "--study", "micro")[1].split("Time ")[1:3]):
            assert "not a rate of DRAM" in line and "nominal DRAM peak" not in line.split("limiter")[0], variant.name
