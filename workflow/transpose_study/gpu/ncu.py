"""Nsight Compute as a program: where it is, what it is told to do, and why it gave nothing where it gave nothing."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from transpose_study.errors import StudyError
from transpose_study.gpu.supervise import worker_environment
from transpose_study.metrics import Batch

PERMISSION = (
    "the driver refuses performance counters to this user (ERR_NVGPUCTRPERM): an administrator loads the nvidia module with "
    "NVreg_RestrictProfilingToAdminUsers=0 (a line 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in /etc/modprobe.d, then a "
    "reboot), or the run is made as root; in a container also with --cap-add=SYS_ADMIN; on WSL2 and Windows it is a switch of the "
    "NVIDIA control panel (Developer, Manage GPU Performance Counters)"
)
MISSING = "ncu was not found: install Nsight Compute (it comes with the CUDA toolkit) and put ncu on PATH"

# What ncu prints, by what it means. Its values are never read from text; its refusals exist nowhere else.
_REASONS = (
    (re.compile(r"ERR_NVGPUCTRPERM"), PERMISSION),
    (
        re.compile(r"LibraryNotLoaded|Failed to initialize the profiler"),
        "ncu cannot reach the driver's profiler here: a container or virtual machine withholds it, or this ncu is older than the GPU "
        "(ncu --list-chips)",
    ),
    (
        re.compile(r"InterprocessLock|nsight-compute-lock|lock file", re.I),
        "ncu's lock file is held or belongs to another user: remove nsight-compute-lock from the folder that TMPDIR names",
    ),
    (
        re.compile(r"Failed to access the temporary directory"),
        "ncu cannot use its temporary directory: set TMPDIR to a folder that this user can write to",
    ),
    (
        re.compile(r"profiler .*(already|in use)|driver resource was unavailable|ResourceUnavailable|another (tool|profiler)", re.I),
        "another profiler uses the GPU: end it (dcgm and nsys count), then run again",
    ),
)
_UNKNOWN_METRIC = re.compile(r"Failed to find metric|(?:invalid|unknown) metric", re.I)


def find_ncu() -> Path | None:
    """ncu on PATH, else in the usual places of the CUDA toolkit and of Nsight Compute, the newest first."""
    on_path = shutil.which("ncu")
    if on_path:
        return Path(on_path)
    places = ["/usr/local/cuda/bin/ncu", *sorted(glob.glob("/usr/local/cuda-*/bin/ncu"), reverse=True)]
    places += sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"), reverse=True)
    return next((Path(p) for p in places if os.access(p, os.X_OK)), None)


def version(ncu: Path) -> str | None:
    """Version such as ``2025.3.1.0``, None if it gives none."""
    done = subprocess.run([str(ncu), "--version"], text=True, capture_output=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    match = re.search(r"Version (\S+)", done.stdout)
    return match.group(1) if match else None


def known_metrics(ncu: Path, names: Sequence[str], gpu_uuid: str) -> set[str]:
    """Those of ``names`` that ncu knows on the GPU, asked of ``--query-metrics`` (every collection, by base name)."""
    bases: set[str] = set()
    for collection in ("profiling", "launch", "source", "pmsampling"):
        done = subprocess.run(
            [str(ncu), "--query-metrics", "--query-metrics-collection", collection, "--csv"],
            text=True,
            capture_output=True,
            env={**worker_environment(gpu_uuid)},
            check=False,
        )
        bases |= set(re.findall(r"^\W*([a-z][a-z0-9_]*__?\w+)", done.stdout, re.M))
    # launch__ and source-level names are collected with the launch itself and are not listed on every version
    return {n for n in names if n.split(".")[0] in bases or n.startswith(("launch__", "memory_", "sass__"))}


class NcuResult:
    """What one ncu process did: ``report`` exists, or ``reason`` says why not; ``unknown_metric`` asks for a second try."""

    def __init__(self, report: Path | None, reason: str, output: str, unknown_metric: bool) -> None:
        self.report, self.reason, self.output, self.unknown_metric = report, reason, output, unknown_metric


def profile(
    ncu: Path,
    batch: Batch,
    metrics: Sequence[str],
    kernels: Sequence[str],
    job: str,
    *,
    gpu_uuid: str,
    report: Path,
    timeout_s: float,
) -> NcuResult:
    """Run the launching worker under ncu and write ``report`` (an .ncu-rep).

    ncu gets a folder of its own for temporary files, since a lock file that another user left in /tmp would block it.
    """
    names = "|".join(re.escape(k) for k in kernels)
    sections = [part for s in batch.sections for part in ("--section", s)]
    with tempfile.TemporaryDirectory(prefix="transpose-study-ncu-") as scratch:
        made = Path(scratch) / "report.ncu-rep"
        command = [
            str(ncu), "--export", str(made), "--profile-from-start", "off", "--kernel-name-base", "function",
            "--kernel-name", f"regex:^({names})$", "--clock-control", "none", "--cache-control", batch.cache_control,
            *sections, "--metrics", ",".join(metrics), "--target-processes", "all",
            sys.executable, "-m", "transpose_study.gpu.worker", "profile",
        ]  # fmt: skip
        environment = worker_environment(gpu_uuid) | {"TMPDIR": scratch, "LC_ALL": "C"}
        try:
            done = subprocess.run(
                command,
                input=job + "\n",
                text=True,
                errors="replace",
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            output = late.stdout.decode(errors="replace") if isinstance(late.stdout, bytes) else str(late.stdout or "")
            return NcuResult(None, f"ncu did not finish within {timeout_s:g} s", output, False)
        except OSError as error:
            raise StudyError(f"ncu cannot be started: {error.strerror}", where=str(ncu)) from None
        if made.is_file():
            report.parent.mkdir(parents=True, exist_ok=True)
            partial = report.with_name(f".{report.name}.part")
            shutil.copyfile(made, partial)
            partial.replace(report)
            return NcuResult(report, "", done.stdout, False)
        return NcuResult(None, explain(done.stdout, done.returncode), done.stdout, bool(_UNKNOWN_METRIC.search(done.stdout)))


def explain(output: str, code: int) -> str:
    """Why ncu wrote no report, from what it printed; its own error lines where the cause is not a known one."""
    for pattern, reason in _REASONS:
        if pattern.search(output):
            return reason
    errors = [line for line in output.splitlines() if line.startswith("==ERROR==") or '"what"' in line]
    if not errors and "No kernels were profiled" in output:  # ncu says so after other failures as well
        return "ncu saw no launch of the study's kernels"
    said = [line.removeprefix("==ERROR==").strip() for line in errors] or [f"it ended with status {code} and said nothing of it"]
    return f"ncu profiled nothing: {'; '.join(dict.fromkeys(said))}"
