"""tables/ratios.csv: how many times faster one cell is than another, for every pair of cells that a claim or a question names."""

from __future__ import annotations

import math

from transpose_study.analysis.judge.claims import load_claims
from transpose_study.analysis.judge.pairs import named_pairs
from transpose_study.analysis.judge.quantities import SPEEDUP
from transpose_study.analysis.run import NOT_MEASURED, OK, Run
from transpose_study.analysis.tables import Row, write_table
from transpose_study.analysis.timings import paired
from transpose_study.registry import Cell


def write_ratios(run: Run) -> None:
    """Write ratios.csv: ``time of other / time of the cell``, paired by process and round, with its 95 % interval."""
    columns = [*run.study.key_columns, "cache_mode", "other", SPEEDUP, f"{SPEEDUP}_low", f"{SPEEDUP}_high", "n", "reason"]
    rows = [_row(run, *pair) for pair in named_pairs(run.experiment, load_claims(run.experiment))]
    write_table(run.experiment.paths.table("ratios"), columns, rows, run.provenance)


def _row(run: Run, group: str, mode: str, fast: Cell, slow: Cell) -> Row:
    row: Row = {**run.columns(fast), "cache_mode": mode, "other": run.study.short_name(slow), "n": 0}
    ratio = paired(run, group, slow, fast, mode)
    if ratio is None:
        status = [s for c in (fast, slow) if (s := run.status(group, c, mode)).status != OK]
        return row | {"reason": status[0].reason if status else f"{NOT_MEASURED}: no round holds both kernels"}
    reason = "one pair of samples has no interval" if math.isnan(ratio.low) else ""
    return row | {SPEEDUP: ratio.median, f"{SPEEDUP}_low": ratio.low, f"{SPEEDUP}_high": ratio.high, "n": ratio.n, "reason": reason}
