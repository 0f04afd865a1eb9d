"""Copies of the project to run Snakemake in, and the recorded run that they replay."""

from __future__ import annotations

import copy
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "workflow" / "tests"
QUICK = TESTS / "material" / "nvidia-h200-quick.crate.zip"  # a run of config/quick.yaml, recorded on an NVIDIA H200
NAMED = f"results/archive/{QUICK.name}"  # where a copied project has it
PARTS = ("Snakefile", "kernels", "config", "paper", "profiles", "workflow/rules", "workflow/report")

_JOB = re.compile(r"^(?:local)?rule (\w+):$(.*?)(?=^(?:local)?rule \w+:$|^Job stats:|\Z)", re.M | re.S)
_MESSAGE = re.compile(r"^Job \d+: ([^(\n]+?)(?: \(.*\))?$", re.M)  # a rule's name and its wildcards' values, then the run in brackets
_WILDCARDS = re.compile(r"^    wildcards: (.*)$", re.M)

Job = tuple[str, ...]  # a rule's name, then its wildcards' values but for the run's folder


@dataclass(frozen=True)
class Project:
    """A copy of the project in a folder of its own."""

    root: Path

    def run(self, *command: str, env: dict[str, str] | None = None, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a command in the project; its output, stderr included, is text."""
        return subprocess.run(
            [sys.executable, "-m", *command],
            cwd=self.root,
            env=self.environment(env),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )

    def environment(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """The environment of a command: a scratch folder of its own, so that no lock or file is shared with anybody."""
        scratch = self.root.parent / "scratch"
        scratch.mkdir(exist_ok=True)
        return {**os.environ, "TMPDIR": str(scratch), **(more or {})}

    def snakemake(self, *arguments: str, env: dict[str, str] | None = None, ok: bool = True, timeout: float = 300) -> str:
        """Run Snakemake and return what it printed; ``ok`` says how it must end."""
        done = self.run("snakemake", "--cores", "1", *arguments, env=env, timeout=timeout)
        assert (done.returncode == 0) == ok, f"snakemake {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout[-6000:]}"
        return done.stdout

    def command(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run ``transpose-study``."""
        return self.run("transpose_study", *arguments, env=env)

    def plan(self, *arguments: str, env: dict[str, str] | None = None) -> set[Job]:
        """What a dry run says it would do; ``all`` itself is left out."""
        text = self.snakemake("all", "-n", *arguments, env=env)
        jobs: set[Job] = {tuple(job.split()) for job in _MESSAGE.findall(text)}
        for rule, body in _JOB.findall(text):
            found = _WILDCARDS.search(body)
            values = dict(w.split("=", 1) for w in found.group(1).split(", ")) if found else {}
            jobs.add((rule, *(v for name, v in values.items() if name != "run")))
        assert jobs or "Nothing to be done" in text, text
        return jobs - {("all",)}

    def path(self, name: str) -> Path:
        """A file of the project."""
        return self.root / name

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that stands exactly once in a file."""
        path = self.path(name)
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name} has {old!r} {text.count(old)} times"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def configure(self, **changes: Any) -> None:
        """Set top-level keys of config/config.yaml; None takes a key out."""
        path = self.path("config/config.yaml")
        data = {**yaml.safe_load(path.read_text(encoding="utf-8")), **changes}
        path.write_text(yaml.safe_dump({k: v for k, v in data.items() if v is not None}, sort_keys=False), encoding="utf-8")

    def hashes(self, *folders: str) -> dict[str, str]:
        """sha256 of every file below the folders, by its path in the project."""
        files = [p for f in folders for p in sorted(self.path(f).rglob("*")) if p.is_file()]
        return {str(p.relative_to(self.root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}

    def copy(self, parent: Path) -> Project:
        """A copy that Snakemake takes for the same project: modification times and Snakemake's own notes go with it."""
        parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.root, parent / self.root.name)
        return Project(parent / self.root.name)


def quick_config(archive: Path = QUICK) -> dict[str, Any]:
    """The configuration the recorded run was made with."""
    with zipfile.ZipFile(archive) as container:
        return copy.deepcopy(yaml.safe_load(container.read("run_config.yaml"))["config"])


def shape_name(shape: dict[str, Any]) -> str:
    """File-name form of a configured shape."""
    return f"{shape['rows']}x{shape['cols']}"


def copy_project(parent: Path) -> Project:
    """Copy the project into a folder whose name has a space; it replays the quick run and writes Markdown alone."""
    root = parent / "transpose study"
    for part in PARTS:
        source, target = ROOT / part, root / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)
    (root / "results" / "archive").mkdir(parents=True)
    shutil.copy2(QUICK, root / NAMED)
    project = Project(root)
    recorded = quick_config()
    text = yaml.safe_dump({k: recorded[k] for k in ("study", "shapes", "axes", "variants")} | {
        "device": "archive", "replay": NAMED, "run": "mine", "report": {"formats": ["md"]},
        "paper": {"language": ["en"]},
    }, sort_keys=False)  # fmt: skip
    project.path("config/config.yaml").write_text(text, encoding="utf-8")
    return project


def rules(jobs: Iterable[Job]) -> set[str]:
    """The rules' names alone."""
    return {job[0] for job in jobs}
