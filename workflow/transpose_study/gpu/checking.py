"""The worker's side of ``check``: every cell against the index pattern, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from transpose_study.encoding import encode
from transpose_study.gpu.session import POISON_BYTE, Buffers, Emit, Session
from transpose_study.references import expected_patterns
from transpose_study.registry import Cell, Study

POISON = int.from_bytes(bytes([POISON_BYTE]) * 4, "little")  # an element that was never written


def run(study: Study, job: dict[str, Any], emit: Emit) -> None:
    """Check ``job["cells"]`` in order; say which one begins, so that a crash is laid at the right door."""
    session = Session(study, job["build"])
    previous: tuple[int, int] | None = None
    for number, entry in enumerate(job["cells"]):
        cell = Cell(study.variant(entry["variant"]), entry["kernel_values"], entry["group"])
        emit({"begin": number})
        sizes = study.input_bytes(cell), study.matrix_bytes(cell)
        if sizes != previous:
            buffers = None  # frees the last cell's buffers before the next are allocated
            buffers = session.buffers([cell])  # of exactly its sizes, or the guard bands would guard nothing
            previous = sizes
        emit({"cell": number, **check_cell(session, study, cell, buffers)})


def check_cell(session: Session, study: Study, cell: Cell, buffers: Buffers) -> dict[str, Any]:
    """Launch the cell once on poisoned output: ``{"status": "ok"}``, or what is wrong with the first wrong element."""
    for buffer in vars(buffers).values():
        buffer.guard()
    session.fill_index(buffers.input)
    buffers.output.fill(POISON_BYTE)
    buffers.observed.fill(POISON_BYTE)
    session.launcher(cell, buffers)()
    session.stream.synchronize()
    wrong, first = _differences(session, study, cell, buffers)
    count = study.element_count(cell)
    if wrong:
        expected = int(encode(study.source_of(cell, first))[0])
        got = session.element(buffers.output, first)
        unwritten = " (never written)" if got == POISON else ""
        row, col = divmod(first, study.output_row(cell))
        return {
            "status": "wrong",
            "reason": f"{wrong} of {count} elements differ, the first at row {row}, column {col}{unwritten}",
            "row": row,
            "col": col,
            "expected": f"0x{expected:08x}",
            "got": f"0x{got:08x}",
        }
    for name in ("output", "observed"):
        overrun = getattr(buffers, name).overrun()
        if overrun:
            return {"status": "wrong", "reason": overrun if name == "output" else f"{overrun} of what it observes"}
    if cell.variant.observes and session.observed(buffers) == POISON:
        return {"status": "wrong", "reason": f"observes {cell.variant.observes[0].name}, but never wrote observed[0]"}
    damaged, first = session.compare(buffers.input, 1, 0)
    if damaged or buffers.input.overrun():
        return {"status": "wrong", "reason": f"the input was changed: {buffers.input.overrun() or f'{damaged} elements, first {first}'}"}
    return {"status": "ok", "reason": ""}


def _differences(session: Session, study: Study, cell: Cell, buffers: Buffers) -> tuple[int, int]:
    """(wrong elements, index of the first): on the device where the reference is a permutation, else here."""
    reference = cell.variant.reference
    if not reference.index:
        return session.compare(buffers.output, *study.stride_of(cell, reference))
    wrong = np.flatnonzero(session.read(buffers.output) != expected_patterns(study, cell))
    return len(wrong), int(wrong[0]) if len(wrong) else 0
