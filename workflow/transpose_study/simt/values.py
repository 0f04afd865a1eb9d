"""Values of the SIMT machine: one number for each lane, possibly affine in the block index.

A value stands for ``base + kx * i + ky * j + kz * l`` where (i, j, l) runs over a *box* of blocks that are executed
together (see :mod:`.boxes`). ``base`` holds a number for each lane, the ``k`` are its coefficients, all of them modulo
2**width, so that additions and multiplications by constants wrap as the hardware's do. What an operation cannot express
in this form becomes *opaque*: known once the box is split, and split only when control flow or an address needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Why a lane's value is not known, in rising order of precedence.
KNOWN, OPAQUE, DATA, UNTRACKED = 0, 1, 2, 3  # OPAQUE: split the box; DATA: loaded from memory; UNTRACKED: from shared memory

Hints = tuple["Hint", ...]
Coefficients = tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]
INTEGER = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
MOST_HINTS = 6  # kept for one value
MOST_PARTS = 64  # into which one split by remainders may cut a box
_BIG = float(2**62)


@dataclass(frozen=True, eq=False)
class Hint:
    """How a split would make an opaque value known.

    ``cut``: the affine form ``base + k . i`` changes its relation ``op`` to 0 somewhere in the box.
    ``mod``: the coefficients ``k`` are no multiples of ``modulus``.
    """

    kind: str
    base: np.ndarray
    k: Coefficients
    op: str = ""
    modulus: int = 1


class Value:
    """``base``: signed integers (or bool) that broadcast to (warps, 32); ``k``: coefficients or None; ``why``: None or codes."""

    __slots__ = ("base", "hints", "k", "why")

    def __init__(self, base: np.ndarray, k: Coefficients | None = None, why: np.ndarray | None = None, hints: Hints = ()) -> None:
        self.base, self.k, self.why, self.hints = base, k, why, hints

    @property
    def bits(self) -> int:
        """Width of the integer type."""
        return self.base.dtype.itemsize * 8


def constant(number: int, bits: int) -> Value:
    """The same number in every lane, wrapped to ``bits``."""
    return Value(np.array([[number % (1 << bits)]], dtype=np.uint64).astype(INTEGER[bits]))


def unknown(why: int, bits: int = 64, hints: Hints = ()) -> Value:
    """A value no lane of which is known."""
    return Value(np.zeros((1, 1), INTEGER[bits]), None, np.full((1, 1), why, np.uint8), hints)


LOADED = unknown(DATA)  # what a load gives when only accesses are counted


def worst(*values: Value) -> np.ndarray | None:
    """Lane by lane, the strongest reason why one of ``values`` is not known."""
    why = None
    for value in values:
        if value.why is not None:
            why = value.why if why is None else np.maximum(why, value.why)
    return why


def all_hints(*values: Value) -> Hints:
    """The hints of ``values``, the first few: any of them may be the one that a lane needs."""
    found = tuple(h for v in values for h in v.hints)
    return tuple(dict.fromkeys(found))[:MOST_HINTS] if len(found) > 1 else found


def concrete(function: Callable[..., np.ndarray], *values: Value) -> Value:
    """Apply a numpy function of the lanes' bits; affine operands make the result opaque."""
    if any(v is LOADED for v in values):
        return LOADED
    if any(v.k is not None for v in values):
        return Value(np.zeros((1, 1), np.int64), None, _raise_to(worst(*values), OPAQUE), all_hints(*values))
    return Value(function(*(v.base for v in values)), None, worst(*values), all_hints(*values))


def merge(mask: np.ndarray, new: Value, old: Value) -> Value:
    """``new`` in the lanes of ``mask``, ``old`` elsewhere."""
    if new.base.dtype != old.base.dtype:
        if new is LOADED:
            new = Value(new.base.astype(old.base.dtype), None, new.why)
        else:
            old = Value(old.base.astype(new.base.dtype), None, old.why if old.k is None else _raise_to(old.why, OPAQUE), old.hints)
    k: Any = None
    if new.k is not None or old.k is not None:
        pairs = zip(new.k or (None,) * 3, old.k or (None,) * 3, strict=True)
        k = tuple(None if n is None and o is None else np.where(mask, 0 if n is None else n, 0 if o is None else o) for n, o in pairs)
        k = tuple(None if a is None else a.astype(new.base.dtype, copy=False) for a in k)
    why = None
    if new.why is not None or old.why is not None:
        why = np.where(mask, 0 if new.why is None else new.why, 0 if old.why is None else old.why).astype(np.uint8)
    return Value(np.where(mask, new.base, old.base), k, why, all_hints(new, old))


def _raise_to(why: np.ndarray | None, code: int) -> np.ndarray:
    level = np.full((1, 1), code, np.uint8)
    return level if why is None else np.maximum(why, level)


def _add_k(p: Coefficients | None, q: Coefficients | None) -> Coefficients | None:
    if p is None or q is None:
        return p if q is None else q
    return tuple(b if a is None else a if b is None else a + b for a, b in zip(p, q, strict=True))  # type: ignore[return-value]


def map_k(k: Coefficients | None, function: Callable[[np.ndarray], np.ndarray]) -> Coefficients | None:
    """Apply ``function`` to every coefficient; all zero gives None."""
    if k is None:
        return None
    out = tuple(None if a is None else function(a) for a in k)
    return out if any(a is not None and a.any() for a in out) else None  # type: ignore[return-value]


class Affine:
    """Arithmetic on values over boxes whose last indices are ``top``: three (warps, 1) arrays, or None where all are 0."""

    def __init__(self, top: Sequence[np.ndarray | None]) -> None:
        self.top = tuple(top)

    @property
    def single(self) -> bool:
        """Whether every box is one block, so that nothing is affine."""
        return all(t is None for t in self.top)

    # -- ranges over the box ----------------------------------------------------------------------------------------

    def bounds(self, base: np.ndarray, k: Coefficients | None) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest value of the form in each lane, over the box."""
        low = high = base
        for top, coefficient in zip(self.top, k or (), strict=False):
            if top is not None and coefficient is not None:
                reach = coefficient * top
                low = low + np.minimum(reach, 0)
                high = high + np.maximum(reach, 0)
        return low, high

    def form(self, value: Value, signed: bool) -> tuple[np.ndarray, Coefficients | None, np.ndarray | None, Hint | None]:
        """The value as an integer form that never wraps: base, k (int64), lanes where it may wrap, hint.

        Unsigned 64-bit numbers of 2**63 and above are outside of what is handled and count as wrapping.
        """
        bits = value.bits
        base = value.base.astype(np.int64) if signed or bits == 64 else value.base.view(UNSIGNED[bits]).astype(np.int64)
        if value.k is None:
            return base, None, None, None
        k: Any = tuple(None if a is None else a.astype(np.int64) for a in value.k)
        if bits == 64:
            reach = np.abs(base.astype(np.float64))
            for top, a in zip(self.top, k, strict=True):
                if top is not None and a is not None:
                    reach = reach + np.abs(a.astype(np.float64)) * top
            bad = reach > _BIG
            if bad.any():
                return base, k, bad, None
        low, high = self.bounds(base, k)
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, (2**bits if bits < 64 else 2**63) - 1)
        bad = (low < least) | (high > most)
        if not bad.any():
            return base, k, None, None
        below = bool((low < least).any())
        return base, k, bad, Hint("cut", base - least if below else base - most - 1, k, "lt")

    def _spoil(self, value: Value, bad: np.ndarray | None, hint: Hint | None) -> Value:
        if bad is not None:
            value.why = bad.astype(np.uint8) * OPAQUE if value.why is None else np.maximum(value.why, bad.astype(np.uint8) * OPAQUE)
            value.hints = (value.hints + ((hint,) if hint else ()))[-MOST_HINTS:]
        return value

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def add(self, a: Value, b: Value) -> Value:
        """``a + b``."""
        if a is LOADED or b is LOADED:
            return LOADED
        return Value(a.base + b.base, _add_k(a.k, b.k), worst(a, b), all_hints(a, b))

    def negate(self, a: Value) -> Value:
        """``-a``."""
        if a is LOADED:
            return LOADED
        return Value(-a.base, map_k(a.k, np.negative), a.why, a.hints)

    def subtract(self, a: Value, b: Value) -> Value:
        """``a - b``."""
        result = self.add(a, self.negate(b))
        if result is not LOADED:
            result.k = map_k(result.k, lambda c: c)
        return result

    def multiply(self, a: Value, b: Value) -> Value:
        """The low half of ``a * b``."""
        if a is LOADED or b is LOADED:
            return LOADED
        if a.k is not None and b.k is not None:
            return Value(a.base * b.base, None, _raise_to(worst(a, b), OPAQUE))
        k = map_k(a.k, lambda c: c * b.base) if a.k is not None else map_k(b.k, lambda c: c * a.base)
        return Value(a.base * b.base, k, worst(a, b), all_hints(a, b))

    def resize(self, a: Value, bits: int, signed: bool) -> Value:
        """Truncate, or extend by sign (``signed``) or zeros, to ``bits``."""
        if a is LOADED or a.bits == bits:
            return a
        if bits < a.bits:
            return Value(a.base.astype(INTEGER[bits]), map_k(a.k, lambda c: c.astype(INTEGER[bits])), a.why, a.hints)
        base, k, bad, hint = self.form(a, signed)
        narrow = INTEGER[bits]
        out = Value(base.astype(narrow), map_k(k, lambda c: c.astype(narrow)), a.why, a.hints)
        return self._spoil(out, bad, hint)

    def multiply_wide(self, a: Value, b: Value, signed: bool) -> Value:
        """The full product of two n-bit numbers as a 2n-bit number."""
        bits = 2 * a.bits if a is not LOADED else 64
        return self.multiply(self.resize(a, bits, signed), self.resize(b, bits, signed))

    def shift_left(self, a: Value, by: Value) -> Value:
        """``a << by``; shifts of the width and more give 0 (``by`` is unsigned)."""
        if a is LOADED or by is LOADED:
            return LOADED
        if by.k is not None:
            return Value(a.base, None, _raise_to(worst(a, by), OPAQUE), by.hints)
        bits, amount = a.bits, by.base.view(UNSIGNED[by.bits]).astype(np.int64)
        small = np.minimum(amount, bits - 1).astype(a.base.dtype)
        kept = (amount < bits).astype(a.base.dtype)
        return Value((a.base << small) * kept, map_k(a.k, lambda c: (c << small) * kept), worst(a, by), all_hints(a, by))

    def shift_right(self, a: Value, by: Value, signed: bool) -> Value:
        """``a >> by``, by sign or zeros; shifts of the width and more leave sign or 0."""
        if a is LOADED or by is LOADED:
            return LOADED
        if by.k is not None:
            return Value(a.base, None, _raise_to(worst(a, by), OPAQUE), by.hints)
        bits, amount = a.bits, by.base.view(UNSIGNED[by.bits]).astype(np.int64)
        small = np.minimum(amount, bits - 1)
        if a.k is None:
            if signed:
                return Value(a.base >> small.astype(a.base.dtype), None, worst(a, by), all_hints(a, by))
            shifted = a.base.view(UNSIGNED[bits]) >> small.astype(UNSIGNED[bits])
            shifted = np.where(amount < bits, shifted, 0).astype(UNSIGNED[bits])
            return Value(shifted.view(INTEGER[bits]), None, worst(a, by), all_hints(a, by))
        base, k, bad, hint = self.form(a, signed)
        out = self._floor_divide(base, k, np.int64(1) << np.minimum(amount, 62), a)
        if not signed and (amount >= bits).any():
            out = Value(np.zeros((1, 1), np.int64), None, worst(a, by), all_hints(a, by))
        out = Value(out.base.astype(a.base.dtype), map_k(out.k, lambda c: c.astype(a.base.dtype)), out.why, out.hints)
        return self._spoil(out, bad, hint)

    def _floor_divide(self, base: np.ndarray, k: Coefficients | None, divisor: np.ndarray, source: Value) -> Value:
        """``floor((base + k . i) / divisor)`` for a positive divisor: exact where k divides, constant where it does not change."""
        divides: Any = np.array(True)
        for top, a in zip(self.top, k or (), strict=False):
            if a is not None and top is not None:
                divides = divides & (a % divisor == 0)
        if divides.all():
            return Value(base // divisor, map_k(k, lambda c: c // divisor), source.why, source.hints)
        low, high = self.bounds(base, k)
        first, last = low // divisor, high // divisor
        fixed = first == last
        out = Value(np.where(divides, base // divisor, first), map_k(k, lambda c: np.where(divides, c // divisor, 0)), source.why, source.hints)
        wrong = ~(divides | fixed)
        once = (last - first <= 1).all()
        hint = None
        if k is not None and once:
            hint = Hint("cut", base - last * divisor, k, "lt")
        elif k is not None and divisor.max() <= MOST_PARTS:
            hint = Hint("mod", base, k, modulus=int(divisor.max()))
        return self._spoil(out, wrong if wrong.any() else None, hint)

    def divide(self, a: Value, b: Value, signed: bool) -> tuple[Value, Value]:
        """Quotient (rounded towards 0) and remainder (sign of ``a``); division by 0 gives all ones, as on the hardware."""
        if a is LOADED or b is LOADED:
            return LOADED, LOADED
        if b.k is not None:
            lost = Value(a.base, None, _raise_to(worst(a, b), OPAQUE))
            return lost, lost
        kind, bits = a.base.dtype, a.bits
        if a.k is None:
            x, y = (a.base, b.base) if signed else (a.base.view(UNSIGNED[bits]), b.base.view(UNSIGNED[bits]))
            safe = np.where(y == 0, np.ones_like(y), y)
            quotient = x // safe
            remainder = x - quotient * safe
            if signed:  # numpy rounds down, the hardware towards zero
                fix = (remainder != 0) & ((x < 0) != (safe < 0))
                quotient, remainder = quotient + fix, remainder - fix * safe
            quotient = np.where(y == 0, np.array(-1).astype(quotient.dtype), quotient).astype(x.dtype)
            remainder = np.where(y == 0, x, remainder).astype(x.dtype)
            why, hints = worst(a, b), all_hints(a, b)
            return Value(quotient.view(kind), None, why, hints), Value(remainder.view(kind), None, why, hints)
        base, k, bad, hint = self.form(a, signed)
        divisor = b.base.astype(np.int64) if signed else b.base.view(UNSIGNED[bits]).astype(np.int64)
        low, _ = self.bounds(base, k)
        odd = (divisor <= 0) | (low < 0)
        out = self._floor_divide(base, k, np.maximum(divisor, 1), Value(a.base, a.k, worst(a, b), all_hints(a, b)))
        out = Value(out.base.astype(kind), map_k(out.k, lambda c: c.astype(kind)), out.why, out.hints)
        quotient = self._spoil(self._spoil(out, bad, hint), odd if odd.any() else None, None)
        return quotient, self.subtract(a, self.multiply(quotient, b))

    # -- comparison ---------------------------------------------------------------------------------------------------

    def compare(self, op: str, a: Value, b: Value, signed: bool) -> Value:
        """``a op b`` as a predicate; ``op`` is lt, le, gt, ge, eq or ne. Lanes that differ within the box are opaque."""
        if a is LOADED or b is LOADED:
            return LOADED
        if op in ("gt", "ge"):
            a, b, op = b, a, {"gt": "lt", "ge": "le"}[op]
        if a.k is None and b.k is None:
            x, y = (a.base, b.base) if signed or op in ("eq", "ne") else (a.base.view(UNSIGNED[a.bits]), b.base.view(UNSIGNED[b.bits]))
            return Value(COMPARE[op](x, y), None, worst(a, b), all_hints(a, b))
        base_a, k_a, bad_a, hint_a = self.form(a, signed)
        base_b, k_b, bad_b, hint_b = self.form(b, signed)
        base, k = base_a - base_b, _add_k(k_a, map_k(k_b, np.negative))
        low, high = self.bounds(base, k)
        if op in ("eq", "ne"):
            always, never = (low == 0) & (high == 0), (low > 0) | (high < 0)
        elif op == "lt":
            always, never = high < 0, low >= 0
        else:
            always, never = high <= 0, low > 0
        if op == "ne":
            always, never = never, always
        out = Value(always, None, worst(a, b), all_hints(a, b))
        mixed = ~(always | never)
        out = self._spoil(out, mixed if mixed.any() else None, Hint("cut", base, k, op))
        return self._spoil(self._spoil(out, bad_a, hint_a), bad_b, hint_b)


COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
