"""The worker's side of ``check``: every cell against the index pattern, bit for bit."""

from __future__ import annotations

from typing import Any

from transpose_study.encoding import encode
from transpose_study.gpu.session import POISON_BYTE, Emit, Session
from transpose_study.registry import Cell, Study


def run(study: Study, job: dict[str, Any], emit: Emit) -> None:
    """Check ``job["cells"]`` in order; say which one begins, so that a crash is laid at the right door."""
    session = Session(study, job["build"])
    previous: dict[str, Any] | None = None
    for number, entry in enumerate(job["cells"]):
        cell = Cell(study.variant(entry["variant"]), entry["kernel_values"], entry["group"])
        emit({"begin": number})
        if entry["group"] != previous:
            source = target = None  # frees the last shape's buffers before the next are allocated
            source, target = (session.allocate(study.matrix_bytes(cell.group)) for _ in range(2))
            previous = entry["group"]
        emit({"cell": number, **check_cell(session, study, cell, source, target)})


def check_cell(session: Session, study: Study, cell: Cell, source: Any, target: Any) -> dict[str, Any]:
    """Launch the cell once on poisoned output: ``{"status": "ok"}``, or what is wrong with the first wrong element."""
    rows, cols = (int(cell.group[a]) for a in study.group_axes)
    for buffer in (source, target):
        buffer.guard()
    session.fill_index(source)
    target.fill(POISON_BYTE)
    session.launcher(cell, source, target)()
    session.stream.synchronize()
    transposed = cell.variant.computes == "transpose"
    wrong, first = session.compare(target, rows, cols, transposed)
    out_cols = rows if transposed else cols
    if wrong:
        row, col = divmod(first, out_cols)
        expected = int(encode(col * cols + row if transposed else first)[0])
        got = session.element(target, first)
        unwritten = " (never written)" if got == int.from_bytes(bytes([POISON_BYTE]) * 4, "little") else ""
        return {
            "status": "wrong",
            "reason": f"{wrong} of {rows * cols} elements differ, the first at row {row}, column {col}{unwritten}",
            "row": row,
            "col": col,
            "expected": f"0x{expected:08x}",
            "got": f"0x{got:08x}",
        }
    overrun = target.overrun()
    if overrun:
        return {"status": "wrong", "reason": overrun}
    damaged, first = session.compare(source, rows, cols, False)
    if damaged or source.overrun():
        return {"status": "wrong", "reason": f"the input was changed: {source.overrun() or f'{damaged} elements, first {first}'}"}
    return {"status": "ok", "reason": ""}
