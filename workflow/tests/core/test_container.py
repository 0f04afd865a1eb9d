"""Archives that are not what they should be, made from the recorded one."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from projects import QUICK
from transpose_study.container import MANIFEST, Container
from transpose_study.errors import StudyError
from transpose_study.records import sha256_bytes

MEMBER = "raw/check.csv"


def rewritten(target: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """A copy of the recorded archive with changed members."""
    with zipfile.ZipFile(QUICK) as source:
        members = {name: source.read(name) for name in source.namelist()}
    change(members)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target


def manifest(members: dict[str, bytes], **changes: object) -> None:
    members[MANIFEST] = json.dumps(json.loads(members[MANIFEST]) | changes).encode()


def refusal(path: Path, member: str = MEMBER) -> str:
    with pytest.raises(StudyError) as caught:
        Container(path).read(member)
    assert str(path) in str(caught.value), "the message must name the file"
    return str(caught.value)


def test_recorded_archive_is_whole() -> None:
    container = Container(QUICK)
    for name in container.names:
        assert sha256_bytes(container.read(name)) == container.names[name]
    assert container.read_json("environment.json")["gpu"]["name"] == "NVIDIA H200"


def test_missing(tmp_path: Path) -> None:
    shutil.copy(QUICK, tmp_path / "other.crate.zip")
    said = refusal(tmp_path / "absent.crate.zip")
    assert "this archive is not there" in said and "other.crate.zip" in said


def test_truncated(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(QUICK.read_bytes()[: QUICK.stat().st_size // 2])
    assert "is damaged or no zip file" in refusal(tmp_path / "a.zip")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"no archive at all"])
def test_no_zip(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(data)
    assert "is damaged or no zip file" in refusal(tmp_path / "a.zip")


def test_folder_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.zip").mkdir()
    assert "is a folder, not an archive" in refusal(tmp_path / "a.zip")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_flipped_byte_in_a_member(tmp_path: Path, share: float) -> None:
    """Wherever in the packed member the byte lies, it is noticed: by the decompressor, the zip's CRC, or the manifest's sha256."""
    data = bytearray(QUICK.read_bytes())
    with zipfile.ZipFile(QUICK) as archive:
        info = archive.getinfo(MEMBER)
    data[info.header_offset + 30 + len(info.filename) + int(share * info.compress_size)] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(data)
    assert MEMBER in refusal(tmp_path / "a.zip")


def test_member_that_is_not_the_manifest_s(tmp_path: Path) -> None:
    """An edit by hand that keeps the zip itself whole."""
    path = rewritten(tmp_path / "a.zip", lambda m: m.update({MEMBER: m[MEMBER].replace(b"ok", b"OK", 1)}))
    assert f"member {MEMBER} does not match its sha256" in refusal(path)


def test_member_that_is_gone(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "a.zip", lambda m: m.pop(MEMBER) and None)
    assert f"member {MEMBER} is named in the manifest and missing" in refusal(path)


def test_member_that_was_never_there(tmp_path: Path) -> None:
    assert "has no member raw/timing/1x1.csv" in refusal(rewritten(tmp_path / "a.zip", lambda m: None), "raw/timing/1x1.csv")


@pytest.mark.parametrize("name", ["../evil.csv", "raw/../../evil.csv", "/etc/evil.csv", "raw\\..\\evil.csv"])
def test_member_that_climbs_out(tmp_path: Path, name: str) -> None:
    def climb(members: dict[str, bytes]) -> None:
        members[name] = b"evil"
        manifest(members, files={**json.loads(members[MANIFEST])["files"], name: sha256_bytes(b"evil")})

    assert "would leave the folder; refused" in refusal(rewritten(tmp_path / "a.zip", climb), name)


@pytest.mark.parametrize("version", [99, "1", None, 0.5])
def test_schema_it_cannot_read(tmp_path: Path, version: object) -> None:
    said = refusal(rewritten(tmp_path / "a.zip", lambda m: manifest(m, schema_version=version)))
    assert f"has schema version {version}" in said and "use a newer release" in said


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"schema_version": 1}', b"\xff\xfe", b'{"schema_version": 1, "files": []}'])
def test_manifest_that_is_none(tmp_path: Path, text: bytes) -> None:
    said = refusal(rewritten(tmp_path / "a.zip", lambda m: m.update({MANIFEST: text})))
    assert MANIFEST in said and "no archive of a run" in said


def test_zip_of_something_else(tmp_path: Path) -> None:
    assert MANIFEST in refusal(rewritten(tmp_path / "a.zip", lambda m: m.pop(MANIFEST) and None))
