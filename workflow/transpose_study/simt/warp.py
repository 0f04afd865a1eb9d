"""Instructions in which the lanes of a warp exchange values: shuffles, votes, matches and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from transpose_study.simt.ptx import Instruction, Pair, words
from transpose_study.simt.values import KNOWN, LOADED, Value, unknown


def _spread(array: Any, warps: int) -> np.ndarray:
    return np.ascontiguousarray(np.broadcast_to(array, (warps, 32)))


def shuffle(ins: Instruction, a: Value, b: Value, c: Value, mask: np.ndarray) -> tuple[Value, Value]:
    """shfl.sync: each lane's value from another lane of its segment, and whether that lane lies in range."""
    warps = mask.shape[0]
    if any(v is LOADED or v.k is not None or v.why is not None for v in (b, c)):
        return LOADED, unknown(2)
    lane = np.arange(32)[None, :]
    delta, control = _spread(b.base, warps).astype(np.int64) & 31, _spread(c.base, warps).astype(np.int64)
    clamp, segment = control & 31, control >> 8 & 31
    least = lane & segment
    most = least | (clamp & ~segment)
    mode = ins.modifiers[1]
    if mode == "up":
        source, inside = lane - delta, lane - delta >= most
    elif mode == "down":
        source, inside = lane + delta, lane + delta <= most
    elif mode == "bfly":
        source, inside = lane ^ delta, (lane ^ delta) <= most
    else:
        source = least | (delta & ~segment)
        inside = source <= most
    source = np.where(inside, source, lane)

    def pick(array: np.ndarray | None) -> np.ndarray | None:
        return None if array is None else np.take_along_axis(_spread(array, warps), source, axis=1)

    if a is LOADED:
        return LOADED, Value(inside)
    k: Any = None if a.k is None else tuple(pick(x) for x in a.k)
    base = pick(a.base)
    return Value(base if base is not None else a.base, k, pick(a.why), a.hints), Value(inside)


def vote(ins: Instruction, predicate: Value, mask: np.ndarray) -> Value:
    """vote.sync over the active lanes: all, any, uni, or the ballot as a 32-bit mask."""
    warps = mask.shape[0]
    holds = _spread(predicate.base, warps).astype(bool) & mask
    if "ballot" in ins.modifiers:
        out = _to_word(holds)
    elif "all" in ins.modifiers:
        out = (holds == mask).all(1)
    elif "any" in ins.modifiers:
        out = holds.any(1)
    else:
        out = (holds == mask).all(1) | ~holds.any(1)
    return _shared(out[:, None], predicate, mask)


def active(mask: np.ndarray) -> Value:
    """activemask: the lanes that execute this instruction."""
    return Value(_to_word(mask)[:, None])


def match(ins: Instruction, a: Value, mask: np.ndarray) -> Value | tuple[Value, Value]:
    """match.sync: the active lanes with the same value (any), or all of them if all are equal, else 0 (all)."""
    warps = mask.shape[0]
    if a.k is not None:
        return unknown(1, 32)
    values = _spread(a.base, warps)
    same = (values[:, :, None] == values[:, None, :]) & mask[:, None, :]
    if "any" in ins.modifiers:
        words = (same * (np.int64(1) << np.arange(32))).sum(2).astype(np.uint32).view(np.int32)
        return _shared(words, a, mask)
    first = np.take_along_axis(values, mask.argmax(1)[:, None], axis=1)
    equal = ((values == first) | ~mask).all(1)
    word = _shared(np.where(equal, _to_word(mask), 0)[:, None].astype(np.int32), a, mask)
    return (word, _shared(equal[:, None], a, mask)) if isinstance(ins.operands[0], Pair) else word


def reduce(ins: Instruction, a: Value, mask: np.ndarray) -> Value:
    """redux.sync over the active lanes: add, min, max, and, or, xor."""
    warps = mask.shape[0]
    if a.k is not None:
        return unknown(1, 32)
    unsigned = "u32" in ins.modifiers or "b32" in ins.modifiers
    values = _spread(a.base, warps)
    values = values.view(np.uint32).astype(np.int64) if unsigned else values.astype(np.int64)
    op = ins.modifiers[1]
    neutral = {"add": 0, "or": 0, "xor": 0, "and": 0xFFFFFFFF, "min": 2**32, "max": -(2**32)}[op]
    values = np.where(mask, values, neutral)
    ufunc: Any = {"add": np.add, "or": np.bitwise_or, "xor": np.bitwise_xor, "and": np.bitwise_and, "min": np.minimum, "max": np.maximum}[op]
    total = ufunc.reduce(values, axis=1)[:, None]
    return _shared((total & 0xFFFFFFFF).astype(np.uint32).view(np.int32), a, mask)


def _to_word(lanes: np.ndarray) -> np.ndarray:
    return (lanes * (np.int64(1) << np.arange(32))).sum(1).astype(np.uint32).view(np.int32)


def _shared(base: np.ndarray, source: Value, mask: np.ndarray) -> Value:
    """A result of all lanes: not known if any active lane's source is not."""
    if source.why is None:
        return Value(base)
    why = np.where(mask, _spread(source.why, mask.shape[0]), KNOWN).max(1)[:, None].astype(np.uint8)
    return Value(base, None, why, source.hints)


MODIFIERS = {
    "shfl": words("sync up down bfly idx b32"),
    "vote": words("sync all any uni ballot pred b32"),
    "activemask": frozenset(["b32"]),
    "match": words("sync any all b32 b64"),
    "redux": words("sync add min max and or xor s32 u32 b32"),
}
