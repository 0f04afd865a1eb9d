"""Mistakes of the user, each ending in one message and a failing exit status, and never in a stack trace or half a file."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import pytest
import yaml
from live_run import STANDIN, measured_shape, other_shape
from projects import NAMED, TESTS, Project, copy_project, shape_name

RUN = "results/mine/transpose"
FIRST = shape_name(measured_shape())


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in which nothing ran yet; what is refused writes nothing, so that the tests can share it."""
    return copy_project(tmp_path_factory.mktemp("fresh"))


def refused(project: Project, *arguments: str, env: dict[str, str] | None = None) -> str:
    """Run Snakemake, which must stop before any job; return what it said."""
    before = project.hashes("results")
    said = project.snakemake("all", *arguments, env=env, ok=False)
    assert "Traceback" not in said, said
    assert project.hashes("results") == before, "something was written"
    return said


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


# -- before any job ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("config/config.yaml", "study:", "stduy: x\nstudy:", ["unknown key 'stduy', did you mean 'study'?"]),
        ("config/config.yaml", "variants: all", "variants: [copy, tiled_pad]", ["unknown variant 'tiled_pad'; did you mean 'tiled_padded'?"]),
        ("config/config.yaml", "run: mine", "run: mine\nrun: yours", ["config/config.yaml", "key 'run' is given twice in line"]),
        ("config/config.yaml", "run: mine", "run: [mine", ["config/config.yaml", "is no YAML", "in line"]),
        ("config/config.yaml", NAMED, "results/archive/absent.zip", ["results/archive/absent.zip", "is not there", Path(NAMED).name]),
        ("config/config.yaml", f"rows: {measured_shape()['rows']}", "rows: 17", ["has no measurement of", FIRST]),
        ("kernels/transpose/variants.yaml", "ceil_div(rows * cols, 4096)", "ceil_div(rows * cells, 4096)", ["variant copy_vectorized", "'cells'"]),
        ("kernels/transpose/variants.yaml", "ceil_div(rows * cols, 4096)", "rows * cols / 4096", ["write // for division"]),
        ("kernels/transpose/variants.yaml", "source: tiled_xor.cu", "source: tiled_xr.cu", ["the source tiled_xr.cu is not there"]),
        ("paper/transpose.figures.yaml", "bandwidth_ladder:\n", "bandwidth_ladder: [\n", ["paper/transpose.figures.yaml: is no YAML", "in line"]),
        ("config/metrics.yaml", "  source: {", "  sourced: {", ["unknown batch 'source'; did you mean 'sourced'?"]),
    ],
)
def test_mistakes_in_hand_written_files(fresh: Project, name: str, old: str, new: str, words: list[str]) -> None:
    text = fresh.path(name).read_text(encoding="utf-8")
    try:
        fresh.edit(name, old, new)
        said = refused(fresh)
    finally:
        fresh.path(name).write_text(text, encoding="utf-8")
    assert all(w in said for w in words), said


def test_source_that_is_no_text(fresh: Project) -> None:
    path = fresh.path("kernels/transpose/tiled.cu")
    code = path.read_bytes()
    path.write_bytes(code + b"// caf\xe9\n")
    said = refused(fresh)
    path.write_bytes(code)
    assert "kernels/transpose/tiled.cu: is not UTF-8 text" in said


def test_shape_that_is_not_configured_has_no_rule(fresh: Project) -> None:
    said = fresh.snakemake(f"{RUN}/raw/timing/17x17.csv", ok=False)
    assert "MissingRuleException" in said and "Traceback" not in said


def test_damaged_archive_is_named(fresh: Project) -> None:
    whole = fresh.path(NAMED).read_bytes()
    fresh.path("results/archive/half.zip").write_bytes(whole[: len(whole) // 2])
    said = refused(fresh, "--config", "replay=results/archive/half.zip")
    assert "results/archive/half.zip: is damaged or no zip file" in said and "fetch the archive again" in said


def test_device_that_is_not_here(fresh: Project) -> None:
    said = refused(fresh, "--config", "device=GPU-12345678", env=STANDIN)
    assert "'GPU-12345678' names no visible device" in said and "0: NVIDIA H200 GPU-" in said


def test_folder_of_a_live_run_is_not_replayed_over(mine: Project) -> None:
    mine.configure(shapes=[measured_shape()])  # which the archive has
    said = refused(mine, "--config", "device=archive")
    assert "holds a live run on NVIDIA H200" in said and "a replay of" in said and "--config run=NAME" in said


def test_folder_of_another_gpu_is_not_measured_over(mine: Project) -> None:
    identity = mine.path(f"{RUN}/raw/run.json")
    held = json.loads(identity.read_text(encoding="utf-8"))
    identity.write_text(json.dumps(held | {"gpu_uuid": "GPU-0", "gpu_name": "NVIDIA A100"}), encoding="utf-8")
    said = refused(mine, env=STANDIN)
    assert "holds a live run on NVIDIA A100 (GPU-0)" in said and "--config run=NAME" in said
    identity.write_text(json.dumps(held | {"archive": "some.crate.zip"}), encoding="utf-8")
    said = refused(mine, env=STANDIN)
    assert "holds a replay of some.crate.zip" in said


def test_step_run_by_hand_does_not_measure_over_another_gpu_either(mine: Project) -> None:
    identity = mine.path(f"{RUN}/raw/run.json")
    identity.write_text(json.dumps(json.loads(identity.read_text(encoding="utf-8")) | {"gpu_uuid": "GPU-0"}), encoding="utf-8")
    timing = mine.path(f"{RUN}/raw/timing/{FIRST}.csv").read_bytes()
    uuid = rows_gpu(mine)
    settings = {"study": "transpose", "group": measured_shape(), "axes": {"block_rows": [8]}, "variants": {"copy": ""}, "architecture": "90"}
    done = mine.command("time", "--run", RUN, "--settings", json.dumps(settings | {"gpu": uuid}), env=STANDIN)
    assert done.returncode == 2 and "run=NAME" in done.stdout and "Traceback" not in done.stdout
    assert mine.path(f"{RUN}/raw/timing/{FIRST}.csv").read_bytes() == timing


def rows_gpu(project: Project) -> str:
    return str(json.loads(project.path(f"{RUN}/environment.json").read_text(encoding="utf-8"))["gpu"]["uuid"])


def test_results_that_cannot_be_written(tmp_path: Path) -> None:
    """A file where the run's folder should be: no permission could be taken away from an administrator."""
    project = copy_project(tmp_path)
    project.path("results/mine").write_text("mine", encoding="utf-8")
    said = refused(project)
    assert "results/mine: is no folder, so no results can go there" in said and "--config run=NAME" in said


# -- in the middle ----------------------------------------------------------------------------------------------------


def test_damaged_raw_member_stops_the_replay_and_leaves_nothing(tmp_path: Path) -> None:
    project = copy_project(tmp_path)
    data = bytearray(project.path(NAMED).read_bytes())
    with zipfile.ZipFile(project.path(NAMED)) as archive:
        info = archive.getinfo(f"raw/timing/{FIRST}.csv")
    data[info.header_offset + 30 + len(info.filename) + info.compress_size // 2] ^= 1
    project.path(NAMED).write_bytes(data)
    said = project.snakemake(f"{RUN}/raw/check.csv", ok=False)
    assert f"member raw/timing/{FIRST}.csv" in said and NAMED in said and "Traceback" not in said
    assert project.hashes(f"{RUN}/raw") == {}


def test_full_disk_leaves_the_old_tables(mine: Project) -> None:
    """A limit on the size of files stands in for the end of the disk: the kernel refuses the write in the same way."""
    before = mine.hashes(f"{RUN}/tables", f"{RUN}/raw")
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)); from transpose_study.cli import main; "
        f"sys.exit(main(['aggregate', '--run', {RUN!r}, '--log', 'aggregate.log']))"
    )
    mine.path("full.py").write_text(program, encoding="utf-8")
    done = mine.run("full")
    assert done.returncode == 2 and "cannot write this file" in done.stdout and "free some disk space" in done.stdout
    assert "Traceback" not in done.stdout
    assert mine.hashes(f"{RUN}/tables", f"{RUN}/raw") == before


def test_wrong_kernel_gets_no_timing_and_the_others_go_on(mine: Project) -> None:
    """The verdict is written by hand here, as check writes it; a really wrong kernel is tested on a GPU."""
    path = mine.path(f"{RUN}/raw/check/{FIRST}.csv")
    text = path.read_text(encoding="utf-8")
    right = next(line for line in text.splitlines() if line.startswith("tiled,31,33,float32,8,ok"))
    wrong = "tiled,31,33,float32,8,wrong,\"1 of 1023 elements differ, the first at row 0, column 1\",0,1,0x00000021,0xa5a5a5a5"
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    said = mine.snakemake(f"{RUN}/tables/timings.csv", env=STANDIN)
    assert "Traceback" not in said
    timed = {(r["variant"], r["block_rows"]) for r in rows(mine.path(f"{RUN}/raw/timing/{FIRST}.csv"))}
    assert ("tiled", "8") not in timed and {("tiled", "32"), ("copy", "")} <= timed
    table = [r for r in rows(mine.path(f"{RUN}/tables/timings.csv")) if r["variant"] == "tiled" and r["block_rows"] == "8"]
    assert table and {r["status"] for r in table} == {"failed"}
    assert all("at 31x33" in r["reason"] and "row 0, col" in r["reason"] and "0xa5a5a5a5" in r["reason"] for r in table), table[0]["reason"]


@pytest.mark.parametrize(("name", "words"), [("denied", "NVreg_RestrictProfilingToAdminUsers=0"), ("no_kernel", "saw no launch")])
def test_ncu_that_gives_nothing_says_why_in_every_cell(mine: Project, name: str, words: str) -> None:
    part = f"{RUN}/raw/counters/parts/{FIRST}.duration.csv"
    env = STANDIN | {"TRANSPOSE_STUDY_STANDIN_NCU": str(TESTS / "material" / "ncu" / f"{name}.txt")}
    said = mine.snakemake("--force", part, env=env)
    assert words in said
    found = rows(mine.path(part))
    assert found and all(not r["value"] and (words in r["reason"] or r["variant"] == "memcpy") for r in found)


def test_no_ncu_and_shapes_that_cannot_run(tmp_path: Path) -> None:
    """Timings and report are complete; every cell that has no figure says why."""
    project = copy_project(tmp_path)
    nothing, huge = {"rows": 0, "cols": 8}, {"rows": 2**20, "cols": 2**20}
    project.configure(
        device="auto", shapes=[measured_shape(), nothing, huge], variants=["copy", "copy_vectorized", "memcpy", "tiled_padded"],
        axes={"block_rows": [7, 8]}, timing={"min_samples": 3, "budget_s": 0.01, "warmup_budget_s": 0},
    )  # fmt: skip
    said = project.snakemake("all", env=STANDIN | {"TRANSPOSE_STUDY_STANDIN_NCU": "missing"})
    assert "Traceback" not in said
    status = {(r["variant"], r["rows"], r["block_rows"]): (r["status"], r["reason"]) for r in rows(project.path(f"{RUN}/tables/timings.csv"))}
    first = str(measured_shape()["rows"])
    assert status["tiled_padded", first, "8"] == ("ok", "") == status["copy", first, ""]
    assert status["tiled_padded", first, "7"] == ("skipped", "BLOCK_ROWS must divide the tile of 32 rows")
    assert status["copy", "0", ""] == ("skipped", "rows is 0; it must be at least 1")
    assert status["copy_vectorized", str(2**20), ""][0] == "skipped" and "GiB" in status["copy_vectorized", str(2**20), ""][1]
    counters = rows(project.path(f"{RUN}/tables/counters.csv"))
    assert counters and not any(r["mean"] for r in counters)
    measured = [r for r in counters if (r["variant"], r["rows"], r["block_rows"]) == ("tiled_padded", first, "8")]
    assert measured and all("ncu was not found: install Nsight Compute" in r["reason"] for r in measured)
    assert "ncu was not found" in project.path(f"{RUN}/report/transpose.md").read_text(encoding="utf-8")


# -- kernels ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def edited_kernels(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A replay with a kernel of the user's own, one that does not compile, one without its entry, and one whose code was edited."""
    project = copy_project(tmp_path_factory.mktemp("kernels"))
    folder = "kernels/transpose"
    code = project.path(f"{folder}/tiled_padded.cu").read_text(encoding="utf-8")
    project.path(f"{folder}/my_own.cu").write_text(code.replace("tiled_padded(", "my_own("), encoding="utf-8")
    with project.path(f"{folder}/variants.yaml").open("a", encoding="utf-8") as registry:
        registry.write(
            """  my_own:
    source: my_own.cu
    takes: [block_rows]
    block: [32, block_rows]
    grid: ["ceil_div(cols, 32)", "ceil_div(rows, 32)"]
    macros: {TILE_DIM: 32, BLOCK_ROWS: block_rows}
    requires: [{holds: 32 % block_rows == 0, why: BLOCK_ROWS must divide the tile}]
"""
        )
    project.edit(f"{folder}/tiled_xor.cu", "__syncthreads();", "__syncthreads()")
    project.edit(f"{folder}/tiled_rotated.cu", "tiled_rotated(", "tiled_rotation(")
    project.edit(f"{folder}/tiled.cu", "__syncthreads();", "__syncthreads(); __syncthreads();")
    kernels = ["tiled", "tiled_padded", "tiled_xor", "tiled_rotated", "my_own"]
    project.configure(axes={"block_rows": [7, 8]}, variants=["copy", "copy_vectorized", "memcpy", *kernels])
    (project.root.parent / "said").write_text(project.snakemake("all"), encoding="utf-8")
    return project


def timings(project: Project, variant: str, block_rows: int = 8) -> set[tuple[str, str]]:
    """(status, reason) of a cell, of all cache modes."""
    found = rows(project.path(f"{RUN}/tables/timings.csv"))
    return {(r["status"], r["reason"]) for r in found if r["variant"] == variant and r["block_rows"] == str(block_rows)}


def test_own_kernel_takes_one_source_and_one_entry(edited_kernels: Project) -> None:
    record = json.loads(edited_kernels.path(f"{RUN}/build/sm_90/my_own_b8.json").read_text(encoding="utf-8"))
    like = json.loads(edited_kernels.path(f"{RUN}/build/sm_90/tiled_padded_b8.json").read_text(encoding="utf-8"))
    assert record["status"] == "ok" and record["registers"] == like["registers"] and record["shared_bytes"] == 32 * 33 * 4
    assert timings(edited_kernels, "my_own") == {("not measured", f"not measured: not in {NAMED}")}
    occupancy = rows(edited_kernels.path(f"{RUN}/tables/occupancy.csv"))
    assert any(r["variant"] == "my_own" and r["registers_per_thread"] == str(like["registers"]) for r in occupancy)
    assert "my_own_b8" in edited_kernels.path(f"{RUN}/report/transpose.md").read_text(encoding="utf-8")
    assert "my_own_b8" in edited_kernels.path(f"{RUN}/figures/bandwidth_ladder.svg").read_text(encoding="utf-8")


def test_kernel_that_does_not_compile(edited_kernels: Project) -> None:
    said = (edited_kernels.root.parent / "said").read_text(encoding="utf-8")
    assert "tiled_xor_b8 does not compile" in said and "kernels/transpose/tiled_xor.cu(" in said
    ((status, reason),) = timings(edited_kernels, "tiled_xor")
    assert status == "failed" and "kernels/transpose/tiled_xor.cu(" in reason and "error: expected a" in reason
    counters = [r for r in rows(edited_kernels.path(f"{RUN}/tables/counters.csv")) if r["variant"] == "tiled_xor"]
    assert counters and not any(r["mean"] for r in counters), "the archive's counters are of a kernel that did compile"


def test_kernel_without_its_entry(edited_kernels: Project) -> None:
    ((status, reason),) = timings(edited_kernels, "tiled_rotated")
    assert status == "failed" and 'has no extern "C" __global__ function tiled_rotated; it has: tiled_rotation' in reason


def test_archived_figures_are_not_shown_for_edited_code(edited_kernels: Project) -> None:
    assert timings(edited_kernels, "tiled") == {("not measured", f"not measured: {NAMED} measured other code of tiled")}
    counters = [r for r in rows(edited_kernels.path(f"{RUN}/tables/counters.csv")) if r["variant"] == "tiled"]
    assert counters and not any(r["mean"] for r in counters)


def test_block_rows_that_do_not_divide_the_tile(edited_kernels: Project) -> None:
    assert timings(edited_kernels, "tiled_padded", 7) == {("skipped", "BLOCK_ROWS must divide the tile of 32 rows")}
    record = json.loads(edited_kernels.path(f"{RUN}/build/sm_90/tiled_padded_b7.json").read_text(encoding="utf-8"))
    assert record["status"] == "skipped" and not edited_kernels.path(f"{RUN}/build/sm_90/tiled_padded_b7.cubin").exists()


def test_the_others_go_on(edited_kernels: Project) -> None:
    assert timings(edited_kernels, "tiled_padded") == {("ok", "")}


def test_own_kernel_shows_up_in_the_plan(mine: Project) -> None:
    source = mine.path("kernels/transpose/tiled_padded.cu").read_text(encoding="utf-8")
    mine.path("kernels/transpose/my_own.cu").write_text(source.replace("tiled_padded(", "my_own("), encoding="utf-8")
    registry = yaml.safe_load(mine.path("kernels/transpose/variants.yaml").read_text(encoding="utf-8"))
    registry["variants"]["my_own"] = registry["variants"]["tiled_padded"] | {"source": "my_own.cu"}
    mine.path("kernels/transpose/variants.yaml").write_text(yaml.safe_dump(registry, sort_keys=False), encoding="utf-8")
    mine.configure(variants="all", shapes=[measured_shape(), other_shape() | {"variants": ["copy"]}])
    jobs = mine.plan(env=STANDIN)
    assert ("build_my_own",) in jobs and ("time_group", FIRST) in jobs
