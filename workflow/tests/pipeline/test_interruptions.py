"""A run that is killed: what the next one says, and that nothing finished is measured again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from live_run import FEWER, STANDIN, measured_shape, other_shape
from projects import Project, shape_name

THIRD = other_shape(2)


def start(project: Project) -> subprocess.Popen[str]:
    """Start a run whose timing process waits for :func:`open_gate`."""
    with (project.root.parent / "killed.log").open("w", encoding="utf-8") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "1", "all"],
            cwd=project.root,
            env=project.environment({**STANDIN, "TRANSPOSE_STUDY_STANDIN_GATE": str(project.root.parent / "gate")}),
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def open_gate(project: Project) -> None:
    """Let the timing process go on."""
    (project.root.parent / "gate").touch()


def wait_for_the_lock(project: Project, run: subprocess.Popen[str]) -> str:
    """Wait until the run times something; return what holds the GPU's lock."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and run.poll() is None:
        for holder in (project.root.parent / "scratch").glob("*.holder"):
            text = holder.read_text(encoding="utf-8")
            if "timing" in text:
                return text
        time.sleep(0.05)
    raise AssertionError((project.root.parent / "killed.log").read_text(encoding="utf-8")[-3000:])


def add_third_shape(project: Project) -> dict[str, str]:
    """Configure one more shape; return the hashes of what is finished already."""
    project.configure(shapes=[measured_shape(), other_shape() | {"variants": FEWER}, THIRD | {"variants": FEWER}])
    return project.hashes("results/mine/transpose/raw")


def unchanged(project: Project, finished: dict[str, str]) -> bool:
    """Whether no finished raw file changed; check.csv alone joins the verdicts of all shapes, the new one's too."""
    now = project.hashes("results/mine/transpose/raw")
    return all(now[name] == value for name, value in finished.items() if not name.endswith("raw/check.csv"))


def test_killed_machine_needs_the_printed_command_and_measures_nothing_twice(mine: Project) -> None:
    finished = add_third_shape(mine)
    run = start(mine)
    wait_for_the_lock(mine, run)
    os.killpg(run.pid, signal.SIGKILL)  # everything at once, as a crash of the machine would
    run.wait()
    assert f"results/mine/transpose/raw/timing/{shape_name(THIRD)}.csv" not in mine.hashes("results/mine/transpose/raw")

    assert "--unlock" in mine.snakemake("all", env=STANDIN, ok=False)
    mine.snakemake("--unlock", env=STANDIN)
    assert {j[1] for j in mine.plan(env=STANDIN) if j[0].endswith("_group")} == {shape_name(THIRD)}
    # Nothing half-written was there, so nothing more is asked for. The environment is described after the last measurement.
    mine.snakemake("results/mine/transpose/environment.json", env=STANDIN)

    assert unchanged(mine, finished)
    now = mine.hashes("results/mine/transpose/raw")
    assert f"results/mine/transpose/raw/timing/{shape_name(THIRD)}.csv" in now
    assert not [name for name in now if name.endswith(".part")], "half-written files were left"
    assert not [job for job in mine.plan(env=STANDIN) if job[0].endswith("_group")]


def test_job_that_outlived_snakemake_is_not_trusted(mine: Project) -> None:
    """Snakemake did not see it end: it names the file and the option, and takes the other files as finished."""
    finished = add_third_shape(mine)
    run = start(mine)
    wait_for_the_lock(mine, run)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    open_gate(mine)
    written = mine.path(f"results/mine/transpose/raw/timing/{shape_name(THIRD)}.csv")
    deadline = time.monotonic() + 30
    while not written.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    mine.snakemake("--unlock", env=STANDIN)
    said = mine.snakemake("all", env=STANDIN, ok=False)
    assert "--rerun-incomplete" in said and f"raw/timing/{shape_name(THIRD)}.csv" in said
    again = {j for j in mine.plan("--rerun-incomplete", env=STANDIN) if j[0] in ("check_group", "time_group")}
    assert again == {("time_group", shape_name(THIRD))}
    assert unchanged(mine, finished)


def test_orphan_of_a_killed_snakemake_keeps_the_gpu_until_it_is_done(mine: Project) -> None:
    """Killing Snakemake alone leaves its timing job running; the next run waits for that job and says for what."""
    finished = add_third_shape(mine)
    run = start(mine)
    holder = wait_for_the_lock(mine, run)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    mine.snakemake("--unlock", env=STANDIN)
    target = f"results/mine/transpose/raw/timing/{shape_name(THIRD)}.csv"
    again = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "1", target, "--rerun-incomplete"],
        cwd=mine.root,
        env=mine.environment(STANDIN),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert again.stdout is not None
    said = next(line for line in again.stdout if "waiting for the GPU" in line)
    assert holder.strip() in said
    open_gate(mine)
    rest, _ = again.communicate(timeout=60)
    assert again.returncode == 0, rest
    assert unchanged(mine, finished)


def test_stopping_by_keyboard_leaves_no_half_written_file(mine: Project) -> None:
    add_third_shape(mine)
    run = start(mine)
    wait_for_the_lock(mine, run)
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(timeout=60) != 0
    log = (mine.root.parent / "killed.log").read_text(encoding="utf-8")
    assert "Traceback" not in log, log
    assert "nothing half-written was left" in log
    files = [str(Path(name)) for name in mine.hashes("results/mine/transpose/raw")]
    assert not [f for f in files if f.endswith(".part") or f.endswith(f"raw/timing/{shape_name(THIRD)}.csv")]
