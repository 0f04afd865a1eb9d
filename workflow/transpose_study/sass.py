"""Parser of machine code as nvdisasm prints it: instructions with guard, opcode, operands and the targets of branches."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from transpose_study.errors import StudyError
from transpose_study.records import read_text

INSTRUCTION_BYTES = 16  # on every architecture since compute capability 7.0


@dataclass(frozen=True)
class Arg:
    """One operand. ``kind``: R, UR, P, UP, B (registers), int, float, const, memory, label, special or other.

    ``number`` is the register number (None: RZ, URZ, PT, UPT), the integer or the byte offset of a constant; ``not_`` the
    complement of a predicate or of an integer's bits.
    """

    kind: str
    number: int | None = None
    text: str = ""
    negated: bool = False
    not_: bool = False
    absolute: bool = False
    real: float = 0.0


@dataclass(frozen=True)
class MachineInstruction:
    """One instruction; ``address`` is its byte offset in the kernel, ``opcode`` the first word, ``modifiers`` the rest."""

    address: int
    text: str
    opcode: str
    modifiers: tuple[str, ...]
    args: tuple[Arg, ...]
    guard: Arg | None = None


@dataclass
class MachineCode:
    """A kernel's instructions; ``labels`` maps names to instruction indices."""

    name: str
    source: str
    architecture: int
    instructions: list[MachineInstruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    def where(self, ins: MachineInstruction) -> str:
        """File, kernel and offset of an instruction, for messages."""
        return f"{self.source}, kernel {self.name}, offset {ins.address:#06x}"


_LINE = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*(?:/\*.*\*/)?\s*$")
_LABEL = re.compile(r"^\s*([.$\w]+):\s*$")
_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+)")
_TARGET = re.compile(r"\.target\s+sm_(\d+)")


def parse_file(path: Path) -> dict[str, MachineCode]:
    """Parse what ``nvdisasm -c`` printed; see :func:`parse`."""
    return parse(read_text(path), str(path))


def parse(text: str, source: str = "SASS") -> dict[str, MachineCode]:
    """The kernels of a disassembly by name. Raises :class:`StudyError` if it holds none or is cut off."""
    target = _TARGET.search(text)
    if not target:
        raise StudyError("is no disassembly: it names no .target", where=source)
    found: dict[str, MachineCode] = {}
    code: MachineCode | None = None
    for line in text.splitlines():
        if section := _SECTION.match(line):
            code = found.setdefault(section.group(1), MachineCode(section.group(1), source, int(target.group(1))))
        elif code is None:
            continue
        elif re.match(r"\s*(?:\.section\s|//----)", line):
            code = None
        elif match := _LINE.match(line):
            code.instructions.append(_instruction(int(match.group(1), 16), match.group(2)))
        elif label := _LABEL.match(line):
            code.labels[label.group(1)] = len(code.instructions)
    if not found:
        raise StudyError("holds no kernel", where=source)
    for code in found.values():
        if not any(i.opcode == "EXIT" for i in code.instructions):
            raise StudyError(f"kernel {code.name} has no EXIT (file cut off?)", where=source)
    return found


def _instruction(address: int, text: str) -> MachineInstruction:
    guard, rest = None, text
    if match := re.match(r"@(\S+)\s+", text):
        guard, rest = _arg(match.group(1)), text[match.end() :]
    head, _, tail = rest.partition(" ")
    opcode, *modifiers = head.split(".")
    parts = [p.strip() for p in re.split(r",(?![^\[]*\])", tail) if p.strip()]
    return MachineInstruction(address, text, opcode, tuple(modifiers), tuple(_arg(p) for p in parts), guard)


_REGISTER = re.compile(r"(UR|R|UP|P|B)(Z|T|\d+)$")  # a byte or half selector makes it a special operand, of unknown value


def _arg(text: str) -> Arg:
    body = text.split(" ", maxsplit=1)[0].replace(".reuse", "") if not text.startswith("`(") else text
    not_ = body.startswith(("!", "~"))
    body = body[1:] if not_ else body
    negated = body.startswith("-") and not re.match(r"-(?:\d|0x|INF|QNAN)", body)
    body = body[1:] if negated else body
    absolute = body.startswith("|") and body.endswith("|")
    body = body.strip("|") if absolute else body
    if match := _REGISTER.match(re.sub(r"\.(?:64|U32)$", "", body)):
        number = None if match.group(2) in "ZT" else int(match.group(2))
        return Arg(match.group(1), number, text, negated, not_, absolute)
    if body.startswith("`("):
        return Arg("label", None, body[2:].rstrip(")"))
    if match := re.match(r"c\[0x([0-9a-f]+)\]\[(?:0x([0-9a-f]+)|RZ|URZ)\]", body):
        bank = int(match.group(1), 16)
        return Arg("const" if bank == 0 else "other", int(match.group(2) or "0", 16), text, negated, not_, absolute)
    if body.startswith(("[", "desc[", "c[", "cx[")):
        return Arg("memory", None, text)
    if re.fullmatch(r"-?0x[0-9a-f]+|-?\d+", body):
        return Arg("int", int(body, 0), text, negated, not_, real=float(int(body, 0)))
    if re.fullmatch(r"-?\d+\.?\d*(?:e[+-]?\d+)?|[+-]?(?:INF|QNAN)", body):
        return Arg("float", None, text, real=float(body.replace("QNAN", "nan")))
    return Arg("special", None, body)
