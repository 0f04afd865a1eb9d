"""Memory of the SIMT machine: global buffers, shared and local storage, and the access each memory instruction makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transpose_study.errors import StudyError
from transpose_study.simt.boxes import Batch
from transpose_study.simt.values import DATA, INTEGER, KNOWN, Coefficients, Value

APART = 1 << 20  # bytes between buffers, so that a stray access is seen; also their alignment, above the 256 bytes the device gives
GLOBAL_BASE = 1 << 40
SHARED_WINDOW = 1 << 56  # where generic addresses of shared and local memory begin
LOCAL_WINDOW = 1 << 57


class Violation(StudyError):
    """A rule of CUDA broken by a kernel: which instruction, block, thread and address."""

    def __init__(
        self,
        what: str,
        *,
        kernel: str,
        line: int = 0,
        block: tuple[int, int, int] | None = None,
        thread: tuple[int, int, int] | None = None,
        address: int | None = None,
        where: str = "",
    ) -> None:
        self.kernel, self.line, self.block, self.thread, self.address = kernel, line, block, thread, address
        parts = [where or f"kernel {kernel}"]
        if line:
            parts.append(f"PTX line {line}")
        if block is not None:
            parts.append("block ({}, {}, {})".format(*block))
        if thread is not None:
            parts.append("thread ({}, {}, {})".format(*thread))
        if address is not None:
            parts.append(f"address {address:#x}")
        super().__init__(what, where=", ".join(parts))


@dataclass
class Buffer:
    """A range of global memory. ``data`` are its bytes (uint8), or None where contents do not matter."""

    name: str
    address: int
    size: int
    data: np.ndarray | None = None
    writable: bool = True


def place(sizes: Sequence[tuple[str, int]]) -> list[Buffer]:
    """Buffers of the given sizes in bytes, each aligned to :data:`APART` and at least so far from its neighbours."""
    buffers, address = [], GLOBAL_BASE
    for name, size in sizes:
        buffers.append(Buffer(name, address, size))
        address = -(-(address + size + APART) // APART) * APART
    return buffers


@dataclass
class Access:
    """One memory instruction as all its warps execute it.

    ``space`` is global, shared or local; ``kind`` load, store or atomic; ``width`` the bytes of each lane; ``address`` and
    ``mask`` are (warps, 32); ``k`` are the address's coefficients over each row's box (None: the same in all its blocks).
    """

    space: str
    kind: str
    width: int
    address: np.ndarray
    k: Coefficients | None
    mask: np.ndarray
    line: int
    batch: Batch


class Storage:
    """Bytes of shared (one row for each block) or local memory (one for each lane), with codes of what is not known."""

    def __init__(self, rows: int, size: int) -> None:
        self.size = size
        padded = max(16, -(-size // 16) * 16)
        self.bytes = np.zeros((rows, padded), np.uint8)
        self.why = np.zeros((rows, padded), np.uint8)

    def load(self, row: np.ndarray, address: np.ndarray, mask: np.ndarray, bits: int) -> Value:
        """Read ``bits`` at ``address`` (bytes) of ``row`` in the lanes of ``mask``."""
        step = bits // 8
        index = np.where(mask, address, 0) // step
        words = self.bytes.view(INTEGER[bits])[row, index]
        why = self.why[row, index * step]
        return Value(words, None, why if why.any() else None)

    def store(self, row: np.ndarray, address: np.ndarray, mask: np.ndarray, value: Value) -> None:
        """Write ``value`` at ``address``; of lanes that write the same place the highest stays."""
        step = value.bits // 8
        rows, index = np.broadcast_to(row, mask.shape)[mask], address[mask] // step
        self.bytes.view(INTEGER[value.bits])[rows, index] = np.broadcast_to(value.base, mask.shape)[mask]
        why: Any = 0 if value.why is None else np.broadcast_to(value.why, mask.shape)[mask]
        for byte in range(step):
            self.why[rows, index * step + byte] = why


class GlobalMemory:
    """The buffers of a launch."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers = list(buffers)

    def outside(self, low: np.ndarray, high: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Lanes of ``mask`` whose bytes ``low <= a < high`` do not lie in one buffer."""
        bad = mask
        for buffer in self.buffers:
            bad = bad & ~((low >= buffer.address) & (high <= buffer.address + buffer.size))
            if not bad.any():
                break
        return bad

    def nearest(self, address: int) -> str:
        """Where an address lies relative to the buffers, for messages."""
        best = min(self.buffers, key=lambda b: max(b.address - address, address - (b.address + b.size), 0))
        if address < best.address:
            return f"{best.address - address} bytes before {best.name}"
        return f"at byte {address - best.address} of {best.name}, which has {best.size}"

    def no_contents(self, address: np.ndarray, mask: np.ndarray) -> bool:
        """Whether every lane of ``mask`` reads from a buffer without contents."""
        left = mask
        for buffer in self.buffers:
            if buffer.data is None:
                left = left & ~((address >= buffer.address) & (address < buffer.address + buffer.size))
        return not left.any()

    def load(self, address: np.ndarray, mask: np.ndarray, bits: int) -> Value:
        """Read ``bits``; lanes whose buffer has no contents are not known."""
        out = np.zeros(mask.shape, INTEGER[bits])
        why = np.zeros(mask.shape, np.uint8)
        for buffer in self.buffers:
            here = mask & (address >= buffer.address) & (address < buffer.address + buffer.size)
            if not here.any():
                continue
            if buffer.data is None:
                why[here] = DATA
            else:
                index = (address[here] - buffer.address) // (bits // 8)
                out[here] = buffer.data.view(INTEGER[bits])[index]
        return Value(out, None, why if (why != KNOWN).any() else None)

    def store(self, address: np.ndarray, mask: np.ndarray, value: Value) -> None:
        """Write ``value`` where the buffer has contents."""
        for buffer in self.buffers:
            here = mask & (address >= buffer.address) & (address < buffer.address + buffer.size)
            if buffer.data is not None and here.any():
                index = (address[here] - buffer.address) // (value.bits // 8)
                buffer.data.view(INTEGER[value.bits])[index] = np.broadcast_to(value.base, mask.shape)[here]
