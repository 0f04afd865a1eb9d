"""Executes machine code as far as its control flow goes, and counts the warp instructions that are issued.

A warp instruction counts once when any lane of the warp is active, whatever its guard predicate says: that is what
``smsp__inst_executed`` counts. Data are not computed; if control flow depends on them, :class:`~.machine.DataDependent`
says so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from transpose_study.errors import StudyError
from transpose_study.sass import INSTRUCTION_BYTES, Arg, MachineCode, MachineInstruction
from transpose_study.simt.boxes import Batch, Box, Pending, split, whole_grid
from transpose_study.simt.lockstep import Lockstep, within_limit
from transpose_study.simt.machine import DataDependent, Launch
from transpose_study.simt.memory import Buffer
from transpose_study.simt.ptx import words
from transpose_study.simt.sassalu import HANDLERS, destinations, invert_predicate, is_predicate
from transpose_study.simt.special import special_register
from transpose_study.simt.values import DATA, OPAQUE, Hints, Value, constant, merge, unknown

_CONTROL = words("BRA EXIT BSSY BSYNC BREAK BAR CALL RET BRX JMP JMX")
_SILENT = words(  # write no register, or none that control flow could use
    "NOP STG STS STL ST RED REDG REDS MEMBAR ERRBAR CCTL CCTLL FENCE DEPBAR LDGDEPBAR LDGSTS YIELD NANOSLEEP WARPSYNC BMOV "
    "PREFETCH UCGABAR_ARV UCGABAR_WAIT"
)
_MEMORY = words("LDG STG LDS STS LD ST LDL STL ATOM ATOMG ATOMS RED REDG")


@dataclass
class Issued:
    """Warp instructions issued over a grid: by opcode, and how many of the memory instructions had an active lane.

    ``threads``: the active lanes of each, summed, whatever their guards say: what ``smsp__thread_inst_executed`` counts.
    """

    total: int = 0
    threads: int = 0
    by_opcode: Counter[str] = field(default_factory=Counter)
    effective: Counter[str] = field(default_factory=Counter)
    warps: int = 0


class SassMachine:
    """One batch of boxes; boxes that do not behave alike go into ``split`` and stop."""

    def __init__(self, code: MachineCode, launch: Launch, batch: Batch, constants: dict[int, int]) -> None:
        self.code, self.launch, self.batch, self.bank = code, launch, batch, constants
        self.affine = batch.affine
        self.registers: dict[tuple[str, int], Value] = {}
        self.pairs: dict[tuple[str, int], tuple[Value, Value, Value]] = {}
        self.lock = Lockstep(batch.mask.copy(), batch.warps_per_block)
        self.split: list[Box] = []
        self.killed = np.zeros(len(batch.boxes), bool)
        self.issued = np.zeros((len(code.instructions), len(batch.boxes)), np.int64)
        self.effective = np.zeros_like(self.issued)
        self.threads = np.zeros(len(batch.boxes), np.int64)
        self.unmodelled: set[str] = set()
        self.full = True
        starts = set(code.labels.values()) | {0}
        starts |= {i + 1 for i, ins in enumerate(code.instructions) if ins.opcode in _CONTROL}
        self.leaders = frozenset(starts)

    # -- running ------------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run until every lane has left the kernel."""
        instructions, executed = self.code.instructions, 0
        self.lock.go(0, self.batch.mask.copy())
        while (fragment := self.lock.next()) is not None:
            index, mask = fragment
            self.full = self.lock.alone
            start = index
            boxes = self._boxes(mask)
            while True:
                if index >= len(instructions):
                    raise StudyError("control flow leaves the kernel", where=self.code.name)
                ins = instructions[index]
                if ins.opcode in _CONTROL:
                    self.issued[start : index + 1] += boxes
                    self._control(index, ins, mask)
                    break
                self._execute(index, ins, mask)
                index += 1
                if index in self.leaders:
                    self.issued[start:index] += boxes
                    self.lock.go(index, mask & self.lock.alive)
                    break
            count = index - start + (ins.opcode in _CONTROL)
            self.threads += mask.sum(1).reshape(len(self.batch.boxes), -1).sum(1) * count
            executed = within_limit(executed, index - start + 1, self.code.name)
        if self.lock.faults or self.lock.alive.any():
            raise StudyError("its warps wait for one another for ever", where=f"{self.code.source}, kernel {self.code.name}")

    def _boxes(self, mask: np.ndarray) -> np.ndarray:
        """Warps with an active lane, for each box."""
        return mask.any(1).reshape(len(self.batch.boxes), -1).sum(1)

    def _execute(self, index: int, ins: MachineInstruction, mask: np.ndarray) -> None:
        full, guard = self.full, None
        if ins.guard is not None:
            guard = self.predicate(ins.guard)
            full = False
        if ins.opcode in _MEMORY:
            active = mask if guard is None else mask & np.broadcast_to(self._known(guard, mask, ins), mask.shape) & self.lock.alive
            self.effective[index] += self._boxes(active)
        if ins.opcode in _SILENT or not ins.args:
            return
        uniform = ins.args[0].kind in ("UR", "UP")
        lanes = np.broadcast_to(mask.any(1)[:, None], mask.shape) if uniform and not full else mask
        for target, value, bits in self._values(ins):
            self._write(target, value, bits, lanes, full=full, guard=guard)

    def _values(self, ins: MachineInstruction) -> list[tuple[Arg, Value, int]]:
        if ins.opcode in ("S2R", "S2UR", "CS2R"):
            return [(ins.args[0], self._special(ins.args[1].text), 64 if ins.opcode == "CS2R" and "32" not in ins.modifiers else 32)]
        if ins.opcode in HANDLERS:
            return HANDLERS[ins.opcode](self, ins)
        if ins.opcode in ("VOTE", "VOTEU") and ins.args[-1].number is None and not ins.args[-1].not_:
            return [(a, unknown(DATA), 32 * (not is_predicate(a))) for a in ins.args[:2]]
        if not ins.opcode.startswith("LD"):
            self.unmodelled.add(ins.opcode)
        width = 4 if "128" in ins.modifiers else 2 if "64" in ins.modifiers or ins.opcode[0] == "D" or any("64" in x for x in ins.modifiers) else 1
        target, beside, _ = destinations(ins)
        out = [(p, unknown(DATA), 0) for p in beside]
        if is_predicate(target):
            second = [(ins.args[1], unknown(DATA), 32 * (not is_predicate(ins.args[1])))] if len(ins.args) > 1 else []
            return [(target, unknown(DATA), 0), *second, *out]
        if target.number is None:
            return out
        return [*((Arg(target.kind, target.number + n), unknown(DATA), 32) for n in range(width)), *out]

    def _special(self, name: str) -> Value:
        if name == "SRZ":
            return constant(0, 64)
        simple = {"SR_LANEID": "%laneid", "SR_CgaCtaId": "%cluster_ctarank", "SR_EQMASK": "%lanemask_eq", "SR_LTMASK": "%lanemask_lt",
                  "SR_LEMASK": "%lanemask_le", "SR_GTMASK": "%lanemask_gt", "SR_GEMASK": "%lanemask_ge"}  # fmt: skip
        register = simple.get(name, "%" + name.removeprefix("SR_").lower())
        value = special_register(register, self.batch, self.launch)
        return unknown(DATA, 32) if value is None else value

    # -- control ------------------------------------------------------------------------------------------------------------

    def _control(self, index: int, ins: MachineInstruction, mask: np.ndarray) -> None:
        taken = mask
        conditions = [ins.guard] if ins.guard is not None else []
        if ins.opcode == "BRA" and "DIV" not in ins.modifiers:
            conditions += [a for a in ins.args if is_predicate(a)]
        for condition in conditions:
            known = np.broadcast_to(self._known(self.predicate(condition), taken, ins), mask.shape)
            taken = taken & known
        mask = mask & self.lock.alive
        taken = taken & self.lock.alive
        rest = mask & ~taken
        if ins.opcode == "EXIT":
            self.lock.leave(taken)
        elif ins.opcode == "BRA":
            if "DIV" in ins.modifiers:  # taken by warps whose lanes are not together
                together = (mask == self.lock.alive).all(1)[:, None]
                taken, rest = taken & ~together, rest | (taken & together)
            self.lock.go(self._label(ins), taken)
        elif ins.opcode == "BSSY":
            self._bind(ins, taken)
            rest = mask
        elif ins.opcode == "BSYNC":
            for key in [k for k in self.lock.joins if isinstance(k, tuple) and k[0] == ins.args[0].number]:
                taken = self.lock.arrive(key, taken)
            rest = rest | taken
        elif ins.opcode == "BREAK":
            for key, join in self.lock.joins.items():
                if isinstance(key, tuple) and key[0] == ins.args[-1].number:
                    join.expected = join.expected & ~taken
            rest = mask
        elif ins.opcode == "BAR":
            self._barrier(index, ins, taken)
        elif ins.opcode == "CALL":
            self.lock.go(self._label(ins), taken)
        elif ins.opcode == "RET":
            address = self._known(self.read(ins.args[0]), taken, ins)
            for place in np.unique(np.broadcast_to(address, mask.shape)[taken]):
                self.lock.go(int(place) // INSTRUCTION_BYTES, taken & (address == place))
        else:
            raise StudyError(f"control flow of {ins.text!r} is not understood", where=self.code.where(ins))
        self.lock.go(index + 1, rest)

    def _bind(self, ins: MachineInstruction, mask: np.ndarray) -> None:
        number, target = ins.args[0].number, self._label(ins)
        rows = mask.any(1)[:, None]
        for key, join in list(self.lock.joins.items()):
            if isinstance(key, tuple) and key[0] == number and (join.expected & rows).any():
                join.expected = join.expected & ~rows
                if not join.expected.any():
                    del self.lock.joins[key]
        self.lock.expect((number, target), target, mask)

    def _barrier(self, index: int, ins: MachineInstruction, mask: np.ndarray) -> None:
        if "ARV" in ins.modifiers or not all(a.kind in ("int", "P") for a in ins.args):
            raise StudyError(f"barrier {ins.text!r} is not understood", where=self.code.where(ins))
        numbers = [int(a.number or 0) for a in ins.args if a.kind == "int"]
        if mask.any():
            self.lock.wait(index, index + 1, mask, number=numbers[0] if numbers else 0, threads=numbers[1] if len(numbers) > 1 else 0)

    def _label(self, ins: MachineInstruction) -> int:
        name = next(a.text for a in ins.args if a.kind == "label")
        if name not in self.code.labels:
            raise StudyError(f"the target of {ins.text!r} is not in this kernel", where=self.code.where(ins))
        return self.code.labels[name]

    # -- registers ------------------------------------------------------------------------------------------------------------

    def read(self, arg: Arg, bits: int = 32) -> Value:
        """See :class:`~.sassalu.SassReader`."""
        if arg.kind in ("R", "UR"):
            value = constant(0, bits) if arg.number is None else self._pair(arg) if bits == 64 else self._word(arg.kind, arg.number)
        elif arg.kind == "int":
            value = constant(int(arg.number or 0), bits)
        elif arg.kind == "const" and arg.number is not None:
            words = [self.bank.get(arg.number + 4 * i) for i in range(bits // 32)]
            known = all(w is not None for w in words)
            value = constant(sum((w or 0) << 32 * i for i, w in enumerate(words)), bits) if known else unknown(DATA, bits)
        elif arg.kind == "float":
            value = constant(int(np.array([arg.real], np.float32).view(np.uint32)[0]), bits)
        else:
            return unknown(DATA, bits)
        if arg.absolute:
            return unknown(DATA, bits)
        if arg.negated:
            value = self.affine.negate(value)
        if arg.not_:
            value = self.affine.subtract(constant(-1, bits), value)
        return value

    def predicate(self, arg: Arg) -> Value:
        """See :class:`~.sassalu.SassReader`."""
        true = Value(np.ones((1, 1), bool))
        value = true if arg.number is None else self.registers.get((arg.kind, arg.number), unknown(DATA, 8))
        return invert_predicate(value) if arg.not_ else value

    def _word(self, kind: str, number: int) -> Value:
        return self.registers.get((kind, number), unknown(DATA, 32))

    def _pair(self, arg: Arg) -> Value:
        number = arg.number or 0
        low, high = self._word(arg.kind, number), self._word(arg.kind, number + 1)
        linked = self.pairs.get((arg.kind, number))
        if linked is not None and linked[1] is low and linked[2] is high:
            return linked[0]
        upper = self.affine.shift_left(self.affine.resize(high, 64, False), constant(32, 32))
        return self.affine.add(self.affine.resize(low, 64, False), upper)

    def _write(self, target: Arg, value: Value, bits: int, mask: np.ndarray, *, full: bool, guard: Value | None) -> None:
        if target.number is None:
            return
        if bits == 64:
            if value.bits != 64:
                value = unknown(DATA, 64)
            low = self.affine.resize(value, 32, False)
            high = self.affine.resize(self.affine.shift_right(value, constant(32, 32), signed=True), 32, False)
            self._write(target, low, 32, mask, full=full, guard=guard)
            self._write(Arg(target.kind, target.number + 1), high, 32, mask, full=full, guard=guard)
            stored = self._word(target.kind, target.number), self._word(target.kind, target.number + 1)
            if stored[0] is low and stored[1] is high:
                self.pairs[(target.kind, target.number)] = (value, low, high)
            return
        if bits == 32 and value.bits != 32:
            value = self.affine.resize(value, 32, False)
        key = (target.kind, target.number)
        old = self.registers.get(key)
        if guard is not None:
            value = self._guarded(mask, guard, value, old)
        elif not full and old is not None:
            value = merge(mask, value, old)
        self.registers[key] = value

    def _guarded(self, mask: np.ndarray, guard: Value, value: Value, old: Value | None) -> Value:
        """The result of a predicated write: where the guard is not known, neither is the register."""
        base = guard.base.astype(bool)
        if old is None and guard.why is None:
            return value
        out = merge(mask & base, value, unknown(DATA, 32) if old is None else old)
        if guard.why is not None:
            why = np.where(mask, guard.why, 0).astype(np.uint8)
            out.why = why if out.why is None else np.maximum(out.why, why)
            out.hints = guard.hints or out.hints
        return out

    def _known(self, value: Value, mask: np.ndarray, ins: MachineInstruction) -> np.ndarray:
        """The value's bits, known in the lanes of ``mask`` that are alive afterwards."""
        if value.why is not None:
            why = np.where(mask & self.lock.alive, value.why, 0)
            if why.max() >= DATA:
                seen = f", or on {', '.join(sorted(self.unmodelled))}, which are not interpreted" if self.unmodelled else ""
                raise DataDependent(f"control flow depends on loaded data{seen}: {ins.text!r}", where=self.code.where(ins))
            if why.max() == OPAQUE:
                self._divide(why == OPAQUE, value.hints)
        return value.base

    def _divide(self, lanes: np.ndarray, hints: Hints) -> None:
        boxes = lanes.reshape(len(self.batch.boxes), -1)
        for number in np.flatnonzero(boxes.any(1)):
            row, lane = divmod(int(boxes[number].argmax()), 32)
            if self.batch.boxes[number].blocks == 1:
                raise StudyError("an operation could not be computed for a single block", where=f"kernel {self.code.name}")
            self.split += split(self.batch.boxes[number], hints, int(number) * self.batch.warps_per_block + row, lane)
            self.killed[number] = True
        dead = np.repeat(boxes.any(1), self.batch.warps_per_block)[:, None]
        self.lock.leave(np.broadcast_to(dead, lanes.shape))


def constant_bank(launch: Launch, sizes: list[int], base: int, architecture: int) -> dict[int, int]:
    """32-bit words of c[0x0] by byte offset: block and grid dimensions, and the parameters from ``base`` on.

    Up to compute capability 9.x the dimensions lie at 0x0 and 0xc, from 10.0 on 0x20 and 0x10 bytes below the parameters (as
    the code that nvcc makes for blockDim and gridDim shows).
    """
    words: dict[int, int] = {}
    block_at, grid_at = (0x0, 0xC) if architecture < 100 else (base - 0x20, base - 0x10)
    for axis in range(3):
        words[block_at + 4 * axis], words[grid_at + 4 * axis] = launch.block[axis], launch.grid[axis]
    offset = base
    for argument, size in zip(launch.arguments, sizes, strict=True):
        number = argument.address if isinstance(argument, Buffer) else argument
        offset = -(-offset // size) * size
        for word in range(max(1, size // 4)):
            words[offset + 4 * word] = number >> 32 * word & 0xFFFFFFFF
        offset += size
    return words


def count_instructions(code: MachineCode, launch: Launch, sizes: list[int], base: int, each_block: bool = False) -> Issued:
    """Warp instructions of a launch. ``sizes`` are the parameters' bytes, ``base`` where they begin in c[0x0]."""
    bank = constant_bank(launch, sizes, base, code.architecture)
    whole = whole_grid(launch.grid)
    pending = Pending(whole.singles() if each_block else [whole], launch.block)
    result = Issued()
    while pending:
        batch = Batch(pending.take(), launch.block)
        machine = SassMachine(code, launch, batch, bank)
        machine.run()
        pending.add(machine.split)
        weight = batch.volume * ~machine.killed
        issued, effective = machine.issued @ weight, machine.effective @ weight
        for ins, count, active in zip(code.instructions, issued, effective, strict=True):
            if count:
                result.by_opcode[ins.opcode] += int(count)
            if ins.opcode in _MEMORY:
                result.effective[ins.opcode] += int(active)
        result.threads += int(machine.threads @ weight)
        result.warps += int(batch.warps_per_block * weight.sum())
    result.total = sum(result.by_opcode.values())
    return result
