"""Special registers of PTX: thread and block indices, lane and warp numbers, lane masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transpose_study.simt.boxes import Batch
from transpose_study.simt.values import DATA, Value, constant, unknown

if TYPE_CHECKING:
    from transpose_study.simt.machine import Launch

_TIMED = {"%clock": 32, "%clock_hi": 32, "%clock64": 64, "%globaltimer": 64, "%globaltimer_lo": 32, "%smid": 32, "%gridid": 64}


def thread_index(batch: Batch, axis: int) -> Value:
    """threadIdx along an axis."""
    x, y, _ = batch.block
    divisor = (1, x, x * y)[axis]
    return Value((batch.linear // divisor % batch.block[axis]).astype(np.int32))


def block_index(batch: Batch, axis: int) -> Value:
    """blockIdx along an axis, affine over each box."""
    origin = batch.per_warp(axis, "origin").astype(np.int32)
    if batch.affine.top[axis] is None:
        return Value(origin)
    k: list[np.ndarray | None] = [None, None, None]
    k[axis] = batch.per_warp(axis, "stride").astype(np.int32)
    return Value(origin, (k[0], k[1], k[2]))


def special_register(name: str, batch: Batch, launch: Launch) -> Value | None:
    """The value of a special register, or None if ``name`` is none. Clocks and the multiprocessor count as data."""
    head, _, part = name.partition(".")
    axis = "xyz".find(part) if part else 0
    if head in _TIMED:
        return unknown(DATA, _TIMED[head])
    if part and axis >= 0:
        if head == "%tid":
            return thread_index(batch, axis)
        if head in ("%ctaid", "%cluster_ctaid"):
            return block_index(batch, axis) if head == "%ctaid" else constant(0, 32)
        if head in ("%ntid", "%nctaid"):
            return constant((launch.block if head == "%ntid" else launch.grid)[axis], 32)
        if head == "%cluster_nctaid":
            return constant(1, 32)
    lane = np.arange(32, dtype=np.int64)[None, :]
    below = (np.int64(1) << lane) - 1
    own = np.int64(1) << lane
    everything = np.int64(0xFFFFFFFF)
    words = {
        "%laneid": lane,
        "%lanemask_eq": own,
        "%lanemask_lt": below,
        "%lanemask_le": below | own,
        "%lanemask_gt": everything & ~(below | own),
        "%lanemask_ge": everything & ~below,
    }
    if head in words:
        return Value(words[head].astype(np.uint32).view(np.int32))
    if head == "%warpid":
        return Value((batch.linear[:, :1] // 32).astype(np.int32))
    numbers = {"%nwarpid": batch.warps_per_block, "%dynamic_smem_size": launch.dynamic_shared, "%cluster_ctarank": 0, "%cluster_nctarank": 1}
    return constant(numbers[head], 32) if head in numbers else None
