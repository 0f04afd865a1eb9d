"""Bytes of global loads that a thread has in flight at once, read from a kernel's machine code."""

from __future__ import annotations

import re
from pathlib import Path

from transpose_study.sass import MachineInstruction, parse_file

_REGISTER = re.compile(r"\bR(\d+)\b")
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_GLOBAL_LOADS = ("LDG", "LD")


def load_bytes_in_flight(path: Path, kernel: str) -> int | None:
    """The most bytes that a thread has asked for before it touches any of them, along the listing of the disassembly ``path``.

    A load is in flight from its issue to the first instruction that names its register. Branches are not followed: a
    loop that the compiler did not unroll counts one turn. None where the file or the kernel is not there.
    """
    code = parse_file(path).get(kernel) if path.is_file() else None
    if code is None:
        return None
    waiting: dict[int, int] = {}  # register -> bytes of the load that will fill it
    most = 0
    for instruction in code.instructions:
        named = [int(n) for n in _REGISTER.findall(instruction.text)]
        is_load = instruction.opcode in _GLOBAL_LOADS
        for register in named[1:] if is_load else named:
            waiting.pop(register, None)
        if is_load and named:
            waiting[named[0]] = _width(instruction)
            most = max(most, sum(waiting.values()))
    return most


def _width(load: MachineInstruction) -> int:
    return next((_WIDTHS[m] for m in load.modifiers if m in _WIDTHS), 4)
