"""Packs a finished run: everything a stranger needs to check it, rebuild its report, or run it again."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from transpose_study import __version__
from transpose_study.archive.container import MANIFEST, SCHEMA_VERSION
from transpose_study.device import slug
from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.records import atomic_path, read_json, sha256_bytes

# Folders and files of a run that belong into its archive; ncu's own reports only on request.
FOLDERS = ("build", "raw", "tables", "figures", "report", "logs")
FILES = ("run_config.yaml", "environment.json", "predicted.csv", "predicted_check.csv")
LEFT_OUT = (".part", ".ncu-rep", ".png", ".pdf", ".ipynb")
SOURCES = ("kernels", "config", "paper", "Snakefile", "pyproject.toml", "workflow/envs/requirements.lock")
TIME = (1980, 1, 1, 0, 0, 0)  # the earliest a zip can hold; the same run gives the same bytes


def pack(experiment: Experiment, output: Path | None, *, with_ncu_reports: bool = False) -> Path:
    """Write the archive of a live run and return its path; a replay is refused, since it would only repeat its archive."""
    folder = experiment.paths.folder
    if experiment.replay:
        raise StudyError(
            f"this folder is a replay of {experiment.target['archive']}; there is nothing new to archive",
            where=str(folder),
            hint="archive a live run, on a machine with a GPU",
        )
    environment = read_json(experiment.paths.environment)
    started = environment["start"]
    if not started:
        raise StudyError("no measurement is recorded in this folder", where=str(folder), hint="run snakemake --cores 1 all first")
    path = output or Path("results") / "archive" / f"{slug(experiment.gpu['name'])}-{started[:10]}.crate.zip"
    members = {str(p.relative_to(folder)): p for p in _run_files(folder, with_ncu_reports)}
    members |= {f"sources/{p.relative_to(experiment.root)}": p for p in _source_files(experiment)}
    data = {name: source.read_bytes() for name, source in sorted(members.items())}
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "program": __version__,
        "study": experiment.config.study,
        "device": environment["gpu"]["name"],
        "measured": started,
        "files": {name: sha256_bytes(content) for name, content in data.items()},
    }
    text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    with atomic_path(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in {MANIFEST: text.encode(), **data}.items():
            info = zipfile.ZipInfo(name, TIME)
            info.external_attr = 0o644 << 16
            archive.writestr(info, content, zipfile.ZIP_DEFLATED, 9)
    return path


def _run_files(folder: Path, with_ncu_reports: bool) -> list[Path]:
    left_out = tuple(s for s in LEFT_OUT if not (with_ncu_reports and s == ".ncu-rep"))
    files = [folder / name for name in FILES if (folder / name).is_file()]
    for name in FOLDERS:
        files += [p for p in (folder / name).rglob("*") if p.is_file() and p.suffix not in left_out and "parts" not in p.parts]
    return files


def _source_files(experiment: Experiment) -> list[Path]:
    files: list[Path] = []
    for name in SOURCES:
        path = experiment.root / name
        files += [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return files
