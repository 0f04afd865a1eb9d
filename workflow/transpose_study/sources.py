"""CUDA sources with comments and white space taken out, so that only edits of code count as edits."""

from __future__ import annotations

import os
import re
from pathlib import Path

from transpose_study.records import read_text

HARNESS = Path(__file__).parent / "gpu" / "harness.cu"  # the measuring program's own kernels

_TOKEN = re.compile(
    r"""(?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/)
      | (?P<string>R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<newline>\n)
      | (?P<macro>\#[^\S\n]*define[^\S\n]+\w+\()   # a blank before this parenthesis would make another macro of it
      | (?P<space>(?:[^\S\n]|\\\n)+)
      | (?P<word>[\w.]+)
      | (?P<operator><<=|>>=|<<<|>>>|->\*|\.\.\.|::|\+\+|--|->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def normalise(text: str) -> str:
    """Return ``text`` as tokens separated by single spaces; preprocessor lines keep their line ends."""
    lines: list[list[str]] = [[]]
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup != "delimiter" else "string"
        if kind == "newline":
            lines.append([])
        elif kind == "macro":
            lines[-1].append(" ".join(match.group().split()))
        elif kind not in ("comment", "space"):
            lines[-1].append(match.group())
    out: list[str] = []
    code: list[str] = []
    for line in lines:
        if line and line[0].startswith("#"):
            if code:
                out.append(" ".join(code))
                code = []
            out.append(" ".join(line))
        else:
            code += line
    if code:
        out.append(" ".join(code))
    return "\n".join(out)


def local_includes(path: Path) -> list[Path]:
    """Return the files beside ``path`` that it includes with quotes, their own includes too, each once."""
    found: list[Path] = []
    queue = [Path(path)]
    while queue:
        current = queue.pop(0)
        for line in read_text(current).splitlines():
            match = _INCLUDE.match(line)
            include = Path(os.path.normpath(current.parent / match.group(1))) if match else None  # one name for one file, or a cycle never ends
            if include and include.is_file() and include not in found:
                found.append(include)
                queue.append(include)
    return found


def normalised_source(path: Path) -> str:
    """Return the normalised text of a source and of its local includes."""
    return "\n".join(normalise(read_text(p)) for p in [Path(path), *local_includes(path)])
