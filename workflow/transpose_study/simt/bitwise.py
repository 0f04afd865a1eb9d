"""Bit operations on values: and, or, xor, not and three-input tables, kept affine where the operands' bits do not meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from transpose_study.simt.values import KNOWN, LOADED, MOST_PARTS, OPAQUE, Affine, Hint, Value, all_hints, constant, map_k, worst

_DIRECT: dict[str, Callable[[Any, Any], Any]] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def invert(affine: Affine, a: Value) -> Value:
    """``~a``, which is ``-1 - a``."""
    if a is LOADED:
        return LOADED
    if a.base.dtype == bool:
        return Value(~a.base, None, a.why, a.hints)
    return affine.subtract(constant(-1, a.bits), a) if a.k is not None else Value(~a.base, None, a.why, a.hints)


def bitwise(affine: Affine, op: str, a: Value, b: Value) -> Value:
    """``a op b`` for ``op`` in and, or, xor, on integers or on predicates."""
    if bool in (a.base.dtype, b.base.dtype):
        return predicates(op, a, b)
    if op == "and" and (zero := _known_zero(a, b)) is not None:
        return zero
    if a is LOADED or b is LOADED:
        return LOADED
    if a.k is None and b.k is None:
        return Value(_DIRECT[op](a.base, b.base), None, worst(a, b), all_hints(a, b))
    if a.k is not None and b.k is None:
        return _with_constant(op, a, b)
    if a.k is None:
        if op != "and" and (sum_ := _disjoint(affine, a, b)) is not None:
            return sum_
        return _with_constant(op, b, a)
    if op != "and" and (sum_ := _disjoint(affine, a, b) or _disjoint(affine, b, a)) is not None:
        return sum_
    return _opaque(a, b, None)


def _known_zero(*values: Value) -> Value | None:
    """One of ``values`` that is 0 in every lane, where another is not known: it decides what a conjunction is."""
    if any(v.why is not None for v in values):
        return next((v for v in values if v.k is None and v.why is None and not v.base.any()), None)
    return None


def predicates(op: str, a: Value, b: Value) -> Value:
    """Logic in which a known operand that decides the result makes it known."""
    value = _DIRECT[op](a.base.astype(bool), b.base.astype(bool))
    why = worst(a, b)
    if why is None:
        return Value(value)
    if op != "xor":
        deciding = op == "or"
        settled = np.zeros((1, 1), bool)
        for operand in (a, b):
            sure = operand.base.astype(bool) == deciding
            settled = settled | (sure if operand.why is None else sure & (operand.why == KNOWN))
        value, why = np.where(settled, deciding, value), np.where(settled, KNOWN, why).astype(np.uint8)
    return Value(value, None, why, all_hints(a, b))


def _with_constant(op: str, a: Value, c: Value) -> Value:
    """An affine value with a constant: its low bits, below the coefficients' lowest set bit, do not vary over the box."""
    varying = np.zeros((1, 1), a.base.dtype)
    for coefficient in a.k or ():
        if coefficient is not None:
            varying = varying | coefficient
    step = varying & -varying  # the lowest bit that any coefficient can change; 0 where none does
    below = np.where(step == 0, np.array(-1).astype(step.dtype), step - 1)
    low = a.base & below
    high = a.base - low
    if op == "and":
        takes_low = (c.base & ~below) == 0
        takes_high = (c.base | below) == -1
        base = np.where(takes_high, high, 0).astype(a.base.dtype) + (low & c.base)
        k = map_k(a.k, lambda x: np.where(takes_high, x, 0).astype(x.dtype))
        good = takes_low | takes_high
    else:
        good = (c.base & ~below) == 0
        base, k = high + _DIRECT[op](low, c.base & below), a.k
    if good.all():
        return Value(base, k, worst(a, c), all_hints(a, c))
    needed = int(np.abs(c.base.astype(np.int64)).max())
    modulus = 1 << needed.bit_length()
    hint = Hint("mod", a.base, a.k, modulus=modulus) if a.k and modulus <= MOST_PARTS else None
    out = _opaque(a, c, hint)
    out.why = np.where(good, KNOWN if worst(a, c) is None else worst(a, c), out.why).astype(np.uint8)
    return Value(base, k, out.why, out.hints)


def _disjoint(affine: Affine, small: Value, big: Value) -> Value | None:
    """``small + big`` if ``big`` is a multiple of a power of two above every value of ``small``: or and xor then add."""
    varying = np.bitwise_or.reduce(big.base, axis=None)
    for coefficient in big.k or ():
        if coefficient is not None:
            varying = varying | np.bitwise_or.reduce(coefficient, axis=None)
    step = int(varying) & -int(varying)
    base, k, bad, _ = affine.form(small, signed=True)
    low, high = affine.bounds(base, k)
    if bad is None and step > 0 and low.min() >= 0 and high.max() < step:
        return affine.add(small, big)
    return None


def _opaque(a: Value, b: Value, hint: Hint | None) -> Value:
    why = np.full((1, 1), OPAQUE, np.uint8)
    known = worst(a, b)
    return Value(a.base, None, why if known is None else np.maximum(why, known), all_hints(a, b) + ((hint,) if hint else ()))


def bit_field(affine: Affine, opcode: str, numbers: list[Value], position: int, length: int) -> Value:
    """``bfe`` of a number, or ``bfi`` of one number into another, by shifts and masks, which stay affine where they can."""
    bits = numbers[-1].bits
    field = constant((1 << length) - 1, bits)
    if opcode == "bfe":
        return bitwise(affine, "and", affine.shift_right(numbers[0], constant(position, 32), signed=False), field)
    hole = affine.shift_left(field, constant(position, 32))
    put = bitwise(affine, "and", affine.shift_left(numbers[0], constant(position, 32)), hole)
    return bitwise(affine, "or", put, bitwise(affine, "and", numbers[1], invert(affine, hole)))


def table3(affine: Affine, a: Value, b: Value, c: Value, table: int) -> Value:
    """The three-input function ``table`` (bit 4a + 2b + c) of every bit position, as lop3 computes it."""
    if all(v.k is None and v is not LOADED for v in (a, b, c)) and _known_zero(a, b, c) is None:
        return Value(_sum_of_products(a.base, b.base, c.base, table), None, worst(a, b, c), all_hints(a, b, c))
    for position, zero in enumerate((a, b, c)):  # a zero operand leaves a two-input table
        if zero is not LOADED and zero.k is None and zero.why is None and not zero.base.any():
            others = [v for i, v in enumerate((a, b, c)) if i != position]
            reduced = 0
            for pair in range(4):
                inputs = [pair >> 1, pair & 1]
                inputs.insert(position, 0)
                reduced |= (table >> (inputs[0] << 2 | inputs[1] << 1 | inputs[2]) & 1) << pair
            return _table2(affine, *others, reduced)
    for name, code in _COMPOSED.items():
        if table == code:
            first, second, order = name
            named = {"a": a, "b": b, "c": c}
            x, y, z = (named[letter] for letter in order)
            return bitwise(affine, second, bitwise(affine, first, x, y), z)
    if any(v is LOADED for v in (a, b, c)):
        return LOADED
    return _opaque(_opaque(a, b, None), c, None)


def _sum_of_products(a: np.ndarray, b: np.ndarray, c: np.ndarray, table: int) -> np.ndarray:
    out = np.zeros((1, 1), a.dtype)
    for index in range(8):
        if table >> index & 1:
            out = out | ((a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c))
    return out


def _table2(affine: Affine, p: Value, q: Value, table: int) -> Value:
    """The two-input function whose value for bits (p, q) is bit 2p + q of ``table``."""
    if table in (0, 15):
        return constant(-1 if table else 0, p.bits if p is not LOADED else q.bits)
    if table in (0b1100, 0b0011):
        return p if table == 0b1100 else invert(affine, p)
    if table in (0b1010, 0b0101):
        return q if table == 0b1010 else invert(affine, q)
    not_p, not_q = invert(affine, p), invert(affine, q)
    pairs = {
        0b1000: ("and", p, q), 0b0100: ("and", p, not_q), 0b0010: ("and", not_p, q), 0b0001: ("and", not_p, not_q),
        0b1110: ("or", p, q), 0b1101: ("or", p, not_q), 0b1011: ("or", not_p, q), 0b0111: ("or", not_p, not_q),
        0b0110: ("xor", p, q), 0b1001: ("xor", not_p, q),
    }  # fmt: skip
    return bitwise(affine, *pairs[table])


# Tables of (x first y) second z that compilers emit, by operations and operand order.
_TRUTH = {"a": 0xF0, "b": 0xCC, "c": 0xAA}
_COMPOSED = {
    (first, second, order): _DIRECT[second](_DIRECT[first](_TRUTH[order[0]], _TRUTH[order[1]]), _TRUTH[order[2]])
    for first in _DIRECT
    for second in _DIRECT
    for order in ("abc", "acb", "bca")
}
