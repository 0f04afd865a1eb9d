"""Packs a finished run: everything a stranger needs to check it, rebuild its report, or run it again.

Schema version 2: a zip that is a Workflow Run Crate. Members lie in fixed order with fixed times, large ones as bzip2, so that
the same results folder gives the same bytes under every version of Python and zlib (see writer.py): manifest.json (the sha256
of every other member), ro-crate-metadata.json, then the files by name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transpose_study import __version__
from transpose_study.archive import contents
from transpose_study.archive.crate import METADATA, README, metadata, readme
from transpose_study.archive.writer import Source, from_bytes, from_file, sha256_of, write_container
from transpose_study.container import MANIFEST, SCHEMA_VERSION, Container
from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.records import atomic_path, digest_of, read_json, sha256_bytes
from transpose_study.status import mismatches


def pack(experiment: Experiment, output: Path | None = None, *, with_ncu_reports: bool = False) -> Path:
    """Write the archive of a live run and return its path; nothing that looks finished is left by an interruption.

    Refused, with a :class:`StudyError`: a replay, which would only repeat its archive; a run that is not finished; a folder
    whose data were not measured with the configuration, sources and cubins beside them.
    """
    folder = experiment.paths.folder
    if experiment.replay:
        raise StudyError(
            f"this folder is a replay of {experiment.target['archive']}; there is nothing new to archive",
            where=str(folder),
            hint="archive a live run, on a machine with a GPU",
        )
    environment = read_json(experiment.paths.environment)
    if not environment.get("start"):
        raise StudyError("no measurement is recorded in this folder", where=str(folder), hint="run snakemake --cores 1 all first")
    wrong = mismatches(experiment)
    if wrong:
        raise StudyError("does not hold together: " + "; ".join(wrong), where=str(folder), hint="run snakemake --cores 1 all, then archive again")
    name = contents.default_name(experiment.gpu["name"], experiment.config.study, environment["start"][:10])
    path = output or Path("results") / "archive" / name
    files = contents.members(experiment, with_ncu_reports=with_ncu_reports)
    sources: dict[str, Source] = {name: from_file(file) for name, file in files.items()}
    sources[README] = from_bytes(readme(environment, title=experiment.study.title, program=__version__))
    seen = {name: sha256_of(source) for name, source in sources.items()}
    digests, sizes = {n: d for n, (d, _) in seen.items()}, {n: s for n, (_, s) in seen.items()}
    crate = metadata(sizes, digests, environment, study=experiment.config.study, title=experiment.study.title, program=__version__)
    files_digests = dict(sorted({**digests, METADATA: sha256_bytes(crate)}.items()))
    manifest = manifest_bytes(
        {
            "schema_version": SCHEMA_VERSION,
            "program": __version__,
            "program_digest": program_digest(digests),
            "study": experiment.config.study,
            "device": environment["gpu"]["name"],
            "measured": environment["start"],
            "files": files_digests,
        }
    )
    sizes |= {MANIFEST: len(manifest), METADATA: len(crate)}
    sources |= {MANIFEST: from_bytes(manifest), METADATA: from_bytes(crate)}
    with atomic_path(path) as part:
        write_container(part, [(n, sizes[n], sources[n]) for n in order(files_digests)])
        _unchanged(part, digests)
    return path


def order(names: Any) -> list[str]:
    """Members in the order in which they stand in the file."""
    first = [MANIFEST, METADATA]
    return first + sorted(n for n in names if n not in first)


def manifest_bytes(manifest: dict[str, Any]) -> bytes:
    """The manifest as it is written."""
    return (json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def program_digest(digests: dict[str, str]) -> str:
    """One digest of the program's files, from the members' digests."""
    prefix = f"{contents.SOURCES}/{contents.PROGRAM}/"
    return digest_of({n.removeprefix(prefix): d for n, d in digests.items() if n.startswith(prefix)})


def _unchanged(part: Path, digests: dict[str, str]) -> None:
    """Read the written file back: a file that was edited while it was packed must not pass."""
    container = Container(part)
    for name, digest in digests.items():
        if sha256_of(lambda name=name: container.stream(name))[0] != digest:  # type: ignore[misc]
            raise StudyError(f"{name} changed while it was packed", hint="archive again when nothing else writes into the folder")
