"""Reading and writing of the project's files: atomic, UTF-8, sorted, independent of the locale."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import tempfile
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from transpose_study.errors import StudyError


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path in the folder of ``path``; rename it onto ``path`` only when the block ends well.

    Any failure (a full disk, a kill, an exception) leaves the old file, or none, but never half of a new one.
    """
    path = Path(path)
    handle = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise unwritable(path, error) from None
    part = Path(name)
    try:
        yield part
        with part.open("rb") as done:
            os.fsync(done.fileno())
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def unwritable(path: Path, error: OSError) -> StudyError:
    """The error for a file that could not be written."""
    return StudyError(
        f"cannot write this file: {error.strerror or error}; nothing half-written was left",
        where=str(path),
        hint="free some disk space or make the folder writable, then run the same command again",
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: Path, text: str) -> None:
    """Write ``text`` atomically as UTF-8 with ``\\n`` line ends."""
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` atomically."""
    with atomic_path(path) as part:
        part.write_bytes(data)


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as JSON with sorted keys."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def write_yaml(path: Path, value: Any) -> None:
    """Write ``value`` as YAML, keys in their given order."""
    write_text(path, yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120))


def read_text(path: Path) -> str:
    """Read a UTF-8 text; a missing or undecodable file is a :class:`StudyError`."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise StudyError(f"cannot read this file: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise StudyError(f"is not UTF-8 text: {error.reason} at byte {error.start}", where=str(path)) from None


def read_json(path: Path) -> Any:
    """Read JSON; damage is a :class:`StudyError` that names line and column."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise StudyError(f"is no JSON: {error.msg} in line {error.lineno}, column {error.colno}", where=str(path)) from None


def read_yaml(path: Path) -> Any:
    """Read YAML; duplicate keys and damage are a :class:`StudyError` that names the line."""
    text = read_text(path)
    with contextlib.suppress(yaml.YAMLError, ValueError, RecursionError):  # what libyaml refuses is refused below, in PyYAML's clearer words
        return yaml.load(text, Loader=_FastLoader)
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise StudyError(f"is no YAML: {error.problem or error}{place}", where=str(path)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # control characters, impossible dates, bottomless nesting
        raise StudyError(f"is no YAML: {error}", where=str(path)) from None


class _Strict:
    """YAML in which a key given twice is an error rather than a silent overwrite."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)  # type: ignore[attr-defined]
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a list or a mapping cannot be a key", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)  # type: ignore[misc]


class _StrictLoader(_Strict, yaml.SafeLoader):
    pass


class _FastLoader(_Strict, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """With libyaml's parser, eight times as fast, where PyYAML was built with it."""


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write ``rows`` atomically; ``None`` becomes an empty field, floats their shortest exact form."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        unknown = set(row) - set(columns)
        if unknown:
            raise ValueError(f"{path}: row has columns {sorted(unknown)} that the table lacks")
        writer.writerow([_field(row.get(c)) for c in columns])
    write_text(path, buffer.getvalue())


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    return str(value)


def read_csv(path: Path, columns: Sequence[str] | None = None) -> list[dict[str, str]]:
    """Read a CSV as text fields; with ``columns`` given, a missing column or a short row is a :class:`StudyError`."""
    reader = csv.DictReader(io.StringIO(read_text(path)))
    missing = set(columns or ()) - set(reader.fieldnames or ())
    if missing:
        raise StudyError(f"lacks the columns {', '.join(sorted(missing))}", where=str(path))
    try:
        rows = list(reader)
    except csv.Error as error:
        raise StudyError(f"is no CSV: {error} in line {reader.line_num}", where=str(path)) from None
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise StudyError(f"line {number} does not have {len(reader.fieldnames or ())} fields", where=str(path))
    return rows


def sha256_bytes(data: bytes) -> str:
    """Hex sha256 of ``data``."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def digest_of(value: Any) -> str:
    """Short stable digest of a JSON-like value (16 hex digits), for parameters that decide about reruns."""
    return sha256_bytes(json.dumps(value, sort_keys=True, ensure_ascii=True, default=str).encode())[:16]
