"""Memory instructions of PTX: loads, stores, atomics, and the reductions of barriers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from transpose_study.errors import StudyError
from transpose_study.simt.floats import FLOAT, compute
from transpose_study.simt.memory import LOCAL_WINDOW, SHARED_WINDOW, Access, Buffer, Storage
from transpose_study.simt.ptx import TYPE_BYTES, Imm, Instruction, Mem, Operand, Sym, Vec, words
from transpose_study.simt.values import DATA, LOADED, OPAQUE, UNTRACKED, Value, constant, unknown

if TYPE_CHECKING:
    from transpose_study.simt.machine import Machine

_TYPES = "b8 u8 s8 b16 u16 s16 b32 u32 s32 b64 u64 s64 f16 f32 f64"
_HINTS = (
    "nc volatile relaxed acquire release weak sys gpu cta ca cg cs lu cv wb wt "
    "L1__no_allocate L1__evict_first L1__evict_last L2__64B L2__128B L2__256B"
)
_SPACES = "global shared local param const shared__cta"
MODIFIERS: dict[str, frozenset[str]] = {
    "ld": words(f"{_TYPES} {_HINTS} {_SPACES} v2 v4"),
    "ldu": words(f"{_TYPES} global v2 v4"),
    "st": words(f"{_TYPES} {_HINTS} {_SPACES} v2 v4"),
    "atom": words(f"{_TYPES} {_HINTS} global shared add min max and or xor exch cas inc dec acq_rel noftz"),
    "red": words(f"{_TYPES} {_HINTS} global shared add min max and or xor inc dec noftz"),
    "membar": words("cta gl sys"),
    "fence": words("cta gpu sys acq_rel sc"),
    "prefetch": words("global local L1 L2"),
    "nanosleep": frozenset(["u32"]),
}
_REDUCTIONS: dict[str, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def execute(m: Machine, ins: Instruction, mask: np.ndarray, full: bool) -> None:
    """Execute one memory instruction for the lanes of ``mask`` (at least one)."""
    if ins.opcode in ("membar", "fence", "prefetch", "nanosleep"):
        return
    operand = next(o for o in ins.operands if isinstance(o, Mem))
    space = next((s.removesuffix("__cta") for s in ins.modifiers if s in words(_SPACES)), "generic")
    if space == "param":
        m.write(ins.operands[0], _parameter(m, ins, operand), mask, full, ins, signed=_signed(ins))
        return
    kind = next(t for t in reversed(ins.modifiers) if t in TYPE_BYTES)
    bits, count = 8 * TYPE_BYTES[kind], next((int(v[1]) for v in ins.modifiers if v in ("v2", "v4")), 1)
    address = _address(m, operand, 32 if space in ("shared", "local") else 64)
    m.known(address, mask, ins)
    mask = mask & m.lock.alive
    if not mask.any():
        return
    base = np.broadcast_to(address.base.astype(np.int64), mask.shape)
    k: Any = None if address.k is None else tuple(None if c is None else c.astype(np.int64) for c in address.k)
    if space == "generic":
        space, base = _resolve(m, ins, base, k, mask)
    if space == "const":
        space = "global"
    action = {"ld": "load", "ldu": "load", "st": "store"}.get(ins.opcode, "atomic")
    access = Access(space, action, bits // 8 * count, base, k, mask, ins.line, m.batch)
    _check(m, ins, access)
    for observer in m.observers:
        observer.access(access, m)
    mask = mask & m.lock.alive  # an observer may have split boxes
    if mask.any():
        _perform(m, ins, Access(space, action, access.width, base, k, mask, ins.line, m.batch), kind=kind, count=count, full=full)


def _signed(ins: Instruction) -> bool:
    return ins.modifiers[-1][0] == "s"


def _parameter(m: Machine, ins: Instruction, operand: Mem) -> Value:
    if not isinstance(operand.base, Sym) or ins.opcode != "ld":
        raise StudyError(f"parameter access {ins.text!r} is not supported", where=m.kernel.where(ins))
    names = [p.name for p in m.kernel.parameters]
    argument = m.launch.arguments[names.index(operand.base.name)]
    kind = next(t for t in reversed(ins.modifiers) if t in TYPE_BYTES)
    number = argument.address if isinstance(argument, Buffer) else argument
    return constant(number >> 8 * operand.offset, 8 * TYPE_BYTES[kind])


def _address(m: Machine, operand: Mem, bits: int) -> Value:
    if isinstance(operand.base, Imm):
        return constant(operand.base.value + operand.offset, bits)
    base = m.read(operand.base, bits)
    return m.affine.add(base, constant(operand.offset, bits)) if operand.offset else base


def _resolve(m: Machine, ins: Instruction, base: np.ndarray, k: Any, mask: np.ndarray) -> tuple[str, np.ndarray]:
    """The space of generic addresses, from their windows."""
    for space, window in (("local", LOCAL_WINDOW), ("shared", SHARED_WINDOW)):
        inside = (base >= window) & mask
        if inside.any():
            if (inside != mask).any():
                raise StudyError(f"generic addresses of several spaces in {ins.text!r} are not supported", where=m.kernel.where(ins))
            return space, base - window
    return "global", base


def _check(m: Machine, ins: Instruction, access: Access) -> None:
    """Every byte of every lane must lie in a buffer, the block's shared memory or the thread's local memory, aligned."""
    low, high = m.affine.bounds(access.address, access.k)
    end = high + access.width
    bad: Any
    if access.space == "global":
        bad = m.memory.outside(low, end, access.mask)
        if bad.any():
            row, lane = (int(i) for i in np.argwhere(bad)[0])
            too_low = not m.memory.outside(high, end, bad)[row, lane]
            place = int(np.broadcast_to(low if too_low else high, bad.shape)[row, lane])
            what = f"out-of-bounds global {access.kind} of {access.width} bytes, {m.memory.nearest(place)}: {ins.text!r}"
            m.violation(what, ins.line, bad, access.address, k=access.k, last=not too_low)
    else:
        size = m.program.local_bytes if access.space == "local" else m.program.shared_bytes + m.launch.dynamic_shared
        bad = access.mask & ((low < 0) | (end > size))
        if bad.any():
            row, lane = (int(i) for i in np.argwhere(bad)[0])
            over = bool(np.broadcast_to(end > size, bad.shape)[row, lane])
            what = f"out-of-bounds {access.space} {access.kind} of {access.width} bytes, the array has {size} bytes: {ins.text!r}"
            m.violation(what, ins.line, bad, access.address, k=access.k, last=over)
        if access.mask.any() and ins.opcode in ("st", "atom", "red") and access.space == "global":
            return
    odd = access.address % access.width
    for coefficient in access.k or ():
        if coefficient is not None:
            odd = odd | coefficient % access.width
    if (odd * access.mask).any():
        what = f"misaligned {access.space} {access.kind} of {access.width} bytes: {ins.text!r}"
        m.violation(what, ins.line, access.mask & (odd != 0), access.address)


def _perform(m: Machine, ins: Instruction, access: Access, *, kind: str, count: int, full: bool) -> None:
    bits = 8 * TYPE_BYTES[kind]
    storage = m.shared if access.space == "shared" else m.local
    row = _rows(m, access)
    if access.kind == "atomic":
        _atomic(m, ins, access, kind=kind, storage=storage, row=row, full=full)
        return
    register: Operand = ins.operands[0] if access.kind == "load" else ins.operands[1]
    items = register.items if isinstance(register, Vec) else (register,)
    for number in range(count):
        address = access.address + number * (bits // 8)
        if access.kind == "store":
            value = m.read(items[number], bits)
            if access.space == "global":
                if any(b.data is not None for b in m.memory.buffers):
                    m.memory.store(address, access.mask, value)
            elif storage is not None:
                if value.k is not None:
                    value = unknown(OPAQUE, bits)
                storage.store(row, address, access.mask, m.affine.resize(value, bits, False) if value is not LOADED else unknown(DATA, bits))
        else:
            m.write(items[number], _load(m, access, address, bits, storage=storage, row=row), access.mask, full, ins, signed=kind[0] == "s")


def _rows(m: Machine, access: Access) -> np.ndarray:
    if access.space == "shared":
        return np.repeat(np.arange(len(m.batch.boxes)), m.batch.warps_per_block)[:, None]
    return np.arange(m.batch.warps * 32).reshape(-1, 32)


def _load(m: Machine, access: Access, address: np.ndarray, bits: int, *, storage: Storage | None, row: np.ndarray) -> Value:
    if access.space == "global":
        if m.memory.no_contents(address, access.mask):
            return LOADED
        return unknown(OPAQUE, bits) if access.k is not None else m.memory.load(address, access.mask, bits)
    if storage is None:
        return unknown(UNTRACKED, bits)
    return unknown(OPAQUE, bits) if access.k is not None else storage.load(row, address, access.mask, bits)


def _atomic(m: Machine, ins: Instruction, access: Access, *, kind: str, storage: Storage | None, row: np.ndarray, full: bool) -> None:
    """Lanes one after the other, as an order the hardware might choose; exact where memory has contents."""
    returns = ins.opcode == "atom"
    bits = 8 * TYPE_BYTES[kind]
    tracked = storage is not None if access.space == "shared" else any(b.data is not None for b in m.memory.buffers)
    if not tracked or access.k is not None:
        if returns:
            m.write(ins.operands[0], unknown(UNTRACKED if access.space == "shared" else DATA, bits), access.mask, full, ins)
        return
    values = [m.read(o, bits) for o in ins.operands[(2 if returns else 1) :]]
    op = next(o for o in ins.modifiers if o in ("exch", "cas", "inc", "dec", *_REDUCTIONS))
    old = np.zeros(access.mask.shape, values[0].base.dtype if values[0] is not LOADED else np.int64)
    result = Value(old, None, None)
    for lane in range(32):
        for warp in np.flatnonzero(access.mask[:, lane]):
            one = np.zeros_like(access.mask)
            one[warp, lane] = True
            here = storage.load(row, access.address, one, bits) if access.space == "shared" and storage else m.memory.load(access.address, one, bits)
            new = _combine(op, kind, here, values)
            old[one] = np.broadcast_to(here.base, one.shape)[one]
            if here.why is not None and np.broadcast_to(here.why, one.shape)[one].any():
                result.why = np.full((1, 1), DATA, np.uint8)
            if access.space == "shared" and storage:
                storage.store(row, access.address, one, new)
            else:
                m.memory.store(access.address, one, new)
    if returns:
        m.write(ins.operands[0], result, access.mask, full, ins)


def _combine(op: str, kind: str, old: Value, values: list[Value]) -> Value:
    if any(v.k is not None or v.why is not None for v in values):
        return unknown(DATA, 8 * TYPE_BYTES[kind])
    a, b = old.base, values[0].base
    if op == "exch":
        return values[0]
    if op == "cas":
        return Value(np.where(a == b, values[1].base, a), None, old.why)
    if kind in FLOAT:
        return compute(op, kind, (), old, values[0])
    unsigned = kind[0] != "s"
    if unsigned:
        a, b = a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}")
    if op == "inc":
        out = np.where(a >= b, 0, a + 1).astype(a.dtype)
    elif op == "dec":
        out = np.where((a == 0) | (a > b), b, a - 1).astype(a.dtype)
    else:
        out = _REDUCTIONS[op](a, b)
    return Value(out.view(f"i{out.itemsize}"), None, old.why)


def barrier_reduction(m: Machine, ins: Instruction, lanes: np.ndarray) -> Value:
    """bar.red: popc, and, or of a predicate over the threads of each block."""
    predicate = m.known(m.read(ins.operands[-1], 0), lanes, ins)
    holds = np.broadcast_to(predicate.base.astype(bool), lanes.shape) & lanes
    blocks = holds.reshape(len(m.batch.boxes), -1)
    everyone = lanes.reshape(len(m.batch.boxes), -1)
    if "popc" in ins.modifiers:
        out: np.ndarray = blocks.sum(1).astype(np.int32)
    else:
        out = blocks.any(1) if "or" in ins.modifiers else (blocks == everyone).all(1)
    return Value(np.repeat(out, m.batch.warps_per_block)[:, None])
