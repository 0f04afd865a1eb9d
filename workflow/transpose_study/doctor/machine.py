"""The doctor's look at GPU, driver, compiler, CuPy, ncu, memory and other programs on the GPU."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from transpose_study.config import parse
from transpose_study.device import Device, visible_devices
from transpose_study.doctor.finding import BROKEN, LIMITS, OK, Finding
from transpose_study.errors import StudyError
from transpose_study.gpu import ncu, toolchain
from transpose_study.gpu.compile import compile_source
from transpose_study.gpu.plan import MEMORY_SHARE
from transpose_study.gpu.supervise import worker_environment
from transpose_study.gpu.telemetry import Telemetry
from transpose_study.gpu.toolchain import Toolchain
from transpose_study.records import read_yaml
from transpose_study.registry import Study

PROBE = Path(ncu.__file__).with_name("probe.cu")
ANY_ARCHITECTURE = "75"  # the oldest that CUDA 13 compiles for; used where there is no GPU
PROBE_TIMEOUT_S = 120
INSTALL = "sh workflow/envs/install.sh"
CUPY = {"cupy-cuda13x": 13, "cupy-cuda12x": 12}
COUNTERS = (
    "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-counters.conf && sudo update-initramfs -u "
    "&& sudo reboot"
)


def check(root: Path, *, probe: bool) -> Iterator[Finding]:
    """Everything that has to do with measuring."""
    device: Device | None = None
    try:
        devices = visible_devices()
    except StudyError as error:
        yield Finding(BROKEN, "GPU", str(error).splitlines()[0], "nvidia-smi (its message names the cause; often: sudo reboot after a driver update)")
        devices = []
    else:
        if devices:
            device = devices[0]
            others = f"; {len(devices) - 1} more visible" if len(devices) > 1 else ""
            yield Finding(OK, "GPU", f"{device.name}, {device.uuid}, compute capability {device.compute_capability}{others}")
        else:
            mend = "unset CUDA_VISIBLE_DEVICES" if "CUDA_VISIBLE_DEVICES" in os.environ else "run on a machine with an NVIDIA GPU to measure"
            text = "no NVIDIA device is visible: archives can be rebuilt, verified and compared, nothing can be measured"
            yield Finding(LIMITS, "GPU", text, mend)
    if device:
        yield Finding(OK, "driver", f"{Telemetry(device.uuid).facts()['driver'] or 'version unknown'}, for CUDA up to {device.driver_cuda}")
    compiler = None
    for finding in _compiler(device, probe=probe):
        if isinstance(finding, Finding):
            yield finding
        else:
            compiler = finding
    if device:
        yield from _cupy(device)
        yield from _ncu(device, compiler, probe=probe)
        yield from _memory(device, root)


def _compiler(device: Device | None, *, probe: bool) -> Iterator[Finding | Toolchain]:
    """The findings about the compiler, and the compiler where it works."""
    try:
        found = toolchain.find("auto", device.driver_cuda if device else None)
        architecture = device.architecture if device else ANY_ARCHITECTURE
        found.require(architecture)
        if probe:
            made, said = compile_source(PROBE, found, architecture, [])
            if made is None:
                last = said.splitlines()[-1] if said else "no message"
                yield Finding(BROKEN, "compiler", f"nvcc {found.version} compiles nothing: {last}", INSTALL)
                return
    except StudyError as error:
        yield Finding(BROKEN, "compiler", str(error).splitlines()[0], INSTALL)
        return
    tried = f", compiles for sm_{architecture}" if probe else ""
    yield Finding(OK, "compiler", f"nvcc {found.version} from {'the pip packages' if found.origin == 'pip' else found.nvcc}{tried}")
    yield found


def _cupy(device: Device) -> Iterator[Finding]:
    here = {}
    for name in CUPY:
        try:
            here[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    major = int(device.driver_cuda.split(".")[0])
    wanted = "cuda13" if major >= 13 else "cuda12"
    if not here:
        yield Finding(BROKEN, "CuPy", "CuPy is not installed, and measuring needs it", f"{INSTALL} {wanted}")
    elif len(here) > 1:
        mend = f"pip uninstall -y {' '.join(here)} && {INSTALL} {wanted}"
        yield Finding(BROKEN, "CuPy", "two builds of CuPy are installed and break each other", mend)
    else:
        ((name, version),) = here.items()
        if CUPY[name] > major:
            text = f"{name} {version} needs CUDA {CUPY[name]}, the driver supports {device.driver_cuda}"
            yield Finding(BROKEN, "CuPy", text, f"{INSTALL} {wanted}")
        else:
            yield Finding(OK, "CuPy", f"{name} {version}")


def _ncu(device: Device, compiler: Toolchain | None, *, probe: bool) -> Iterator[Finding]:
    program = ncu.find_ncu()
    if program is None:
        mend = "install Nsight Compute (on Debian and Ubuntu with NVIDIA's repository: sudo apt install nsight-compute) and put ncu on PATH"
        yield Finding(LIMITS, "ncu", "ncu was not found: times and predictions only, no counters", mend)
        return
    version = ncu.version(program)
    yield Finding(OK, "ncu", f"{version} ({program})")
    if not probe or compiler is None:
        return
    reason = _profile(program, device, compiler)
    if reason:
        mend = COUNTERS if reason == ncu.PERMISSION else "see README.md, section on counters"
        yield Finding(LIMITS, "counters", reason, mend)
    else:
        yield Finding(OK, "counters", "ncu may read them (a small kernel was profiled)")


def _profile(program: Path, device: Device, compiler: Toolchain) -> str:
    """Let ncu read one counter of a small kernel; return why it could not, or ""."""
    made, said = compile_source(PROBE, compiler, device.architecture, [])
    if made is None:
        return said
    with tempfile.TemporaryDirectory(prefix="transpose-study-doctor-") as scratch:
        cubin, report = Path(scratch) / "probe.cubin", Path(scratch) / "report.ncu-rep"
        cubin.write_bytes(made["cubin"])
        command = [
            str(program), "--export", str(report), "--metrics", "smsp__inst_executed.sum", "--clock-control", "none",
            sys.executable, "-m", "transpose_study.gpu.probe", str(cubin),
        ]  # fmt: skip
        environment = worker_environment(device.uuid) | {"TMPDIR": scratch, "LC_ALL": "C"}
        try:
            done = subprocess.run(
                command, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                timeout=PROBE_TIMEOUT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"ncu did not finish within {PROBE_TIMEOUT_S} s"
        except OSError as error:
            return f"ncu cannot be started: {error.strerror}"
        return "" if report.is_file() else ncu.explain(done.stdout, done.returncode)


def _memory(device: Device, root: Path) -> Iterator[Finding]:
    telemetry = Telemetry(device.uuid)
    free = telemetry.free_bytes()
    needed, place = _largest(root)
    if free is not None:
        text = f"{free / 2**30:.1f} of {device.memory_bytes / 2**30:.1f} GiB free, the largest configured shape ({place}) needs {needed / 2**30:.1f}"
        short = needed > MEMORY_SHARE * free
        yield Finding(LIMITS if short else OK, "memory", text, "end the programs that hold the GPU's memory: nvidia-smi lists them" if short else "")
    others = telemetry.other_processes(set())
    if others:
        yield Finding(LIMITS, "GPU in use", f"other programs use it, timings may suffer: {'; '.join(others)}", "wait for them, or end them: kill PID")


def _largest(root: Path) -> tuple[int, str]:
    """Bytes of the two matrices of the largest configured shape, and its name."""
    config = parse(read_yaml(root / "config" / "config.yaml"), where="config/config.yaml")
    study = Study(root / "kernels" / config.study / "variants.yaml")
    sizes = {study.group_name(g.values): 2 * study.matrix_bytes(g.values) for g in config.measured_shapes()}
    place = max(sizes, key=lambda name: sizes[name])
    return sizes[place], place
