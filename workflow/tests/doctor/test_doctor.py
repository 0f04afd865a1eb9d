"""``doctor``: each fault is found, with the command that mends it and an exit status that scripts can use."""

from __future__ import annotations

import base64
import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from live_run import STANDIN
from projects import TESTS, Project
from transpose_study.device import Device
from transpose_study.doctor import BROKEN, LIMITS, OK, Finding, machine, status_of
from transpose_study.doctor import project as looks
from transpose_study.gpu import ncu
from transpose_study.records import read_text

LOCK = "workflow/envs/requirements.lock"


def findings(project: Project, *arguments: str, env: dict[str, str] | None = None) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """Exit status, and findings by what they are about."""
    done = project.command("doctor", "--json", *arguments, env=env)
    found: dict[str, list[dict[str, str]]] = {}
    for finding in json.loads(done.stdout):
        found.setdefault(finding["what"], []).append(finding)
    return done.returncode, found


@pytest.fixture
def locked(project: Project) -> Project:
    """The project with a lock file that wants exactly what is installed."""
    path = project.path(LOCK)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{n}=={importlib.metadata.version(n)} \\\n    --hash=sha256:0\n" for n in ("numpy", "pandas")), encoding="utf-8")
    return project


def test_machine_without_a_gpu(locked: Project) -> None:
    status, found = findings(locked)
    assert status == 1, found
    assert found["GPU"][0]["level"] == LIMITS and "nothing can be measured" in found["GPU"][0]["text"]
    assert {f["level"] for what, fs in found.items() if what != "GPU" for f in fs} == {OK}, found
    assert "compiles for sm_75" in found["compiler"][0]["text"]
    assert "nvidia-h200-quick.crate.zip, NVIDIA H200" in found["archive"][0]["text"]


def test_words_and_verdict_on_a_terminal(locked: Project) -> None:
    done = locked.command("doctor", "--no-probe")
    assert done.returncode == 1 and done.stdout.rstrip().endswith("works within limits: GPU")
    assert "mend: run on a machine with an NVIDIA GPU to measure" in done.stdout


def test_gpu_and_counters(locked: Project) -> None:
    """On the stand-in of the recorded H200, without probing."""
    _, found = findings(locked, "--no-probe", env=STANDIN)
    assert found["GPU"][0]["level"] == OK and "NVIDIA H200" in found["GPU"][0]["text"]
    assert found["driver"][0]["text"].endswith("for CUDA up to 13.0")


def test_missing_ncu(locked: Project) -> None:
    status, found = findings(locked, "--no-probe", env=STANDIN | {"TRANSPOSE_STUDY_STANDIN_NCU": "missing"})
    assert status >= 1
    assert found["ncu"][0]["level"] == LIMITS and "nsight-compute" in found["ncu"][0]["mend"]


DEVICE = Device(
    name="NVIDIA H200", uuid="GPU-00000000-0000-0000-0000-000000000003", ordinal=0, compute_capability="9.0", sm_count=132, l2_bytes=1,
    memory_bytes=2**37, clock_khz=1,
    memory_clock_khz=1, memory_bus_bits=1, threads_per_sm=1, registers_per_sm=1, blocks_per_sm=1, shared_bytes_per_sm=1, ecc=True,
    driver_cuda="13.0",
)  # fmt: skip


def test_denied_counters_name_the_driver_option(monkeypatch: pytest.MonkeyPatch) -> None:
    said = next(p for p in sorted((TESTS / "material" / "ncu").iterdir()) if "ERR_NVGPUCTRPERM" in read_text(p) and p.suffix == ".txt")
    monkeypatch.setattr(ncu, "find_ncu", lambda: Path("/usr/bin/ncu"))
    monkeypatch.setattr(ncu, "version", lambda program: "2025.3.1.0")
    monkeypatch.setattr(machine, "_profile", lambda *a: ncu.explain(read_text(said), 1))  # as the real ncu refused
    found = list(machine._ncu(DEVICE, object(), probe=True))
    assert [f.level for f in found] == [OK, LIMITS]
    assert "NVreg_RestrictProfilingToAdminUsers=0" in found[1].mend and "sudo" in found[1].mend


@pytest.mark.parametrize(
    ("installed", "driver", "level", "mend"),
    [
        ({}, "13.0", BROKEN, "sh workflow/envs/install.sh cuda13"),
        ({}, "12.4", BROKEN, "sh workflow/envs/install.sh cuda12"),
        ({"cupy-cuda13x": "14.0"}, "12.4", BROKEN, "sh workflow/envs/install.sh cuda12"),
        ({"cupy-cuda12x": "14.0"}, "13.0", OK, ""),
        ({"cupy-cuda13x": "14.0", "cupy-cuda12x": "14.0"}, "13.0", BROKEN, "pip uninstall -y cupy-cuda13x cupy-cuda12x"),
    ],
)
def test_cupy_for_the_driver(monkeypatch: pytest.MonkeyPatch, installed: dict[str, str], driver: str, level: str, mend: str) -> None:
    def version(name: str) -> str:
        if name in installed:
            return installed[name]
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    (found,) = machine._cupy(Device(**{**DEVICE.__dict__, "driver_cuda": driver}))
    assert found.level == level and found.mend.startswith(mend)


def test_little_memory(monkeypatch: pytest.MonkeyPatch, project: Project) -> None:
    class Reading:
        def __init__(self, uuid: str) -> None:
            pass

        def free_bytes(self) -> int:
            return 10**6

        def other_processes(self, own: set[int]) -> list[str]:
            return ["PID 7 with 100 MiB"]

    monkeypatch.setattr(machine, "Telemetry", Reading)
    memory, others = machine._memory(DEVICE, project.root)
    assert memory.level == LIMITS and "nvidia-smi" in memory.mend
    assert others.level == LIMITS and "PID 7" in others.text and "kill PID" in others.mend


# -- the project ------------------------------------------------------------------------------------------------------------


def test_other_versions_than_locked(locked: Project) -> None:
    path = locked.path(LOCK)
    text = path.read_text(encoding="utf-8").replace(f"numpy=={importlib.metadata.version('numpy')}", "numpy==0.0.1")
    path.write_text(text + 'never-there==1.0 ; sys_platform == "linux" \\\nnor-this==1.0 ; sys_platform == "win32" \\\n', encoding="utf-8")
    status, found = findings(locked, "--no-probe")
    (packages,) = found["packages"]
    assert status == 1 and packages["level"] == LIMITS and packages["mend"] == "sh workflow/envs/install.sh"
    assert f"numpy {importlib.metadata.version('numpy')} (locked: 0.0.1)" in packages["text"]
    assert "1 of 3 locked packages are missing: never-there" in packages["text"]


def test_stale_lock_and_unfinished_files(locked: Project) -> None:
    notes = locked.path(".snakemake")
    for folder in ("locks", "incomplete"):
        (notes / folder).mkdir(parents=True)
    (notes / "locks" / "0.input.lock").write_text("x", encoding="utf-8")
    name = base64.urlsafe_b64encode(b"results/nvidia-h200/transpose/raw/timing/4096x4096.csv").decode()
    (notes / "incomplete" / name).write_text("", encoding="utf-8")
    status, found = findings(locked, "--no-probe")
    assert status == 2
    mends = [f["mend"] for f in found["Snakemake"]]
    assert mends == ["snakemake --unlock", "snakemake --cores 1 all --rerun-incomplete"]
    assert "raw/timing/4096x4096.csv" in found["Snakemake"][1]["text"]


def test_lock_of_a_running_snakemake_is_no_fault(locked: Project) -> None:
    (locked.path(".snakemake") / "locks").mkdir(parents=True)
    (locked.path(".snakemake") / "locks" / "0.input.lock").write_text("x", encoding="utf-8")
    running = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)  # snakemake"], cwd=locked.root)
    try:
        _, found = findings(locked, "--no-probe")
    finally:
        running.kill()
        running.wait()
    (snakemake,) = found["Snakemake"]
    assert snakemake["level"] == LIMITS and str(running.pid) in snakemake["text"]


def test_the_mending_commands_mend(locked: Project) -> None:
    (locked.path(".snakemake") / "locks").mkdir(parents=True)
    (locked.path(".snakemake") / "locks" / "0.input.lock").write_text(str(locked.root / "results"), encoding="utf-8")
    _, found = findings(locked, "--no-probe")
    assert found["Snakemake"][0]["mend"] == "snakemake --unlock"
    locked.run("snakemake", "--unlock")
    assert findings(locked, "--no-probe")[1]["Snakemake"][0]["level"] == OK
    locked.path("results/.a.csv.x.part").write_text("", encoding="utf-8")
    (leftovers,) = findings(locked, "--no-probe")[1]["leftovers"]
    subprocess.run(leftovers["mend"], shell=True, cwd=locked.root, check=True)
    assert "leftovers" not in findings(locked, "--no-probe")[1]


def test_holder_of_a_dead_process(locked: Project) -> None:
    scratch = Path(locked.environment()["TMPDIR"])
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    holder = scratch / "transpose-study-GPU-1.holder"
    holder.write_text(f"process {dead.pid} (timing 1x1)\n", encoding="utf-8")
    _, found = findings(locked, "--no-probe")
    assert found["lock files"][0]["mend"] == f"rm {holder}"
    holder.write_text(f"process {os.getpid()} (timing 1x1)\n", encoding="utf-8")
    assert findings(locked, "--no-probe")[1]["lock files"][0]["level"] == OK


def test_archives_of_further_studies_are_looked_at_too(locked: Project) -> None:
    locked.path("config/other.yaml").write_text("study: transpose\nreplay: results/archive/gone.crate.zip\n", encoding="utf-8")
    assert len(findings(locked, "--no-probe")[1]["archive"]) == 1  # nothing names that file
    locked.configure(also=["config/other.yaml", "config/nowhere.yaml"])
    status, found = findings(locked, "--no-probe")
    assert sorted(f["level"] for f in found["archive"]) == sorted([OK, BROKEN, BROKEN]) and status == 2
    texts = " ".join(f["text"] for f in found["archive"])
    assert "gone.crate.zip: this archive is not there" in texts and "nowhere.yaml" in texts


def test_missing_or_damaged_archive(locked: Project) -> None:
    path = next(locked.path("results/archive").iterdir())
    path.write_bytes(path.read_bytes()[:1000])
    status, found = findings(locked, "--no-probe")
    assert status == 2 and "no zip file" in found["archive"][0]["text"]
    path.unlink()
    status, found = findings(locked, "--no-probe")
    assert status == 2 and found["archive"][0]["mend"].startswith("git checkout -- results/archive/")


def test_full_disk(monkeypatch: pytest.MonkeyPatch, project: Project) -> None:
    class Usage:
        free = 10**6

    monkeypatch.setattr(looks.shutil, "disk_usage", lambda folder: Usage)
    found = [f for f in looks.files(project.root) if f.what == "disk"]
    assert found[0].level == BROKEN and "df -h" in found[0].mend


def test_broken_configuration_leaves_the_other_checks(locked: Project) -> None:
    locked.path("config/config.yaml").write_text("shaeps: []\n", encoding="utf-8")
    status, found = findings(locked, "--no-probe")
    assert status == 2 and "shaeps" in found["doctor"][0]["text"] and found["compiler"][0]["level"] == OK


def test_exit_status() -> None:
    ok, limits, broken = (Finding(level, "x", "") for level in (OK, LIMITS, BROKEN))
    assert [status_of(f) for f in ([ok], [ok, limits], [limits, broken], [])] == [0, 1, 2, 0]
