"""Memory counters of an execution: requests, sectors, shared-memory wavefronts, barriers and warps.

Knows accesses (addresses of 32 lanes) and the hardware's rules, nothing of instructions. The rules: global memory moves in
sectors of 32 bytes, four of which make a line of the caches; shared memory has 32 banks of 4 bytes; 4-byte accesses (and
smaller) are served in one phase of 32 lanes, 8-byte accesses in two of 16, 16-byte accesses in four of 8; in a phase each bank
delivers one word a wavefront, and lanes that read the same word share it (NVIDIA, CUDA C++ Programming Guide, "Shared Memory"
of each compute capability).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transpose_study.simt.boxes import Batch
from transpose_study.simt.memory import Access

if TYPE_CHECKING:
    from transpose_study.simt.machine import Machine

SECTOR_BYTES = 32
LINE_BYTES = 128  # of L1 and L2 on every architecture since compute capability 7.0; a request looks up one tag for each line
BANKS = 32
WORD_BYTES = 4


def sectors(address: np.ndarray, mask: np.ndarray, width: int) -> np.ndarray:
    """Distinct 32-byte sectors that each row's active lanes touch; ``address`` and ``mask`` are (rows, 32), result (rows,).

    Accesses of at most 32 bytes that are aligned to their own width lie in one sector each.
    """
    return _distinct(address // SECTOR_BYTES, mask)


def lines(address: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Distinct 128-byte lines that each row's active lanes touch; shapes and alignment as in :func:`sectors`."""
    return _distinct(address // LINE_BYTES, mask)


def _distinct(numbers: np.ndarray, mask: np.ndarray) -> np.ndarray:
    ordered = np.sort(np.where(mask, numbers, -1), axis=1)
    new = np.diff(ordered, axis=1) != 0
    return new.sum(1) + (ordered[:, 0] != -1)


def wavefronts(address: np.ndarray, mask: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Wavefronts that each row's shared access of ``width`` bytes a lane takes, and those it would take without conflicts.

    In each phase: the largest number of distinct words in one bank. Without conflicts: one for each phase with a lane.
    """
    rows = address.shape[0]
    words_each = max(1, width // WORD_BYTES)
    phases = min(words_each, 4)
    words = (address[:, :, None] // WORD_BYTES + np.arange(words_each)).reshape(rows * phases, -1)
    active = np.repeat(mask[:, :, None], words_each, axis=2).reshape(rows * phases, -1)
    ordered = np.sort(np.where(active, words, -1), axis=1)
    distinct = ordered >= 0
    distinct[:, 1:] &= np.diff(ordered, axis=1) != 0
    slot = np.arange(rows * phases)[:, None] * BANKS + ordered % BANKS
    load = np.bincount(slot[distinct], minlength=rows * phases * BANKS).reshape(rows, phases, BANKS)
    return load.max(2).sum(1), active.any(1).reshape(rows, phases).sum(1)


class MemoryCounters:
    """Observer that counts, for each box, over all blocks that the box stands for.

    ``totals`` maps a quantity to an int64 array with one number for each box of the batch. Requests are warp instructions
    with at least one active lane.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.totals: dict[str, np.ndarray] = {}
        self.rows = batch.weight
        self.seen: dict[tuple[int, bytes, bytes], tuple[np.ndarray, np.ndarray]] = {}  # wavefronts of accesses met before
        self.reach: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]] = {}  # (kind, buffer) -> first and last byte, by box
        self.count("warps", np.ones(batch.warps, np.int64) * batch.weight)

    def count(self, quantity: str, per_row: np.ndarray) -> None:
        """Add a number of each row (warp) to its box."""
        per_box = per_row.reshape(len(self.batch.boxes), -1).sum(1)
        self.totals[quantity] = self.totals[quantity] + per_box if quantity in self.totals else per_box

    def barrier(self, line: int, mask: np.ndarray, machine: Machine) -> None:  # noqa: ARG002 - the observers' interface
        """A barrier counts once for each warp that executes it."""
        self.count("barriers", mask.any(1) * self.rows)

    def access(self, access: Access, machine: Machine) -> None:
        """Count one memory instruction."""
        if access.space == "global":
            self._global(access, machine)
        elif access.space == "shared":
            self._shared(access, machine)

    def _global(self, access: Access, machine: Machine) -> None:
        name = f"global_{access.kind}"
        self.count(f"{name}_requests", access.mask.any(1) * self.rows)
        if self._differs(access, machine, SECTOR_BYTES):
            return
        in_sectors, in_lines = np.zeros(self.batch.warps, np.int64), np.zeros(self.batch.warps, np.int64)
        for phase, weight in self._phases(access):
            in_sectors += sectors(access.address + phase, access.mask, access.width) * weight
            in_lines += lines(access.address + phase, access.mask) * weight
        self.count(f"{name}_sectors", in_sectors)
        self.count(f"{name}_lines", in_lines)
        self.count(f"{name}_bytes", access.mask.sum(1) * access.width * self.rows)
        self._extend_reach(access, machine)

    def _extend_reach(self, access: Access, machine: Machine) -> None:
        """Note how far into each buffer the access goes; bounds have been checked, so a lane's first byte tells its buffer."""
        low, high = machine.affine.bounds(access.address, access.k)
        boxes = len(self.batch.boxes)
        for number, buffer in enumerate(machine.memory.buffers):
            inside = access.mask & (access.address >= buffer.address) & (access.address < buffer.address + buffer.size)
            if inside.any():
                first = np.where(inside, low, buffer.address + buffer.size).reshape(boxes, -1).min(1) - buffer.address
                last = np.where(inside, high + access.width, buffer.address).reshape(boxes, -1).max(1) - buffer.address
                old = self.reach.get((access.kind, number))
                self.reach[access.kind, number] = (first, last) if old is None else (np.minimum(old[0], first), np.maximum(old[1], last))

    def _shared(self, access: Access, machine: Machine) -> None:
        name = f"shared_{access.kind}"
        self.count(f"{name}_instructions", access.mask.any(1) * self.rows)
        if self._differs(access, machine, WORD_BYTES):  # a common shift by whole words turns the banks, no more
            return
        key = (access.width, access.address.tobytes(), access.mask.tobytes())
        if key not in self.seen:
            self.seen[key] = wavefronts(access.address, access.mask, access.width)
        taken, ideal = self.seen[key]
        self.count(f"{name}_wavefronts", taken * self.rows)
        self.count(f"{name}_wavefronts_ideal", ideal * self.rows)
        self.count(f"{name}_conflicts", (taken - ideal) * self.rows)

    def _differs(self, access: Access, machine: Machine, unit: int) -> bool:
        """Split boxes whose blocks move the lanes of a warp by different amounts (modulo ``unit``, or of words at all).

        Returns True when nothing is left to count.
        """
        bad = np.zeros(access.mask.shape, bool)
        for coefficient in access.k or ():
            if coefficient is None or coefficient.shape[1] == 1:
                if coefficient is not None and access.space == "shared":
                    bad |= access.mask & (coefficient % unit != 0)
                continue
            first = np.take_along_axis(coefficient, access.mask.argmax(1)[:, None], axis=1)
            bad |= access.mask & (coefficient != first)
        if bad.any():
            machine.divide(bad, ())
            return not (access.mask & machine.lock.alive).any()
        return False

    def _phases(self, access: Access) -> list[tuple[int, np.ndarray]]:
        """(shift in bytes, blocks of each row) for every shift within a line that the blocks of a box give to its addresses.

        Shifts are multiples of the access's width, to which addresses are aligned.
        """
        unit = LINE_BYTES // access.width
        shifts = np.zeros((self.batch.warps, unit), np.int64)
        shifts[:, 0] = 1
        moved = False
        for axis, coefficient in enumerate(access.k or ()):
            if coefficient is None:
                continue
            per_row = np.broadcast_to(coefficient, access.mask.shape)
            step = np.take_along_axis(per_row, access.mask.argmax(1)[:, None], axis=1)[:, 0] % LINE_BYTES // access.width
            count = np.repeat(self.batch.counts[:, axis], self.batch.warps_per_block)
            if not step.any():
                shifts *= count[:, None]
                continue
            moved = True
            shifts = _turn(shifts, step, count, unit)
        if not moved:
            return [(0, self.rows)]
        return [(shift * access.width, shifts[:, shift]) for shift in range(unit) if shifts[:, shift].any()]


def _turn(shifts: np.ndarray, step: np.ndarray, count: np.ndarray, unit: int) -> np.ndarray:
    """Distribution of ``shift + step * i`` modulo ``unit`` over ``0 <= i < count``, for each row."""
    residues = np.arange(unit)
    times = count[:, None] // unit + (residues < count[:, None] % unit)  # how often i has each residue
    out = np.zeros_like(shifts)
    for residue in residues:
        target = (residues[None, :] + step[:, None] * residue) % unit
        np.put_along_axis(out, target, np.take_along_axis(out, target, 1) + shifts * times[:, residue : residue + 1], axis=1)
    return out
