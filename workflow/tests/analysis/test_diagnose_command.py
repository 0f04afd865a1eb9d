"""``diagnose`` as a command: which run and cell it takes, what it measures, and what it says of mistakes and damaged files."""

import tempfile
from pathlib import Path

import pytest
from analysis.diagnosing import ARCHIVE, diagnose
from live_run import STANDIN
from projects import ROOT
from transpose_study.analysis.diagnose.facts import TABLES
from transpose_study.cli.diagnose_tables import one_cell, recorded
from transpose_study.errors import StudyError
from transpose_study.records import write_yaml
from transpose_study.registry import Study

MICRO = Study(ROOT / "kernels" / "micro" / "variants.yaml")


def test_errors_about_an_archive_name_it_and_its_member(monkeypatch, capsys):
    """Not the folder into which it was unpacked, which is gone by then."""
    monkeypatch.chdir(ROOT)
    status, _, err = diagnose(capsys, "bank_column", "--study", "micro", "--bytes", 8, "--pitch", 1056)
    assert status == 2 and ".crate.zip, tables/timings.csv: bank_column was not timed: a block needs 270336 bytes" in err
    assert tempfile.gettempdir() not in err
    for name in ("run_config.yaml", *(f"tables/{t}.csv" for t in TABLES)):
        with pytest.raises(StudyError) as caught, recorded(MICRO, MICRO.variants["bank_load"], None) as (folder, _):
            raise StudyError(f"{folder / name} is odd", where=str(folder / name), hint=f"see {folder / name}")
        assert str(caught.value).count(f".crate.zip, {name}") == 3 and str(folder) not in str(caught.value)


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
        (["tiled", "--measure", "--study", "micro"], "tiled is of the study transpose hint: add --study transpose"),
        (["bank_load", "--measure", "--study", "micro", "--width", "4", "--stride", "1", "--shape", "1024"], "hint: configured for bank_load: banks"),
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
