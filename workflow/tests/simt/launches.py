"""Kernels compiled by the real nvcc, and launches of them, for the tests of the prediction engine."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transpose_study import sass
from transpose_study.gpu import toolchain
from transpose_study.gpu.compile import compile_source, ptxas_facts
from transpose_study.registry import Cell, Kernel, Study
from transpose_study.simt import cubin, ptx
from transpose_study.simt.machine import Launch, Program
from transpose_study.simt.memory import Buffer, place
from transpose_study.simt.sassmachine import Issued, count_instructions

ROOT = Path(__file__).parents[3]
STUDY = Study(ROOT / "kernels" / "transpose" / "variants.yaml")
BLOCK_ROWS = {"block_rows": [4, 8, 16, 32]}
LADDER = {STUDY.kernel_name(k): k for v in STUDY.variants.values() if not v.driver_copy for k in STUDY.kernels(v, BLOCK_ROWS)}


@dataclass
class Compiled:
    """A kernel as the predictions see it: its PTX program, its machine code, where its parameters lie, ptxas's facts."""

    program: Program
    code: sass.MachineCode
    base: int
    facts: dict[str, int]

    def instructions(self, launch: Launch, each_block: bool = False) -> Issued:
        sizes = [p.size for p in self.program.kernel.parameters]
        return count_instructions(self.code, launch, sizes, self.base, each_block=each_block)


class Compiler:
    """Compiles a source once for each architecture and set of macros."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tools = folder, toolchain.find()

    @functools.cache  # noqa: B019 - one instance for the session
    def __call__(self, source: Path | str, architecture: str, flags: tuple[str, ...] = (), name: str = "") -> Compiled:
        if isinstance(source, str):
            path = self.folder / f"{hashlib.sha256(source.encode()).hexdigest()[:12]}.cu"
            path.write_text(source)
        else:
            path = source
        made, output = compile_source(path, self.tools, architecture, flags)
        assert made is not None, output
        kernels = ptx.parse(made["ptx"].decode(), source=path.name)
        kernel = kernels[name] if name else next(iter(kernels.values()))
        target = self.folder / "kernel.cubin"
        target.write_bytes(made["cubin"])
        code = sass.parse(made["sass"].decode())[kernel.name]
        return Compiled(Program(kernel), code, cubin.parameter_base(target, kernel.name), ptxas_facts(output))


def cell_of(kernel: Kernel, rows: int, cols: int) -> Cell:
    return Cell(kernel.variant, kernel.values, {"rows": rows, "cols": cols})


def launch_of(name: str, rows: int, cols: int) -> Launch:
    """The launch of a ladder kernel, with buffers that hold no data."""
    geometry = STUDY.geometry(cell_of(LADDER[name], rows, cols))
    source, target = place([("in", rows * cols * 4), ("out", rows * cols * 4)])
    return Launch(geometry.grid, geometry.block, (source, target, rows, cols))


def fill(buffer: Buffer, values: np.ndarray) -> None:
    """Give a buffer contents (padded to whole 16 bytes)."""
    raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    buffer.data = np.concatenate([raw, np.zeros(-len(raw) % 16, np.uint8)])


def contents(buffer: Buffer, dtype: type) -> np.ndarray:
    assert buffer.data is not None
    return buffer.data[: buffer.size].view(dtype)


def plain(grid, block, *sizes: int, numbers: tuple[int, ...] = (), dynamic_shared: int = 0) -> Launch:
    """A launch with buffers of ``sizes`` bytes, then integers."""
    buffers = place([(f"buffer {i}", size) for i, size in enumerate(sizes)])
    grid, block = (tuple([*part, 1, 1][:3]) for part in (grid, block))
    return Launch(grid, block, (*buffers, *numbers), dynamic_shared)
