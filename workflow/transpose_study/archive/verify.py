"""``verify``: an archive against itself, byte by byte, and against what its raw data and sources give when used again."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from transpose_study import __version__
from transpose_study.archive import contents, rebuild
from transpose_study.archive.crate import METADATA
from transpose_study.archive.findings import AGREES, DIFFERS, UNTOLD, Finding, some
from transpose_study.archive.pack import order, program_digest
from transpose_study.archive.writer import TIME, Source, from_bytes, sha256_of, write_container
from transpose_study.container import BLOCK, MANIFEST, Container
from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.recompile import EQUAL, OTHER, SAME_CODE, recompile
from transpose_study.recompile import UNTOLD as NOT_COMPARED
from transpose_study.records import read_json, sha256_file
from transpose_study.status import mismatches

CHECKS = ("contents", *rebuild.MADE, "kernels")  # those that use what is in the archive; check_file makes the others


def verify(path: Path, *, trust: bool = False, skip: Collection[str] = (), say: Callable[[str], None] = str) -> list[Finding]:
    """Check an archive and return the findings, in the order of the checks; ``say`` is told what goes on.

    ``skip`` names checks of :data:`CHECKS` that are not made; what they would make anew is taken from the archive.

    With ``trust`` the program and the write-up inside the archive are executed; without it only the installed program is,
    and the archive's write-up where it is the installed project's own. Raises :class:`StudyError` for what is no archive.
    """
    container = Container(path)
    say(f"{path}: {path.stat().st_size / 1e6:.1f} MB, schema version {container.schema_version}")
    say(f"  {container.manifest.get('device', '?')}, measured {container.manifest.get('measured', '?')}")
    findings = check_file(container)
    if any(f.name == "hashes" and f.outcome == DIFFERS for f in findings):
        return [*findings, *(Finding(name, UNTOLD, ["not tried, since files are damaged"]) for name in CHECKS if name not in skip)]
    with tempfile.TemporaryDirectory(prefix="transpose-study-verify-") as scratch:
        archived = Path(scratch) / "archived"
        for name in container.names:
            container.extract(name, archived / name)
        findings += _contents(container, archived, Path(scratch), trust=trust, skip=skip, say=say)
    return findings


def check_file(container: Container) -> list[Finding]:
    """What can be told of the file without using what is in it: structure, hashes, bytes of the container, description."""
    wrong = list(_altered(container))
    hashes = Finding("hashes", DIFFERS, wrong) if wrong else Finding("hashes", AGREES, [f"{len(container.names)} files match their sha256"])
    findings = [_structure(container), hashes, _bytes(container)]
    return findings if wrong else [*findings, _description(container)]


# -- the file ---------------------------------------------------------------------------------------------------------


def _structure(container: Container) -> Finding:
    """Every file of the zip is in the manifest, once, in its place; what the manifest names and is missing is refused before."""
    expected = {MANIFEST, *container.names}
    added = sorted(set(container.listed) - expected)
    twice = sorted({n for n in container.listed if container.listed.count(n) > 1})
    said = [f"{n} is in the file and not in the manifest" for n in added] + [f"{n} is in the file twice" for n in twice]
    if not said and container.listed != _order(container):
        said = ["the files do not stand in their order"]
    return Finding("structure", DIFFERS, said) if said else Finding("structure", AGREES, [f"{len(container.names)} files, each in the manifest"])


def _order(container: Container) -> list[str]:
    return order(container.names) if container.schema_version > 1 else [MANIFEST, *sorted(container.names)]


def _source(container: Container, name: str) -> Source:
    return from_bytes(container.manifest_bytes) if name == MANIFEST else lambda: container.stream(name)


def _altered(container: Container) -> Iterator[str]:
    for name, digest in container.names.items():
        try:
            found, _ = sha256_of(_source(container, name))
        except StudyError as error:
            yield error.what
            continue
        if found != digest:
            yield f"{name} does not match its sha256"


def _bytes(container: Container) -> Finding:
    """The file against its own content written anew: damage to headers, gaps and what hangs before or behind shows here."""
    with tempfile.TemporaryDirectory(prefix="transpose-study-verify-") as scratch:
        again = Path(scratch) / "again.zip"
        try:
            if container.schema_version > 1:
                write_container(again, [(n, _size(container, n), _source(container, n)) for n in _order(container)])
            else:
                _write_deflated(container, again)
        except StudyError as error:
            return Finding("container", DIFFERS, [error.what])
        place = _first_difference(container.path, again)
        alike = place is None or container.schema_version > 1 or _same_zlib(container.path, again)
    if place is None:
        return Finding("container", AGREES, ["written anew, the file has the same bytes"])
    if not alike:
        return Finding("container", UNTOLD, ["compressed by another zlib than this one; of the container itself nothing can be told"])
    return Finding("container", DIFFERS, [f"byte {place} of the file is not what its content gives"])


def _size(container: Container, name: str) -> int:
    return len(container.manifest_bytes) if name == MANIFEST else container.size(name)


def _write_deflated(container: Container, target: Path) -> None:
    """The container as version 1 wrote it."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in _order(container):
            info = zipfile.ZipInfo(name, TIME)
            info.external_attr = 0o644 << 16
            with _source(container, name)() as stream:
                archive.writestr(info, stream.read(), zipfile.ZIP_DEFLATED, 9)


def _same_zlib(first: Path, second: Path) -> bool:
    """Whether most members were compressed to the same size in both files: then one zlib made both, and other bytes are damage."""
    with zipfile.ZipFile(first) as a, zipfile.ZipFile(second) as b:
        sizes = {i.filename: i.compress_size for i in b.infolist()}
        equal = [sizes.get(i.filename) == i.compress_size for i in a.infolist()]
    return 2 * sum(equal) > len(equal)


def _first_difference(first: Path, second: Path) -> int | None:
    """Offset of the first byte in which two files differ, None where they are equal."""
    offset = 0
    with first.open("rb") as a, second.open("rb") as b:
        while True:
            one, two = a.read(BLOCK), b.read(BLOCK)
            if one != two:
                return offset + next((i for i, (x, y) in enumerate(zip(one, two, strict=False)) if x != y), min(len(one), len(two)))
            if not one:
                return None
            offset += len(one)


def _description(container: Container) -> Finding:
    """The crate's own list of files against the manifest."""
    if METADATA not in container.names:
        return Finding("description", AGREES, ["version 1 has none"])
    graph = container.read_json(METADATA)["@graph"]
    described = {e["@id"]: e.get("sha256") for e in graph if "File" in e.get("@type", ())}
    manifest = {n: d for n, d in container.names.items() if n != METADATA}
    other = sorted(n for n in {*described, *manifest} if described.get(n) != manifest.get(n))
    if other:
        return Finding("description", DIFFERS, [f"{METADATA} describes other files than the manifest: {some(other)}"])
    return Finding("description", AGREES, [f"{METADATA} describes every file with its sha256"])


# -- what is in it ----------------------------------------------------------------------------------------------------


def _contents(
    container: Container, archived: Path, scratch: Path, *, trust: bool, skip: Collection[str], say: Callable[[str], None]
) -> Iterator[Finding]:
    program = _program(container, archived, trust=trust)
    say(f"  program: {_told(program)}")
    try:
        project, run = rebuild.prepare(archived, scratch)
        experiment = Experiment.from_run(archived, project)
        wrong = mismatches(experiment, kernels=False, made=container.schema_version > 1)
    except StudyError as error:
        yield Finding("contents", DIFFERS, [str(error).splitlines()[0].replace(f"{scratch}/", "")])
        return
    if "contents" not in skip:
        yield Finding("contents", DIFFERS, wrong) if wrong else Finding("contents", AGREES, ["raw data, configuration and cubins belong together"])
    yield from rebuild.rebuild(archived, project, run, program, skip)
    if "kernels" not in skip:
        yield _kernels(experiment)


def _program(container: Container, archived: Path, *, trust: bool) -> rebuild.Program:
    inside = (archived / contents.SOURCES / contents.PROGRAM).is_dir()
    installed = program_digest({f"{contents.SOURCES}/{n}": sha256_file(p) for n, p in contents.program().items()})
    return rebuild.Program(
        same=program_digest(container.names) == installed,
        trusted=trust and inside,
        installed_version=__version__,
        archived_version=str(container.manifest.get("program", "?")),
        changed=rebuild.changed_packages(read_json(archived / "environment.json")),
    )


def _told(program: rebuild.Program) -> str:
    if program.trusted:
        return "the one in the archive"
    return "the installed one, which is the one in the archive" if program.same else "the installed one, which is not the one in the archive"


def _kernels(experiment: Experiment) -> Finding:
    kernels = [k for v in experiment.variants() if not v.no_kernel for k in experiment.kernels(v)]
    compared = recompile(experiment.study, kernels, experiment.paths.build(experiment.architecture))
    counts = {outcome: [c for c in compared if c.outcome == outcome] for outcome in (EQUAL, SAME_CODE, OTHER, NOT_COMPARED)}
    said = [f"{len(counts[EQUAL])} of {len(compared)} cubins compile to the same bytes again"]
    if counts[SAME_CODE]:
        said.append(f"the same code in other bytes: {some([c.kernel for c in counts[SAME_CODE]])}")
    said += [f"{c.kernel}: {c.reason}" for c in counts[OTHER]]
    for reason in dict.fromkeys(c.reason for c in counts[NOT_COMPARED]):
        said.append(f"not compared: {some([c.kernel for c in counts[NOT_COMPARED] if c.reason == reason])}: {reason}")
    outcome = DIFFERS if counts[OTHER] else UNTOLD if counts[NOT_COMPARED] and not counts[EQUAL] and not counts[SAME_CODE] else AGREES
    return Finding("kernels", outcome, said)


def as_json(findings: list[Finding]) -> str:
    """The findings for scripts."""
    return json.dumps([{"check": f.name, "outcome": f.outcome, "said": list(f.said)} for f in findings], indent=2)
