"""``rerun`` makes an archive's experiment again, here on a stand-in of the recorded GPU, and names what it repeats."""

from __future__ import annotations

from pathlib import Path

import yaml
from archive_run import members_of
from live_run import STANDIN, measured_shape, small_experiment
from projects import QUICK, Project
from transpose_study.container import Container
from transpose_study.differences import differences
from transpose_study.records import read_json, sha256_file, write_yaml


def test_without_a_gpu_it_says_what_can_be_done(finished: Project, archive: Path) -> None:
    done = finished.command("rerun", str(archive))
    assert done.returncode == 2
    assert "no NVIDIA device is here, and rerun measures" in done.stdout and "transpose-study verify" in done.stdout
    assert not finished.path("results/rerun").exists()


def small(project: Project) -> str:
    """A configuration with few samples and one format of the report, so that the stand-in's run is short."""
    few = {k: v for k, v in small_experiment().items() if k in ("timing", "profile")}
    shapes = {"shapes": [measured_shape()], "axes": {"block_rows": [8, 32]}}
    write_yaml(project.path("small.yaml"), few | shapes | {"report": {"formats": ["md"]}, "paper": {"language": ["en"]}})
    return "small.yaml"


def test_repeats_with_the_archives_kernels_and_program_and_says_so(project: Project, archive: Path) -> None:
    done = project.command("rerun", str(archive), "--configfile", small(project), env=STANDIN)
    assert done.returncode == 0, done.stdout[-4000:]
    work = project.path("results/rerun/a")
    environment = read_json(work / "results/nvidia-h200/transpose/environment.json")
    assert environment["repeats"] == {"archive": "a.crate.zip", "sha256": sha256_file(archive), "measured": Container(archive).manifest["measured"]}
    assert environment["replayed_from"] is None
    members = members_of(archive)
    for name in ("kernels/transpose/tiled.cu", "workflow/transpose_study/gpu/timing.py", "Snakefile"):
        assert (work / name).read_bytes() == members[f"sources/{name}"]
    for kernel in ("copy", "tiled_padded_b8"):
        assert (work / f"results/nvidia-h200/transpose/build/sm_90/{kernel}.cubin").read_bytes() == members[f"build/sm_90/{kernel}.cubin"]
    assert "side by side: snakemake --cores 1 compare" in done.stdout
    assert "nvcc flags" not in done.stdout, "they are the archive's, before the measurement as after it"
    again = project.command("rerun", str(archive), "--configfile", "small.yaml", env=STANDIN)
    assert again.returncode == 0 and "time_group" not in again.stdout, "a finished rerun measures nothing again"


def test_archive_of_version_1_is_repeated_by_the_installed_program(project: Project) -> None:
    done = project.command("rerun", str(QUICK), "--configfile", small(project), env=STANDIN)
    assert done.returncode == 0, done.stdout[-4000:]
    work = project.path("results/rerun/nvidia-h200-quick")
    assert not (work / "workflow/transpose_study").exists()
    assert read_json(work / "results/nvidia-h200/transpose/environment.json")["repeats"]["archive"] == QUICK.name


def test_the_archives_own_configuration_is_the_default(project: Project, archive: Path) -> None:
    """Whatever else is configured: every key as the archive resolved it, but for the device that is here."""
    done = project.command("rerun", str(archive), env=STANDIN)
    held = yaml.safe_load(members_of(archive)["run_config.yaml"])["config"]
    made = yaml.safe_load(project.path("results/rerun/a/config/config.yaml").read_text(encoding="utf-8"))
    assert done.returncode == 0, done.stdout[-4000:]
    own = ("device", "run", "replay", "compare")
    assert {k: v for k, v in made.items() if k not in own and k in held} == {k: v for k, v in held.items() if k not in own}
    assert made["device"] == "auto"


def test_folder_of_something_else_is_left_alone(project: Project, archive: Path) -> None:
    project.path("results/rerun/a").mkdir(parents=True)
    project.path("results/rerun/a/mine.txt").write_text("kept", encoding="utf-8")
    done = project.command("rerun", str(archive), env=STANDIN)
    assert done.returncode == 2 and "holds something else than a rerun of this archive" in done.stdout
    assert [p.name for p in project.path("results/rerun/a").iterdir()] == ["mine.txt"]


def test_differences_name_compiler_driver_and_ncu() -> None:
    first = {"gpu": {"name": "A", "driver": "580.1"}, "compiler": {"nvcc": "13.0.88"}, "ncu": "2025.3", "packages": {"numpy": "2.4", "x": "1"}}
    second = {"gpu": {"name": "A", "driver": "590.2"}, "compiler": {"nvcc": "13.1.1"}, "ncu": None, "packages": {"numpy": "2.4"}}
    found = differences([first, second])
    told = {"driver": ["580.1", "590.2"], "nvcc": ["13.0.88", "13.1.1"]}
    assert found == told | {"ncu": ["2025.3", "not recorded"], "package x": ["1", "not recorded"]}


def test_what_is_recorded_as_nothing_is_told_from_what_is_not_recorded() -> None:
    one, other = {"gpu": {}, "compiler": {"flags": []}}, {"gpu": {}, "compiler": {"flags": ["-O3"]}}
    assert differences([one, other, {"gpu": {}}]) == {"nvcc flags": ["none", "-O3", "not recorded"]}
