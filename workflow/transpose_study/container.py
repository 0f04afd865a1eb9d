"""An archive file: a zip whose manifest names every member with its sha256, read without trusting it."""

from __future__ import annotations

import contextlib
import json
import shutil
import zipfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any

from transpose_study.bzip import BzipMember
from transpose_study.errors import StudyError
from transpose_study.records import atomic_path, sha256_bytes, sha256_file

SCHEMA_VERSION = 2  # 1: members deflated, no ro-crate-metadata.json, no program; 2: see pack.py
MANIFEST = "manifest.json"
MAX_MEMBER_BYTES = 512 * 2**20  # far above any table; a zip bomb stops here
MAX_RATIO = 200  # text of digits shrinks to about a fifth; what claims to unpack to so many times its size is a bomb
BLOCK = 1 << 20
ENCODINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
AGAIN = "fetch the archive again"


class Container:
    """A readable archive. Every member handed out was compared with the manifest's sha256.

    Raises :class:`StudyError` that names the file and the member for an archive that is missing, damaged, no zip,
    of a newer schema, that unpacks to far more than its size, or whose members climb out of their folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            near = sorted(str(p) for p in self.path.parent.glob("*.crate.zip")) if self.path.parent.is_dir() else []
            raise StudyError(
                "is a folder, not an archive" if self.path.is_dir() else "this archive is not there",
                where=str(path),
                hint=f"archives here: {', '.join(near) or 'none'}; set the key replay",
            )
        with self._zip() as archive:
            infos = archive.infolist()
            self.listed = [i.filename for i in infos]  # in the file's order, repetitions included
            self._members = {i.filename: i for i in infos if not i.is_dir()}
            self._refuse_unsafe(infos)
            if MANIFEST not in self._members:
                raise StudyError(f"has no readable {MANIFEST}", where=str(path), hint="this is no archive of a run")
            self.manifest_bytes = self._raw(archive, MANIFEST)
        try:
            manifest = json.loads(self.manifest_bytes)
        except (ValueError, RecursionError):
            raise StudyError(f"has no readable {MANIFEST}", where=str(path), hint="this is no archive of a run") from None
        files = manifest.get("files") if isinstance(manifest, dict) else None
        if not isinstance(files, dict) or not all(isinstance(v, str) for v in files.values()):
            raise StudyError(f"{MANIFEST} lists no files", where=str(path), hint="this is no archive of a run")
        version = manifest.get("schema_version")
        if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= SCHEMA_VERSION:
            maker = manifest.get("program", "?")
            raise StudyError(
                f"has schema version {version}; this program reads up to {SCHEMA_VERSION}",
                where=str(path),
                hint=f"use a newer release: the archive was packed by transpose-study {maker}",
            )
        self.manifest: dict[str, Any] = manifest
        self.schema_version: int = version
        self.names: dict[str, str] = files
        for name in self.names:
            self._refuse_climbing(name)
            if name not in self._members:
                raise StudyError(f"member {name} is named in the manifest and missing", where=str(path), hint=AGAIN)

    # -- safety -------------------------------------------------------------------------------------------------------

    def _refuse_climbing(self, name: str) -> None:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
            raise StudyError(f"member {name!r} would leave the folder; refused", where=str(self.path))

    def _refuse_unsafe(self, infos: list[zipfile.ZipInfo]) -> None:
        for info in infos:
            self._refuse_climbing(info.filename)
            if info.external_attr >> 16 & 0o170000 == 0o120000:
                raise StudyError(f"member {info.filename!r} is a link; refused", where=str(self.path))
            if info.compress_type not in ENCODINGS:
                raise StudyError(f"member {info.filename!r} is compressed in a way that no archive is; refused", where=str(self.path))
            if info.file_size > MAX_MEMBER_BYTES:
                raise StudyError(f"member {info.filename} unpacks to {info.file_size} bytes; refused", where=str(self.path))
        total = sum(i.file_size for i in infos)
        size = self.path.stat().st_size
        if total > MAX_RATIO * size:
            raise StudyError(f"{size} bytes would unpack to {total}; refused as a zip bomb", where=str(self.path))

    # -- reading ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _zip(self) -> Iterator[zipfile.ZipFile]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                yield archive
        except StudyError:
            raise
        except zipfile.BadZipFile as error:
            raise StudyError(f"is damaged or no zip file: {error}", where=str(self.path), hint=AGAIN) from None
        except OSError as error:
            raise StudyError(f"cannot be read: {error.strerror or error}", where=str(self.path)) from None
        except (ValueError, NotImplementedError, RuntimeError, ArithmeticError, EOFError) as error:  # what zipfile makes of odd headers
            raise StudyError(f"is damaged: {error}", where=str(self.path), hint=AGAIN) from None

    def _raw(self, archive: zipfile.ZipFile, name: str) -> bytes:
        with self._member(archive, name) as stream:
            return stream.read()

    @contextlib.contextmanager
    def _member(self, archive: zipfile.ZipFile, name: str) -> Iterator[IO[bytes]]:
        """A member's bytes as a stream; zipfile stops at the size that the directory gives and compares the CRC there."""
        info = self._members[name]
        try:
            if info.compress_type == zipfile.ZIP_BZIP2:
                with self.path.open("rb") as file, BzipMember(file, info) as stream:
                    yield stream  # type: ignore[misc]
            else:
                with archive.open(info) as stream:
                    yield stream
        except StudyError:
            raise
        except Exception as error:  # zlib and lzma raise their own types on damaged streams
            raise StudyError(f"member {name} is damaged: {error}", where=str(self.path), hint=AGAIN) from None

    @cached_property
    def sha256(self) -> str:
        """Hex sha256 of the archive file."""
        return sha256_file(self.path)

    def size(self, name: str) -> int:
        """A member's unpacked size in bytes."""
        return int(self._members[name].file_size)

    def read(self, name: str) -> bytes:
        """A member's bytes, compared with the manifest."""
        if name not in self.names:
            raise StudyError(f"has no member {name}", where=str(self.path))
        with self._zip() as archive:
            data = self._raw(archive, name)
        if sha256_bytes(data) != self.names[name]:
            raise self._altered(name)
        return data

    def read_json(self, name: str) -> Any:
        """A JSON member."""
        try:
            return json.loads(self.read(name))
        except ValueError:
            raise StudyError(f"member {name} is no JSON", where=str(self.path)) from None

    def extract(self, name: str, target: Path) -> None:
        """Write a member to ``target`` block by block, compared with the manifest before the file gets its name."""
        with self._zip() as archive, atomic_path(target) as part:
            with self._member(archive, name) as stream, part.open("wb") as out:
                shutil.copyfileobj(stream, out, BLOCK)
            if sha256_file(part) != self.names[name]:
                raise self._altered(name)

    @contextlib.contextmanager
    def stream(self, name: str) -> Iterator[IO[bytes]]:
        """A member's bytes as they are, without a comparison: for whoever compares them."""
        with self._zip() as archive, self._member(archive, name) as stream:
            yield stream

    def _altered(self, name: str) -> StudyError:
        return StudyError(f"member {name} does not match its sha256 in the manifest", where=str(self.path), hint=AGAIN)
