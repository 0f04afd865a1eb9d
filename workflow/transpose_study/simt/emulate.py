"""``check`` without a GPU: every kernel executed on the edge shapes with real data, and its rules checked at any shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from transpose_study.encoding import encode
from transpose_study.errors import StudyError
from transpose_study.references import expected_patterns
from transpose_study.registry import Cell, Study
from transpose_study.simt.cells import CompiledKernel, launch_of
from transpose_study.simt.checker import check_output, check_rules
from transpose_study.simt.machine import DataDependent
from transpose_study.simt.memory import Buffer, Violation

COLUMNS = ["status", "reason", "ptx_line", "block", "thread", "address"]

def check_cell(study: Study, cell: Cell, kernel: CompiledKernel, results: bool) -> dict[str, Any]:
    """The emulator's verdict of a cell that can run: a row of :data:`COLUMNS`.

    ``results``: execute every block with data and compare the output (for 4-byte elements); otherwise the rules only.
    """
    try:
        launch = launch_of(study, cell, kernel.program)
        if results:
            _compare(study, cell, kernel, launch)
        else:
            check_rules(kernel.program, launch)
    except DataDependent as error:
        return {"status": "not checked", "reason": str(error)}
    except Violation as fault:
        kind = "wrong" if "elements are" in fault.what else "failed"
        place = {k: "" if v is None else " ".join(map(str, v)) for k, v in (("block", fault.block), ("thread", fault.thread))}
        address = "" if fault.address is None else f"{fault.address:#x}"
        return {"status": kind, "reason": str(fault), "ptx_line": fault.line or "", "address": address, **place}
    except StudyError as error:
        return {"status": "failed", "reason": str(error)}
    return {"status": "ok", "reason": "" if results else "bounds, alignment, barriers and races; results are compared at smaller shapes"}


def _compare(study: Study, cell: Cell, kernel: CompiledKernel, launch: Any) -> None:
    if study.itemsize != 4:
        raise StudyError(f"elements of {study.itemsize} bytes are not compared", where=f"kernel {kernel.variant}")
    buffers = {b.name: b for b in launch.arguments if isinstance(b, Buffer)}
    data = encode(np.arange(study.input_count(cell)))
    for buffer in buffers.values():
        buffer.data = _padded(np.zeros(buffer.size // 4, np.uint32))
    if "the input" in buffers:
        buffers["the input"].data = _padded(data)
    expected = expected_patterns(study, cell)
    width = study.output_row(cell)
    check_output(kernel.program, launch, buffers["the output"], expected, lambda n: f"row {n // width}, column {n % width}")
    if "the input" not in buffers:
        return
    source = buffers["the input"]
    assert source.data is not None
    changed = np.flatnonzero(source.data[: source.size].view(np.uint32) != data)
    if len(changed):
        row, col = divmod(int(changed[0]), study.input_row(cell))
        raise Violation(f"{len(changed)} elements are changed in the input, the first is row {row}, column {col}", kernel=kernel.variant)


def _padded(values: np.ndarray) -> np.ndarray:
    raw = values.view(np.uint8)
    return np.concatenate([raw, np.zeros(-len(raw) % 16, np.uint8)])
