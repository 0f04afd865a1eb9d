"""Rebuilds an archive's tables, figures and report from its raw data in a clean folder, and compares them byte for byte."""

from __future__ import annotations

import csv
import importlib.metadata
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import transpose_study
from transpose_study.archive import contents
from transpose_study.archive.findings import AGREES, DIFFERS, UNTOLD, Finding, some
from transpose_study.experiment import Experiment
from transpose_study.records import sha256_file

INPUTS = ("run_config.yaml", "environment.json", "raw", "build", "logs")
CLOSE = 1e-9  # tables hold twelve digits; sums differ between CPUs and versions of numpy by less than this share
TIMEOUT_S = 900

# What is made, by which stages, in the order in which they run; judge only where the archive has its table.
MADE = {
    "predictions": (contents.PREDICTED, ("predict",)),
    "tables": ("tables/*", ("aggregate", "judge")),
    "figures": ("figures/*", ("draw",)),
    "report": ("report/*", ("write",)),
}
JUDGED = "tables/claims.csv"
SETTINGS = "import sys, pathlib, transpose_study.experiment as e; print(e.Experiment.from_run(pathlib.Path(sys.argv[1])).predict_settings())"


@dataclass
class Program:
    """The program that rebuilds: the installed one, or (``trusted``) the one in the archive; ``same`` if they are equal."""

    same: bool
    trusted: bool
    installed_version: str
    archived_version: str
    changed: list[str] = field(default_factory=list)  # packages whose version is not the recorded one

    @property
    def is_archives(self) -> bool:
        """True where the rebuilding program is the one that made the archive."""
        return self.same or self.trusted

    def excuse(self) -> str:
        """What other than the data may make bytes differ, "" where nothing is known."""
        reasons = []
        if not self.is_archives:
            reasons.append(f"the program is not the archive's own ({self.installed_version} here, {self.archived_version} there, or edited since)")
        if self.changed:
            reasons.append(f"other versions than recorded of {', '.join(self.changed)}")
        return "; ".join(reasons)


def changed_packages(environment: Mapping[str, object]) -> list[str]:
    """Packages of environment.json whose installed version is another, as ``numpy 2.4.6 (2.5.2)``."""
    changed = []
    recorded = environment.get("packages")
    for name, version in sorted(recorded.items()) if isinstance(recorded, dict) else ():
        try:
            here = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if here != version:
            changed.append(f"{name} {here} ({version})")
    return changed


def prepare(archived: Path, scratch: Path) -> tuple[Path, Path]:
    """Lay out a project from an unpacked archive in ``scratch``: its sources, and a run that holds inputs only.

    Returns the project and the run, relative to it. Sources that an archive of version 1 lacks come from this project.
    """
    project = scratch / "project"
    shutil.copytree(archived / contents.SOURCES, project, dirs_exist_ok=True)
    own = Path(transpose_study.__file__).parents[2]
    for name in ("workflow/report", "workflow/rules", "profiles"):
        if not (project / name).is_dir() and (own / name).is_dir():
            shutil.copytree(own / name, project / name)
    run = Path("results") / "run" / Experiment.from_run(archived, project).config.study
    for name in INPUTS:
        source, target = archived / name, project / run / name
        if source.is_dir():
            shutil.copytree(source, target)
        elif source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return project, run


def rebuild(archived: Path, project: Path, run: Path, program: Program, skip: Collection[str] = ()) -> list[Finding]:
    """Run the stages after the raw data and compare what they make with the archive's, one finding for each that is not skipped."""
    findings = []
    for name, (pattern, stages) in MADE.items():
        wanted = sorted(p.relative_to(archived).as_posix() for p in archived.glob(pattern) if p.is_file())
        if name in skip:
            for file in wanted:  # what is not made anew is taken as it is, for what is made from it
                (project / run / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(archived / file, project / run / file)
            continue
        refusal = _foreign_write_up(project, program) if name == "report" else ""
        if not wanted or refusal:
            findings.append(Finding(name, UNTOLD if wanted else AGREES, [refusal or "the archive has none"]))
            continue
        failure = ""
        for stage in stages:
            if stage != "judge" or JUDGED in wanted:
                failure = failure or _run(stage, project, run, program, wanted)
        if failure:
            findings.append(Finding(name, DIFFERS if program.is_archives else UNTOLD, [failure]))
        else:
            findings.append(_compare(name, wanted, archived, project / run, program))
    return findings


def _foreign_write_up(project: Path, program: Program) -> str:
    """Why the write-up is not executed: it is a program, and run only if it is this project's own, or trusted."""
    own = Path(transpose_study.__file__).parents[2] / "paper"
    for path in sorted((project / "paper").glob("*.py")):
        known = own / path.name
        if not program.trusted and not (known.is_file() and sha256_file(known) == sha256_file(path)):
            return f"the archive's {path.name} is a program other than this project's; --trust runs it"
    return ""


def _run(stage: str, project: Path, run: Path, program: Program, wanted: Sequence[str]) -> str:
    """Run one stage; return why it failed, or ""."""
    package = project / contents.PROGRAM if program.trusted else Path(transpose_study.__file__).parent
    search = os.pathsep.join(p for p in (str(package.parent.resolve()), os.environ.get("PYTHONPATH", "")) if p)
    formats = sorted({Path(n).suffix[1:] for n in wanted if n.count(".") == 1})
    environment = {**os.environ, "PYTHONPATH": search}

    def start(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=project, env=environment, text=True, errors="replace", capture_output=True,
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip

    try:
        options = []
        if stage == "write":
            options = ["--formats", *formats]
        elif stage == "predict":
            options = ["--settings", start("-c", SETTINGS, str(run)).stdout.strip()]
        done = start("-m", "transpose_study", stage, "--run", str(run), *options)
    except subprocess.TimeoutExpired:
        return f"{stage} did not finish within {TIMEOUT_S} s"
    said = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else f"{stage} fails: {said[0] if said else f'status {done.returncode}'}"


def _compare(name: str, wanted: Sequence[str], archived: Path, made: Path, program: Program) -> Finding:
    """Each file of the archive against the rebuilt one; a table whose bytes differ is compared figure by figure."""
    equal, close, different, absent = [], [], [], []
    for file in wanted:
        old, new = archived / file, made / file
        if not new.is_file():
            absent.append(f"{file} is not made by this program")
        elif sha256_file(old) == sha256_file(new):
            equal.append(file)
        elif file.endswith(".csv"):
            difference = table_difference(old, new)
            (different if difference else close).append(f"{file}: {difference}" if difference else file)
        else:
            different.append(f"{file} differs")
    said = [f"{len(equal)} of {len(wanted)} rebuilt byte for byte"]
    if close:
        said.append(f"every figure agrees, other bytes or columns: {some(close)}")
    if not different and not absent:
        return Finding(name, AGREES, said)
    excuse = program.excuse()
    said += [f"what may be the cause: {excuse}"] if excuse else []
    said += [*different, *absent]
    # A figure or page may change with a package's version; the numbers of a table may not.
    by_data = name in ("tables", "predictions") and program.is_archives
    return Finding(name, DIFFERS if by_data or not excuse else UNTOLD, said)


def table_difference(old: Path, new: Path) -> str:
    """The first figure of table ``old`` that ``new`` does not have, "" where every one agrees; further columns may be there."""
    with old.open(encoding="utf-8", newline="") as first, new.open(encoding="utf-8", newline="") as second:
        before, after = csv.DictReader(first), csv.DictReader(second)
        columns = list(before.fieldnames or ())
        lacking = [c for c in columns if c not in (after.fieldnames or ())]
        if lacking:
            return f"the rebuilt one has no column {', '.join(lacking)}"
        rows = list(after)
        count = 0
        for count, row in enumerate(before, start=1):
            if count > len(rows):
                return f"the rebuilt one has {len(rows)} rows, the archive's more"
            for column in columns:
                there, here = row[column] or "", rows[count - 1][column] or ""
                if not _agree(there, here):
                    where = " ".join(v for v in list(row.values())[:6] if v)
                    return f"line {count + 1} ({where}), {column}: {there or 'empty'} in the archive, {here or 'empty'} from its raw data"
    return f"the rebuilt one has {len(rows)} rows, the archive's {count}" if count < len(rows) else ""


def _agree(first: str, second: str) -> bool:
    if first == second:
        return True
    try:
        return math.isclose(float(first), float(second), rel_tol=CLOSE, abs_tol=1e-12)
    except ValueError:
        return False
