"""The SIMT machine: executes a PTX kernel for a batch of boxes of blocks, and reports every memory access and barrier.

It counts nothing. Observers get one :class:`~.memory.Access` for each memory instruction with the addresses of all lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np

from transpose_study.errors import StudyError
from transpose_study.simt import alu, loadstore, warp
from transpose_study.simt.boxes import Batch, Box, split
from transpose_study.simt.flow import Flow, analyse, targets
from transpose_study.simt.lockstep import Lockstep, within_limit
from transpose_study.simt.memory import Access, Buffer, GlobalMemory, Storage, Violation
from transpose_study.simt.ptx import Imm, Instruction, Kernel, Operand, Pair, Reg, Sym, Vec, words
from transpose_study.simt.special import special_register
from transpose_study.simt.values import DATA, OPAQUE, UNTRACKED, Coefficients, Hints, Value, constant, map_k, merge, unknown


class DataDependent(StudyError):
    """Control flow or an address depends on loaded data, so that nothing can be said without the data."""


class NeedsShared(Exception):
    """Control flow or an address depends on what the kernel put into shared or local memory: its contents must be tracked."""


class Observer(Protocol):
    """What is told about an execution."""

    def access(self, access: Access, machine: Machine) -> None:
        """One memory instruction."""
        ...

    def barrier(self, line: int, mask: np.ndarray, machine: Machine) -> None:
        """One barrier instruction, executed by the lanes of ``mask``."""
        ...


@dataclass(frozen=True)
class Launch:
    """Grid, block, arguments in parameter order (integers, or buffers for pointers) and dynamic shared memory in bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[int | Buffer, ...]
    dynamic_shared: int = 0


class Program:
    """A kernel made ready to run: modifiers checked, control flow analysed, arrays laid out."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        for ins in kernel.instructions:
            known = alu.TABLE[ins.opcode][1] if ins.opcode in alu.TABLE else _OTHER.get(ins.opcode)
            if known is None or not set(ins.modifiers) <= known:
                raise StudyError(f"unknown instruction {ins.text!r}", where=kernel.where(ins))
        self.flow: Flow = analyse(kernel)
        self.offsets: dict[str, int] = {}
        sizes = {"shared": 0, "local": 0}
        for array in sorted(kernel.arrays.values(), key=lambda a: a.size == 0):  # extern arrays lie behind the others
            if array.space in sizes:
                start = -(-sizes[array.space] // array.align) * array.align
                self.offsets[array.name] = start
                sizes[array.space] = start + array.size
        self.shared_bytes, self.local_bytes = sizes["shared"], sizes["local"]


class Machine:
    """Executes ``program`` for a batch. Boxes that do not behave alike are put into ``split`` and stop."""

    def __init__(self, program: Program, launch: Launch, batch: Batch, memory: GlobalMemory, *, observers: Sequence[Observer], tracked: bool) -> None:
        self.program, self.kernel, self.launch, self.batch = program, program.kernel, launch, batch
        if len(launch.arguments) != len(self.kernel.parameters):
            raise StudyError(f"takes {len(self.kernel.parameters)} parameters, {len(launch.arguments)} are given", where=f"kernel {self.kernel.name}")
        self.affine, self.memory, self.observers, self.tracked = batch.affine, memory, observers, tracked
        self.registers: dict[str, Value] = {}
        self.constants: dict[tuple[int, int], Value] = {}
        self.carry = constant(0, 8)
        self.lock = Lockstep(batch.mask.copy(), batch.warps_per_block)
        self.split: list[Box] = []
        self.killed = np.zeros(len(batch.boxes), bool)
        self.shared = Storage(len(batch.boxes), program.shared_bytes + launch.dynamic_shared) if tracked else None
        self.local = Storage(batch.warps * 32, program.local_bytes) if tracked else None
        self.full = True

    # -- running ----------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run until every lane has left. Raises :class:`Violation`, :class:`DataDependent`, :class:`NeedsShared` or :class:`Endless`."""
        code, leaders, executed = self.kernel.instructions, self.program.flow.leaders, 0
        self.lock.go(0, self.batch.mask.copy())
        while (fragment := self.lock.next()) is not None:
            index, mask = fragment
            if index in self.lock.joins:
                others = self.lock.arrive(index, mask)
                if others is not mask:
                    self.lock.go(index, others)
                    continue
            self.full = self.lock.alone
            start = index
            while True:
                if index >= len(code):
                    self.lock.leave(mask)
                    break
                ins = code[index]
                if ins.opcode in _CONTROL:
                    self._control(index, ins, mask)
                    break
                self._execute(ins, mask)
                if self.split:
                    mask = mask & self.lock.alive
                index += 1
                if index in leaders:
                    self.lock.go(index, mask)
                    break
            executed = within_limit(executed, index - start + 1, self.kernel.name)
            if self.lock.faults:
                self._barrier_fault()
        if self.lock.faults:
            self._barrier_fault()
        if self.lock.alive.any():
            raise StudyError("its warps wait for one another for ever", where=f"kernel {self.kernel.name}")

    def _execute(self, ins: Instruction, mask: np.ndarray) -> None:
        full = self.full
        if ins.guard:
            guard = self.guard(ins, mask)
            active = mask & guard & self.lock.alive
            full = full and bool(guard.all())
        else:
            active = mask
        if ins.opcode in alu.TABLE:
            result = alu.TABLE[ins.opcode][0](self, ins)
            self.write(ins.operands[0], result, active, full, ins)
        elif ins.opcode in loadstore.MODIFIERS:
            if active.any():
                loadstore.execute(self, ins, active, full)
        elif ins.opcode in warp.MODIFIERS:
            self.write(ins.operands[0], self._exchange(ins, active), active, full, ins)

    def _exchange(self, ins: Instruction, mask: np.ndarray) -> Value | tuple[Value, ...]:
        if ins.opcode == "activemask":
            return warp.active(mask)
        if ins.opcode == "shfl":
            return warp.shuffle(ins, *(self.read(o, 32) for o in ins.operands[1:4]), mask)
        if ins.opcode == "vote":
            return warp.vote(ins, self.read(ins.operands[1], 0), mask)
        value = self.read(ins.operands[1], 64 if "b64" in ins.modifiers else 32)
        return warp.match(ins, value, mask) if ins.opcode == "match" else warp.reduce(ins, value, mask)

    def _control(self, index: int, ins: Instruction, mask: np.ndarray) -> None:
        taken, rest = mask, mask & False
        if ins.guard:
            guard = self.guard(ins, mask)
            mask = mask & self.lock.alive
            taken, rest = mask & guard, mask & ~guard
        if ins.opcode in ("ret", "exit"):
            self.lock.leave(taken)
            self.lock.go(index + 1, rest)
        elif ins.opcode in ("bar", "barrier"):
            self._wait(index, ins, taken)
            self.lock.go(index + 1, rest)
        elif ins.opcode == "trap":
            if taken.any():
                self.violation("the kernel traps", ins.line, taken)
        else:
            ways = self._ways(ins, taken)
            if rest.any():
                ways.append((index + 1, rest))
            if len(ways) > 1:
                diverged = np.sum([lanes.any(1) for _, lanes in ways], axis=0) > 1
                if diverged.any() and index in self.program.flow.joins:
                    join = self.program.flow.joins[index]
                    self.lock.expect(join, join, mask & diverged[:, None])
            for target, lanes in ways:
                self.lock.go(target, lanes)

    def _ways(self, ins: Instruction, mask: np.ndarray) -> list[tuple[int, np.ndarray]]:
        places = targets(self.kernel, ins)
        if ins.opcode == "bra":
            return [(places[0], mask)] if mask.any() else []
        choice = np.broadcast_to(self.known(self.read(ins.operands[0], 32), mask, ins).base, mask.shape)
        mask = mask & self.lock.alive
        return [(p, lanes) for n, p in enumerate(places) if (lanes := mask & (choice == n)).any()]

    def _wait(self, index: int, ins: Instruction, mask: np.ndarray) -> None:
        if not mask.any():
            return
        for observer in self.observers:
            observer.barrier(ins.line, mask, self)
        reducing = "red" in ins.modifiers
        numbers = [o for o in ins.operands if isinstance(o, Imm)]
        registers = ins.operands[1:] if reducing else ins.operands
        if any(isinstance(o, Reg) for o in registers[: len(registers) - reducing]):
            raise StudyError("barriers with a number or count from a register are not supported", where=self.kernel.where(ins))
        number = numbers[0].value if numbers else 0
        threads = numbers[1].value if len(numbers) > 1 else 0

        def released(lanes: np.ndarray) -> None:
            if reducing:
                result = loadstore.barrier_reduction(self, ins, lanes)
                self.write(ins.operands[0], result, lanes, False, ins)

        self.lock.wait(index, index + 1, mask, number=number, threads=threads, released=released)

    # -- operands ---------------------------------------------------------------------------------------------------------

    def read(self, operand: Operand, bits: int) -> Value:
        """The operand's value as a ``bits`` wide integer; 0 for a predicate."""
        if isinstance(operand, Reg):
            name = operand.name
            if name[0] == "!":
                value = self.read(Reg(name[1:]), 0)
                return Value(~value.base.astype(bool), None, value.why, value.hints)
            value = self.registers.get(name)  # type: ignore[assignment]
            if value is None:
                value = special_register(name, self.batch, self.launch)
                if value is None:  # never written: undefined, so nothing may depend on it
                    value = unknown(DATA, 8 * alu.TYPE_BYTES[self.kernel.register_type(name)] or 8)
                self.registers[name] = value
            if bits and value.bits != bits and value.base.dtype != bool:
                return self.affine.resize(value, bits, signed=False)
            return value
        if isinstance(operand, Imm):
            key = (operand.value, bits)
            if key not in self.constants:
                self.constants[key] = constant(operand.value, bits) if bits else Value(np.array([[bool(operand.value)]]))
            return self.constants[key]
        if isinstance(operand, Sym):
            return constant(self.symbol(operand.name), bits)
        raise StudyError(f"operand {operand} cannot be read here", where=f"{self.kernel.source}, kernel {self.kernel.name}")

    def symbol(self, name: str) -> int:
        """The address of a named array in its own space."""
        if name in self.program.offsets:
            return self.program.offsets[name]
        for buffer in self.memory.buffers:
            if buffer.name == name:
                return buffer.address
        raise StudyError(f"the address of {name} is not known", where=f"{self.kernel.source}, kernel {self.kernel.name}")

    def write(
        self, operand: Operand, result: Value | tuple[Value, ...], mask: np.ndarray, full: bool, ins: Instruction, *, signed: bool = False
    ) -> None:
        """Write a result, or one for each register of a vector or pair, in the lanes of ``mask``."""
        if isinstance(operand, (Vec, Pair)):
            parts = operand.items if isinstance(operand, Vec) else (operand.first, operand.second)
            values = result if isinstance(result, tuple) else (result,)
            for part, value in zip(parts, values, strict=False):
                self.write(part, value, mask, full, ins, signed=signed)
            return
        value = result[0] if isinstance(result, tuple) else result
        if not isinstance(operand, Reg):
            if isinstance(operand, Sym) and operand.name == "_":
                return
            raise StudyError(f"cannot write to {operand}", where=self.kernel.where(ins))
        bits = 8 * alu.TYPE_BYTES[self.kernel.register_type(operand.name)]
        if bits and value.bits != bits and value.base.dtype != bool:
            value = self.affine.resize(value, bits, signed or self._signed_result(ins))
        old = self.registers.get(operand.name)
        self.registers[operand.name] = value if full or old is None else merge(mask, value, old)

    @staticmethod
    def _signed_result(ins: Instruction) -> bool:
        kinds = [m for m in ins.modifiers if m in alu.TYPE_BYTES]
        return bool(kinds) and kinds[0][0] == "s"

    # -- knowing ----------------------------------------------------------------------------------------------------------

    def guard(self, ins: Instruction, mask: np.ndarray) -> np.ndarray:
        """The guard predicate, known in every lane of ``mask`` that is still alive afterwards."""
        value = self.known(self.read(Reg(ins.guard), 0), mask, ins)
        base = value.base.astype(bool)
        return ~base if ins.guard_negated else base

    def known(self, value: Value, mask: np.ndarray, ins: Instruction) -> Value:
        """Require ``value`` in the lanes of ``mask``: boxes that hold opaque lanes are split and stop."""
        if value.why is None:
            return value
        why = np.where(mask & self.lock.alive, value.why, 0)
        worst = int(why.max())
        if worst == UNTRACKED:
            raise NeedsShared
        if worst == DATA:
            raise DataDependent(f"control flow or an address depends on data loaded from memory: {ins.text!r}", where=self.kernel.where(ins))
        if worst == OPAQUE:
            self.divide(why == OPAQUE, value.hints)
        return value

    def divide(self, lanes: np.ndarray, hints: Hints) -> None:
        """Split the boxes that have lanes in ``lanes`` and stop executing them."""
        boxes = lanes.reshape(len(self.batch.boxes), -1)
        for number in np.flatnonzero(boxes.any(1)):
            warp_index, lane = divmod(int(boxes[number].argmax()), 32)
            row = int(number) * self.batch.warps_per_block + warp_index
            if self.batch.boxes[number].blocks == 1:
                raise StudyError("an operation could not be computed for a single block", where=f"kernel {self.kernel.name}")
            self.split += split(self.batch.boxes[number], hints, row, lane)
            self.killed[number] = True
        dead = np.repeat(boxes.any(1), self.batch.warps_per_block)[:, None]
        self.lock.leave(np.broadcast_to(dead, lanes.shape))

    # -- faults -----------------------------------------------------------------------------------------------------------

    def violation(
        self, what: str, line: int, lanes: np.ndarray, address: np.ndarray | None = None, *, k: Coefficients | None = None, last: bool = False
    ) -> NoReturn:
        """Raise for the first lane of ``lanes``; ``last`` names the block of the box where the address is greatest."""
        row, lane = (int(i) for i in np.argwhere(lanes)[0])
        box = self.batch.boxes[self.batch.box_of(row)]
        index = [0, 0, 0]
        number: Any = None if address is None else int(np.broadcast_to(address, lanes.shape)[row, lane])
        for axis, coefficient in enumerate(map_k(k, lambda c: c) or ()):
            step = 0 if coefficient is None else int(np.broadcast_to(coefficient, lanes.shape)[row, lane])
            if (step > 0) == last and step:
                index[axis] = box.count[axis] - 1
                number += step * index[axis]
        raise Violation(what, kernel=self.kernel.name, line=line, block=box.block(index), thread=self.batch.thread(row, lane), address=number)

    def _barrier_fault(self) -> NoReturn:
        fault = self.lock.faults[0]
        lanes = np.zeros_like(self.batch.mask)
        lanes[fault.warp, fault.lane] = True
        self.violation(fault.why, self.kernel.instructions[fault.target].line, lanes)


_CONTROL = words("bra brx ret exit bar barrier trap")
_OTHER: dict[str, frozenset[str]] = {
    **loadstore.MODIFIERS,
    **warp.MODIFIERS,
    "bra": frozenset(["uni"]),
    "brx": frozenset(["idx", "uni"]),
    "ret": frozenset(["uni"]),
    "exit": frozenset(),
    "trap": frozenset(),
    "bar": words("sync red popc and or u32 pred cta"),
    "barrier": words("sync aligned cta red popc and or u32 pred"),
}
