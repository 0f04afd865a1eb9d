"""Two runs never measure on one GPU at once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from transpose_study.gpu.lock import gpu_lock
from transpose_study.progress import Log

UUID = "GPU-00000000-0000-0000-0000-000000000000"  # of no card
PROGRAM = """
import sys, time
from pathlib import Path
from transpose_study.gpu.lock import gpu_lock
from transpose_study.progress import Log
with gpu_lock(sys.argv[1], Log(), "timing 4096x4096", folder=Path(sys.argv[2])):
    print("has it", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, UUID, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "has it\n"
    return process


def test_second_run_waits_and_says_for_whom(tmp_path: Path) -> None:
    first = holder(tmp_path)
    second = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, UUID, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert second.stderr is not None and second.stdout is not None
    said = second.stderr.readline()
    assert said == f"waiting for the GPU {UUID}: process {first.pid} (timing 4096x4096) is measuring on it\n"
    time.sleep(0.2)
    assert second.poll() is None
    first.communicate()
    assert second.stdout.readline() == "has it\n"
    second.communicate()
    assert first.returncode == second.returncode == 0


def test_killed_run_leaves_the_gpu_free(tmp_path: Path) -> None:
    first = holder(tmp_path)
    first.kill()
    first.communicate()
    begin = time.monotonic()
    with gpu_lock(UUID, Log(), "timing", folder=tmp_path):
        assert time.monotonic() - begin < 1


def test_other_gpus_are_not_waited_for(tmp_path: Path) -> None:
    first = holder(tmp_path)
    with gpu_lock(UUID[:-1] + "1", Log(), "timing", folder=tmp_path):
        pass
    first.communicate()
