"""Compiles a run's kernels again and compares the cubins: whether the binaries are what the sources say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transpose_study.errors import StudyError
from transpose_study.gpu import toolchain as tools
from transpose_study.gpu.compile import compile_source
from transpose_study.gpu.toolchain import Toolchain
from transpose_study.records import read_json, sha256_bytes
from transpose_study.registry import Kernel, Study

EQUAL, SAME_CODE, OTHER, UNTOLD = "equal", "same code", "other code", "not compared"


@dataclass(frozen=True)
class Compared:
    """One kernel's outcome: ``equal`` bytes, ``same code`` by its disassembly, ``other code``, or ``not compared`` and why."""

    kernel: str
    outcome: str
    reason: str = ""


def compiler_for(version: str) -> Toolchain:
    """The installed compiler of exactly this version; a :class:`StudyError` that says which ones are here otherwise."""
    found = []
    for origin in ("pip", "path"):
        try:
            toolchain = tools.find(origin)
        except StudyError:
            continue
        if toolchain.version == version:
            return toolchain
        found.append(toolchain.version)
    raise StudyError(f"nvcc {version} is not installed here (found: {', '.join(found) or 'none'})", hint=f"pip install nvidia-cuda-nvcc=={version}")


def recompile(study: Study, kernels: Iterable[Kernel], build: Path) -> list[Compared]:
    """Compile each kernel from the study's sources as its record in ``build`` says, and compare with the cubin there.

    Cubins of equal version and sources are equal byte for byte; where only other sections differ, the disassembly decides.
    """
    wanted = [(k, build / f"{study.kernel_name(k)}.json") for k in kernels]
    records = {path: read_json(path) for _, path in wanted if path.is_file()}
    toolchains: dict[str, Toolchain | StudyError] = {}
    for record in records.values():
        version = str(record["compiler"]["nvcc"])
        if version not in toolchains:
            try:
                toolchains[version] = compiler_for(version)
            except StudyError as error:
                toolchains[version] = error
    with ThreadPoolExecutor(min(4, len(os.sched_getaffinity(0)))) as pool:
        return list(pool.map(lambda w: _compare(study, w[0], w[1], records.get(w[1]), toolchains), wanted))


def _compare(
    study: Study, kernel: Kernel, path: Path, record: Mapping[str, Any] | None, toolchains: Mapping[str, Toolchain | StudyError]
) -> Compared:
    name = study.kernel_name(kernel)
    if record is None:
        return Compared(name, UNTOLD, "it has no build record")
    if record["status"] != "ok":
        return Compared(name, UNTOLD, f"it was {record['status']}")
    toolchain = toolchains[str(record["compiler"]["nvcc"])]
    if isinstance(toolchain, StudyError):
        return Compared(name, UNTOLD, toolchain.what)
    assert kernel.variant.source is not None, "a driver copy has no build record"
    macros = [f"-D{m}={v}" for m, v in study.macros(kernel).items()]
    try:
        made, said = compile_source(kernel.variant.source, toolchain, record["architecture"], [*macros, *record["compiler"]["flags"]])
    except StudyError as error:
        return Compared(name, UNTOLD, error.what)
    if made is None:
        return Compared(name, OTHER, f"it does not compile: {said.splitlines()[0] if said else 'no message'}")
    sass = path.with_suffix(".sass")
    same_text = sass.is_file() and sass.read_bytes() == made["sass"]
    if sha256_bytes(made["cubin"]) == record["cubin_sha256"]:  # replays take the text that lies beside a cubin of the same bytes: it must be its own
        return Compared(name, EQUAL) if same_text or not sass.is_file() else Compared(name, OTHER, f"{sass.name} is not the disassembly of its cubin")
    if same_text:
        return Compared(name, SAME_CODE, "other sections of the cubin differ")
    return Compared(name, OTHER, "its source compiles to something else")
