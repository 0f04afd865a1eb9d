"""Writes the container: members one after another in a given order, with fixed times, in an encoding that does not change."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import zipfile
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import IO

from transpose_study.container import BLOCK

TIME = (1980, 1, 1, 0, 0, 0)  # the earliest a zip can hold
UNIX, MODE = 3, 0o100644
LARGE = 16384  # bytes from which a member is compressed; what one opens first, the small ones, stays plain

Source = Callable[[], AbstractContextManager[IO[bytes]]]  # opens a member's bytes


def from_bytes(data: bytes) -> Source:
    """A member held in memory."""
    return lambda: contextlib.closing(BytesIO(data))


def from_file(path: Path) -> Source:
    """A member that lies in a file."""
    return lambda: path.open("rb")


def write_container(target: Path, members: Iterable[tuple[str, int, Source]]) -> None:
    """Write ``members`` (name, size in bytes, source) to ``target``: the same members give the same bytes.

    In the given order, every time 1980-01-01 and every mode 0644; small members stored, large ones as bzip2 of level 9, whose
    output has been the same since bzip2 1.0 of the year 2000 (zlib's differs between its versions and replacements). So
    nothing depends on a compressor's version, on the clock or on the file system. Reads and writes block by block. The
    caller gives ``target`` a temporary name.
    """
    with zipfile.ZipFile(target, "w") as archive:
        for name, size, source in members:
            info = zipfile.ZipInfo(name, TIME)
            info.create_system, info.external_attr = UNIX, MODE << 16
            info.compress_type = zipfile.ZIP_BZIP2 if size >= LARGE else zipfile.ZIP_STORED
            info.file_size = size  # decides about zip64 headers
            with source() as stream, archive.open(info, "w") as out:
                shutil.copyfileobj(stream, out, BLOCK)


def sha256_of(source: Source) -> tuple[str, int]:
    """Hex sha256 and size of a member, read block by block."""
    digest, size = hashlib.sha256(), 0
    with source() as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size
