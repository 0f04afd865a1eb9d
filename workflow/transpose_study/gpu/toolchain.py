"""Which nvcc, ptxas output and disassembler are used: the pinned pip packages, or what is on PATH."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from transpose_study.errors import StudyError, nearest

INSTALL_HINT = "install the pinned compiler with pip install -r workflow/envs/requirements.lock, or put nvcc 12.x or 13.x on PATH"


@dataclass(frozen=True)
class Toolchain:
    """A compiler and a disassembler. ``origin`` is ``pip`` or ``path``; ``version`` is nvcc's, such as ``13.0.88``."""

    nvcc: Path
    nvdisasm: Path
    origin: str
    version: str
    environment: dict[str, str]

    @property
    def toolkit(self) -> tuple[int, int]:
        """CUDA version of the compiler, (13, 0)."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)

    def run(self, *command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a tool with the toolchain's environment and the C locale; output as text, never an exception for its status."""
        return subprocess.run(
            [str(c) for c in command],
            cwd=cwd,
            env=self.environment,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )

    def architectures(self) -> list[str]:
        """Architectures this nvcc knows, such as ``["75", ..., "120"]``."""
        return re.findall(r"compute_(\w+)", self.run(self.nvcc, "--list-gpu-arch").stdout)

    def require(self, architecture: str) -> None:
        """Raise :class:`StudyError` if the compiler does not know ``architecture``."""
        known = self.architectures()
        if known and architecture not in known:
            raise StudyError(
                f"nvcc {self.version} does not know the architecture sm_{architecture}; {nearest(architecture, known)}",
                where=str(self.nvcc),
                hint="use a compiler of the GPU's generation (build.toolchain), or set build.architecture to one of: " + ", ".join(known),
            )


def find(wanted: str = "auto", driver_cuda: str | None = None) -> Toolchain:
    """Find the toolchain: pip packages first, then PATH, the first that fits the driver.

    ``driver_cuda`` is the CUDA version the driver supports ("13.0"): it loads cubins of every compiler of that major
    version and of older ones. None means that nothing will be loaded here (a replay).
    """
    candidates = {"auto": (_pip, _path), "pip": (_pip,), "path": (_path,)}[wanted]
    too_new = []
    for candidate in candidates:
        toolchain = candidate()
        if toolchain is None:
            continue
        if driver_cuda is not None and toolchain.toolkit[0] > int(driver_cuda.split(".")[0]):
            too_new.append(f"nvcc {toolchain.version} ({toolchain.nvcc})")
            continue
        return toolchain
    if too_new:
        raise StudyError(
            f"the driver supports CUDA {driver_cuda}, older than {' and '.join(too_new)}",
            hint="update the driver, or put an older nvcc on PATH and install the extra cuda12 in place of cuda13",
        )
    where = {"auto": "pip packages and PATH", "pip": "pip packages", "path": "PATH"}[wanted]
    raise StudyError("nvcc was not found", where=where, hint=INSTALL_HINT)


def _pip_root() -> Path | None:
    try:
        spec = importlib.util.find_spec("nvidia.cu13")
    except ModuleNotFoundError:
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / "bin" / "nvcc").is_file():
            return Path(folder)
    return None


def _pip() -> Toolchain | None:
    root = _pip_root()
    return _toolchain(root / "bin" / "nvcc", root / "bin" / "nvdisasm", "pip") if root else None


def _path() -> Toolchain | None:
    nvcc = shutil.which("nvcc") or next((p for p in ("/usr/local/cuda/bin/nvcc",) if os.access(p, os.X_OK)), None)
    return _toolchain(Path(nvcc), Path(nvcc).resolve().parent / "nvdisasm", "path") if nvcc else None


def _toolchain(nvcc: Path, nvdisasm: Path, origin: str) -> Toolchain:
    if not nvdisasm.is_file():
        root = _pip_root()
        other = shutil.which("nvdisasm") or (root / "bin" / "nvdisasm" if root else None)
        if not other or not Path(other).is_file():
            raise StudyError("nvdisasm was not found", where=str(nvdisasm), hint=INSTALL_HINT)
        nvdisasm = Path(other)
    environment = {**os.environ, "LC_ALL": "C"}
    environment.pop("NVCC_PREPEND_FLAGS", None)  # would change the code behind the digest's back
    environment.pop("NVCC_APPEND_FLAGS", None)
    probe = subprocess.run([str(nvcc), "--version"], text=True, capture_output=True, env=environment, check=False)
    match = re.search(r"V(\d+\.\d+\.\d+)", probe.stdout)
    if not match:
        raise StudyError(f"gives no version: {(probe.stdout + probe.stderr).strip()[:200]}", where=str(nvcc), hint=INSTALL_HINT)
    return Toolchain(nvcc, nvdisasm, origin, match.group(1), environment)


def host_compiler_flags(scratch: Path) -> list[str]:
    """Flags that give nvcc a C++ preprocessor.

    nvcc runs the host compiler to preprocess, even for device code alone. Where no g++ or clang++ is installed, the
    clang of the pip package ``ziglang`` serves: a small script in ``scratch`` starts it under the name nvcc expects.
    The headers it brings are libc++'s, which CUDA refuses on x86 unless told otherwise; device code is the same.
    """
    if shutil.which("g++") or shutil.which("clang++"):
        return [] if shutil.which("g++") else ["-ccbin", "clang++"]
    spec = importlib.util.find_spec("ziglang")
    zig = Path(spec.submodule_search_locations[0]) / "zig" if spec and spec.submodule_search_locations else None
    if zig is None or not zig.is_file():
        raise StudyError(
            "nvcc needs a C++ preprocessor, and neither g++ nor clang++ is here", hint="install g++ (apt install g++) or pip install ziglang"
        )
    wrapper = scratch / "clang++"
    wrapper.write_text(f'#!/bin/sh\nexec "{zig}" c++ "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    return ["-ccbin", str(wrapper), "-allow-unsupported-compiler", "-D_ALLOW_UNSUPPORTED_LIBCPP"]
