"""Where a kernel's parameters lie in constant bank 0, read from its cubin (an ELF file)."""

from __future__ import annotations

import struct
from pathlib import Path

from transpose_study.errors import StudyError

_PARAM_CBANK = 0x0A  # attribute EIATTR_PARAM_CBANK of .nv.info.<kernel>: symbol, then offset and size of the parameters
_SIZED = 0x04  # format of an attribute whose value has a length of its own


def parameter_base(path: Path, kernel: str) -> int:
    """Byte offset of the first parameter of ``kernel`` in c[0x0]. Raises :class:`StudyError` for a damaged cubin."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise StudyError(f"cannot read this file: {error.strerror}", where=str(path)) from None
    try:
        section = _sections(data)[f".nv.info.{kernel}"]
        position = 0
        while position < len(section):
            form, attribute, size = struct.unpack_from("<BBH", section, position)
            position += 4
            if form == _SIZED:
                if attribute == _PARAM_CBANK:
                    return struct.unpack_from("<IHH", section, position)[1]
                position += size
    except (struct.error, KeyError, IndexError):
        raise StudyError(f"is no cubin with a kernel {kernel}", where=str(path), hint="build it again") from None
    raise StudyError(f"does not say where kernel {kernel} finds its parameters", where=str(path))


def _sections(data: bytes) -> dict[str, bytes]:
    """The sections of a 64-bit little-endian ELF file by name."""
    if data[:5] != b"\x7fELF\x02":
        raise KeyError("no ELF file")
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    names = data[headers[names_index][4] :]
    return {names[h[0] : names.index(b"\0", h[0])].decode(): data[h[4] : h[4] + h[5]] for h in headers if h[1] != 8}
