"""environment.json: on what a run was made, so that a reader can tell what a difference may come from."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from transpose_study import __version__
from transpose_study.experiment import Experiment
from transpose_study.progress import Log
from transpose_study.records import read_json, read_text, write_json

PACKAGES = (
    "snakemake", "cupy-cuda13x", "cupy-cuda12x", "numpy", "pandas", "seaborn", "matplotlib", "jupytext", "nbclient", "ncu-report",
    "nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm", "nvidia-ml-py", "pypandoc_binary", "typst", "pydantic", "filelock",
)  # fmt: skip


def describe(experiment: Experiment, log: Log) -> None:
    """Write environment.json: of this machine after a measurement, of the archived one (and saying so) in a replay."""
    if experiment.replay:
        from transpose_study.archive.container import Container  # noqa: PLC0415

        container = Container(experiment.root / experiment.target["archive"])
        environment = container.read_json("environment.json")
        environment["replayed_from"] = {"archive": Path(experiment.target["archive"]).name, "sha256": container.sha256}
    else:
        environment = _live(experiment)
    write_json(experiment.paths.environment, environment)
    log.note(f"environment of {environment['gpu']['name']}")


def _live(experiment: Experiment) -> dict[str, Any]:
    from transpose_study.gpu.telemetry import Telemetry  # noqa: PLC0415 - needs NVML

    journal = _journal(experiment)
    stages: dict[str, float] = {}
    for entry in journal:
        stages[entry["stage"]] = round(stages.get(entry["stage"], 0) + entry["seconds"], 3)
    return {
        "schema_version": 1,
        "gpu": experiment.gpu | Telemetry(experiment.gpu["uuid"]).facts(),
        "driver_cuda": experiment.gpu["driver_cuda"],
        "compiler": _compiler(experiment),
        "ncu": next((e["ncu"] for e in journal if e.get("ncu")), None),
        "python": platform.python_version(),
        "packages": _packages(),
        "program": __version__,
        "machine": {"system": platform.system(), "kernel": platform.release(), "architecture": platform.machine(), "libc": platform.libc_ver()[1]},
        "git": _git(experiment.root),
        "argv": json.loads(os.environ.get("TRANSPOSE_STUDY_ARGV", "null")) or [Path(sys.argv[0]).name, *sys.argv[1:]],
        "start": min((e["start"] for e in journal), default=None),
        "end": max((e["end"] for e in journal), default=None),
        "stage_seconds": stages,
        "stages": journal,
        "replayed_from": None,
    }


def _journal(experiment: Experiment) -> list[dict[str, Any]]:
    path = experiment.paths.journal
    return [json.loads(line) for line in read_text(path).splitlines()] if path.exists() else []


def _compiler(experiment: Experiment) -> dict[str, Any]:
    for path in experiment.kernel_records():
        if path.exists():
            return dict(read_json(path)["compiler"])
    return {}


def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _git(root: Path) -> dict[str, Any]:
    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(root), *arguments], text=True, capture_output=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    if commit is None:  # a copy without its history may be told where it came from
        return {"commit": os.environ.get("TRANSPOSE_STUDY_COMMIT"), "dirty": None}
    return {"commit": commit, "dirty": bool(git("status", "--porcelain", "--untracked-files=no"))}
