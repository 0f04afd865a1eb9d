"""environment.json: on what a run was made, so that a reader can tell what a difference may come from."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transpose_study import __version__
from transpose_study.container import Container
from transpose_study.device import Device
from transpose_study.errors import StudyError
from transpose_study.paths import RunPaths
from transpose_study.progress import Log
from transpose_study.records import read_json, read_text, write_json

PACKAGES = (
    "snakemake", "cupy-cuda13x", "cupy-cuda12x", "numpy", "pandas", "seaborn", "matplotlib", "jupytext", "nbclient", "ncu-report",
    "nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm", "nvidia-ml-py", "pypandoc_binary", "typst", "pydantic", "filelock",
)  # fmt: skip

REPEATS = "repeats.json"


def describe(settings: Mapping[str, Any], run: Path, log: Log, root: Path = Path()) -> None:
    """Write environment.json: of this machine after a measurement, of the archived one (and saying so) in a replay.

    ``settings`` holds the target (see :func:`transpose_study.target.find_target`) and the kernels' build records, and
    nothing of the configuration: an edited report must not put today's commit in the place of the measurement's.
    """
    archive, paths = settings["target"]["archive"], RunPaths(run)
    if archive:
        container = Container(root / archive)
        environment = container.read_json("environment.json")
        environment["replayed_from"] = {"archive": Path(archive).name, "sha256": container.sha256}
    else:
        environment = _live(settings["target"]["gpu"], [Path(p) for p in settings["kernels"]], paths, root)
    write_json(paths.environment, environment)
    log.note(f"environment of {environment['gpu']['name']}")


def facts_here(device: Device, build: Mapping[str, Any]) -> dict[str, Any]:
    """What environment.json would say of this machine before anything is measured; a compiler or ncu that is missing is None."""
    from transpose_study.gpu import ncu
    from transpose_study.gpu import toolchain as tools
    from transpose_study.gpu.telemetry import Telemetry

    try:
        compiler = tools.find(build["toolchain"], device.driver_cuda).version
    except StudyError:
        compiler = None
    program = ncu.find_ncu()
    return {
        "gpu": {**device.as_dict(), **Telemetry(device.uuid).facts()},
        "compiler": {"nvcc": compiler, "flags": list(build["flags"])},
        "ncu": ncu.version(program) if program else None,
        "python": platform.python_version(),
        "packages": _packages(),
        "program": __version__,
        "machine": _machine(),
    }


def _machine() -> dict[str, str]:
    return {"system": platform.system(), "kernel": platform.release(), "architecture": platform.machine(), "libc": platform.libc_ver()[1]}


def _live(gpu: Mapping[str, Any], kernels: Sequence[Path], paths: RunPaths, root: Path) -> dict[str, Any]:
    from transpose_study.gpu.telemetry import Telemetry

    journal = _journal(paths.journal)
    stages: dict[str, float] = {}
    for entry in journal:
        stages[entry["stage"]] = round(stages.get(entry["stage"], 0) + entry["seconds"], 3)
    return {
        "schema_version": 1,
        "gpu": {**gpu, **Telemetry(gpu["uuid"]).facts()},
        "driver_cuda": gpu["driver_cuda"],
        "compiler": _compiler(kernels),
        "ncu": next((e["ncu"] for e in journal if e.get("ncu")), None),
        "python": platform.python_version(),
        "packages": _packages(),
        "program": __version__,
        "machine": _machine(),
        "git": _git(root),
        "argv": json.loads(os.environ.get("TRANSPOSE_STUDY_ARGV", "null")) or [Path(sys.argv[0]).name, *sys.argv[1:]],
        "start": min((e["start"] for e in journal), default=None),
        "end": max((e["end"] for e in journal), default=None),
        "stage_seconds": stages,
        "stages": [{k: v for k, v in entry.items() if k != "cubins"} for entry in journal],  # build/ has them
        "replayed_from": None,
        "repeats": _repeated(root),
    }


def _repeated(root: Path) -> dict[str, Any] | None:
    """The archive whose experiment this project repeats (``transpose-study rerun`` leaves this file in its work folder)."""
    path = root / REPEATS
    return dict(read_json(path)) if path.is_file() else None


def _journal(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_text(path).splitlines()] if path.exists() else []


def _compiler(kernels: Sequence[Path]) -> dict[str, Any]:
    for path in kernels:
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
