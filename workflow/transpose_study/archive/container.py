"""An archive file: a zip whose manifest names every member with its sha256, read without trusting it."""

from __future__ import annotations

import json
import zipfile
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from transpose_study.errors import StudyError
from transpose_study.records import sha256_bytes, sha256_file

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
MAX_MEMBER_BYTES = 512 * 2**20  # far above any table; a zip bomb stops here


class Container:
    """A readable archive. Every member handed out was compared with the manifest's sha256.

    Raises :class:`StudyError` that names the file and the member for an archive that is missing, damaged, no zip,
    of a newer schema, or whose members climb out of their folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            near = sorted(str(p) for p in self.path.parent.glob("*.crate.zip")) if self.path.parent.is_dir() else []
            raise StudyError(
                "this archive is not there", where=str(path), hint=f"archives here: {', '.join(near) or 'none'}; set the key replay"
            )
        try:
            with zipfile.ZipFile(self.path) as archive:
                self._members = {i.filename: i for i in archive.infolist() if not i.is_dir()}
                manifest = json.loads(self._raw(archive, MANIFEST))
        except zipfile.BadZipFile as error:
            raise StudyError(f"is damaged or no zip file: {error}", where=str(path), hint="fetch the archive again") from None
        except OSError as error:
            raise StudyError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
        except (KeyError, json.JSONDecodeError, UnicodeDecodeError):
            raise StudyError(f"has no readable {MANIFEST}", where=str(path), hint="this is no archive of a run") from None
        if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
            raise StudyError(f"{MANIFEST} lists no files", where=str(path), hint="this is no archive of a run")
        version = manifest.get("schema_version")
        if not isinstance(version, int) or version > SCHEMA_VERSION:
            raise StudyError(
                f"has schema version {version}; this program reads up to {SCHEMA_VERSION}", where=str(path), hint="use a newer release"
            )
        self.manifest: dict[str, Any] = manifest
        self.names: dict[str, str] = manifest["files"]
        for name in self.names:
            parts = PurePosixPath(name)
            if parts.is_absolute() or ".." in parts.parts or "\\" in name:
                raise StudyError(f"member {name!r} would leave the folder; refused", where=str(path))
            if name not in self._members:
                raise StudyError(f"member {name} is named in the manifest and missing", where=str(path), hint="fetch the archive again")

    def _raw(self, archive: zipfile.ZipFile, name: str) -> bytes:
        info = self._members[name]
        if info.file_size > MAX_MEMBER_BYTES:
            raise StudyError(f"member {name} unpacks to {info.file_size} bytes; refused", where=str(self.path))
        try:
            return archive.read(info)
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError) as error:
            raise StudyError(f"member {name} is damaged: {error}", where=str(self.path), hint="fetch the archive again") from None
        except Exception as error:  # zlib and lzma raise their own types on damaged streams
            raise StudyError(f"member {name} is damaged: {error}", where=str(self.path), hint="fetch the archive again") from None

    @cached_property
    def sha256(self) -> str:
        """Hex sha256 of the archive file."""
        return sha256_file(self.path)

    def read(self, name: str) -> bytes:
        """A member's bytes, compared with the manifest."""
        if name not in self.names:
            raise StudyError(f"has no member {name}", where=str(self.path))
        with zipfile.ZipFile(self.path) as archive:
            data = self._raw(archive, name)
        if sha256_bytes(data) != self.names[name]:
            raise StudyError(f"member {name} does not match its sha256 in the manifest", where=str(self.path), hint="fetch it again")
        return data

    def read_json(self, name: str) -> Any:
        """A JSON member."""
        return json.loads(self.read(name))
