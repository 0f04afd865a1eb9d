"""Affine arithmetic against arithmetic on each block: the same number wherever the value is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transpose_study.simt.bitwise import bitwise, table3
from transpose_study.simt.boxes import Batch, Box, split, whole_grid
from transpose_study.simt.special import block_index, thread_index
from transpose_study.simt.values import OPAQUE, Value, constant

UNARY = {
    "negate": lambda m, a: m.negate(a),
    "invert": lambda m, a: bitwise(m, "xor", a, constant(-1, a.bits)),
    "low bits": lambda m, a: bitwise(m, "and", a, constant(31, a.bits)),
    "high bits": lambda m, a: bitwise(m, "and", a, constant(-32, a.bits)),
    "set bits": lambda m, a: bitwise(m, "or", a, constant(5, a.bits)),
    "times 5": lambda m, a: m.multiply(a, constant(5, a.bits)),
    "times 4097": lambda m, a: m.multiply(a, constant(4097, a.bits)),
    "shift left": lambda m, a: m.shift_left(a, constant(5, 32)),
    "shift right": lambda m, a: m.shift_right(a, constant(3, 32), signed=False),
    "arithmetic shift right": lambda m, a: m.shift_right(a, constant(2, 32), signed=True),
    "divide": lambda m, a: m.divide(a, constant(7, a.bits), signed=True)[0],
    "remainder": lambda m, a: m.divide(a, constant(6, a.bits), signed=True)[1],
    "unsigned remainder": lambda m, a: m.divide(a, constant(10, a.bits), signed=False)[1],
    "there and back": lambda m, a: m.resize(m.resize(a, 64, signed=True), a.bits, signed=False),
}
BINARY = {
    "add": lambda m, a, b: m.add(a, b),
    "subtract": lambda m, a, b: m.subtract(a, b),
    "multiply": lambda m, a, b: m.multiply(a, b),
    "or": lambda m, a, b: bitwise(m, "or", a, b),
    "xor": lambda m, a, b: bitwise(m, "xor", a, b),
    "and": lambda m, a, b: bitwise(m, "and", a, b),
    "a ^ (b & 7)": lambda m, a, b: table3(m, a, b, constant(7, 32), 0x78),
}
COMPARISONS = [(op, signed) for op in ("lt", "le", "gt", "ge", "eq", "ne") for signed in (True, False)]

programs = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(sorted(UNARY)), st.integers(0, 9)),
        st.tuples(st.sampled_from(sorted(BINARY)), st.integers(0, 9), st.integers(0, 9)),
    ),
    min_size=1,
    max_size=8,
)
boxes = st.builds(
    Box,
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.just(0)),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.just(1)),
    st.tuples(st.integers(1, 6), st.integers(1, 5), st.just(1)),
)


def run(batch: Batch, steps) -> list[Value]:
    values = [block_index(batch, 0), block_index(batch, 1), thread_index(batch, 0), constant(33, 32)]
    for name, *operands in steps:
        arguments = [values[o % len(values)] for o in operands]
        values.append((UNARY if len(operands) == 1 else BINARY)[name](batch.affine, *arguments))
    return values


def at(value: Value, index, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """The value in the block at ``index`` of the first box, and which lanes of it are known."""
    base = np.broadcast_to(value.base, (1, lanes)).astype(np.int64)
    for i, k in zip(index, value.k or (), strict=False):
        if k is not None:
            base = base + np.broadcast_to(k, (1, lanes)).astype(np.int64) * i
    known = np.ones((1, lanes), bool) if value.why is None else np.broadcast_to(value.why != OPAQUE, (1, lanes))
    return (base if value.base.dtype == bool else base.astype(value.base.dtype)), known


@settings(max_examples=300, deadline=None)
@given(boxes, programs, st.sampled_from(COMPARISONS))
def test_known_lanes_hold_what_every_single_block_computes(box, steps, comparison):
    batch = Batch([box], (32, 1, 1))
    values = run(batch, steps)
    truth = batch.affine.compare(comparison[0], values[-1], values[-2], signed=comparison[1])
    for single in box.singles():
        index = [(o - b) // s for o, b, s in zip(single.origin, box.origin, box.stride, strict=True)]
        alone = Batch([single], (32, 1, 1))
        expected = run(alone, steps)
        pairs = list(zip(values, expected, strict=True))
        pairs.append((truth, alone.affine.compare(comparison[0], expected[-1], expected[-2], signed=comparison[1])))
        for value, plain in pairs:
            assert plain.why is None and plain.k is None
            got, known = at(value, index, 32)
            want = np.broadcast_to(plain.base, (1, 32))
            assert (got[known] == want[known]).all()


@settings(max_examples=100, deadline=None)
@given(boxes, st.integers(-40, 40), st.integers(1, 9), st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"]))
def test_splitting_by_hints_settles_a_condition_in_few_boxes(box, offset, factor, op):
    """A comparison along one axis leaves at most three ranges for each of the 32 lanes' thresholds, not single blocks."""
    pending, settled = [box], []
    while pending:
        part = pending.pop()
        batch = Batch([part], (32, 1, 1))
        form = batch.affine.add(batch.affine.multiply(block_index(batch, 0), constant(factor, 32)), constant(offset, 32))
        result = batch.affine.compare(op, form, constant(7, 32), signed=True)
        if result.why is None:
            settled.append(part)
        else:
            pending += split(part, result.hints, 0, int(np.broadcast_to(result.why, (1, 32)).argmax()))
    assert sum(b.blocks for b in settled) == box.blocks
    assert len(settled) <= 3


def test_the_parts_of_a_box_are_its_blocks():
    box = Box((3, 1, 0), (2, 5, 1), (7, 4, 2))
    whole = {b.origin for b in box.singles()}
    assert len(whole) == box.blocks == 56
    for parts in (box.cut(0, 3), box.comb(1, 3), split(box, (), 0, 0)):
        assert {b.origin for p in parts for b in p.singles()} == whole
        assert sum(p.blocks for p in parts) == box.blocks


def test_wrapping_sums_are_not_taken_for_small_ones():
    batch = Batch([whole_grid((4, 1, 1))], (32, 1, 1))
    huge = batch.affine.add(block_index(batch, 0), constant(2**31 - 2, 32))  # passes 2**31 at block 2
    result = batch.affine.compare("gt", huge, constant(0, 32), signed=True)
    assert result.why is not None and (result.why == OPAQUE).all()
    unsigned = batch.affine.compare("gt", huge, constant(0, 32), signed=False)
    assert unsigned.why is None and unsigned.base.all()


@pytest.mark.parametrize("signed", [True, False])
def test_division_by_zero_gives_all_ones(signed):
    batch = Batch([whole_grid((1, 1, 1))], (32, 1, 1))
    quotient, remainder = batch.affine.divide(constant(5, 32), constant(0, 32), signed)
    assert (quotient.base == -1).all() and (remainder.base == 5).all()
