"""Disassembly that an archive holds already: where a kernel compiles to the same bytes, it need not be made again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from transpose_study.container import Container
from transpose_study.records import sha256_bytes

Listings = Callable[[str, bytes], bytes | None]  # a kernel's name and its cubin -> the disassembly, None where it is not known


def none(_kernel: str, _cubin: bytes) -> None:
    """Knows no disassembly."""


def archived(archive: Path, architecture: str) -> Listings:
    """The disassembly in ``archive`` of a kernel that has the same cubin there, byte for byte.

    nvdisasm takes as long as the compiler, most of it for its own start, and gives the same text for the same bytes. `verify` goes
    by no archive: it disassembles every cubin it compiles and compares the text.
    """
    container = Container(archive)

    def listing(kernel: str, cubin: bytes) -> bytes | None:
        stem = f"build/sm_{architecture}/{kernel}"
        same = container.names.get(f"{stem}.cubin") == sha256_bytes(cubin)
        return container.read(f"{stem}.sass") if same and f"{stem}.sass" in container.names else None

    return listing
