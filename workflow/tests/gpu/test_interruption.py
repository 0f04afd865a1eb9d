"""kill -9 in the middle of timing and of ncu: after the printed recovery nothing finished is measured again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

CONFIG = {
    "shapes": [{"rows": 1024, "cols": 1024}, {"rows": 2048, "cols": 1024}],
    "variants": ["copy", "memcpy", "tiled_padded"],
    "axes": {"block_rows": [8]},
    "timing": {"budget_s": 4, "warmup_budget_s": 0.5},
    "profile": {"batches": ["counters"], "launches": {"counters": 2}},
}
RAW = "results/test/transpose/raw"


def _wait_for_second_job(project, logs: str, outputs: str, process: subprocess.Popen) -> None:
    """Return when one job of the stage is finished and another one is at work."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        done = len(list((project.run_folder / "raw").glob(outputs)))
        begun = len(list((project.run_folder / "logs").glob(logs)))
        if done >= 1 and begun > done:
            time.sleep(0.7)  # into the middle of its work
            return
        time.sleep(0.02)
    pytest.fail("no second job was seen at work")


@pytest.mark.parametrize(
    ("targets", "logs", "outputs"),
    [
        ([f"{RAW}/timing/1024x1024.csv", f"{RAW}/timing/2048x1024.csv"], "time/*.log", "timing/*.csv"),
        ([f"{RAW}/counters/1024x1024.csv", f"{RAW}/counters/2048x1024.csv"], "profile/*.log", "counters/parts/*.csv"),
    ],
    ids=["timing", "ncu"],
)
def test_kill_and_resume(live_project, targets: list[str], logs: str, outputs: str) -> None:
    project = live_project(CONFIG)
    process = subprocess.Popen(
        project.command(*targets), cwd=project.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    _wait_for_second_job(project, logs, outputs, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = project.hashes("**/*.csv")
    times = {p: (project.run_folder / "raw" / p).stat().st_mtime_ns for p in before}
    assert [p for p in before if Path(p).match(outputs)]

    refused = project.snakemake(*targets)
    assert refused.returncode != 0
    assert "--unlock" in refused.stdout + refused.stderr
    project.must_run("--unlock")
    project.must_run(*targets, "--rerun-incomplete")
    after = project.hashes("**/*.csv")
    assert {p: after[p] for p in before} == before
    assert {p: (project.run_folder / "raw" / p).stat().st_mtime_ns for p in before} == times
    assert all((project.folder / t).is_file() for t in targets)
    assert not list(project.run_folder.rglob("*.part"))
