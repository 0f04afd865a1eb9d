"""The worker's side of ``profile``: launches the planned cells between cudaProfilerStart and -Stop, under ncu."""

from __future__ import annotations

from typing import Any

from cupy.cuda import runtime

from transpose_study.gpu.session import Emit, Session
from transpose_study.registry import Cell, Study


def run(study: Study, job: dict[str, Any], emit: Emit) -> None:
    """Launch each cell of ``job["cells"]`` once to warm up, unprofiled, then ``job["launches"]`` times for ncu."""
    session = Session(study, job["build"])
    cells = [Cell(study.variant(e["variant"]), e["kernel_values"], job["group"]) for e in job["cells"]]
    buffers = session.buffers(cells)
    session.fill_input(buffers.input, job["input"])
    launches = [session.launcher(c, buffers) for c in cells]
    for launch in launches:
        launch()
    session.stream.synchronize()
    runtime.profilerStart()
    for number, launch in enumerate(launches):
        for _ in range(job["launches"]):
            launch()
        session.stream.synchronize()
        emit({"cell": number})
    runtime.profilerStop()
