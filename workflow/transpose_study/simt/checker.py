"""Checks of a kernel without a GPU: accesses, barriers, races in shared memory, elements never written, wrong results.

The machine itself stops at accesses outside of buffers and arrays, at misaligned ones and at barriers that not all warps
reach. Here are the races (an observer) and the comparison of a launch's output with the values that were expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from transpose_study.simt.blocks import run_grid
from transpose_study.simt.boxes import Batch
from transpose_study.simt.lockstep import Endless
from transpose_study.simt.machine import DataDependent, Launch, Machine, NeedsShared, Observer, Program
from transpose_study.simt.memory import Access, Buffer, Violation
from transpose_study.simt.ptx import TYPE_BYTES

_SEVERAL = -2  # in ``reader``: more than one warp has read


class Races:
    """Observer: a shared word that one warp writes and another reads needs a barrier in between, whichever comes first.

    Two accesses are unordered when their warps have passed the same number of barriers. Barriers for a part of the block
    only are not understood; once a kernel uses one, nothing is reported any more.
    """

    def __init__(self, batch: Batch, program: Program, launch: Launch) -> None:
        self.unit = _finest_access(program)
        rows, size = len(batch.boxes), -(-(program.shared_bytes + launch.dynamic_shared) // self.unit)
        self.passed = np.zeros(batch.warps, np.int64)
        self.writer, self.written_at = np.full((rows, size), -1), np.full((rows, size), -1)
        self.reader, self.read_at = np.full((rows, size), -1), np.full((rows, size), -1)
        self.understood = True

    def barrier(self, line: int, mask: np.ndarray, machine: Machine) -> None:
        """Every warp that comes here passes one barrier more."""
        if any(i.line == line and len([o for o in i.operands if hasattr(o, "value")]) > 1 for i in machine.kernel.instructions):
            self.understood = False
        self.passed += mask.any(1)

    def access(self, access: Access, machine: Machine) -> None:
        """Compare with earlier accesses to the same bytes, then remember this one."""
        if access.space != "shared" or access.kind == "atomic" or not self.understood:
            return
        if access.k is not None:  # where the block moves the address, look at each block by itself
            machine.divide(access.mask, ())
        mask = access.mask & machine.lock.alive
        warps, lanes = np.nonzero(mask)
        boxes, own, epoch = warps // machine.batch.warps_per_block, warps % machine.batch.warps_per_block, self.passed[warps]
        for part in range(access.width // self.unit):
            place = (boxes, access.address[warps, lanes] // self.unit + part)
            if access.kind == "load":
                clash = (self.written_at[place] == epoch) & (self.writer[place] != own) & (self.writer[place] >= 0)
                self._report(
                    clash, "reads a shared word that another warp wrote, with no barrier in between", access, machine, warps=warps, lanes=lanes
                )
                fresh = self.read_at[place] != epoch
                self.reader[place] = np.where(fresh | (self.reader[place] == own), own, _SEVERAL)
                self.reader[place] = np.where(self.reader[place] == own, own, _SEVERAL)  # several warps at once
                self.read_at[place] = epoch
            else:
                clash = (self.read_at[place] == epoch) & (self.reader[place] != own)
                self._report(
                    clash, "writes a shared word that another warp reads, with no barrier in between", access, machine, warps=warps, lanes=lanes
                )
                self.writer[place], self.written_at[place] = own, epoch

    @staticmethod
    def _report(clash: np.ndarray, what: str, access: Access, machine: Machine, *, warps: np.ndarray, lanes: np.ndarray) -> None:
        if clash.any():
            bad = np.zeros(access.mask.shape, bool)
            bad[warps[clash], lanes[clash]] = True
            machine.violation(f"missing barrier: {what}", access.line, bad, access.address)


def _finest_access(program: Program) -> int:
    """Bytes of the smallest shared load or store, at most a word: the unit in which races are looked for."""
    sizes = [
        TYPE_BYTES[m]
        for i in program.kernel.instructions
        if i.opcode in ("ld", "st") and not {"global", "param", "local"} & set(i.modifiers)
        for m in i.modifiers
        if m in TYPE_BYTES
    ]
    return min([4, *sizes])


class Writers:
    """Observer: which instruction and thread wrote each byte of one buffer last."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.line = np.zeros(buffer.size, np.int32)
        self.block = np.zeros((buffer.size, 3), np.int32)
        self.thread = np.zeros((buffer.size, 3), np.int16)

    def barrier(self, line: int, mask: np.ndarray, machine: Machine) -> None:
        """Nothing to note."""

    def access(self, access: Access, machine: Machine) -> None:
        """Note the writer of each byte; single blocks only."""
        if access.space != "global" or access.kind == "load":
            return
        inside = access.mask & (access.address >= self.buffer.address) & (access.address < self.buffer.address + self.buffer.size)
        warps, lanes = np.nonzero(inside)
        batch = machine.batch
        origins = np.array([b.origin for b in batch.boxes], np.int32)[warps // batch.warps_per_block]
        number = batch.linear[warps, lanes]
        x, y, _ = batch.block
        threads = np.stack([number % x, number // x % y, number // (x * y)], axis=1)
        first = access.address[warps, lanes] - self.buffer.address
        for byte in range(access.width):
            self.line[first + byte], self.block[first + byte], self.thread[first + byte] = access.line, origins, threads


class Finder(Protocol):
    """Says in words where an element lies, from its number within the buffer."""

    def __call__(self, element: int) -> str:
        """For example ``row 3, col 7``."""
        ...


def check_output(program: Program, launch: Launch, output: Buffer, expected: np.ndarray, where: Finder) -> None:
    """Execute every block with real memory and compare ``output`` with ``expected`` bit for bit.

    ``launch.arguments`` hold buffers with data, of which only ``output`` may be written; ``expected`` is a one-dimensional
    array of its elements. Raises :class:`Violation` for the first rule broken, the first element never written, or else
    the first wrong one.
    """
    item = expected.dtype.itemsize
    bits = expected.view(f"u{item}")
    poison = (~bits).view(np.uint8)  # differs from what is expected in every bit
    if output.data is None or output.size != len(poison):
        raise ValueError("the output buffer must hold data of the expected size")
    padding = np.zeros(len(output.data) - output.size, np.uint8)
    output.data[:] = np.concatenate([poison, padding])
    _run(program, launch, [])
    if np.array_equal(output.data[: output.size].view(f"u{item}"), bits):
        return
    writers = Writers(output)
    output.data[:] = np.concatenate([poison, padding])
    _run(program, launch, [writers])  # once more, to name who wrote what
    kernel = program.kernel.name
    unwritten = (writers.line == 0).reshape(-1, item).any(1)
    if unwritten.any():
        element = int(unwritten.argmax())
        what = f"{int(unwritten.sum())} elements are never written, the first is {where(element)}"
        raise Violation(what, kernel=kernel, address=output.address + element * item)
    got = output.data[: output.size].view(f"u{item}")
    wrong = got != bits
    element = int(wrong.argmax())
    byte = element * item
    what = f"{int(wrong.sum())} elements are wrong, the first is {where(element)}: expected {bits[element]:#x}, got {got[element]:#x}"
    block, thread = ([int(v) for v in part[byte]] for part in (writers.block, writers.thread))
    raise Violation(
        what,
        kernel=kernel,
        line=int(writers.line[byte]),
        block=(block[0], block[1], block[2]),
        thread=(thread[0], thread[1], thread[2]),
        address=output.address + byte,
    )


def _run(program: Program, launch: Launch, more: Sequence[Observer]) -> None:
    run_grid(program, launch, lambda batch: [Races(batch, program, launch), *more], tracked=True)


def check_rules(program: Program, launch: Launch) -> None:
    """Execute a launch by classes of blocks, whatever its size, without data: bounds, alignment, barriers and races.

    Raises :class:`Violation`, or :class:`~.machine.DataDependent` where only the data, contents of shared and local memory
    among them, can tell, or where the launch is too long to be executed.
    """
    try:
        run_grid(program, launch, lambda batch: [Races(batch, program, launch)])
    except NeedsShared:
        what = "control flow or an address depends on what the kernel put into shared or local memory"
        raise DataDependent(what, where=f"kernel {program.kernel.name}") from None
    except Endless as error:
        raise DataDependent(error.what, where=error.where) from None
