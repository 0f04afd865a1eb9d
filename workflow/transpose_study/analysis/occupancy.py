"""tables/occupancy.csv: block size, registers, shared memory, the limits of residency, and the occupancy they allow."""

from __future__ import annotations

from transpose_study.analysis.run import OK, Run
from transpose_study.analysis.tables import Row, write_table

BUILT = [
    "threads_per_block", "warps_per_block", "registers_per_thread", "registers_per_thread_measured", "shared_bytes", "spill_bytes",
    "load_bytes_in_flight",
]  # fmt: skip
MEASURED = [
    "shared_config_bytes", "shared_allocated_bytes_per_block", "limit_blocks", "limit_registers", "limit_shared_memory", "limit_warps",
    "resident_blocks_per_sm", "theoretical_occupancy_pct", "achieved_occupancy_pct",
]  # fmt: skip


def write_occupancy(run: Run, counters: list[Row]) -> list[Row]:
    """Write occupancy.csv, one row for each configured cell, and return its rows.

    ``registers_per_thread`` and ``shared_bytes`` are ptxas's; ``load_bytes_in_flight`` is read from the machine code (see
    :mod:`.loads`); ``registers_per_thread_measured`` and the rest are ncu's.
    """
    columns = [*run.study.key_columns, *BUILT, *MEASURED, "reason"]
    names = run.study.key_columns
    found = {(*(str(r[c]) for c in names), r["quantity"]): r for r in counters}
    rows: list[Row] = []
    for group, cell in run.all_cells():
        row: Row = dict.fromkeys(columns) | run.columns(cell)
        if not run.study.cell_refusal(cell) and not cell.variant.no_kernel:
            threads = run.study.geometry(cell).threads
            row |= {"threads_per_block": threads, "warps_per_block": -(-threads // 32)}
        record = run.build(cell)
        if record.get("status") == OK:
            spills = [record.get(f"spill_{way}_bytes") for way in ("store", "load")]
            row |= {"registers_per_thread": record.get("registers"), "shared_bytes": record.get("shared_bytes")}
            row["load_bytes_in_flight"] = run.load_bytes_in_flight(cell)
            row["spill_bytes"] = sum(s for s in spills if s is not None) if any(s is not None for s in spills) else None
        reasons: list[str] = []
        for quantity, column in [("registers_per_thread", "registers_per_thread_measured"), *((q, q) for q in MEASURED)]:
            counter = found.get((*run.key(cell), quantity))
            row[column] = counter.get("mean") if counter else None
            if counter and row[column] is None and counter["reason"] not in reasons:
                reasons.append(counter["reason"])
        status = run.status(group, cell)
        row["reason"] = status.reason if status.status != OK else "; ".join(reasons)
        rows.append(row)
    write_table(run.experiment.paths.table("occupancy"), columns, rows, run.provenance)
    return rows
