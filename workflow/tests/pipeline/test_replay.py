"""The whole replay of the recorded run: without a GPU, in two folders, under another locale, with equal bytes."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from projects import NAMED, QUICK, Project, copy_project, quick_config, rules, shape_name

FORMATS = ["html", "pdf", "md", "ipynb"]


def decimal_comma(folder: Path) -> dict[str, str]:
    """Environment of a locale that writes 1,5: compiled into ``folder`` where the machine can, else named all the same."""
    if shutil.which("localedef") and Path("/usr/share/i18n/locales/de_DE").exists():
        command = ["localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")]
        subprocess.run(command, capture_output=True, check=False)
    where = {"LOCPATH": str(folder)} if (folder / "de_DE.UTF-8").is_dir() else {}
    return where | {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8"}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A finished replay in all formats."""
    project = copy_project(tmp_path_factory.mktemp("first"))
    project.configure(report={"formats": FORMATS}, paper=None)
    (project.root.parent / "said").write_text(project.snakemake("all", env={"LC_ALL": "C.UTF-8"}), encoding="utf-8")
    return project


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Another one, in a folder of another name, another home and time zone, with a decimal comma where the machine has one."""
    parent = tmp_path_factory.mktemp("another folder, with a comma")
    project = copy_project(parent)
    project.configure(report={"formats": FORMATS}, paper=None)
    home = parent / "home"
    home.mkdir()
    project.snakemake("all", env=decimal_comma(home) | {"TZ": "Asia/Tokyo", "HOME": str(home), "PYTHONHASHSEED": "77"})
    return project


def test_says_in_its_first_lines_that_it_is_a_replay(first: Project) -> None:
    lines = first.path("results/mine/transpose/report/transpose.md").read_text(encoding="utf-8").splitlines()
    head = " ".join([line for line in lines if line][:3])
    assert "Replay" in head and QUICK.name in head and "Nothing was measured" in head


def test_a_job_is_one_short_line_on_the_console(first: Project) -> None:
    lines = (first.root.parent / "said").read_text(encoding="utf-8").splitlines()
    root = str(first.root)  # pytest's folders have long names
    assert max(len(line.replace(root, "")) for line in lines) <= 120, max(lines, key=len)
    jobs = [line for line in lines if line.startswith("Job ") and not line.startswith("Job stats")]
    assert len(jobs) == len([line for line in lines if line.startswith("Finished jobid:")]) > 10
    assert any(re.fullmatch(r"Job \d+: build_tiled", line) for line in jobs)
    assert any(line.endswith("resolve_config (results/mine/transpose)") for line in jobs)


def test_makes_every_table_figure_and_report(first: Project) -> None:
    with zipfile.ZipFile(QUICK) as archive:
        recorded = {Path(n).name for n in archive.namelist() if n.startswith("tables/")}
    made = {p.name for p in first.path("results/mine/transpose/tables").iterdir()}
    assert recorded <= made
    assert {f"transpose.{f}" for f in FORMATS} <= {p.name for p in first.path("results/mine/transpose/report").iterdir()}
    figures = first.path("results/mine/transpose/figures")
    assert {p.stem for p in figures.glob("*.svg")} == {p.stem for p in figures.glob("*.png")} != set()


def test_two_replays_are_equal_byte_for_byte(first: Project, second: Project) -> None:
    folders = [f"results/mine/transpose/{f}" for f in ("tables", "figures", "report", "raw", "build")]
    one, two = first.hashes(*folders), second.hashes(*folders)
    assert set(one) == set(two)
    assert [name for name in one if one[name] != two[name]] == []


def test_raw_files_are_the_archive_s(first: Project) -> None:
    group = shape_name(quick_config()["shapes"][0])
    with zipfile.ZipFile(QUICK) as archive:
        for name in ("check.csv", f"timing/{group}.csv", f"counters/{group}.csv"):
            assert first.path(f"results/mine/transpose/raw/{name}").read_bytes() == archive.read(f"raw/{name}"), name


def test_compiler_gives_the_archived_machine_code(first: Project) -> None:
    """Every kernel is compiled here anew; the pinned compiler's bytes do not depend on the machine."""
    build = first.path("results/mine/transpose/build/sm_90")
    records = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(build.glob("*.json"))]
    assert records and all(r["status"] == "ok" for r in records)
    with zipfile.ZipFile(QUICK) as archive:
        for record in records:
            archived = json.loads(archive.read(f"build/sm_90/{record['kernel']}.json"))
            if archived["compiler"] == record["compiler"] and archived["code_digest"] == record["code_digest"]:
                assert record["cubin_sha256"] == archived["cubin_sha256"], record["kernel"]


def test_environment_names_the_archive(first: Project) -> None:
    environment = json.loads(first.path("results/mine/transpose/environment.json").read_text(encoding="utf-8"))
    with zipfile.ZipFile(QUICK) as archive:
        assert environment["gpu"] == json.loads(archive.read("environment.json"))["gpu"]
    assert environment["replayed_from"]["archive"] == QUICK.name


def test_finished_replay_has_nothing_to_do(first: Project) -> None:
    assert first.plan() == set()


def test_edited_prose_only_writes(first: Project) -> None:
    with first.path("paper/transpose.py").open("a", encoding="utf-8") as stream:
        stream.write("\n# %% [markdown]\n# Another sentence.\n")
    assert rules(first.plan()) == {"write"}


def test_numbers_keep_their_points(second: Project) -> None:
    """A decimal comma in a CSV would shift its columns."""
    for path in second.path("results/mine/transpose/tables").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
        assert rows and all(len(row) == len(header) for row in rows), path.name
    with second.path("results/mine/transpose/tables/timings.csv").open(encoding="utf-8", newline="") as stream:
        medians = [float(row["median_us"]) for row in csv.DictReader(stream) if row["status"] == "ok"]
    assert medians and any(not m.is_integer() for m in medians)


def test_replay_named_on_the_command_line(project: Project) -> None:
    project.configure(device="auto", replay=None, run=None)
    jobs = project.plan("--config", f"device=archive:{NAMED}")
    assert "restore_raw" in rules(jobs) and "time_group" not in rules(jobs)
