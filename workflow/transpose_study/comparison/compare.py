"""``compare``: tables, figures and the report of several sides in ``results/compare/<name>/``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from transpose_study.comparison.sides import Side, open_sides
from transpose_study.comparison.tables import Comparison
from transpose_study.errors import StudyError
from transpose_study.records import digest_of, write_csv, write_text

FOLDER = Path("results") / "compare"
LONGEST = 120  # characters of a folder's name
REPORT = "comparison"


def folder_of(sides: Sequence[Side]) -> Path:
    """Where a comparison goes: named after its sides, shortened by a digest where that is too long."""
    name = re.sub(r"[^\w.-]+", "-", "-vs-".join(s.label for s in sides))
    return FOLDER / (name if len(name) <= LONGEST else f"{name[:LONGEST - 17]}-{digest_of(name)}")


def reads(names: Sequence[str]) -> list[str]:
    """Files that a comparison of ``names`` reads, for the rule; empty where they cannot be told, so that the command says why."""
    try:
        return [str(f) for side in open_sides(names) for f in side.files]
    except StudyError:
        return []


def outputs(names: Sequence[str]) -> list[str]:
    """The reports of a comparison of ``names``, for the rule; empty where they cannot be told."""
    try:
        folder = folder_of(open_sides(names))
    except StudyError:
        return []
    return [str(folder / "report" / f"{REPORT}.{kind}") for kind in ("md", "html")]


def compare(names: Sequence[str], root: Path = Path(), output: Path | None = None) -> tuple[Path, Comparison]:
    """Compare what is named and write everything; return the folder and the comparison.

    Raises :class:`transpose_study.errors.StudyError` for what cannot be read, sides of different studies, and sides
    without a common cell.
    """
    from transpose_study.analysis.tables import tidy
    from transpose_study.comparison import figures
    from transpose_study.comparison.page import page
    from transpose_study.report.convert import to_html

    sides = open_sides(names, root)
    comparison = Comparison(sides)
    folder = root / (output or folder_of(sides))
    labels, key = [s.label for s in sides], comparison.columns
    ends = ["first", "second", "ratio", "ratio_low", "ratio_high", "tolerance_pct", "verdict"]
    axis_columns = ["axis", *key, "cache_mode"]
    for name, columns, rows in (
        ("timings", [*key, "cache_mode", "quantity", "unit", *labels], comparison.timing_rows()),
        ("counters", [*key, "quantity", "unit", *labels], comparison.counter_rows()),
        ("best", [*axis_columns, *labels], comparison.best_rows()),
        ("claims", ["id", "says", *labels], comparison.claim_rows()),
        ("environments", ["fact", "equal", *labels], comparison.environment_rows()),
        ("verdicts", [*key, "cache_mode", *ends], comparison.verdict_rows()),
    ):
        write_csv(folder / "tables" / f"{name}.csv", columns, ({c: tidy(v) for c, v in row.items()} for row in rows))
    captions = figures.draw(comparison, folder / "figures")
    text = page(comparison, captions)
    write_text(folder / "report" / f"{REPORT}.md", text)
    write_text(folder / "report" / f"{REPORT}.html", to_html(text, figures=folder / "figures"))
    return folder, comparison
