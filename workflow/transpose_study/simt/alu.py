"""Arithmetic instructions of PTX: what each opcode computes, and which modifiers are understood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from transpose_study.simt import floats
from transpose_study.simt.bitwise import bit_field, bitwise, invert, predicates, table3
from transpose_study.simt.floats import FLOAT
from transpose_study.simt.memory import LOCAL_WINDOW, SHARED_WINDOW
from transpose_study.simt.ptx import TYPE_BYTES, Instruction, Operand, Pair, Vec
from transpose_study.simt.values import INTEGER, LOADED, UNSIGNED, Affine, Value, all_hints, concrete, constant, merge


class Reader(Protocol):
    """What the arithmetic needs of the machine: its affine domain and its operands' values."""

    affine: Affine
    carry: Value

    def read(self, operand: Operand, bits: int) -> Value:
        """The operand's value as ``bits`` wide integer (0: a predicate)."""
        ...


Result = Value | tuple[Value, ...]
Handler = Callable[[Reader, Instruction], Result]


def kind_of(ins: Instruction, last: int = -1) -> str:
    """The type among the instruction's modifiers, counted from the end."""
    return [m for m in ins.modifiers if m in TYPE_BYTES][last]


def _bits(kind: str) -> int:
    return 8 * TYPE_BYTES[kind]


def _args(m: Reader, ins: Instruction, kind: str, first: int = 1) -> list[Value]:
    return [m.read(o, _bits(kind)) for o in ins.operands[first:]]


def _arithmetic(m: Reader, ins: Instruction) -> Result:
    """add, sub, mul, mad, fma, div, rem, min, max, abs, neg, by type."""
    kind, op = kind_of(ins), ins.opcode
    args = _args(m, ins, kind)
    if kind in FLOAT:
        return floats.compute(op, kind, ins.modifiers, *args)
    signed, affine = kind[0] == "s", m.affine
    if op in ("mul", "mad"):
        a, b = args[0], args[1]
        if "wide" in ins.modifiers:
            product = affine.multiply_wide(a, b, signed)
        elif "hi" in ins.modifiers:
            product = _high(affine, a, b, signed)
        else:
            product = affine.multiply(a, b)
        if op == "mul":
            return product
        return affine.add(product, m.read(ins.operands[3], 2 * _bits(kind)) if "wide" in ins.modifiers else args[2])
    if op in ("add", "sub"):
        return _add_with_carry(m, ins, *args) if "cc" in ins.modifiers else (affine.add if op == "add" else affine.subtract)(*args)
    if op in ("addc", "subc"):
        return _add_with_carry(m, ins, *args)
    if op in ("div", "rem"):
        return affine.divide(args[0], args[1], signed)[op == "rem"]
    if op == "neg":
        return affine.negate(args[0])
    if op == "abs":
        negative = affine.compare("lt", args[0], constant(0, _bits(kind)), signed=True)
        return choose(negative, affine.negate(args[0]), args[0])
    smaller = affine.compare("lt", args[0], args[1], signed)
    return choose(smaller, *args) if op == "min" else choose(smaller, args[1], args[0])


def _high(affine: Affine, a: Value, b: Value, signed: bool) -> Value:
    if a is LOADED or b is LOADED:
        return LOADED
    if a.bits < 64:
        wide = affine.multiply_wide(a, b, signed)
        return affine.resize(affine.shift_right(wide, constant(a.bits, 32), signed), a.bits, signed)

    def run(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x, y = np.broadcast_arrays(x, y)
        mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
        p, q = x.view(np.uint64), y.view(np.uint64)
        pl, ph, ql, qh = p & mask, p >> half, q & mask, q >> half
        middle = (pl * ql >> half) + (ph * ql & mask) + (pl * qh & mask)
        high = (ph * qh + (ph * ql >> half) + (pl * qh >> half) + (middle >> half)).view(np.int64)
        return high - np.where(x < 0, y, 0) - np.where(y < 0, x, 0) if signed else high

    return concrete(lambda x, y: run(np.ascontiguousarray(x), np.ascontiguousarray(y)), a, b)


def _add_with_carry(m: Reader, ins: Instruction, a: Value, b: Value) -> Value:
    """add.cc, addc, sub.cc, subc: subtraction adds the complement, so that carry means no borrow inside of one chain."""
    affine, bits = m.affine, _bits(kind_of(ins))
    subtracting = ins.opcode.startswith("sub")
    if subtracting:
        b = invert(affine, b)
    carry_in = m.carry if ins.opcode.endswith("c") else constant(int(subtracting), 8)
    carry_in = affine.resize(carry_in, bits, signed=False)
    partial = affine.add(a, b)
    total = affine.add(partial, carry_in)
    if "cc" in ins.modifiers:
        over = predicates("or", affine.compare("lt", partial, a, signed=False), affine.compare("lt", total, partial, signed=False))
        m.carry = choose(over, constant(1, 8), constant(0, 8))
    return total


def choose(predicate: Value, yes: Value, no: Value) -> Value:
    """``yes`` where the predicate holds, else ``no``; not known where the predicate is not."""
    if predicate is LOADED:
        return LOADED
    out = merge(predicate.base.astype(bool), yes, no)
    if predicate.why is not None:
        out.why = predicate.why if out.why is None else np.maximum(out.why, predicate.why)
        out.hints = all_hints(predicate, out)
    return out


def _logic(m: Reader, ins: Instruction) -> Result:
    kind, op = kind_of(ins), ins.opcode
    args = _args(m, ins, kind)
    if op == "not":
        return invert(m.affine, args[0])
    if op == "cnot":
        zero = m.affine.compare("eq", args[0], constant(0, _bits(kind)), signed=True)
        return choose(zero, constant(1, _bits(kind)), constant(0, _bits(kind)))
    return predicates(op, *args) if kind == "pred" else bitwise(m.affine, op, *args)


def _shift(m: Reader, ins: Instruction) -> Result:
    kind = kind_of(ins)
    a, by = m.read(ins.operands[1], _bits(kind)), m.read(ins.operands[2], 32)
    return m.affine.shift_left(a, by) if ins.opcode == "shl" else m.affine.shift_right(a, by, kind[0] == "s")


def _funnel(m: Reader, ins: Instruction) -> Result:
    """shf: shift the 64-bit number b:a and keep its high word (l) or low word (r)."""
    low, high, by = (m.read(o, 32) for o in ins.operands[1:4])
    affine = m.affine
    if "wrap" in ins.modifiers:
        by = bitwise(affine, "and", by, constant(31, 32))
    else:
        by = choose(affine.compare("lt", by, constant(32, 32), signed=False), by, constant(32, 32))
    both = bitwise(affine, "or", affine.resize(low, 64, False), affine.shift_left(affine.resize(high, 64, False), constant(32, 32)))
    if ins.modifiers[0] == "l":
        return affine.resize(affine.shift_right(affine.shift_left(both, by), constant(32, 32), signed=False), 32, False)
    return affine.resize(affine.shift_right(both, by, signed=False), 32, False)


def _compare(m: Reader, ins: Instruction) -> Result:
    """setp and set: comparison, optionally combined with a predicate; setp may write the complement too."""
    kind = kind_of(ins)
    a, b = m.read(ins.operands[1], _bits(kind)), m.read(ins.operands[2], _bits(kind))
    op = ins.modifiers[0]
    if kind in FLOAT:
        result = floats.compare(op, kind, a, b)
    else:
        plain = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(op, op)
        result = m.affine.compare(plain, a, b, kind[0] == "s")
    combined = next((c for c in ins.modifiers if c in ("and", "or", "xor")), None)
    other = invert(m.affine, result)
    if combined:
        third = m.read(ins.operands[3], 0)
        result, other = predicates(combined, result, third), predicates(combined, other, third)
    if ins.opcode == "set":
        target = kind_of(ins, 0)
        one = 0x3F800000 if target == "f32" else -1
        return choose(result, constant(one, 32), constant(0, 32))
    return (result, other) if isinstance(ins.operands[0], Pair) else result


def _select(m: Reader, ins: Instruction) -> Result:
    bits = _bits(kind_of(ins))
    return choose(m.read(ins.operands[3], 0), m.read(ins.operands[1], bits), m.read(ins.operands[2], bits))


def _move(m: Reader, ins: Instruction) -> Result:
    """mov, also between a register and a vector of halves."""
    bits = _bits(kind_of(ins))
    target, source = ins.operands
    if isinstance(target, Vec):
        part = bits // len(target.items)
        whole = m.read(source, bits)
        shifted = [m.affine.shift_right(whole, constant(part * i, 32), signed=False) for i in range(len(target.items))]
        return tuple(m.affine.resize(s, part, False) for s in shifted)
    if isinstance(source, Vec):
        part = bits // len(source.items)
        total = constant(0, bits)
        for index, item in enumerate(source.items):
            piece = m.affine.resize(m.read(item, part), bits, False)
            total = bitwise(m.affine, "or", total, m.affine.shift_left(piece, constant(part * index, 32)))
        return total
    return m.read(source, bits)


def _convert(m: Reader, ins: Instruction) -> Result:
    target, source = kind_of(ins, -2), kind_of(ins)
    a = m.read(ins.operands[1], _bits(source))
    if target in FLOAT or source in FLOAT:
        return floats.convert(target, source, ins.modifiers, a)
    signed = source[0] == "s"
    if "sat" in ins.modifiers:
        width, limit = _bits(target), 2 ** (_bits(target) - (target[0] == "s")) - 1
        least = -limit - 1 if target[0] == "s" else 0
        wide = m.affine.resize(a, 64, signed)
        low, high = constant(least, 64), constant(limit, 64)
        wide = choose(m.affine.compare("lt", wide, low, signed=True), low, wide)
        return m.affine.resize(choose(m.affine.compare("gt", wide, high, signed=True), high, wide), width, signed)
    return m.affine.resize(a, _bits(target), signed)


def _count_bits(m: Reader, ins: Instruction) -> Result:
    """popc, clz, brev, bfind."""
    kind, op = kind_of(ins), ins.opcode
    bits = _bits(kind)

    def run(a: np.ndarray) -> np.ndarray:
        unsigned = a.view(UNSIGNED[bits])
        planes = (unsigned[..., None] >> np.arange(bits, dtype=UNSIGNED[bits])) & UNSIGNED[bits](1)  # lowest bit first
        if op == "popc":
            return planes.sum(-1).astype(np.int32)
        if op == "brev":
            weights = UNSIGNED[bits](1) << np.arange(bits - 1, -1, -1, dtype=UNSIGNED[bits])
            return (planes * weights).sum(-1, dtype=UNSIGNED[bits]).view(INTEGER[bits])
        if op == "bfind" and kind[0] == "s":
            planes = planes ^ planes[..., -1:]
        highest = np.where(planes.any(-1), bits - 1 - planes[..., ::-1].argmax(-1), -1)
        if op == "clz":
            return (bits - 1 - highest).astype(np.int32)
        return np.where(highest < 0, -1, bits - 1 - highest if "shiftamt" in ins.modifiers else highest).astype(np.int32)

    return concrete(run, m.read(ins.operands[1], bits))


def _bit_field(m: Reader, ins: Instruction) -> Result:
    """bfe extracts a field of ``length`` bits at ``position``; bfi inserts one."""
    kind = kind_of(ins)
    bits, unsigned = _bits(kind), UNSIGNED[_bits(kind)]
    *numbers, position, length = [m.read(o, bits if i < len(ins.operands) - 3 else 32) for i, o in enumerate(ins.operands[1:])]
    if kind[0] != "s" and any(v.k is not None for v in numbers) and all(v.why is None and v.base.size == 1 for v in (position, length)):
        return bit_field(m.affine, ins.opcode, numbers, *(int(v.base[0, 0]) & 0xFF for v in (position, length)))

    def run(*raw: np.ndarray) -> np.ndarray:
        *values, at, size = raw
        at, size = (np.minimum(x.view(np.uint32) & np.uint32(0xFF), bits).astype(np.int64) for x in (at, size))
        ones = np.where(size >= bits, unsigned(2**bits - 1), (unsigned(1) << np.minimum(size, bits - 1).astype(unsigned)) - unsigned(1))
        shift = np.minimum(at, bits - 1).astype(unsigned)
        if ins.opcode == "bfi":
            field, into = (v.view(unsigned) for v in values)
            hole = np.where(at >= bits, unsigned(0), ones << shift).astype(unsigned)
            return (into & ~hole | (field << shift) & hole).astype(unsigned).view(INTEGER[bits])
        source = values[0].view(unsigned)
        field = np.where(at >= bits, unsigned(0), source >> shift).astype(unsigned) & ones
        if kind[0] == "s":
            last = np.minimum(at + size - 1, bits - 1).astype(unsigned)
            negative = (size > 0) & ((source >> last) & unsigned(1)).astype(bool)
            filled = np.minimum(size, np.maximum(bits - at, 0))
            ones = np.where(filled >= bits, unsigned(2**bits - 1), (unsigned(1) << np.minimum(filled, bits - 1).astype(unsigned)) - unsigned(1))
            field = np.where(negative, field | ~ones, field)
        return field.astype(unsigned).view(INTEGER[bits])

    return concrete(run, *numbers, position, length)


def permute(a: Value, b: Value, selector: Value) -> Value:
    """Each nibble of the selector picks a byte of b:a, or (from 8 on) that byte's sign."""

    def run(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
        a, b, selector = np.broadcast_arrays(a, b, selector)
        pool = np.concatenate([np.ascontiguousarray(x)[..., None].view(np.uint8) for x in (a, b)], axis=-1)
        nibbles = (np.ascontiguousarray(selector)[..., None] >> np.arange(0, 16, 4)) & 0xF
        picked = np.take_along_axis(pool, nibbles & 7, axis=-1)
        picked = np.where(nibbles & 8, np.where(picked & 0x80, 0xFF, 0), picked).astype(np.uint8)
        return np.ascontiguousarray(picked).view(np.int32)[..., 0]

    return concrete(run, a, b, selector)


def _table(m: Reader, ins: Instruction) -> Result:
    a, b, c, table = (m.read(o, 32) for o in ins.operands[1:5])
    return table3(m.affine, a, b, c, int(table.base[0, 0]))


def _classify(m: Reader, ins: Instruction) -> Result:
    kind = kind_of(ins)
    return floats.classify(kind, ins.modifiers[0], m.read(ins.operands[1], _bits(kind)))


def _address(m: Reader, ins: Instruction) -> Result:
    """cvta: shared and local windows begin at fixed generic addresses; global addresses are generic already."""
    a = m.read(ins.operands[1], _bits(kind_of(ins)))
    space = next(s for s in ins.modifiers if s in ("global", "shared", "local", "const", "param"))
    if space not in _WINDOWS or a.bits == 32:
        return a
    base = constant(_WINDOWS[space], 64)
    return m.affine.subtract(a, base) if "to" in ins.modifiers else m.affine.add(a, base)


_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
_INT = "s16 u16 s32 u32 s64 u64"
_FLOATS = "f16 f32 f64 rn ftz approx full sat"
_CMP = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"

# opcode: (what computes it, modifiers that are understood)
TABLE: dict[str, tuple[Handler, frozenset[str]]] = {
    name: (handler, frozenset(modifiers.split()))
    for names, handler, modifiers in (
        ("add sub", _arithmetic, f"{_INT} {_FLOATS} cc"),
        ("addc subc", _arithmetic, f"{_INT} cc"),
        ("mul mad", _arithmetic, f"{_INT} {_FLOATS} lo hi wide"),
        ("fma rcp sqrt rsqrt sin cos ex2 lg2 tanh copysign", _arithmetic, _FLOATS),
        ("div rem min max abs neg", _arithmetic, f"{_INT} {_FLOATS}"),
        ("and or xor not cnot", _logic, "b16 b32 b64 pred"),
        ("shl shr", _shift, f"b16 b32 b64 {_INT}"),
        ("shf", _funnel, "l r wrap clamp b32"),
        ("setp set", _compare, f"{_CMP} and or xor b16 b32 b64 {_INT} {_FLOATS}"),
        ("selp", _select, f"b16 b32 b64 {_INT} {_FLOATS}"),
        ("mov", _move, f"b16 b32 b64 pred u8 s8 {_INT} {_FLOATS}"),
        ("cvt", _convert, f"s8 u8 {_INT} {_FLOATS} rni rzi rmi rpi"),
        ("cvta", _address, "to global shared local const param u32 u64"),
        ("popc clz brev bfind", _count_bits, "b32 b64 s32 u32 s64 u64 shiftamt"),
        ("bfe bfi", _bit_field, "b32 b64 s32 u32 s64 u64"),
        ("prmt", lambda m, ins: permute(*(m.read(o, 32) for o in ins.operands[1:4])), "b32"),
        ("lop3", _table, "b32"),
        ("testp", _classify, "finite infinite number notanumber f32 f64"),
    )
    for name in names.split()
}
