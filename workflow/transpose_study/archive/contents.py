"""What belongs into an archive: the files of the run, and the sources that made them, the program itself among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import transpose_study
from transpose_study.device import slug
from transpose_study.experiment import Experiment

# Folders and files of a run; ncu's own reports only on request. The report's other formats come from these.
FOLDERS = ("build", "raw", "tables", "figures", "report", "logs")
FILES = ("run_config.yaml", "environment.json")
PREDICTED = "predicted*.csv"
LEFT_OUT = (".part", ".ncu-rep", ".png", ".pdf", ".ipynb")
PARTS = "parts"  # raw/counters/parts/ is joined in raw/counters/

SOURCES = "sources"  # the project as it was, so that everything can be rebuilt and run again
PROJECT = (
    "Snakefile", "LICENSE", "CITATION.cff", "README.md", "pyproject.toml", "kernels", "config", "paper", "profiles", "workflow/rules",
    "workflow/report", "workflow/envs",
)  # fmt: skip
PROGRAM = "workflow/transpose_study"

FIRST_STUDY = "transpose"  # of config/config.yaml; any other has a configuration of its name, and its name in its archives'


def default_name(device: str, study: str, day: str) -> str:
    """An archive's file name: ``<device>-<date>.crate.zip``, with the study's name between them where it is not the first one's."""
    return "-".join([slug(device), *([study] if study != FIRST_STUDY else []), day]) + ".crate.zip"


def members(experiment: Experiment, *, with_ncu_reports: bool) -> dict[str, Path]:
    """The file behind each member, by the member's name, in order of the names."""
    folder = experiment.paths.folder
    left_out = tuple(s for s in LEFT_OUT if not (with_ncu_reports and s == ".ncu-rep"))
    found = {p.name: p for p in [*(folder / name for name in FILES), *folder.glob(PREDICTED)] if p.is_file()}
    for name in FOLDERS:
        for path in _files(folder / name):
            if path.suffix not in left_out and PARTS not in path.relative_to(folder).parts:
                found[path.relative_to(folder).as_posix()] = path
    for name, path in sources(experiment.root).items():
        found[f"{SOURCES}/{name}"] = path
    return dict(sorted(found.items()))


def sources(root: Path) -> dict[str, Path]:
    """The project's files by their path in the project; the program is the one that is running."""
    found = {}
    for name in PROJECT:
        for path in _files(root / name):
            if path.suffix not in LEFT_OUT:
                found[path.relative_to(root).as_posix()] = path
    return found | program()


def program() -> dict[str, Path]:
    """Files of the running program by their path in a project."""
    package = Path(transpose_study.__file__).parent
    return {f"{PROGRAM}/{p.relative_to(package).as_posix()}": p for p in _files(package)}


def _files(path: Path) -> Iterator[Path]:
    """The file, or all files below the folder, without what Python, editors and operating systems leave behind."""
    if path.is_file():
        yield path
    elif path.is_dir():
        for below in sorted(path.rglob("*")):
            hidden = any(part.startswith(".") or part == "__pycache__" for part in below.relative_to(path).parts)
            if below.is_file() and not hidden and below.suffix != ".pyc":
                yield below
