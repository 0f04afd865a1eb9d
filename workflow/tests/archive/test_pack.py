"""What goes into an archive, that the same run gives the same bytes, and that nothing half-finished is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from archive_run import RUN, experiment_of
from projects import Project
from transpose_study.archive import pack as packing
from transpose_study.archive import writer
from transpose_study.archive.findings import status_of
from transpose_study.archive.pack import pack
from transpose_study.archive.verify import check_file
from transpose_study.container import MANIFEST, Container
from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment

MIB = 2**20


def test_everything_is_in_it(archive: Path, finished: Project) -> None:
    container = Container(archive)
    run = finished.path(RUN)
    for folder in ("raw", "tables", "build"):
        for path in (run / folder).rglob("*.csv"):
            if "parts" not in path.parts:
                assert container.read(path.relative_to(run).as_posix()) == path.read_bytes()
    names = set(container.names)
    for kernel in ("copy", "tiled_padded_b8"):
        assert {f"build/sm_90/{kernel}.{s}" for s in ("cubin", "ptx", "sass", "json")} <= names
    assert {"run_config.yaml", "environment.json", "predicted.csv", "README.md", "ro-crate-metadata.json", "report/transpose.html"} <= names
    assert {"sources/Snakefile", "sources/LICENSE", "sources/kernels/transpose/tiled.cu", "sources/config/metrics.yaml"} <= names
    assert "sources/workflow/transpose_study/gpu/timing.py" in names and "sources/workflow/rules/measure.smk" in names
    assert not any(n.endswith((".pyc", ".ncu-rep", ".part", ".png")) for n in names)
    assert container.schema_version == 2


def test_members_have_a_fixed_order_time_and_encoding(archive: Path) -> None:
    """Stored or bzip2, whose output has not changed since 2000; never deflated, which differs between versions of zlib."""
    with zipfile.ZipFile(archive) as container:
        infos = container.infolist()
    assert {i.compress_type for i in infos} <= {zipfile.ZIP_STORED, zipfile.ZIP_BZIP2}
    assert {i.date_time for i in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert [i.filename for i in infos[:2]] == [MANIFEST, "ro-crate-metadata.json"]
    assert [i.filename for i in infos[2:]] == sorted(i.filename for i in infos[2:])


def test_same_run_gives_the_same_bytes(archive: Path, mine: Project, tmp_path: Path) -> None:
    """In another folder, in another time zone, with other modification times and permissions, by another process."""
    for path in mine.path(RUN).rglob("*"):
        os.utime(path, (1, 1))
    mine.path(f"{RUN}/environment.json").chmod(0o600)
    done = mine.command("archive", "--run", RUN, "--output", str(tmp_path / "b.zip"), env={"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "5"})
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "b.zip").read_bytes() == archive.read_bytes()


def test_ncu_reports_on_request(mine: Project, tmp_path: Path) -> None:
    report = mine.path(f"{RUN}/raw/counters/4096x4096.counters.ncu-rep")
    report.write_bytes(b"as ncu wrote it")
    assert not any(n.endswith(".ncu-rep") for n in Container(pack(experiment_of(mine), tmp_path / "a.zip")).names)
    container = Container(pack(experiment_of(mine), tmp_path / "b.zip", with_ncu_reports=True))
    assert container.read("raw/counters/4096x4096.counters.ncu-rep") == report.read_bytes()


def test_default_name(mine: Project) -> None:
    done = mine.command("archive", "--run", RUN)
    assert done.returncode == 0, done.stdout
    day = Container(next(mine.path("results/archive").glob("nvidia-h200-2*.crate.zip"))).manifest["measured"][:10]
    assert mine.path(f"results/archive/nvidia-h200-{day}.crate.zip").is_file()


# -- refusals -----------------------------------------------------------------------------------------------------------


def test_replay_is_refused(mine: Project) -> None:
    mine.configure(run="again")
    mine.snakemake("results/again/transpose/run_config.yaml")
    with pytest.raises(StudyError, match="there is nothing new to archive"):
        pack(Experiment.from_run(mine.path("results/again/transpose"), mine.root))


def test_folder_that_does_not_hold_together_is_refused(mine: Project, tmp_path: Path) -> None:
    mine.edit("kernels/transpose/copy.cu", "in[", "0.0f + in[")
    with pytest.raises(StudyError, match="the source of copy is not the one that was built"):
        pack(experiment_of(mine), tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_folder_that_cannot_be_written(finished: Project, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StudyError, match="cannot write this file"):
        pack(experiment_of(finished), tmp_path / "file" / "a.zip")


# -- interruptions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_interruption_leaves_nothing(finished: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException) -> None:
    real, calls = writer.shutil.copyfileobj, []

    def some(*arguments: object) -> None:
        calls.append(arguments)
        if len(calls) == 20:
            raise failure
        real(*arguments)

    monkeypatch.setattr(writer.shutil, "copyfileobj", some)
    with pytest.raises((KeyboardInterrupt, StudyError)):
        pack(experiment_of(finished), tmp_path / "a.zip")
    assert list(tmp_path.iterdir()) == []


SLOW = """
import sys, time
from pathlib import Path
from transpose_study.archive import writer
from transpose_study.archive.pack import pack
from transpose_study.experiment import Experiment
real = writer.shutil.copyfileobj
def slow(*arguments):
    real(*arguments)
    time.sleep(0.05)
writer.shutil.copyfileobj = slow
pack(Experiment.from_run(Path(sys.argv[1]), Path(sys.argv[2])), Path(sys.argv[3]))
"""


def test_kill_leaves_nothing_that_looks_finished(finished: Project, tmp_path: Path) -> None:
    target = tmp_path / "a.crate.zip"
    command = [sys.executable, "-c", SLOW, str(finished.path(RUN)), str(finished.root), str(target)]
    process = subprocess.Popen(command, cwd=finished.root)
    deadline = time.monotonic() + 60
    while not any(p.stat().st_size > 2**19 for p in tmp_path.glob(".*.part")):
        assert process.poll() is None and time.monotonic() < deadline, "the packing ended before it could be killed"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not target.exists()
    assert all(p.name.startswith(".") and p.name.endswith(".part") for p in tmp_path.iterdir())


def test_file_that_changes_while_it_is_packed(mine: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = packing.write_container

    def late(target: Path, members: list[object]) -> None:
        mine.path(f"{RUN}/tables/noise.csv").write_text("edited meanwhile")
        real(target, members)

    monkeypatch.setattr(packing, "write_container", late)
    with pytest.raises(StudyError, match=r"tables/noise\.csv changed while it was packed"):
        pack(experiment_of(mine), tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_memory_does_not_grow_with_the_samples(mine: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 MB of raw samples packed, checked and taken out again within 16 MiB."""
    path = mine.path(f"{RUN}/raw/timing/4096x4096.csv")
    header, *rows = path.read_bytes().splitlines(keepends=True)
    column = header.split(b",").index(b"sample_us")
    fields = [row.split(b",") for row in rows]
    noise = random.Random(1)
    with path.open("wb") as out:
        out.write(header)
        while out.tell() < 100 * 10**6:  # other samples each time, lest it be refused as a zip bomb
            for row in fields:
                row[column] = b"%.6f" % noise.uniform(30, 40)
            out.writelines(b",".join(row) for row in fields)
    monkeypatch.setattr(packing, "mismatches", lambda experiment: [])  # the tables were not made of these samples
    experiment = experiment_of(mine)
    tracemalloc.start()
    try:
        container = Container(pack(experiment, tmp_path / "large.zip"))
        assert status_of(list(check_file(container))) == 0
        container.extract("raw/timing/4096x4096.csv", tmp_path / "out.csv")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "out.csv").stat().st_size > 100 * 10**6
    assert peak < 16 * MIB, f"{peak / MIB:.0f} MiB"
