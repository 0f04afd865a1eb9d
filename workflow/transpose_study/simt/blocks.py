"""Executing a whole grid by classes of blocks: what behaves alike is executed once and multiplied.

The grid starts as one box. Where a condition, an address or a pattern of addresses differs between the blocks of a box, the
machine splits it and the parts are executed anew; so each box that runs to its end is a class of blocks of which it is
shown that every lane takes the same way, and their counts are multiplied (sectors by the phase of the block's addresses).
In the worst case every box is one block, which is full execution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from transpose_study.errors import StudyError
from transpose_study.simt.boxes import Batch, Box, Pending, whole_grid
from transpose_study.simt.counters import MemoryCounters
from transpose_study.simt.machine import Launch, Machine, NeedsShared, Observer, Program
from transpose_study.simt.memory import APART, Buffer, GlobalMemory
from transpose_study.simt.ptx import Kernel


@dataclass
class Counts:
    """Totals over a grid, the classes of blocks that were executed for them, and the bytes of each buffer that were touched.

    ``reach`` maps (load | store | atomic, number of the buffer) to the first byte touched and the one behind the last.
    """

    totals: dict[str, int] = field(default_factory=dict)
    classes: list[Box] = field(default_factory=list)
    reach: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)


def module_buffers(kernel: Kernel, after: int) -> list[Buffer]:
    """Buffers for the module's own global and constant arrays, from address ``after`` on."""
    buffers = []
    for array in kernel.arrays.values():
        if array.space in ("global", "const"):
            start = -(-after // 256) * 256
            data = np.frombuffer(array.data.ljust(max(array.size, len(array.data)), b"\0"), np.uint8).copy()
            data = np.concatenate([data, np.zeros(-len(data) % 16, np.uint8)])
            buffers.append(Buffer(array.name, start, max(array.size, len(array.data)), data))
            after = start + len(data) + 256
    return buffers


def buffers_of(program: Program, launch: Launch) -> list[Buffer]:
    """All buffers of a launch: its pointers' and those of the module's own arrays."""
    pointers = [a for a in launch.arguments if isinstance(a, Buffer)]
    end = max((b.address + b.size for b in pointers), default=1 << 40)
    return [*pointers, *module_buffers(program.kernel, end + APART)]


def run_grid(
    program: Program,
    launch: Launch,
    observers: Callable[[Batch], Sequence[Observer]],
    done: Callable[[Batch, Sequence[Observer], np.ndarray], None] | None = None,
    *,
    tracked: bool = False,
    each_block: bool = False,
) -> None:
    """Execute every block of a launch, by classes unless ``each_block``.

    ``observers`` makes the observers of a batch; ``done`` receives them with the boxes (a mask) that ran to their end.
    ``tracked`` keeps the contents of shared and local memory, which single blocks only can do.
    """
    memory = GlobalMemory(buffers_of(program, launch))
    whole = whole_grid(launch.grid)
    pending = Pending(whole.singles() if tracked or each_block else [whole], launch.block)
    while pending:
        batch = Batch(pending.take(), launch.block)
        watching = observers(batch)
        machine = Machine(program, launch, batch, memory, observers=watching, tracked=tracked)
        machine.run()
        pending.add(machine.split)
        if done:
            done(batch, watching, ~machine.killed)


def count_memory(program: Program, launch: Launch, each_block: bool = False) -> Counts:
    """Memory counters of a launch; addresses and control flow must not depend on loaded data.

    Raises :class:`~.machine.DataDependent` if they do, :class:`~.memory.Violation` for a broken rule.
    """
    try:
        return _count(program, launch, tracked=False, each_block=each_block)
    except NeedsShared:
        return _count(program, launch, tracked=True, each_block=True)


def _count(program: Program, launch: Launch, tracked: bool, each_block: bool) -> Counts:
    counts = Counts()

    def done(batch: Batch, watching: Sequence[Observer], finished: np.ndarray) -> None:
        (counter,) = watching
        if not isinstance(counter, MemoryCounters):
            raise StudyError("an observer other than the counters")
        for quantity, per_box in counter.totals.items():
            counts.totals[quantity] = counts.totals.get(quantity, 0) + int(per_box[finished].sum())
        for key, (first, last) in counter.reach.items():
            if finished.any():
                old = counts.reach.get(key, (2**63, 0))
                counts.reach[key] = min(old[0], int(first[finished].min())), max(old[1], int(last[finished].max()))
        counts.classes += [box for box, ok in zip(batch.boxes, finished, strict=True) if ok]

    run_grid(program, launch, lambda batch: [MemoryCounters(batch)], done, tracked=tracked, each_block=each_block)
    return counts
