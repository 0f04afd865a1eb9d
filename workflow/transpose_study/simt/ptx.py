"""Parser of PTX as nvcc writes it: entries, parameters, registers, arrays, labels and instructions with their line numbers."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from pathlib import Path

from transpose_study.errors import StudyError, nearest
from transpose_study.records import read_text

# Bytes of each fundamental type (PTX ISA, "Fundamental Types"); predicates have no size in memory.
TYPE_BYTES = {
    **{f"{k}{8 * n}": n for n in (1, 2, 4, 8) for k in "bsu"},
    **{"f16": 2, "f32": 4, "f64": 8, "f16x2": 4, "b128": 16, "pred": 0},
}


@dataclass(frozen=True)
class Reg:
    """A register by name, without its percent sign's meaning: ``%r1``, ``%p2``, ``%SP``."""

    name: str


@dataclass(frozen=True)
class Imm:
    """An integer immediate, or the bits of a ``0f``/``0d`` float immediate."""

    value: int
    is_float: bool = False


@dataclass(frozen=True)
class Sym:
    """The address of a named array, parameter, label or jump table."""

    name: str


@dataclass(frozen=True)
class Mem:
    """An address operand ``[base + offset]``."""

    base: Reg | Sym | Imm
    offset: int


@dataclass(frozen=True)
class Vec:
    """A vector operand ``{a, b}``."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """Two destinations ``p|q`` of one instruction."""

    first: Reg
    second: Reg


Operand = Reg | Imm | Sym | Mem | Vec | Pair


@dataclass(frozen=True)
class Instruction:
    """One instruction: its line in the file, its text, guard predicate, opcode and modifiers, operands."""

    line: int
    text: str
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: str = ""
    guard_negated: bool = False


@dataclass(frozen=True)
class Array:
    """A named array of a state space. ``size`` is in bytes; 0 for an extern array sized at launch."""

    name: str
    space: str
    size: int
    align: int
    data: bytes = b""


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter: its name, type and bytes."""

    name: str
    type: str
    size: int


@dataclass
class Kernel:
    """One ``.entry``. ``labels`` and ``tables`` (jump tables) refer to indices into ``instructions``."""

    name: str
    source: str
    parameters: tuple[Parameter, ...] = ()
    registers: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def where(self, instruction: Instruction) -> str:
        """``file, kernel, PTX line`` of an instruction, for messages."""
        return f"{self.source}, kernel {self.name}, PTX line {instruction.line}"

    def register_type(self, name: str) -> str:
        """Declared type of a register; numbered registers are declared by their prefix."""
        if name in self.registers:
            return self.registers[name]
        prefix = name.rstrip("0123456789")
        if prefix + "*" in self.registers:
            return self.registers[prefix + "*"]
        raise KeyError(name)


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"\s*([$%\w]+)\s*:(?!:)")
_NAME = re.compile(r"[%$_A-Za-z][\w$.]*")
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?")
_FLOAT = re.compile(r"-?0([fFdD])([0-9a-fA-F]{8,16})")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)(?:\s+\.ptr\b(?:\s+\.\w+(?:\s+\d+)?)*?)?\s+([\w$]+)(?:\[(\d+)\])?\s*$")
_DIRECTIVE_LINES = (".version", ".target", ".address_size", ".file", ".section", ".pragma", ".loc ", ".loc\t")
_ARRAY = re.compile(
    r"(?P<linkage>\.extern|\.visible|\.weak)?\s*\.(?P<space>shared|global|const|local)\s+(?:\.align\s+(?P<align>\d+)\s+)?"
    r"\.(?P<type>\w+)\s+(?P<name>[\w$]+)\s*(?P<dims>(?:\[\d*\])*)\s*(?:=\s*(?P<data>.*))?$",
    re.DOTALL,
)


def parse_file(path: Path) -> dict[str, Kernel]:
    """Parse a PTX file into its kernels by name; see :func:`parse`."""
    return parse(read_text(path), source=str(path))


def parse(text: str, source: str = "PTX") -> dict[str, Kernel]:
    """Parse PTX text into its kernels by name.

    Raises :class:`StudyError` naming the line and its text for anything that is not understood, and for a text that ends
    inside a kernel or a statement.
    """
    text = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    return _Parser(text, source).kernels()


class _Parser:
    def __init__(self, text: str, source: str) -> None:
        self.text, self.source, self.position = text, source, 0
        self.registers: dict[str, str] = {}  # of the kernel being read; inline assembly names registers without %

    def error(self, what: str, position: int) -> StudyError:
        line = self.text.count("\n", 0, position) + 1
        lines = self.text.splitlines()
        shown = lines[line - 1].strip() if line <= len(lines) else ""
        return StudyError(f"{what}: {shown!r}" if shown else what, where=f"{self.source}, PTX line {line}")

    def kernels(self) -> dict[str, Kernel]:
        found: dict[str, Kernel] = {}
        module_arrays: dict[str, Array] = {}
        seen_version = False
        while (start := self._skip_space()) < len(self.text):
            line_end = self.text.find("\n", start)
            line_end = len(self.text) if line_end < 0 else line_end
            head = self.text[start:line_end].strip()
            if head.startswith(".section"):
                close = self.text.find("}", start)
                self.position = len(self.text) if close < 0 else close + 1
            elif head.startswith(_DIRECTIVE_LINES):
                seen_version = seen_version or head.startswith(".version")
                self.position = line_end
            elif re.match(r"(?:\.(?:visible|weak|extern)\s+)*\.entry\b", head):
                kernel = self._entry()
                kernel.arrays = {**module_arrays, **kernel.arrays}
                for instruction in kernel.instructions:
                    _check_names(kernel, instruction)
                found[kernel.name] = kernel
            elif re.match(r"(?:\.(?:visible|weak|extern)\s+)*\.func\b", head):
                raise self.error("calls of device functions are not supported; let the compiler inline them", start)
            else:
                statement, begin = self._statement()
                array = self._array(statement, begin)
                module_arrays[array.name] = array
        if not seen_version:
            raise StudyError("is no PTX: it has no .version line", where=self.source)
        if not found:
            raise StudyError("holds no kernel (.entry)", where=self.source, hint="is the file complete?")
        return found

    def _skip_space(self) -> int:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1
        return self.position

    def _statement(self) -> tuple[str, int]:
        """The text up to the next semicolon outside of an initialiser's braces."""
        begin = self._skip_space()
        end = self.text.find(";", begin)
        if end < 0:
            raise self.error("the file ends inside this statement (truncated?)", begin)
        self.position = end + 1
        return self.text[begin:end], begin

    def _entry(self) -> Kernel:
        begin = self.position
        open_body = self.text.find("{", begin)
        if open_body < 0:
            raise self.error("the file ends inside this kernel's head (truncated?)", begin)
        head = self.text[begin:open_body]
        match = re.match(r"(?:\.\w+\s+)*?\.entry\s+([\w$]+)\s*(?:\((.*?)\))?", head, re.DOTALL)
        if not match:
            raise self.error("no kernel name here", begin)
        kernel = Kernel(match.group(1), self.source)
        self.registers = kernel.registers
        kernel.parameters = tuple(self._parameter(p, begin) for p in (match.group(2) or "").split(",") if p.strip())
        self.position, depth = open_body + 1, 1
        while depth:
            start = self._skip_space()
            if start >= len(self.text):
                raise self.error(f"the file ends inside kernel {kernel.name} (truncated?)", len(self.text) - 1)
            if self.text[start] in "{}":
                depth += 1 if self.text[start] == "{" else -1
                self.position += 1
            elif label := _LABEL.match(self.text, start):
                self.position = label.end()
                kernel.labels[label.group(1)] = len(kernel.instructions)
            elif self.text.startswith((".loc ", ".loc\t", ".file"), start):
                self.position = self.text.find("\n", start)
            else:
                self._body_statement(kernel)
        return kernel

    def _parameter(self, text: str, position: int) -> Parameter:
        match = _PARAMETER.search(text.strip())
        if not match or match.group(1) not in TYPE_BYTES:
            raise self.error(f"parameter {text.strip()!r} is not understood", position)
        return Parameter(match.group(2), match.group(1), TYPE_BYTES[match.group(1)] * int(match.group(3) or 1))

    def _body_statement(self, kernel: Kernel) -> None:
        statement, begin = self._statement()
        statement = " ".join(statement.split())
        if statement.startswith(".reg"):
            match = re.match(r"\.reg\s+\.(\w+)\s+(.*)$", statement)
            if not match or match.group(1) not in TYPE_BYTES:
                raise self.error("register declaration is not understood", begin)
            for name in match.group(2).split(","):
                count = re.match(r"\s*([%$\w]+)(<\d+>)?\s*$", name)
                if not count:
                    raise self.error("register declaration is not understood", begin)
                kernel.registers[count.group(1) + ("*" if count.group(2) else "")] = match.group(1)
        elif statement.startswith(".branchtargets"):
            label = next(k for k, v in reversed(kernel.labels.items()) if v == len(kernel.instructions))
            kernel.tables[label] = tuple(t.strip() for t in statement.split(None, 1)[1].split(","))
        elif statement.startswith(".pragma"):
            return
        elif statement.startswith("."):
            array = self._array(statement, begin)
            kernel.arrays[array.name] = array
        else:
            kernel.instructions.append(self._instruction(statement, begin))

    def _array(self, statement: str, begin: int) -> Array:
        match = _ARRAY.match(" ".join(statement.split()))
        if not match or match.group("type") not in TYPE_BYTES:
            raise self.error("statement is not understood", begin)
        size = TYPE_BYTES[match.group("type")]
        item = size
        for length in re.findall(r"\[(\d*)\]", match.group("dims")):
            size *= int(length or 0)
        data = b""
        if match.group("data"):
            values = [v.strip() for v in match.group("data").strip("{} ").split(",") if v.strip()]
            try:
                data = b"".join((int(v, 0) % (1 << 8 * item)).to_bytes(item, "little") for v in values)
            except ValueError:
                raise self.error("initial values other than integers are not supported", begin) from None
        return Array(match.group("name"), match.group("space"), size, int(match.group("align") or item), data)

    def _instruction(self, statement: str, begin: int) -> Instruction:
        line = self.text.count("\n", 0, begin) + 1
        guard, negated, rest = "", False, statement
        if match := re.match(r"@(!?)([%$\w]+)\s+", statement):
            negated, guard, rest = bool(match.group(1)), match.group(2), statement[match.end() :]
        head, _, tail = rest.partition(" ")
        opcode, *modifiers = head.replace("::", "__").split(".")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", opcode):
            raise self.error("instruction is not understood", begin)
        operands = tuple(self._operand(part, begin) for part in _split(tail))
        return Instruction(line, statement, opcode, tuple(modifiers), operands, guard, negated)

    def _operand(self, text: str, begin: int) -> Operand:
        if text.startswith("{"):
            return Vec(tuple(self._operand(p, begin) for p in _split(text[1:-1])))
        if text.startswith("["):
            base, sign, offset = re.fullmatch(r"\[\s*(.+?)\s*(?:([+-])\s*(-?\w+))?\s*\]", text).groups()  # type: ignore[union-attr]
            inner = self._operand(base, begin)
            if not isinstance(inner, (Reg, Sym, Imm)):
                raise self.error(f"address {text!r} is not understood", begin)
            return Mem(inner, int(offset or "0", 0) * (-1 if sign == "-" else 1))
        if match := re.fullmatch(r"(%[\w.]+)\|(%[\w.]+)", text):
            return Pair(Reg(match.group(1)), Reg(match.group(2)))
        if match := _FLOAT.fullmatch(text):
            code, digits = ("<I", match.group(2)) if match.group(1) in "fF" else ("<Q", match.group(2))
            bits = int(digits, 16)
            if text.startswith("-"):
                bits ^= 1 << (8 * struct.calcsize(code) - 1)
            return Imm(bits, is_float=True)
        if _NUMBER.fullmatch(text):
            return Imm(int(text.rstrip("U"), 0))
        if text == "WARP_SZ":
            return Imm(32)
        if re.fullmatch(r"!?%[\w.]+", text) or text.lstrip("!") in self.registers:
            return Reg(text)
        if _NAME.fullmatch(text) or text == "_":
            return Sym(text)
        raise self.error(f"operand {text!r} is not understood", begin)


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


SPECIAL_REGISTERS = words(
    "%tid %ntid %ctaid %nctaid %laneid %warpid %nwarpid %smid %nsmid %gridid %clock %clock_hi %clock64 %globaltimer "
    "%globaltimer_lo %lanemask_eq %lanemask_lt %lanemask_le %lanemask_gt %lanemask_ge %dynamic_smem_size "
    "%total_smem_size %cluster_ctaid %cluster_nctaid %cluster_ctarank %cluster_nctarank"
)


def _check_names(kernel: Kernel, instruction: Instruction) -> None:
    """Refuse names that are declared nowhere; special registers contain a dot or are known by name."""
    names = [instruction.guard] if instruction.guard else []
    symbols: list[str] = []
    queue = list(instruction.operands)
    while queue:
        operand = queue.pop()
        if isinstance(operand, Reg):
            names.append(operand.name.lstrip("!"))
        elif isinstance(operand, Sym):
            symbols.append(operand.name)
        elif isinstance(operand, Mem):
            queue.append(operand.base)
        elif isinstance(operand, Vec):
            queue += operand.items
        elif isinstance(operand, Pair):
            queue += [operand.first, operand.second]
    for name in names:
        try:
            kernel.register_type(name)
        except KeyError:
            if name.split(".")[0] not in SPECIAL_REGISTERS:
                raise StudyError(f"unknown register {name} in {instruction.text!r}", where=kernel.where(instruction)) from None
    known = {*kernel.labels, *kernel.arrays, *kernel.tables, *(p.name for p in kernel.parameters), "_"}
    for name in symbols:
        if name not in known:
            what = f"unknown name {name} in {instruction.text!r}"
            raise StudyError(what, where=kernel.where(instruction), hint=nearest(name, known))


def _split(text: str) -> list[str]:
    """Split operands at commas outside of brackets and braces."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += char in "{[("
        depth -= char in "}])"
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    if current.strip():
        parts.append(current.strip())
    return parts
