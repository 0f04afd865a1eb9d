"""Work spread over processes: the order of results, the first error whole, nothing left running when the command is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from transpose_study import parallel
from transpose_study.errors import StudyError

KILLED = """
import os, sys, time
from transpose_study import parallel
os.sched_getaffinity = lambda _: {0, 1}
def work(item):
    os.write(1, b"%d\\n" % os.getpid())  # in one piece: print may write the line end apart, and two processes do
    time.sleep(60)
list(parallel.each(work, [1, 2]))
"""


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_results_come_in_order_whatever_the_cores(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert list(parallel.each(lambda n: n * n, range(37))) == [n * n for n in range(37)]
    assert list(parallel.each(lambda n: n, [])) == []


def test_an_error_keeps_where_and_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})

    def work(number: int) -> int:
        if number == 3:
            raise StudyError("is wrong", where="item 3", hint="mend it")
        return number

    with pytest.raises(StudyError) as caught:
        list(parallel.each(work, range(8)))
    assert (caught.value.what, caught.value.where, caught.value.hint) == ("is wrong", "item 3", "mend it")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_killed_command_leaves_no_process_behind() -> None:
    command = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True)
    assert command.stdout
    workers = [int(command.stdout.readline()) for _ in range(2)]
    assert all(map(alive, workers))
    command.send_signal(signal.SIGKILL)
    command.wait()
    deadline = time.monotonic() + 10
    while any(map(alive, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_killed_process_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(StudyError, match="one of 2 processes was killed"):
        list(parallel.each(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(2)))
