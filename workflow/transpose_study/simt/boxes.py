"""Boxes of blocks: arithmetic progressions of block indices that behave alike, and how one is split when they do not.

A box is ``origin + stride * index`` along x, y and z with ``count`` indices along each. All blocks of a box are executed
as one: their values are affine in the index (see :mod:`.values`). The whole grid is the first box; every split is forced by a
condition or an address that differs within a box, so the boxes that are left are classes of blocks that behave alike.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from transpose_study.simt.values import Affine, Hints


@dataclass(frozen=True)
class Box:
    """Blocks ``origin[a] + stride[a] * i`` for ``0 <= i < count[a]`` along each axis a of x, y, z."""

    origin: tuple[int, int, int]
    stride: tuple[int, int, int]
    count: tuple[int, int, int]

    @property
    def blocks(self) -> int:
        """How many blocks the box holds."""
        return self.count[0] * self.count[1] * self.count[2]

    def cut(self, axis: int, at: int) -> list[Box]:
        """The blocks before and from index ``at`` along ``axis``."""
        return [self._part(axis, 0, 1, at), self._part(axis, at, 1, self.count[axis] - at)]

    def comb(self, axis: int, step: int) -> list[Box]:
        """The ``step`` boxes of indices that are equal modulo ``step`` along ``axis``."""
        return [self._part(axis, r, step, -(-(self.count[axis] - r) // step)) for r in range(min(step, self.count[axis]))]

    def singles(self) -> list[Box]:
        """Every block as a box of its own."""
        boxes: list[Box] = [self]
        for axis in range(3):
            boxes = [part for box in boxes for part in box.comb(axis, box.count[axis])]
        return boxes

    def block(self, index: Sequence[int]) -> tuple[int, int, int]:
        """The block (x, y, z) at an index of the box."""
        x, y, z = (o + s * int(i) for o, s, i in zip(self.origin, self.stride, index, strict=True))
        return x, y, z

    def _part(self, axis: int, first: int, step: int, count: int) -> Box:
        def put(values: tuple[int, int, int], value: int) -> tuple[int, int, int]:
            out = list(values)
            out[axis] = value
            return out[0], out[1], out[2]

        origin = put(self.origin, self.origin[axis] + self.stride[axis] * first)
        return Box(origin, put(self.stride, self.stride[axis] * step), put(self.count, count))


def whole_grid(grid: tuple[int, int, int]) -> Box:
    """The box of all blocks of a grid."""
    return Box((0, 0, 0), (1, 1, 1), grid)


_HOLDS: dict[str, Callable[[int], bool]] = {
    "lt": lambda v: v < 0,
    "le": lambda v: v <= 0,
}


def split(box: Box, hints: Hints, warp: int, lane: int) -> list[Box]:
    """Split a box so that what one of ``hints`` describes varies less in a lane; without a useful hint, halve it."""
    axes = [a for a in range(3) if box.count[a] > 1]
    concerned: list[int] = []
    for hint in hints:
        k = [0 if c is None else int(_at(c, warp, lane)) for c in hint.k]
        involved = [a for a in axes if k[a]]
        concerned += involved
        if hint.kind == "mod":
            for axis in involved:
                step = hint.modulus // math.gcd(hint.modulus, k[axis])
                if step > 1:
                    return box.comb(axis, step)
        elif len(involved) == 1:
            axis = involved[0]
            at = _change(int(_at(hint.base, warp, lane)), k[axis], box.count[axis], hint.op)
            if 0 < at < box.count[axis]:
                return box.cut(axis, at)
    axis = max(concerned or axes, key=lambda a: box.count[a])
    return box.cut(axis, box.count[axis] // 2)


def _at(array: np.ndarray, warp: int, lane: int) -> int:
    return array[warp if array.shape[0] > 1 else 0, lane if array.shape[1] > 1 else 0]


def _change(base: int, k: int, count: int, op: str) -> int:
    """The first index at which ``base + k * index`` relates to 0 otherwise than at index 0 (``count`` if at none)."""
    if op in ("eq", "ne"):
        if base % k == 0 and 0 <= -base // k < count:
            return max(1, -base // k)
        op = "lt"  # never 0: equality is settled on each side of the change of sign
    holds = _HOLDS[op]
    at_start = holds(base)
    low, high = 0, count  # monotone: bisect
    if holds(base + k * (count - 1)) == at_start:
        return count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(base + k * middle) == at_start else (low, middle)
    return high


LANES_AT_ONCE = 1 << 16  # of one batch: large enough to hide numpy's overhead, small enough for the caches


class Pending:
    """Boxes still to be executed: single blocks first and in their order, then the smaller boxes before the larger.

    So what fails for one block fails early. Single blocks are batched by themselves: nothing of theirs is affine, so that every
    operation can be computed for them.
    """

    def __init__(self, boxes: Sequence[Box], block: tuple[int, int, int]) -> None:
        self._most = max(1, LANES_AT_ONCE // (32 * -(-block[0] * block[1] * block[2] // 32)))
        self._singles: deque[Box] = deque()
        self._larger: list[Box] = []
        self.add(boxes)

    def __bool__(self) -> bool:
        return bool(self._singles or self._larger)

    def add(self, boxes: Sequence[Box]) -> None:
        """Put boxes in, such as the parts of one that was split."""
        for box in boxes:
            (self._singles if box.blocks == 1 else self._larger).append(box)
        self._larger.sort(key=lambda b: -b.blocks)

    def take(self) -> list[Box]:
        """Take out the next boxes to execute together."""
        if self._singles:
            return [self._singles.popleft() for _ in range(min(self._most, len(self._singles)))]
        return [self._larger.pop() for _ in range(min(self._most, len(self._larger)))]


class Batch:
    """Boxes that are executed together: ``warps_per_block`` rows of 32 lanes for each box, in the order of ``boxes``."""

    def __init__(self, boxes: Sequence[Box], block: tuple[int, int, int]) -> None:
        self.boxes = tuple(boxes)
        self.block = block
        self.threads = block[0] * block[1] * block[2]
        self.warps_per_block = -(-self.threads // 32)
        self.warps = self.warps_per_block * len(boxes)
        self.counts = np.array([b.count for b in boxes], np.int64)
        self.volume = np.prod(self.counts, axis=1)
        tops = [np.repeat(self.counts[:, a] - 1, self.warps_per_block)[:, None] for a in range(3)]
        self.affine = Affine([t if t.any() else None for t in tops])
        self.weight = np.repeat(self.volume, self.warps_per_block)  # blocks that each row stands for
        linear = np.arange(self.warps_per_block * 32).reshape(self.warps_per_block, 32)
        self.linear = np.tile(linear, (len(boxes), 1))  # thread number within the block
        self.mask = self.linear < self.threads

    def box_of(self, warp: int) -> int:
        """Which box a row of lanes belongs to."""
        return warp // self.warps_per_block

    def thread(self, warp: int, lane: int) -> tuple[int, int, int]:
        """threadIdx (x, y, z) of a lane."""
        number = int(self.linear[warp, lane])
        return number % self.block[0], number // self.block[0] % self.block[1], number // (self.block[0] * self.block[1])

    def per_warp(self, axis: int, what: str) -> np.ndarray:
        """``origin`` or ``stride`` of each row's box along an axis, as (warps, 1) int64."""
        return np.repeat(np.array([getattr(b, what)[axis] for b in self.boxes], np.int64), self.warps_per_block)[:, None]
