"""Integer and predicate instructions of machine code, as far as control flow can depend on them.

Each handler gives the values an instruction writes, in the order of its destinations. Instructions without a handler write
values that are not known; nothing is guessed from them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from transpose_study.sass import Arg, MachineInstruction
from transpose_study.simt import floats
from transpose_study.simt.alu import choose, permute
from transpose_study.simt.bitwise import bitwise, invert, predicates, table3
from transpose_study.simt.values import DATA, LOADED, Affine, Value, concrete, constant, unknown

Writes = list[tuple[Arg, Value, int]]  # destination, value, bits


class SassReader(Protocol):
    """What the handlers need of the machine."""

    affine: Affine

    def read(self, arg: Arg, bits: int = 32) -> Value:
        """A register, constant or immediate; 64 bits read a pair of registers."""
        ...

    def predicate(self, arg: Arg) -> Value:
        """A predicate register, complemented where the operand says so."""
        ...


def is_predicate(arg: Arg) -> bool:
    """Whether an operand is a predicate register."""
    return arg.kind in ("P", "UP")


def destinations(ins: MachineInstruction) -> tuple[Arg, list[Arg], list[Arg]]:
    """The first destination, the predicates written beside it, and the sources."""
    rest = list(ins.args[1:])
    beside = []
    while len(rest) > 2 and is_predicate(rest[0]) and not rest[0].not_:
        beside.append(rest.pop(0))
    return ins.args[0], beside, rest


def _bit(predicate: Value, bits: int = 32) -> Value:
    return choose(predicate, constant(1, bits), constant(0, bits))


def _carry(m: SassReader, total: Value, part: Value) -> Value:
    return m.affine.compare("lt", total, part, signed=False)


def _sum(m: SassReader, parts: list[Value]) -> tuple[Value, Value]:
    """The 32-bit sum of ``parts`` and whether it carried out (at least once)."""
    total, carried = parts[0], Value(np.zeros((1, 1), bool))
    for part in parts[1:]:
        new = m.affine.add(total, part)
        carried = predicates("or", carried, _carry(m, new, part))
        total = new
    return total, carried


def add(m: SassReader, ins: MachineInstruction) -> Writes:
    """IADD3, IADD, VIADD, UIADD3: sums, with carry in (X) and out; .64 on pairs."""
    target, beside, sources = destinations(ins)
    bits = 64 if "64" in ins.modifiers else 32
    inputs = [s for s in sources if is_predicate(s)]
    parts = [m.read(s, bits) for s in sources if not is_predicate(s)]
    if "X" in ins.modifiers:  # a complemented addend of an extended sum brings its carry itself
        parts += [_bit(m.predicate(p), bits) for p in inputs]
    else:
        for source in sources:
            if source.negated and beside:
                return [(target, _sum(m, parts)[0], bits), *((p, unknown(DATA), 0) for p in beside)]
    if not beside:
        total = parts[0]
        for part in parts[1:]:
            total = m.affine.add(total, part)
        return [(target, total, bits)]
    total, carried = _sum(m, parts)
    return [(target, total, bits), (beside[0], carried, 0), *((p, unknown(DATA), 0) for p in beside[1:])]


def multiply_add(m: SassReader, ins: MachineInstruction) -> Writes:
    """IMAD and its forms: a * b + c, wide, high, with carry."""
    target, beside, sources = destinations(ins)
    signed = "U32" not in ins.modifiers
    if "WIDE" in ins.modifiers:
        product = m.affine.multiply_wide(m.read(sources[0]), m.read(sources[1]), signed)
        addend = m.read(sources[2], 64)
        total = m.affine.add(product, addend)
        return [(target, total, 64), *((p, _carry(m, total, addend), 0) for p in beside)]
    if "HI" in ins.modifiers:
        product = m.affine.multiply_wide(m.read(sources[0]), m.read(sources[1]), signed)
        total = m.affine.add(product, m.read(sources[2], 64)) if sources[2].number is not None else product
        high = m.affine.resize(m.affine.shift_right(total, constant(32, 32), signed), 32, False)
        return [(target, high, 32), *((p, unknown(DATA), 0) for p in beside)]
    product = m.affine.multiply(m.read(sources[0]), m.read(sources[1]))
    total = m.affine.add(product, m.read(sources[2]))
    if "X" in ins.modifiers and len(sources) > 3:
        total = m.affine.add(total, _bit(m.predicate(sources[3])))
    return [(target, total, 32), *((p, unknown(DATA), 0) for p in beside)]


def scaled_add(m: SassReader, ins: MachineInstruction) -> Writes:
    """LEA: (a << s) + b; HI takes the high word of {c, a} << s; X adds a carry."""
    target, beside, sources = destinations(ins)
    carry_in = [s for s in sources if is_predicate(s)] if "X" in ins.modifiers else []
    sources = [s for s in sources if not is_predicate(s)]
    affine = m.affine
    a, b = m.read(sources[0]), m.read(sources[1])
    shift = sources[-1].number or 0
    if "HI" in ins.modifiers:
        upper = affine.shift_right(a, constant(31, 32), signed=True) if "SX32" in ins.modifiers else m.read(sources[2])
        part = _funnel(affine, a, upper, constant(shift, 32), left=True, high=True, signed=False)
    else:
        part = affine.shift_left(a, constant(shift, 32))
    total, carried = _sum(m, [part, b, *(_bit(m.predicate(p)) for p in carry_in)])
    return [(target, total, 32), *((p, carried, 0) for p in beside[:1]), *((p, unknown(DATA), 0) for p in beside[1:])]


def _funnel(affine: Affine, low: Value, high_word: Value, by: Value, *, left: bool, high: bool, signed: bool) -> Value:
    """One word of the 64-bit number high_word:low, shifted; the single-word cases stay affine."""
    if not left and high:
        return affine.shift_right(high_word, by, signed)
    if left and not high:
        return affine.shift_left(low, by)
    both = affine.add(affine.resize(low, 64, False), affine.shift_left(affine.resize(high_word, 64, False), constant(32, 32)))
    shifted = affine.shift_left(both, by) if left else affine.shift_right(both, by, signed)
    return affine.resize(affine.shift_right(shifted, constant(32, 32), False) if high else shifted, 32, False)


def shift(m: SassReader, ins: MachineInstruction) -> Writes:
    """SHF and USHF: funnel shifts of c:a."""
    a, by, c = (m.read(s) for s in ins.args[1:4])
    modifiers = ins.modifiers
    if "W" in modifiers:
        by = bitwise(m.affine, "and", by, constant(31, 32))
    left, signed = modifiers[0] == "L", any(x in modifiers for x in ("S32", "S64"))
    high = "HI" in modifiers
    if not left and not high and not any(x in modifiers for x in ("U64", "S64")):
        return [(ins.args[0], m.affine.shift_right(a, by, signed), 32)]
    return [(ins.args[0], _funnel(m.affine, a, c, by, left=left, high=high, signed=signed), 32)]


def compare(m: SassReader, ins: MachineInstruction) -> Writes:
    """ISETP and UISETP: two predicates from a comparison combined with another; EX continues a comparison of low words."""
    modifiers = ins.modifiers
    op = modifiers[0].lower()
    unsigned = "U32" in modifiers or "U64" in modifiers
    bits = 64 if "U64" in modifiers or "S64" in modifiers or "64" in modifiers else 32
    a, b = m.read(ins.args[2], bits), m.read(ins.args[3], bits)
    fixed = Value(np.full((1, 1), op == "t"))
    result = fixed if op in ("t", "f") else m.affine.compare(op, a, b, not unsigned)
    if "EX" in modifiers and op not in ("t", "f"):
        low = m.predicate(ins.args[5])
        same = m.affine.compare("eq", a, b, signed=True)
        if op == "eq":
            result = predicates("and", same, low)
        elif op == "ne":
            result = predicates("or", invert(m.affine, same), low)
        else:
            strict = m.affine.compare({"le": "lt", "ge": "gt"}.get(op, op), a, b, not unsigned)
            result = predicates("or", strict, predicates("and", same, low))
    combine = next(x.lower() for x in modifiers if x in ("AND", "OR", "XOR"))
    third = m.predicate(ins.args[4])
    other = predicates(combine, invert_predicate(result), third)
    return [(ins.args[0], predicates(combine, result, third), 0), (ins.args[1], other, 0)]


def invert_predicate(value: Value) -> Value:
    """The complement of a predicate."""
    return Value(~value.base.astype(bool), None, value.why, value.hints)


def logic(m: SassReader, ins: MachineInstruction) -> Writes:
    """LOP3 and ULOP3: a three-input table, and a predicate that tells whether the result is not 0."""
    args = list(ins.args)
    beside = args.pop(0) if is_predicate(args[0]) else None
    target, a, b, c, table = args[:5]
    value = table3(m.affine, m.read(a), m.read(b), m.read(c), int(table.number or 0))
    writes: Writes = [(target, value, 32)]
    if beside is not None:
        nonzero = m.affine.compare("ne", value, constant(0, 32), signed=True)
        writes.append((beside, predicates("or", nonzero, m.predicate(args[5])) if len(args) > 5 else nonzero, 0))
    return writes


def predicate_logic(m: SassReader, ins: MachineInstruction) -> Writes:
    """PLOP3 and UPLOP3: two tables of three predicates."""
    sources = [m.predicate(s) for s in ins.args[2:5]]
    tables = [int(t.number or 0) for t in ins.args[5:7]]
    return [(ins.args[i], _predicate_table(sources, table), 0) for i, table in enumerate(tables)]


def _predicate_table(sources: list[Value], table: int) -> Value:
    """Sum of products; a term with a known false factor is known."""
    total = Value(np.zeros((1, 1), bool))
    if table == 0xFF:
        return Value(np.ones((1, 1), bool))
    for index in range(8):
        if table >> index & 1:
            factors = [s if index >> (2 - n) & 1 else invert_predicate(s) for n, s in enumerate(sources)]
            total = predicates("or", total, predicates("and", predicates("and", factors[0], factors[1]), factors[2]))
    return total


def select(m: SassReader, ins: MachineInstruction) -> Writes:
    """SEL and USEL."""
    bits = 64 if "64" in ins.modifiers else 32
    return [(ins.args[0], choose(m.predicate(ins.args[3]), m.read(ins.args[1], bits), m.read(ins.args[2], bits)), bits)]


def extremum(m: SassReader, ins: MachineInstruction) -> Writes:
    """IMNMX, VIMNMX and UIMNMX: the smaller where the predicate holds, else the larger."""
    sources = [a for a in ins.args[1:] if not is_predicate(a)]
    if len(sources) != 2:
        return [(ins.args[0], unknown(DATA), 32)]
    a, b = (m.read(s) for s in sources)
    smaller = m.affine.compare("lt", a, b, "U32" not in ins.modifiers)
    pick = m.predicate(next(x for x in ins.args[1:][::-1] if is_predicate(x)))
    return [(ins.args[0], choose(pick, choose(smaller, a, b), choose(smaller, b, a)), 32)]


def absolute(m: SassReader, ins: MachineInstruction) -> Writes:
    """IABS."""
    a = m.read(ins.args[1])
    return [(ins.args[0], choose(m.affine.compare("lt", a, constant(0, 32), True), m.affine.negate(a), a), 32)]


def move(m: SassReader, ins: MachineInstruction) -> Writes:
    """MOV, UMOV, R2UR and the loads from constant bank 0, by width."""
    wide = next((int(x) for x in ins.modifiers if x in ("64", "128")), 32)
    target, source = ins.args[0], ins.args[-1] if ins.opcode == "R2UR" else ins.args[1]
    if wide <= 64:
        return [(target, m.read(source, wide), wide)]
    upper = Arg(source.kind, (source.number or 0) + 8, source.text)
    return [
        (target, m.read(source, 64), 64),
        (Arg(target.kind, None if target.number is None else target.number + 2), m.read(upper, 64), 64),
    ]


def permute_bytes(m: SassReader, ins: MachineInstruction) -> Writes:
    """PRMT in its default mode."""
    if ins.modifiers:
        return [(ins.args[0], unknown(DATA), 32)]
    a, selector, b = (m.read(s) for s in ins.args[1:4])
    return [(ins.args[0], permute(a, b, selector), 32)]


def half_constant(m: SassReader, ins: MachineInstruction) -> Writes:
    """HFMA2 of zeros with two immediates, which compilers use to load a constant; otherwise its result is not known."""
    a, b, high, low = ins.args[1:5] if len(ins.args) == 5 else (ins.args[0],) * 4
    if a.kind == "R" and a.number is None and b.number is None and {high.kind, low.kind} <= {"int", "float"}:
        words = np.array([low.real, high.real], np.float16).view(np.uint16)
        return [(ins.args[0], constant(int(words[1]) << 16 | int(words[0]), 32), 32)]
    return [(ins.args[0], unknown(DATA), 32)]


def pack_predicates(m: SassReader, ins: MachineInstruction) -> Writes:
    """P2R: predicates P0.. as bits of a word where the mask has ones, another word's bits elsewhere."""
    mask = int(ins.args[-1].number or 0)
    word = bitwise(m.affine, "and", m.read(ins.args[2]), constant(~mask, 32))
    kind = "UP" if ins.opcode.startswith("U") else "P"
    for number in range(7):
        if mask >> number & 1:
            bit = choose(m.predicate(Arg(kind, number)), constant(1 << number, 32), constant(0, 32))
            word = bitwise(m.affine, "or", word, bit)
    return [(ins.args[0], word, 32)]


def unpack_predicates(m: SassReader, ins: MachineInstruction) -> Writes:
    """R2P: predicates from the bits of a word."""
    word, mask = m.read(ins.args[1]), int(ins.args[-1].number or 0)
    zero = constant(0, 32)
    out: Writes = []
    for number in range(7):
        if mask >> number & 1:
            bit = bitwise(m.affine, "and", word, constant(1 << number, 32))
            out.append((Arg("P", number), m.affine.compare("ne", bit, zero, True), 0))
    return out


def convert(m: SassReader, ins: MachineInstruction) -> Writes:
    """I2F, I2FP, F2I (also uniform) and MUFU.RCP on 32 bits, which integer division is made of; its correction steps undo their rounding."""
    modifiers, source = ins.modifiers, m.read(ins.args[1])
    if any("64" in x or "16" in x or x in ("U8", "S8") for x in modifiers):
        return [(ins.args[0], unknown(DATA), 64)]
    if ins.opcode == "MUFU":
        known = modifiers == ("RCP",)
        return [(ins.args[0], floats.compute("rcp", "f32", (), source) if known else unknown(DATA), 32)]
    if ins.opcode.removeprefix("U") in ("I2F", "I2FP"):
        kind = "u32" if "U32" in modifiers else "s32"
        value = floats.convert("f32", kind, (), source)
        return [(ins.args[0], _round_up(value, source, kind) if "RP" in modifiers else value, 32)]
    kind = "u32" if "U32" in modifiers else "s32"
    mode = {"FLOOR": "rmi", "CEIL": "rpi", "TRUNC": "rzi"}
    return [(ins.args[0], floats.convert(kind, "f32", tuple(mode[x] for x in modifiers if x in mode) or ("rni",), source), 32)]


def _round_up(value: Value, source: Value, kind: str) -> Value:
    def run(bits: np.ndarray, number: np.ndarray) -> np.ndarray:
        exact = (number.view(np.uint32) if kind == "u32" else number).astype(np.float64)
        rounded = bits.view(np.float32)
        return np.where(rounded < exact, np.nextafter(rounded, np.float32(np.inf)), rounded).astype(np.float32).view(np.int32)

    return LOADED if value is LOADED or source is LOADED else concrete(run, value, source)


HANDLERS: dict[str, Callable[[SassReader, MachineInstruction], Writes]] = {
    **dict.fromkeys(("IADD3", "IADD", "VIADD", "UIADD3", "UIADD", "UVIADD"), add),
    **dict.fromkeys(("IMAD", "UIMAD"), multiply_add),
    **dict.fromkeys(("LEA", "ULEA"), scaled_add),
    **dict.fromkeys(("SHF", "USHF"), shift),
    **dict.fromkeys(("ISETP", "UISETP"), compare),
    **dict.fromkeys(("LOP3", "ULOP3"), logic),
    **dict.fromkeys(("PLOP3", "UPLOP3"), predicate_logic),
    **dict.fromkeys(("SEL", "USEL"), select),
    **dict.fromkeys(("IMNMX", "VIMNMX", "UIMNMX", "UVIMNMX"), extremum),
    **dict.fromkeys(("MOV", "UMOV", "R2UR", "LDC", "ULDC", "LDCU"), move),
    **dict.fromkeys(("P2R", "UP2R"), pack_predicates),
    **dict.fromkeys(("I2F", "I2FP", "F2I", "UI2F", "UI2FP", "UF2I", "MUFU"), convert),
    "R2P": unpack_predicates,
    "IABS": absolute,
    "PRMT": permute_bytes,
    "HFMA2": half_constant,
}
