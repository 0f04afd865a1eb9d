"""Starts workers, hands them jobs, reads their results, ends them when they hang or the command is stopped."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

from transpose_study.errors import StudyError


class WorkerDied(Exception):
    """The worker ended without saying that it was finished; ``detail`` is what is known about why."""

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(detail)


def worker_environment(gpu_uuid: str) -> dict[str, str]:
    """Environment of a worker: it sees only the chosen GPU, as device 0, and no locale but C."""
    return {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": gpu_uuid,
        "CUDA_MODULE_LOADING": "EAGER",
        "CUPY_ACCELERATORS": "",
        "LC_ALL": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }


class Worker:
    """One worker process."""

    def __init__(self, mode: str, job: dict[str, Any], gpu_uuid: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "transpose_study.gpu.worker", mode],
            env=worker_environment(gpu_uuid),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._stderr: list[str] = []
        self._threads = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._read_errors, daemon=True)]
        for thread in self._threads:
            thread.start()
        self._send(json.dumps(job))

    @property
    def pid(self) -> int:
        """Process number, to tell own GPU processes from others'."""
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self._stderr.append(line.rstrip())

    def _send(self, line: str) -> None:
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def go(self) -> None:
        """Let a waiting worker begin."""
        self._send("go")

    def results(self, timeout_s: float) -> Iterator[dict[str, Any]]:
        """Yield results until the worker is finished.

        Raises :class:`StudyError` for what the worker reports, :class:`WorkerDied` if it ends early or says nothing for
        ``timeout_s`` seconds.
        """
        while True:
            try:
                line = self._lines.get(timeout=timeout_s)
            except queue.Empty:
                self.end()
                raise WorkerDied(f"did not finish within {timeout_s:g} s") from None
            if line is None:
                code = self._process.wait()
                self._threads[1].join(timeout=5)
                raise WorkerDied(self._last_words(code))
            message = json.loads(line)
            if "error" in message:
                raise StudyError(**message["error"])
            if "finished" in message:
                self._process.wait()
                return
            if "ready" not in message:
                yield message

    def _last_words(self, code: int) -> str:
        said = [line for line in self._stderr if line.strip()]
        return said[-1] if said else f"the process ended with status {code}"

    def end(self) -> None:
        """End the process if it still runs."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
