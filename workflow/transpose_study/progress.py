"""What a long step tells the terminal and its log: messages, and progress with an estimate of the time left."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from transpose_study.records import unwritable


class Log:
    """Messages go to stderr and, where a file is named, into that file too."""

    def __init__(self, path: Path | str | None = None) -> None:
        self._file: TextIO | None = None
        if path is not None:
            try:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                self._file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - open for the command's whole life
            except OSError as error:
                raise unwritable(Path(path), error) from None

    def say(self, text: str) -> None:
        """Write one message."""
        print(text, file=sys.stderr, flush=True)
        self.note(text)

    def note(self, text: str) -> None:
        """Write one message into the log file only."""
        if self._file:
            with contextlib.suppress(OSError):  # on a full disk the message on the terminal is what is left
                print(text, file=self._file, flush=True)

    def close(self) -> None:
        """Close the log file."""
        if self._file:
            with contextlib.suppress(OSError):
                self._file.close()


class Progress:
    """Progress of a step whose size is known: at most one line each ``every`` seconds, with the time left."""

    def __init__(self, log: Log, what: str, total: int, *, every: float = 5.0) -> None:
        self._log, self._what, self._total, self._every = log, what, total, every
        self._start = self._last = time.monotonic()

    def update(self, done: int, detail: str = "") -> None:
        """Say how far the step is, unless it was said a moment ago."""
        now = time.monotonic()
        if now - self._last < self._every or not done:
            return
        self._last = now
        left = (now - self._start) / done * (self._total - done)
        rest = f"about {left:.0f} s left" if left > 0 else "going on until the intervals are narrow enough or the time budget ends"
        self._log.say(f"{self._what}: {done} of {self._total}{', ' + detail if detail else ''}, {rest}")


class Journal:
    """Appends one line for a finished measuring stage, so that wall times by stage can be told afterwards."""

    def __init__(self, path: Path, stage: str, group: str) -> None:
        self._path, self._stage, self._group = path, stage, group
        self._started, self._clock = datetime.now(UTC), time.monotonic()

    def done(self, **facts: Any) -> None:
        """Record the stage's start, end and duration in seconds, and further facts."""
        entry = {
            "stage": self._stage,
            "group": self._group,
            "start": self._started.isoformat(timespec="seconds"),
            "end": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self._clock, 3),
            **facts,
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(entry, sort_keys=True) + "\n")
        except OSError as error:
            raise unwritable(self._path, error) from None
