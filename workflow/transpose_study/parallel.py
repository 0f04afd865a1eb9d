"""One function over many items, on the cores that this process may use: for work that is all Python."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from transpose_study.errors import StudyError

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST = 8  # processes; beyond, starting them costs more than they bring
_PR_SET_PDEATHSIG = 1  # prctl: end with the parent, whichever way that ends

_function: Callable[[Any], Any] | None = None
_items: Sequence[Any] = ()


def each(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield ``function(item)`` for each item, in their order; the first exception is raised here.

    The processes are forked, so function and items may be anything; results travel by pickle. What the function changes stays in
    its process.
    """
    global _function, _items
    workers = min(MOST, len(os.sched_getaffinity(0)), len(items))
    if workers < 2:
        yield from map(function, items)
        return
    _function, _items = function, items
    try:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), initializer=_end_with_parent, initargs=(os.getpid(),)) as pool:
            yield from pool.map(_call, range(len(items)), chunksize=max(1, len(items) // (8 * workers)))
    except BrokenProcessPool:
        hint = "too little memory is the usual reason; `taskset -c 0` before the command takes one core, and so one process"
        raise StudyError(f"one of {workers} processes was killed", hint=hint) from None


def _call(number: int) -> Any:
    assert _function is not None
    return _function(_items[number])


def _end_with_parent(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before this was asked for
        os._exit(1)
