"""What an edit makes Snakemake do again: dry runs after a finished live run."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_run import FEWER, SMALL, STANDIN, measured_shape, other_shape
from projects import ROOT, Job, Project, rules, shape_name

FIRST, SECOND = shape_name(measured_shape()), shape_name(other_shape())
BATCHES = ("counters", "duration", "source")
WRITING = {"resolve_config", "aggregate", "judge", "draw", "write"}  # what neither compiles nor measures
FOLLOWING = {"describe_environment", "aggregate", "judge", "draw", "write"}  # what any new measurement is followed by


def on_gpu(*groups: str) -> set[Job]:
    """All steps of these shapes that need the GPU."""
    return {("check_group", g) for g in groups} | timing_and_profiles(*groups)


def timing_and_profiles(*groups: str) -> set[Job]:
    """Those of them that read the input matrix."""
    return {("time_group", g) for g in groups} | {("profile_group", g, b) for g in groups for b in BATCHES}


def gpu_jobs(jobs: set[Job]) -> set[Job]:
    """The planned steps that need the GPU."""
    return {j for j in jobs if j[0] in ("check_group", "time_group", "profile_group")}


def builds(jobs: set[Job]) -> set[str]:
    """The planned compilations."""
    return {r for r in rules(jobs) if r.startswith("build_")}


@pytest.fixture
def edited(live: Project) -> Iterator[Project]:
    """The finished run; the files that a test edits are put back afterwards, their times included."""
    names = [p for part in ("Snakefile", "kernels", "config", "paper", "workflow") for p in sorted_files(live.path(part))]
    before = {p: (p.read_bytes(), p.stat()) for p in names}
    yield live
    for path in {q for part in ("kernels", "config", "paper", "workflow") for q in sorted_files(live.path(part))} - set(before):
        path.unlink()
    for path, (data, stat) in before.items():
        path.write_bytes(data)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def sorted_files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())


def plan(project: Project) -> set[Job]:
    return project.plan(env=STANDIN)


def test_nothing_runs_beside_a_timing(making: tuple[Project, str]) -> None:
    """What compiles or counts on the other cores takes memory bandwidth and clock from the process that queues the launches."""
    running: dict[str, str] = {}
    crowds: list[set[str]] = []
    for begun, name, ended in re.findall(r"^Job (\d+): (\w+)|^Finished jobid: (\d+)", making[1], re.M):
        if ended:
            running.pop(ended)
        else:
            running[begun] = name
            crowds.append(set(running.values()))
    assert max(map(len, crowds)) > 1, "four cores were given and one was used"
    assert [c for c in crowds if "time_group" in c] == [{"time_group"}] * 2  # one timing a shape, each alone


@pytest.mark.parametrize("command", [["--unlock"], ["--summary"], ["--report", "results/all.html"]])
def test_what_runs_nothing_needs_no_number_of_cores(live: Project, command: list[str]) -> None:
    """As README.md and the words of doctor give these commands."""
    done = live.run("snakemake", *command, env=STANDIN)
    assert done.returncode == 0, done.stdout[-2000:]


def test_finished_run_has_nothing_to_do_and_touching_every_source_changes_nothing(edited: Project) -> None:
    for part in ("Snakefile", "kernels", "config", "paper", "workflow"):
        for path in sorted_files(edited.path(part)):
            os.utime(path)
    assert plan(edited) == set()


@pytest.mark.parametrize(
    ("name", "jobs"),
    [
        ("raw/timing/{first}.csv", {("time_group", FIRST)}),
        ("raw/counters/{first}.csv", {("merge_counters", FIRST)}),
        ("raw/check.csv", {("merge_checks",)}),
        ("predicted_check.csv", {("predict",)}),
        ("build/sm_90/tiled_b8.json", {("build_tiled",)}),
    ],
)
def test_file_that_is_gone_is_made_again_though_the_tables_are_there(edited: Project, name: str, jobs: set[Job]) -> None:
    """Snakemake looks at what the target names alone: an intermediate file that is gone would stay away."""
    path = edited.path(f"results/mine/transpose/{name.format(first=FIRST)}")
    data, stat = path.read_bytes(), path.stat()
    path.unlink()
    try:
        assert plan(edited) >= jobs
    finally:
        path.write_bytes(data)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_dry_run_is_quick(edited: Project) -> None:
    times = []
    for _ in range(3):  # about 1.5 s of processor time; a busy machine gets two more chances
        begin = time.monotonic()
        plan(edited)
        times.append(time.monotonic() - begin)
        if times[-1] < 5:
            return
    raise AssertionError(f"dry runs took {times} s")


def test_comments_and_white_space_are_no_edits(edited: Project) -> None:
    kernel = edited.path("kernels/transpose/tiled_padded.cu")
    text = kernel.read_text(encoding="utf-8")
    kernel.write_text("// a new first line\n" + text.replace("{\n", "{   /* why */\n\n", 1).replace(" = ", "  =  "), encoding="utf-8")
    edited.edit("kernels/transpose/variants.yaml", "study: transpose", "# a comment\nstudy:    transpose")
    edited.edit("kernels/transpose/variants.yaml", 'grid: ["ceil_div(rows * cols, 4096)", 1]', 'grid: ["ceil_div( rows*cols,4096 )",   1]')
    config = edited.path("config/config.yaml")
    config.write_text("# a comment\n" + config.read_text(encoding="utf-8"), encoding="utf-8")
    edited.edit("config/metrics.yaml", "quantities:\n", "# a comment\nquantities:\n\n")
    snakefile = edited.path("Snakefile")
    snakefile.write_text("# a comment\n" + snakefile.read_text(encoding="utf-8"), encoding="utf-8")
    jobs = plan(edited)
    assert rules(jobs) <= {"aggregate", "judge", "draw", "write"}, jobs  # the registry's digest sees the white space in the expression


WORDS = {
    "a figure's declaration": ("paper/transpose.figures.yaml", "limit: 100\n", "limit: 90\n", {"draw", "write"}),
    "a caption": ("workflow/report/bandwidth_ladder.rst", None, "Another sentence.\n", {"write"}),
    "the prose": ("paper/transpose.py", None, "\n# %% [markdown]\n# Another sentence.\n", {"write"}),
    "a variant's title": ("kernels/transpose/variants.yaml", "title: float4 copy, several loads in flight", "title: vectors", WRITING),
    "a precondition's reason": (
        "kernels/transpose/variants.yaml",
        'why: "the scalar copy indexes with 32 bits, as the study\'s does"',
        'why: "32 bits"',
        WRITING,
    ),
    "a quantity's meaning": ("config/metrics.yaml", "meaning: waiting at a barrier", "meaning: stopped at a barrier", WRITING),
}


@pytest.mark.parametrize("what", WORDS)
def test_words_and_drawings_are_never_measured(edited: Project, what: str) -> None:
    name, old, new, expected = WORDS[what]
    if old is None:
        with edited.path(name).open("a", encoding="utf-8") as stream:
            stream.write(new)
    else:
        edited.edit(name, old, new)
    jobs = plan(edited)
    assert jobs, "a reader would see the old words"
    assert rules(jobs) <= expected


def test_report_settings_and_published_figures_are_never_measured(edited: Project) -> None:
    edited.configure(report={"formats": ["md", "html"], "peak_gb_s": 4000})
    edited.edit("config/reference/rtx5060-laptop.yaml", "looped_padded_32x8: 302.1", "looped_padded_32x8: 302.2")
    jobs = plan(edited)
    assert rules(jobs) == WRITING | {"predict"}  # the environment stays as recorded; the nominal peak is part of a prediction


def test_edited_code_measures_the_shapes_that_contain_it(edited: Project) -> None:
    assert "tiled" in SMALL and "tiled" not in FEWER
    edited.edit("kernels/transpose/tiled.cu", "__syncthreads();", "__syncthreads(); __syncthreads();")
    jobs = plan(edited)
    assert builds(jobs) == {"build_tiled"}
    assert gpu_jobs(jobs) == on_gpu(FIRST)
    assert rules(jobs) >= FOLLOWING


@pytest.mark.parametrize(
    ("old", "new", "compiled"),
    [
        ("grid: [\"ceil_div(rows * cols, 256)\", 1]", "grid: [\"ceil_div(rows * cols, 256) + 1\", 1]", set()),
        ("macros: {BLOCK_SIZE: 256}\n", "macros: {BLOCK_SIZE: 256, MORE: 1}\n", {"build_copy"}),
    ],
    ids=["grid", "macro"],
)
def test_changed_launch_or_macro_measures_again(edited: Project, old: str, new: str, compiled: set[str]) -> None:
    edited.edit("kernels/transpose/variants.yaml", old, new)
    jobs = plan(edited)
    assert builds(jobs) == compiled
    assert gpu_jobs(jobs) == on_gpu(FIRST, SECOND)  # both shapes hold the copy


def test_changed_block_measures_the_shapes_that_contain_it(edited: Project) -> None:
    before = "  tiled:\n    title: shared tile [32][32], 32-way conflicts\n    origin: tutorials\n    source: tiled.cu\n    takes: [block_rows]\n"
    edited.edit("kernels/transpose/variants.yaml", before + "    block: [32, block_rows]", before + "    block: [32, block_rows, 1]")
    jobs = plan(edited)
    assert builds(jobs) == set()
    assert gpu_jobs(jobs) == on_gpu(FIRST)


def test_added_shape_measures_only_itself(edited: Project) -> None:
    third = other_shape(2)
    edited.configure(shapes=[measured_shape(), other_shape() | {"variants": FEWER}, third])
    jobs = plan(edited)
    assert builds(jobs) == set()
    assert gpu_jobs(jobs) == on_gpu(shape_name(third))


def test_removed_shape_measures_nothing(edited: Project) -> None:
    edited.configure(shapes=[measured_shape()])
    jobs = plan(edited)
    assert not gpu_jobs(jobs) and not builds(jobs)


def test_added_variant_measures_the_shapes_that_contain_it(edited: Project) -> None:
    edited.configure(variants=[*SMALL, "tiled_xor"])
    jobs = plan(edited)
    assert builds(jobs) == {"build_tiled_xor"}
    assert gpu_jobs(jobs) == on_gpu(FIRST)


def test_changed_metric_reads_only_its_batch(edited: Project) -> None:
    path = edited.path("config/metrics.yaml")
    text, count = re.subn(r"(batch: duration,[^}]*metric: [\w.]+)", r"\1_other", path.read_text(encoding="utf-8"), count=1)
    assert count == 1
    path.write_text(text, encoding="utf-8")
    assert gpu_jobs(plan(edited)) == {("profile_group", g, "duration") for g in (FIRST, SECOND)}


def test_more_launches_of_a_batch_at_one_shape_read_only_these(edited: Project) -> None:
    edited.configure(shapes=[measured_shape() | {"launches": {"counters": 2}}, other_shape() | {"variants": FEWER}])
    assert gpu_jobs(plan(edited)) == {("profile_group", FIRST, "counters")}


def test_timing_settings_only_time(edited: Project) -> None:
    edited.configure(timing={"min_samples": 6, "budget_s": 0.01, "warmup_budget_s": 0})
    jobs = plan(edited)
    assert gpu_jobs(jobs) == {("time_group", g) for g in (FIRST, SECOND)} and not builds(jobs)


def test_another_input_is_timed_and_profiled_and_not_checked(edited: Project) -> None:
    """The check brings a pattern of its own in which every element names its index; the seed has no part in it."""
    edited.configure(input={"seed": 1})
    assert gpu_jobs(plan(edited)) == timing_and_profiles(FIRST, SECOND)


def test_another_folder_measures_everything(edited: Project) -> None:
    """The counterpart of the tests above: where nothing is there, everything is planned."""
    edited.configure(run="another")
    jobs = plan(edited)
    assert gpu_jobs(jobs) == on_gpu(FIRST, SECOND)
    assert builds(jobs) == {f"build_{v}" for v in SMALL if v != "memcpy"} | {"build_harness"}


def test_rules_are_made_of_one_command_each() -> None:
    """A ``run:`` block would start Python anew for each job; ``ancient`` on a generated file would hide a stale one."""
    for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")):
        text = path.read_text(encoding="utf-8")
        assert "\n    run:" not in text, path.name
        assert text.count("ancient(") == text.count("source=ancient("), path.name
