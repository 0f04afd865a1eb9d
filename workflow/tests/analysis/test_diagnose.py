"""``diagnose``: the limiter of recorded kernels from the shipped archive's counters, of each kind from stated ones, and user mistakes."""

import csv
from pathlib import Path

import pytest
from live_run import STANDIN
from projects import ROOT
from transpose_study.analysis.diagnose import facts_of, find_row, judge
from transpose_study.analysis.diagnose.facts import ESTIMATED, TABLES
from transpose_study.analysis.diagnose.limits import LIMITERS, LIMITS, PCIE_GB_S, STALLS
from transpose_study.cli import main
from transpose_study.cli.diagnose_tables import one_cell
from transpose_study.container import Container
from transpose_study.metrics import load_metrics
from transpose_study.records import write_csv, write_yaml
from transpose_study.registry import Study

ARCHIVE = str(ROOT / "results" / "archive" / "earlier" / "nvidia-h200-2026-11-29.crate.zip")  # whose recorded figures stand below


def diagnose(capsys, *arguments):
    """Exit status and output of the command in the project's folder."""
    status = main(["diagnose", *map(str, arguments)])
    output = capsys.readouterr()
    return status, " ".join(output.out.split()), " ".join(output.err.split())


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
        (["copy_vectorized", "--shape", "1024x1024"], "launch", "the grid is 0.24 waves"),
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

QUIET = {
    "dram_throughput_pct": 30, "l2_throughput_pct": 30, "memory_throughput_pct": 30, "l1tex_throughput_pct": 30, "sm_throughput_pct": 20,
    "issue_active_pct": 20, "eligible_warps": 0.4, "achieved_occupancy_pct": 90, "theoretical_occupancy_pct": 100, "threads_per_instruction": 32,
    "shared_wavefronts_exact": 1000, "shared_wavefronts_ideal": 1000, "warps_launched": 4 * 100 * 8 * 8, "resident_blocks_per_sm": 8,
    "stall_long_scoreboard": 8, "stall_short_scoreboard": 1, "stall_barrier": 0, "stall_mio_throttle": 0, "stall_lg_throttle": 0,
    "stall_math_pipe_throttle": 0, "stall_wait": 1, "stall_not_selected": 0, "stall_drain": 0, "stall_no_instruction": 0,
    "dram_read_bytes": 64e6, "dram_write_bytes": 64e6,
}  # fmt: skip


@pytest.fixture
def stated(tmp_path):
    """``stated(counter=value, ..., time_us=...)``: a run folder whose only cell has QUIET's counters but these; None takes one away."""

    def make(time_us=100.0, predicted=None, reason="ncu was not found", **counters):
        key = {"variant": "tiled", "rows": 4096, "cols": 4096, "dtype": "float32", "block_rows": 8}
        gpu = {"name": "Stated GPU", "sm_count": 100, "l2_bytes": 10**6, "peak_gb_s": 2000.0}
        write_yaml(tmp_path / "run_config.yaml", {"config": {"study": "transpose"}, "target": {"gpu": gpu}})
        rows = [{**key, "quantity": q, "mean": v, "reason": "" if v is not None else reason} for q, v in (QUIET | counters).items()]
        write_csv(tmp_path / "tables" / "counters.csv", [*key, "quantity", "mean", "reason"], rows)
        timing = {"status": "ok", "median_us": time_us, "bandwidth_gb_s": 128e3 / time_us, "sm_clock_mhz": 1000}
        timing["footprint_to_l2"] = 128.0  # 128 MB: 64 in, 64 out
        times = [{**key, "cache_mode": m, **timing} for m in ("hot", "cold")]
        names = [*key, "cache_mode", "status", "reason", "median_us", "bandwidth_gb_s", "footprint_to_l2", "sm_clock_mhz"]
        write_csv(tmp_path / "tables" / "timings.csv", names, times)
        write_csv(tmp_path / "tables" / "occupancy.csv", [*key, "warps_per_block"], [{**key, "warps_per_block": 8}])
        rows = [{**key, "quantity": q, "predicted": v} for q, v in (predicted or {}).items()]
        write_csv(tmp_path / "tables" / "predictions.csv", [*key, "quantity", "predicted"], rows)
        return tmp_path

    return make


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


# -- choosing, measuring, mistakes ----------------------------------------------------------------------------------------------


def test_the_slowest_is_chosen_and_said(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    _, out, _ = diagnose(capsys, "tiled", "--run", ARCHIVE)
    assert "tiled, block_rows 8 at 16384x16384" in out and "the slowest of 8 that were measured" in out  # 8 shapes, the noise floor's block_rows


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tild"], "unknown variant 'tild'; did you mean 'tiled'"),
        (["memcpy"], "memcpy has no kernel to diagnose"),
        (["tiled", "--run", ARCHIVE, "--shape", "5x5"], "--shape: 5x5 was not measured hint: measured: 1024x1024"),
        (["tiled", "--run", ARCHIVE, "--block-rows", "7"], "--block-rows: 7 was not measured hint: measured: 4, 8, 16, 32"),
        (["copy", "--run", ARCHIVE, "--block-rows", "8"], "--block-rows: copy does not take the axis block_rows"),
        (["tiled", "--run", "results"], "results: has no run_config.yaml hint: snakemake --cores 1 transpose makes a run"),
        (["tiled", "--run", "results/none.crate.zip"], "has no run_config.yaml"),
        (["tiled", "--run", "README.md"], "is damaged or no zip file"),
        (["tiled", "--transfer-gb-s", "0"], "--transfer-gb-s: is 0; a rate is above 0"),
        (["tiled", "--transfer-gb-s", "nan"], "a rate is above 0"),
        (["tiled", "--study", "transpos"], "kernels/transpos/variants.yaml"),
        (["tiled", "--measure"], "--shape: a measurement needs a shape hint: configured for tiled: 1024x1024, 2048x2048"),
        (["tiled", "--measure", "--shape", "4096"], "'4096' is no shape"),
        (["tiled", "--measure", "--shape", "64x64", "--block-rows", "x"], "is 'x', which is no whole number"),
        (["tiled", "--measure", "--run", "results"], "exclude each other"),
    ],
)
def test_mistakes_are_said(arguments, message, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    status, _, err = diagnose(capsys, *arguments)
    assert status == 2 and message in err and "Traceback" not in err


def test_another_study_s_run_is_refused(stated, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    folder = stated()
    write_yaml(folder / "run_config.yaml", {"config": {"study": "other"}, "target": {"gpu": {}}})
    assert "is a run of the study other, not of transpose hint: add --study other" in diagnose(capsys, "tiled", "--run", folder)[2]


def test_damaged_tables_are_said(stated, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert "mean of tiled is 'many', which is no number" in diagnose(capsys, "tiled", "--run", stated(dram_throughput_pct="many"))[2]
    folder = stated()
    write_yaml(folder / "run_config.yaml", {"config": {"study": "transpose"}, "target": {"gpu": {"name": "?"}}})
    assert "does not say on which GPU" in diagnose(capsys, "tiled", "--run", folder)[2]


def test_measuring_without_a_gpu_is_said(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("transpose_study.device.visible_devices", list)
    status, _, err = diagnose(capsys, "tiled", "--measure", "--shape", "64x64")
    assert status == 2 and "--measure: no NVIDIA GPU is here, so nothing can be measured" in err


def test_measuring_goes_through_the_stages_into_a_folder_of_its_own(project):
    """On a stand-in for the recorded GPU (see standin/sitecustomize.py), which answers with what was recorded."""
    command = ["diagnose", "tiled", "--measure", "--shape", "4096x4096", "--block-rows", "32"]
    for _ in range(2):  # the second replaces the first
        done = project.command(*command, env=STANDIN)
        assert done.returncode == 0, done.stdout
    folder = Path("results/diagnose/nvidia-h200-tiled-block_rows32-4096x4096/transpose")
    text = " ".join(done.stdout.split())
    assert f"NVIDIA H200, measured now into {folder}" in text and "Limiter: L1/shared;" in text
    assert "shared_conflict_ways 16.5 x" in text
    assert sorted(p.name for p in project.path("results").iterdir()) == ["archive", "diagnose"]


def test_measuring_reads_the_batches_that_a_run_leaves_out(monkeypatch):
    """The second study's runs read counts alone; what a kernel is limited by is in a batch that only this command asks for."""
    monkeypatch.chdir(ROOT)
    study = Study(Path("kernels/micro/variants.yaml"))
    config = one_cell(study, study.variant("bank_load"), {"experiment": "banks"}, {"width": "4", "stride": "32"})
    assert config.profile.batches == ["brief", "kernel", "limits"]


def test_a_kernel_that_was_edited_since_is_said(monkeypatch, capsys, project):
    monkeypatch.chdir(project.root)
    arguments = ("tiled", "--block-rows", 8, "--run", ARCHIVE)
    assert "edited since" not in diagnose(capsys, *arguments)[1]
    project.edit("kernels/transpose/tiled.cu", "__syncthreads();", "__syncthreads(); __syncthreads();")
    status, out, _ = diagnose(capsys, *arguments)
    assert status == 0 and "the kernel or its launch was edited since, --measure measures what it is now" in out
