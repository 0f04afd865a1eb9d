"""One measurement at a time on each GPU: a lock file per GPU UUID that every user of the machine shares."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from transpose_study.errors import StudyError
from transpose_study.progress import Log


@contextlib.contextmanager
def gpu_lock(uuid: str, log: Log, what: str, *, folder: Path | None = None) -> Iterator[None]:
    """Hold the GPU's lock; if another run holds it, say for whom this one waits and wait."""
    base = Path(folder or tempfile.gettempdir()) / f"transpose-study-{uuid}"
    lock, holder = FileLock(f"{base}.lock", mode=0o666), Path(f"{base}.holder")
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            who = "another run"
            with contextlib.suppress(OSError):  # it may not have said so yet
                who = holder.read_text(encoding="utf-8").strip() or who
            log.say(f"waiting for the GPU {uuid}: {who} is measuring on it")
            lock.acquire()
    except PermissionError as error:
        raise StudyError(f"cannot take the GPU's lock: {error.strerror}", where=f"{base}.lock", hint="remove this file") from None
    try:
        with contextlib.suppress(OSError):  # the note is a courtesy; the lock is what counts
            holder.write_text(f"process {os.getpid()} ({what})\n", encoding="utf-8")
            holder.chmod(0o666)
        yield
    finally:
        with contextlib.suppress(OSError):
            holder.unlink()
        lock.release()
