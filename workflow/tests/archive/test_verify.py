"""``verify`` finds every damage and every forgery, and names it."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from archive_run import Members, members_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projects import QUICK, ROOT, Project
from transpose_study.archive import rebuild
from transpose_study.archive.findings import AGREES, DIFFERS, UNTOLD, Finding, status_of
from transpose_study.archive.verify import CHECKS, check_file, verify
from transpose_study.container import MANIFEST, Container
from transpose_study.errors import StudyError

Forge = Callable[[Callable[[Members], None]], Path]
REBUILT_ONLY = ("predictions", "kernels")  # skipped where a test is about what is made from the raw data
FILE_CHECKS = ["structure", "hashes", "container", "description"]


def outcomes(findings: list[Finding]) -> dict[str, str]:
    return {f.name: f.outcome for f in findings}


def said(findings: list[Finding]) -> str:
    return "\n".join(line for f in findings for line in f.lines())


def file_findings(path: Path) -> list[Finding]:
    """Findings of the file alone; what cannot even be opened is one that differs."""
    try:
        return check_file(Container(path))
    except StudyError as error:
        return [Finding("structure", DIFFERS, [str(error)])]


# -- a whole archive ------------------------------------------------------------------------------------------------------


def test_whole_archive_agrees_in_everything(archive: Path) -> None:
    findings = verify(archive)
    assert list(outcomes(findings)) == [*FILE_CHECKS, "contents", "predictions", "tables", "figures", "report", "kernels"]
    assert set(outcomes(findings).values()) == {AGREES}, said(findings)
    assert status_of(findings) == 0
    kernels = next(f for f in findings if f.name == "kernels").said[0]
    assert kernels.split()[0] == kernels.split()[2], kernels  # every cubin compiled to the same bytes


def test_command_says_it_in_one_screen(archive: Path, finished: Project, tmp_path: Path) -> None:
    done = finished.command("verify", str(archive), "--skip", *REBUILT_ONLY)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 160 and lines[-1] == "everything agrees"
    (tmp_path / "a.zip").write_bytes(archive.read_bytes()[:-1])
    assert finished.command("verify", str(tmp_path / "a.zip")).returncode in (1, 2)
    assert finished.command("verify", str(tmp_path / "none.zip")).returncode == 2


def test_findings_as_json(archive: Path, tmp_path: Path, finished: Project) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(archive.read_bytes() + b"\0")
    done = finished.command("verify", str(path), "--json", "--skip", *CHECKS)
    assert done.returncode == 1
    assert {f["check"]: f["outcome"] for f in json.loads(done.stdout)}["container"] == DIFFERS


# -- damage ---------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(data=st.data())
def test_any_damaged_byte_is_found(archive: Path, tmp_path: Path, data: st.DataObject) -> None:
    """A single byte anywhere: in a member, a local header, the central directory, its end record."""
    content = bytearray(archive.read_bytes())
    directory = content.rindex(b"PK\x01\x02", 0, len(content) - 22)
    place = data.draw(st.one_of(st.integers(0, len(content) - 1), st.integers(0, 200), st.integers(directory, len(content) - 1)), "place")
    content[place] ^= data.draw(st.integers(1, 255), "change")
    (tmp_path / "a.zip").write_bytes(content)
    assert status_of(file_findings(tmp_path / "a.zip")) == 1, f"byte {place}"


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
def test_damage_to_an_archive_of_version_1_is_found(tmp_path: Path, place: float, change: int) -> None:
    """Where this zlib packs as the recording one did, the container of version 1 can be written anew as well."""
    if outcomes(check_file(Container(QUICK)))["container"] != AGREES:
        pytest.skip("this zlib compresses otherwise")
    content = bytearray(QUICK.read_bytes())
    content[int(place * len(content))] ^= change
    (tmp_path / "a.zip").write_bytes(content)
    assert status_of(file_findings(tmp_path / "a.zip")) == 1


@pytest.mark.parametrize("change", [lambda b: b"\0" + b, lambda b: b + b"\0", lambda b: b[:-1], lambda b: b[: len(b) // 2]])
def test_bytes_before_behind_or_missing_are_found(archive: Path, tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    (tmp_path / "a.zip").write_bytes(change(archive.read_bytes()))
    assert status_of(file_findings(tmp_path / "a.zip")) == 1


@pytest.mark.parametrize("name", ["raw/timing/4096x4096.csv", "build/sm_90/copy.cubin", "figures/bandwidth_ladder.svg", "environment.json"])
def test_flipped_byte_in_a_file_names_it(archive: Path, tmp_path: Path, name: str) -> None:
    content = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as container:
        info = container.getinfo(name)
    content[info.header_offset + 30 + len(name) + info.compress_size // 2] ^= 1
    (tmp_path / "a.zip").write_bytes(content)
    findings = verify(tmp_path / "a.zip")
    assert outcomes(findings)["hashes"] == DIFFERS and name in said(findings) and status_of(findings) == 1


def test_removed_file_is_named(archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as target:
        for name, data in members_of(archive).items():
            if name != "raw/check.csv":
                target.writestr(name, data)
    with pytest.raises(StudyError, match=r"member raw/check\.csv is named in the manifest and missing"):
        verify(tmp_path / "a.zip")


def test_added_file_is_named(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(archive.read_bytes())
    with zipfile.ZipFile(tmp_path / "a.zip", "a") as target:
        target.writestr("raw/timing/more.csv", "added")
    findings = check_file(Container(tmp_path / "a.zip"))
    assert "raw/timing/more.csv is in the file and not in the manifest" in said(findings) and status_of(findings) == 1


# -- forgeries: every hash mended, the container written anew -----------------------------------------------------------------


def altered_sample(members: Members) -> None:
    """One sample of copy made a tenth shorter."""
    name = "raw/timing/4096x4096.csv"
    lines = members[name].decode().splitlines(keepends=True)
    number = next(i for i, line in enumerate(lines) if line.startswith("copy,4096"))
    fields = lines[number].split(",")
    column = lines[0].split(",").index("sample_us")
    fields[column] = f"{0.9 * float(fields[column]):.6f}"
    lines[number] = ",".join(fields)
    members[name] = "".join(lines).encode()


def test_forger_mends_all_that_the_file_itself_tells(forged: Forge) -> None:
    assert set(outcomes(file_findings(forged(lambda m: None))).values()) == {AGREES}
    assert set(outcomes(file_findings(forged(altered_sample))).values()) == {AGREES}


def test_altered_raw_row_is_found_by_the_tables(forged: Forge) -> None:
    findings = verify(forged(altered_sample), skip=REBUILT_ONLY)
    found = outcomes(findings)
    assert found["hashes"] == AGREES and found["tables"] == DIFFERS and status_of(findings) == 1
    assert "tables/timings.csv" in said(findings), said(findings)


def test_altered_table_is_named_with_its_line(forged: Forge) -> None:
    def change(members: Members) -> None:
        name = "tables/block_rows.csv"
        members[name] = members[name].replace(b",true,", b",false,", 1)

    text = said(verify(forged(change), skip=REBUILT_ONLY))
    assert "tables/block_rows.csv: line" in text and "best: false in the archive, true from its raw data" in text


def test_altered_report_and_figure_are_found(forged: Forge) -> None:
    def change(members: Members) -> None:
        members["report/transpose.md"] += b"\nAnd it holds everywhere.\n"
        members["figures/bandwidth_ladder.svg"] = members["figures/bandwidth_ladder.svg"].replace(b"</svg>", b"<!-- -->\n</svg>")

    found = verify(forged(change), skip=REBUILT_ONLY)
    assert outcomes(found)["report"] != AGREES and "report/transpose.md differs" in said(found)
    assert outcomes(found)["figures"] != AGREES and "figures/bandwidth_ladder.svg differs" in said(found)
    assert outcomes(found)["tables"] == AGREES


def test_cubin_of_other_code_is_found(forged: Forge) -> None:
    """A cubin exchanged with its record, so that both fit each other: its source compiles to something else."""

    def change(members: Members) -> None:
        folder = "build/sm_90/"
        record = json.loads(members[f"{folder}tiled_b8.json"])
        other = json.loads(members[f"{folder}tiled_xor_b8.json"])
        for suffix in ("cubin", "sass"):
            members[f"{folder}tiled_b8.{suffix}"] = members[f"{folder}tiled_xor_b8.{suffix}"]
        members[f"{folder}tiled_b8.json"] = json.dumps(record | {"cubin_sha256": other["cubin_sha256"]}).encode()

    found = verify(forged(change), skip=rebuild.MADE)
    assert outcomes(found)["kernels"] == DIFFERS and "tiled_b8: its source compiles to something else" in said(found)


def test_write_up_of_strangers_is_not_executed(forged: Forge, tmp_path: Path) -> None:
    marker = tmp_path / "executed"

    def change(members: Members) -> None:
        members["sources/paper/transpose.py"] += f"\n# %%\nopen({str(marker)!r}, 'w').close()\n".encode()

    path = forged(change)
    found = verify(path, skip=REBUILT_ONLY)
    assert not marker.exists() and outcomes(found)["report"] == UNTOLD and "--trust runs it" in said(found)
    assert status_of(found) == 3
    verify(path, trust=True, skip=REBUILT_ONLY)
    assert marker.exists()


def test_program_of_the_archive_rebuilds_where_it_is_trusted(forged: Forge) -> None:
    """An archive of a release whose tables have another column than the installed program's."""

    def change(members: Members) -> None:
        name = "sources/workflow/transpose_study/provenance.py"
        assert b'"run_id"' in members[name]
        members[name] = members[name].replace(b'"run_id"', b'"run_digest"')
        for table in [n for n in members if n.startswith("tables/")]:
            members[table] = members[table].replace(b"run_id", b"run_digest", 1)
        manifest = json.loads(members[MANIFEST])
        members[MANIFEST] = json.dumps(manifest).encode()

    path = forged(change)
    untrusted = verify(path, skip=REBUILT_ONLY)
    assert outcomes(untrusted)["tables"] == UNTOLD and "the program is not the archive's own" in said(untrusted)
    trusted = verify(path, trust=True, skip=REBUILT_ONLY)
    assert outcomes(trusted)["tables"] == AGREES, said(trusted)


# -- old archives, bad input ----------------------------------------------------------------------------------------------------


def test_archive_of_version_1_stays_readable() -> None:
    container = Container(QUICK)
    assert container.schema_version == 1
    findings = verify(QUICK, skip=("kernels",))
    found = outcomes(findings)
    assert found["structure"] == found["hashes"] == found["contents"] == AGREES, said(findings)
    assert found["container"] in (AGREES, UNTOLD)
    assert found["tables"] != DIFFERS, said(findings)


def refused(path: Path) -> str:
    with pytest.raises(StudyError) as caught:
        verify(path)
    return str(caught.value)


def test_zip_bomb_is_refused(archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr(MANIFEST, members_of(archive)[MANIFEST])
        target.writestr("raw/timing/4096x4096.csv", bytes(300 * 2**20))
    assert "refused as a zip bomb" in refused(tmp_path / "a.zip")


def test_member_that_unpacks_to_more_than_it_says_is_refused(archive: Path, tmp_path: Path) -> None:
    """A directory that lies about the size of a bzip2 member: 300 MB behind 10 bytes, stopped before they are in memory."""
    data = members_of(archive)[MANIFEST]
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_BZIP2) as target:
        target.writestr(MANIFEST, data)
        target.writestr("raw/check.csv", bytes(300 * 2**20))
        size = target.getinfo("raw/check.csv").file_size
    content = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(content.replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little")))
    container = Container.__new__(Container)
    container.path = tmp_path / "a.zip"
    tracemalloc.start()
    try:
        with zipfile.ZipFile(container.path) as target, pytest.raises(StudyError, match="unpacks to more than the 10 bytes"):
            container._members = {i.filename: i for i in target.infolist()}
            container._raw(target, "raw/check.csv")
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()


def test_link_is_refused(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(archive.read_bytes())
    with zipfile.ZipFile(tmp_path / "a.zip", "a") as target:
        link = zipfile.ZipInfo("raw/link")
        link.external_attr = 0o120777 << 16
        target.writestr(link, "/etc/passwd")
    assert "is a link; refused" in refused(tmp_path / "a.zip")


def test_newer_schema_says_what_is_needed(forged: Forge) -> None:
    path = forged(lambda m: m.update({MANIFEST: json.dumps(json.loads(m[MANIFEST]) | {"schema_version": 3, "program": "7.1"}).encode()}))
    text = refused(path)
    assert "has schema version 3; this program reads up to 2" in text and "transpose-study 7.1" in text


def test_not_a_zip() -> None:
    assert "no zip file" in refused(ROOT / "pyproject.toml")
