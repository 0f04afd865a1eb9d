"""Writing of the tidy tables: one place for column order and for how numbers are rounded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transpose_study.provenance import COLUMNS, Provenance
from transpose_study.records import write_csv

Row = dict[str, Any]

# Twelve digits keep every count exact up to 10^12 and drop the last bits, in which summation differs between CPUs.
DIGITS = 12


def tidy(value: Any) -> Any:
    """A plain value for a table: floats of twelve significant digits, whole ones without a fraction; text in one line."""
    if type(value) is int or value is None or (type(value) is str and "\n" not in value):  # nearly every value of the large tables
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        number = float(value)
        if not math.isfinite(number):
            return None
        number = float(f"{number:.{DIGITS}g}")
        return int(number) if number.is_integer() and abs(number) < 10**15 else number
    if isinstance(value, str) and "\n" in value:  # a compiler's words: one line in a table
        return " / ".join(line.strip() for line in value.splitlines() if line.strip())
    if isinstance(value, np.integer):
        return int(value)
    return value


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]], provenance: Provenance) -> None:
    """Write a tidy table; the last columns of every row say which run, configuration and cubin it came from."""
    write_csv(path, [*columns, *COLUMNS], ({c: tidy(v) for c, v in row.items()} | provenance.stamp(row) for row in rows))
