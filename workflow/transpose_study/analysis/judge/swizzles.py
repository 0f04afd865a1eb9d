"""What claims may say of a swizzle formula by arithmetic alone: whether it keeps its elements in their rows, and how many ways it takes.

A claims file names such tiles under ``swizzles``: ``NAME: {formula, width, pitch, bytes, rows}`` (rows 32, pitch the width and bytes 4
where they are not given), as the command ``transpose-study swizzle`` takes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from transpose_study.errors import StudyError, nearest
from transpose_study.expressions import evaluate, names_in
from transpose_study.simt.swizzle import LANES, Access, Swizzle, Tile, swizzle

ARITHMETIC = "arithmetic"  # the source of such a figure, where others name a table
_KEYS = ("formula", "width", *(f.name for f in fields(Tile) if f.name != "width"))


@dataclass(frozen=True)
class NamedSwizzle:
    """A formula on a tile, worked out when it is first asked for."""

    formula: str
    tile: Tile

    @cached_property
    def _found(self) -> Swizzle:
        return swizzle(self.formula, self.tile)

    @property
    def text(self) -> str:
        """How the tables name it, for example ``col ^ row on 32 rows of 8``."""
        padded = f" at pitch {self.tile.pitch}" if self.tile.pitch != self.tile.width else ""
        return f"{self.formula} on {self.tile.rows} rows of {self.tile.width}{padded}"

    def value(self, quantity: str) -> float:
        """One of :data:`QUANTITIES`."""
        match quantity:
            case "fits":
                return float(self._found.usable)
            case "elements_outside":
                rows, columns = range(self.tile.rows), range(self.tile.width)
                places = (evaluate(self.formula, {"row": r, "col": c}) for r in rows for c in columns)
                return float(sum(not 0 <= p < self.tile.pitch for p in places))
            case "column_ways":
                return _ways(self._found.by_column)
            case _:
                return _ways(self._found.by_row)


QUANTITIES = {
    "fits": "1 where every element has a place of its own within its row, else 0",
    "elements_outside": "elements that are put outside their row",
    "column_ways": "wavefronts of the column accesses for each one needed",
    "row_ways": "wavefronts of the row accesses for each one needed",
}


def _ways(access: Access | None) -> float:
    return sum(access.taken) / sum(access.ideal) if access else float("inf")


def parse_swizzles(given: Any, where: str) -> dict[str, NamedSwizzle]:
    """The swizzles of a claims file by name; every mistake is a :class:`StudyError`."""
    if not isinstance(given, Mapping):
        raise StudyError("swizzles is no mapping from a name of your choice to a formula and its tile", where=where)
    return {str(name): _parse(entry, f"{where}, swizzle {name}") for name, entry in given.items()}


def _parse(entry: Any, where: str) -> NamedSwizzle:
    if not isinstance(entry, Mapping):
        raise StudyError("is no mapping", where=where)
    for key, value in entry.items():
        if key not in _KEYS:
            raise StudyError(f"unknown key {key!r}; {nearest(str(key), _KEYS)}", where=where)
        if key != "formula" and not isinstance(value, int):
            raise StudyError(f"{key} {value!r} is no whole number", where=where)
    if "formula" not in entry or "width" not in entry:
        raise StudyError("lacks its formula or its width", where=where)
    formula = str(entry["formula"])
    unknown = sorted(names_in(formula) - {"row", "col"})
    if unknown:
        raise StudyError(f"{', '.join(unknown)} in {formula!r} is neither row nor col", where=where)
    evaluate(formula, {"row": 0, "col": 0}, where=where)
    width = entry["width"]
    try:
        tile = Tile(entry.get("rows", LANES), width, entry.get("pitch", width), entry.get("bytes", 4))
    except StudyError as error:  # which names the command's option
        raise StudyError(f"{error.where.removeprefix('--')} {error.what}", where=where, hint=error.hint) from None
    return NamedSwizzle(formula, tile)
