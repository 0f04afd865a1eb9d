"""The worker's side of the batch ``kernel``: what kernels observe themselves, launch by launch."""

from __future__ import annotations

from typing import Any

from cupy.cuda import memory as cuda_memory

from transpose_study.gpu.session import Emit, Session
from transpose_study.metrics import COLD
from transpose_study.registry import Cell, Study

WARM_UP = 2  # launches that are not counted
ALLOCATIONS = 5  # of each size; the least aligned one counts


def run(study: Study, job: dict[str, Any], emit: Emit) -> None:
    """For each of ``job["cells"]`` emit the number it observes in ``job["launches"]`` launches, with a warm L2 and with a displaced one."""
    session = Session(study, job["build"])
    cells = [Cell(study.variant(e["variant"]), e["kernel_values"], job["group"]) for e in job["cells"]]
    buffers = session.buffers([c for c in cells if not c.variant.no_kernel])
    session.fill_input(buffers.input, job["input"])
    flush = session.allocate(job["l2_bytes"])
    for number, cell in enumerate(cells):
        (what,) = cell.variant.observes
        if cell.variant.allocates is not None:
            emit({"cell": number, "values": {what.name: [_alignment(study, cell)] * job["launches"]}})
            continue
        launch = session.launcher(cell, buffers)
        per = study.observed_per(cell)
        for _ in range(WARM_UP):
            launch()
        values: dict[str, list[float]] = {what.name: [], what.name + COLD: []}
        for name, series in values.items():
            for repetition in range(job["launches"]):
                if name.endswith(COLD):
                    flush.fill(repetition)
                launch()
                series.append(session.observed(buffers) / per)
        emit({"cell": number, "values": values})


def _alignment(study: Study, cell: Cell) -> int:
    """Largest power of two that divides the address of an allocation: the smallest of several that live at the same time."""
    held = [cuda_memory.Memory(study.allocated_bytes(cell)) for _ in range(ALLOCATIONS)]
    return min(m.ptr & -m.ptr for m in held)
