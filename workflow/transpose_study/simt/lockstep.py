"""Scheduling of warps in lock step: which lanes stand where, where they join again, and how barriers release them.

Rows of 32 lanes are warps. A *fragment* is a set of lanes that stand at the same instruction, at most one group of lanes
of each warp in it; the fragment with the lowest instruction runs next, so that warps which took different ways meet again
soon. Lanes of one warp meet again only at a *join* (the branch's immediate post-dominator in PTX, a BSYNC in machine code).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np

from transpose_study.errors import StudyError

MAX_INSTRUCTIONS = 200_000  # by one batch; a block of 256 threads that moves a 1024 x 1024 matrix alone takes about 100,000


class Endless(StudyError):
    """A kernel still runs after :data:`MAX_INSTRUCTIONS`."""

    def __init__(self, kernel: str) -> None:
        what = f"still runs after {MAX_INSTRUCTIONS:,} instructions: an endless loop, or more work than is emulated"
        super().__init__(what, where=f"kernel {kernel}")


def within_limit(executed: int, more: int, kernel: str) -> int:
    """``executed + more``; raises :class:`Endless` above the limit."""
    if executed + more > MAX_INSTRUCTIONS:
        raise Endless(kernel)
    return executed + more


@dataclass
class Join:
    """``expected`` lanes of each warp wait for one another; ``waiting`` have come (None: no lane), to continue at ``target``."""

    target: int
    expected: np.ndarray
    waiting: np.ndarray | None = None


@dataclass
class Waiting:
    """Lanes that wait at one barrier instruction. ``threads``: how many must come, 0 for all of the block."""

    target: int
    number: int
    threads: int
    mask: np.ndarray
    released: Callable[[np.ndarray], None] | None


@dataclass
class BarrierFault:
    """Why lanes can never pass a barrier: rule broken, instruction, warp and lane of the first lane concerned."""

    why: str
    target: int
    warp: int
    lane: int


@dataclass
class Lockstep:
    """State of all warps. ``alive``: lanes that have not left the kernel, (warps, 32)."""

    alive: np.ndarray
    warps_per_block: int
    fragments: list[tuple[int, np.ndarray]] = field(default_factory=list)
    joins: dict[Hashable, Join] = field(default_factory=dict)
    barriers: dict[int, Waiting] = field(default_factory=dict)
    faults: list[BarrierFault] = field(default_factory=list)

    def go(self, target: int, mask: np.ndarray) -> None:
        """Let the lanes of ``mask`` continue at ``target``, together with other warps that stand there."""
        if not mask.any():
            return
        for index, (place, lanes) in enumerate(self.fragments):
            if place == target and not (lanes.any(1) & mask.any(1)).any():
                self.fragments[index] = (place, lanes | mask)
                return
        self.fragments.append((target, mask))

    def next(self) -> tuple[int, np.ndarray] | None:
        """The next fragment to run, or None when all lanes have left or can never go on (then ``faults`` says why)."""
        while True:
            self._release_joins()
            if not self.fragments:
                if not self.barriers:
                    return None
                self._release_barriers()
                if not self.fragments:
                    return None
            best = min(range(len(self.fragments)), key=lambda i: self.fragments[i][0])
            target, mask = self.fragments.pop(best)
            mask = mask & self.alive
            if mask.any():
                return target, mask

    @property
    def alone(self) -> bool:
        """Whether no other lanes stand or wait anywhere, so that a fragment just taken holds all living lanes."""
        return not (self.fragments or self.barriers or any(j.waiting is not None for j in self.joins.values()))

    def leave(self, mask: np.ndarray) -> None:
        """The lanes of ``mask`` leave the kernel."""
        self.alive = self.alive & ~mask

    # -- joins ------------------------------------------------------------------------------------------------------------

    def expect(self, key: Hashable, target: int, mask: np.ndarray) -> None:
        """Lanes of ``mask`` will meet at the join ``key`` and continue at ``target``."""
        if key in self.joins:
            self.joins[key].expected = self.joins[key].expected | mask
        else:
            self.joins[key] = Join(target, mask)

    def arrive(self, key: Hashable, mask: np.ndarray) -> np.ndarray:
        """Park those lanes of ``mask`` that the join ``key`` expects; return the others."""
        join = self.joins.get(key)
        if join is None:
            return mask
        lanes = mask & join.expected
        if lanes.any():
            join.waiting = lanes if join.waiting is None else join.waiting | lanes
            mask = mask & ~lanes
        return mask

    def _release_joins(self) -> None:
        for key, join in list(self.joins.items()):
            if join.waiting is None:
                continue
            missing = (join.expected & self.alive & ~join.waiting).any(1)
            ready = join.waiting.any(1) & ~missing
            self.go(join.target, join.waiting & ready[:, None] & self.alive)
            if missing.any():
                keep = missing[:, None]
                join.expected, left = join.expected & keep, join.waiting & keep
                join.waiting = left if left.any() else None
            else:
                del self.joins[key]

    # -- barriers ---------------------------------------------------------------------------------------------------------

    def wait(
        self, at: int, target: int, mask: np.ndarray, *, number: int = 0, threads: int = 0, released: Callable[[np.ndarray], None] | None = None
    ) -> None:
        """Lanes of ``mask`` wait at the barrier instruction ``at`` (barrier ``number``) and continue at ``target``."""
        partial = mask.any(1) & (mask != self.alive).any(1)
        self._fault("the barrier lies inside divergent code: other lanes of the warp are elsewhere", at, mask & partial[:, None])
        if at in self.barriers:
            self.barriers[at].mask = self.barriers[at].mask | mask
        else:
            self.barriers[at] = Waiting(target, number, threads, mask, released)
        if self.alone_at_barrier(at):
            self._release_barriers()

    def alone_at_barrier(self, at: int) -> bool:
        """Whether everything that lives waits at this barrier."""
        return not self.fragments and len(self.barriers) == 1 and not self.joins and at in self.barriers

    def _blocks(self, mask: np.ndarray) -> np.ndarray:
        return mask.reshape(-1, self.warps_per_block * 32)

    def _release_barriers(self) -> None:
        for at, waiting in list(self.barriers.items()):
            waiting.mask = waiting.mask & self.alive
            here = self._blocks(waiting.mask)
            everyone = (here == self._blocks(self.alive)).all(1)
            ready = self._threads_at(waiting.number) >= waiting.threads if waiting.threads else everyone
            ready = ready & here.any(1)
            if ready.any():
                lanes = waiting.mask & np.repeat(ready, self.warps_per_block)[:, None]
                if waiting.released:
                    waiting.released(lanes)
                self.go(waiting.target, lanes)
                waiting.mask = waiting.mask & ~lanes
            if not waiting.mask.any():
                del self.barriers[at]
        if not self.fragments:
            for at, waiting in self.barriers.items():
                self._fault("the barrier is not reached by all warps of the block", at, waiting.mask)

    def _threads_at(self, number: int) -> np.ndarray:
        """How many threads of each block (whole warps) wait at barrier ``number``, at whichever instruction."""
        masks = [w.mask for w in self.barriers.values() if w.number == number]
        warps = np.bitwise_or.reduce([m.any(1) for m in masks])
        return warps.reshape(-1, self.warps_per_block).sum(1) * 32

    def _fault(self, why: str, at: int, mask: np.ndarray) -> None:
        if mask.any():
            warp, lane = (int(i) for i in np.argwhere(mask)[0])
            self.faults.append(BarrierFault(why, at, warp, lane))
