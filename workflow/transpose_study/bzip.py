"""Reads a bzip2 member within bounds.

zipfile hands its decompressor whole pieces of the file without a limit on what may come out: a few kilobytes can become
gigabytes, whatever size the directory gives. Here no more than is asked for is unpacked at a time, and never more in all
than the directory says.
"""

from __future__ import annotations

import bz2
import io
import struct
import zipfile
import zlib
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Buffer

PIECE = 1 << 16  # compressed bytes read at a time
HEADER = struct.Struct("<4s5H3I2H")  # a local file header, up to its name


class BzipMember(io.RawIOBase):
    """The unpacked bytes of a member; damage and a size that is not the directory's are a :class:`zipfile.BadZipFile`."""

    def __init__(self, stream: IO[bytes], info: zipfile.ZipInfo) -> None:
        super().__init__()
        self._stream, self._info = stream, info
        stream.seek(info.header_offset)
        header = stream.read(HEADER.size)
        if len(header) < HEADER.size or header[:4] != b"PK\x03\x04":
            raise zipfile.BadZipFile("no header where the directory has it")
        *_, name, extra = HEADER.unpack(header)
        stream.seek(name + extra, io.SEEK_CUR)
        self._left, self._made, self._crc = info.compress_size, 0, 0
        self._decompressor = bz2.BZ2Decompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        room = memoryview(buffer).nbytes
        while not self._decompressor.eof:
            piece = b""
            if self._decompressor.needs_input:
                piece = self._stream.read(min(PIECE, self._left))
                self._left -= len(piece)
                if not piece:
                    raise zipfile.BadZipFile("the compressed data end early")
            data = self._decompressor.decompress(piece, room)
            if data:
                self._made += len(data)
                if self._made > self._info.file_size:
                    raise zipfile.BadZipFile(f"it unpacks to more than the {self._info.file_size} bytes that the directory says")
                self._crc = zlib.crc32(data, self._crc)
                memoryview(buffer)[: len(data)] = data
                return len(data)
        if self._made != self._info.file_size or self._left or self._decompressor.unused_data:
            raise zipfile.BadZipFile("its size is not the directory's")
        if self._crc != self._info.CRC:
            raise zipfile.BadZipFile("Bad CRC-32")
        return 0
