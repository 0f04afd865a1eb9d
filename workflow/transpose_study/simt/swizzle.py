"""A swizzle formula of a shared tile: whether it stays in its row, maps no two columns to one place, and how many ways it takes.

Element (row, col) of a tile of ``rows`` x ``width`` elements is kept at ``row * pitch + formula(row, col)``. The tile is written
along its rows and read down its columns, or the other way round: lanes go through the tile row by row (a warp of 32 lanes
covers the next 32 elements, several rows where they are short), or column by column.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from transpose_study.errors import StudyError
from transpose_study.expressions import evaluate, names_in
from transpose_study.simt.counters import BANKS, WORD_BYTES, wavefronts
from transpose_study.simt.explain import PREFERRED_BANK, BankPicture

LANES = 32
ROW_OF_BANKS = BANKS * WORD_BYTES
SIZES = (1, 2, 4, 8, 16)  # bytes that a lane can load or store at once
MOST_SHARED_BYTES = 227 * 1024  # of one block on the largest devices so far (CUDA C++ Programming Guide, compute capability 9.0)
FAR = 2**31  # elements; a place beyond needs no count of banks to be wrong


@dataclass(frozen=True)
class Tile:
    """A tile of ``rows`` x ``width`` elements of ``bytes`` bytes, rows ``pitch`` elements apart in shared memory."""

    rows: int
    width: int
    pitch: int
    bytes: int

    def __post_init__(self) -> None:
        for option, value in (("--rows", self.rows), ("--width", self.width), ("--pitch", self.pitch)):
            if value < 1:
                raise StudyError(f"is {value}; it must be at least 1", where=option)
        if self.bytes not in SIZES:
            raise StudyError(f"is {self.bytes}; a lane moves {', '.join(map(str, SIZES))} bytes at once", where="--bytes")
        if self.pitch < self.width:
            hint = "the pitch counts elements from row to row, padding included"
            raise StudyError(f"is {self.pitch}, less than the width of {self.width}: rows would overlap", where="--pitch", hint=hint)
        if self.size > MOST_SHARED_BYTES:
            raise StudyError(f"a tile of {self.size:,} bytes is more than the {MOST_SHARED_BYTES:,} that a block can have", where="--rows")

    @property
    def size(self) -> int:
        """Bytes of shared memory."""
        return self.rows * self.pitch * self.bytes


@dataclass(frozen=True)
class Access:
    """All warps' accesses of the tile in one direction. ``taken`` and ``ideal`` are wavefronts, one number for each warp.

    ``drawn`` is the warp that pictures and sentences tell about: the bytes of its lanes, in their order.
    """

    taken: tuple[int, ...]
    ideal: tuple[int, ...]
    drawn: tuple[int, ...]

    @property
    def worst(self) -> int:
        """The warp with the most wavefronts for each that it needs."""
        return max(range(len(self.taken)), key=lambda i: (self.taken[i] / self.ideal[i], self.taken[i]))

    @property
    def ways(self) -> float:
        """Wavefronts of that warp for each that it needs."""
        return self.taken[self.worst] / self.ideal[self.worst]


@dataclass(frozen=True)
class Swizzle:
    """What a formula does to a tile.

    ``outside`` is the first (row, col, value) that leaves the row's ``pitch`` elements, ``padding`` the first that stays there but beyond
    the width; ``collision`` is (row, column, column, value) of two elements with one place. ``by_row`` and ``by_column`` are None where
    values are too far off to be counted.
    """

    formula: str
    tile: Tile
    outside: tuple[int, int, int] | None
    padding: tuple[int, int, int] | None
    collision: tuple[int, int, int, int] | None
    by_row: Access | None
    by_column: Access | None

    @property
    def usable(self) -> bool:
        """True where every element has a place of its own within its row."""
        return self.outside is None and self.collision is None


def swizzle(formula: str, tile: Tile) -> Swizzle:
    """Work out a formula over ``row`` and ``col``; :class:`StudyError` for anything that is not integer arithmetic on them."""
    places = [[evaluate(formula, {"row": r, "col": c}, where="FORMULA") for c in range(tile.width)] for r in range(tile.rows)]
    outside = _first(places, lambda value: not 0 <= value < tile.pitch)
    near = all(abs(value) < FAR for row in places for value in row)
    return Swizzle(
        formula=formula,
        tile=tile,
        outside=outside,
        padding=_first(places, lambda value: tile.width <= value < tile.pitch),
        collision=_collision(places),
        by_row=_access(places, tile, down=False) if near else None,
        by_column=_access(places, tile, down=True) if near else None,
    )


def _first(places: list[list[int]], wanted: Callable[[int], bool]) -> tuple[int, int, int] | None:
    return next(((r, c, value) for r, row in enumerate(places) for c, value in enumerate(row) if wanted(value)), None)


def _collision(places: list[list[int]]) -> tuple[int, int, int, int] | None:
    for number, row in enumerate(places):
        seen: dict[int, int] = {}
        for col, value in enumerate(row):
            if value in seen:
                return number, seen[value], col, value
            seen[value] = col
    return None


def _access(places: list[list[int]], tile: Tile, *, down: bool) -> Access:
    byte = np.array([[(r * tile.pitch + value) * tile.bytes for value in row] for r, row in enumerate(places)], np.int64)
    lanes = (byte.T if down else byte).reshape(-1)
    lanes = lanes - min(0, int(lanes.min())) // ROW_OF_BANKS * ROW_OF_BANKS  # whole rows of banks, which change no bank
    warps = -(-lanes.size // LANES)
    padded = np.zeros(warps * LANES, np.int64)
    padded[: lanes.size] = lanes
    mask = (np.arange(warps * LANES) < lanes.size).reshape(warps, LANES)
    padded = padded.reshape(warps, LANES)
    taken, ideal = wavefronts(padded, mask, tile.bytes)
    access = Access(tuple(map(int, taken)), tuple(map(int, ideal)), ())
    full = [i for i in range(warps) if mask[i].all()] or [0]
    ways = [access.taken[i] for i in full]
    typical = [i for i, w in zip(full, ways, strict=True) if w == max(ways)]  # the worst full warp; at best all are alike
    number = min(typical, key=lambda i: abs(int(padded[i, 0]) // WORD_BYTES % BANKS - PREFERRED_BANK)) if down else typical[len(typical) // 2]
    return replace(access, drawn=tuple(int(a) for a in padded[number][mask[number]]))


def words(access: Access, size: int) -> list[tuple[int, int]]:
    """(row, bank) of each 4-byte word that the drawn warp touches."""
    found = [a // WORD_BYTES + w for a in access.drawn for w in range(max(1, size // WORD_BYTES))]
    return [(w // BANKS, w % BANKS) for w in dict.fromkeys(found)]


def picture(found: Swizzle) -> BankPicture | None:
    """The banks of one row access (as the store) and one column access (as the load), None where nothing was counted."""
    if found.by_row is None or found.by_column is None:
        return None
    store, load = (tuple(words(a, found.tile.bytes)) for a in (found.by_row, found.by_column))
    rows = max(-(-found.tile.size // ROW_OF_BANKS), *(row + 1 for row, _ in (*store, *load)))
    return BankPicture(rows, store, load, max(found.by_row.taken), max(found.by_column.taken))


def why(found: Swizzle) -> str:
    """One sentence: what decides how many ways a column access takes."""
    tile, access = found.tile, found.by_column
    if access is None:
        return "The formula's values are too far off for any tile, so no bank was counted."
    phase = LANES // min(4, max(1, tile.bytes // WORD_BYTES))
    who = f"the {min(phase, len(access.drawn))} lanes of a phase" if phase < LANES else f"the {len(access.drawn)} lanes of a column access"
    fullest, banks, one_word = _fullest(access, tile.bytes, phase)
    if fullest == 1:
        if one_word:
            return f"{_capital(who)} all read the same word, which one wavefront delivers to all of them."
        return f"{_capital(who)} find their words in different banks ({_movement(found, phase)}), one wavefront for all of them."
    if banks == 1:
        return f"{_capital(who)} meet in one bank ({_movement(found, phase)}), which must deliver {fullest} words, one in a wavefront."
    return (
        f"{_capital(who)} share {banks} of the {BANKS} banks ({_movement(found, phase)}), and the fullest must deliver {fullest} words, "
        "one in a wavefront."
    )


def _fullest(access: Access, size: int, phase: int) -> tuple[int, int, bool]:
    """Over the drawn warp's phases: words in the fullest bank, banks in use there, and whether the phase needs one word only."""
    each = max(1, size // WORD_BYTES)
    found = []
    for first in range(0, len(access.drawn), phase):
        touched = {a // WORD_BYTES + w for a in access.drawn[first : first + phase] for w in range(each)}
        banks = [w % BANKS for w in touched]
        found.append((max(banks.count(b) for b in set(banks)), len(set(banks)), len(touched) == 1))
    return max(found)


def _movement(found: Swizzle, phase: int) -> str:
    """How the bank moves from lane to lane down the column."""
    tile = found.tile
    assert found.by_column is not None
    drawn = found.by_column.drawn[: min(phase, tile.rows)]
    steps = {(b - a) % ROW_OF_BANKS for a, b in pairwise(drawn)}
    if len(steps) != 1:
        return "the step from row to row is not always the same"
    step = steps.pop()
    if step == 0 and "row" not in names_in(found.formula):
        return f"a row of {tile.pitch} x {tile.bytes} bytes is a whole number of turns of the banks, so that every row begins in the same one"
    if step == 0:
        return "pitch and formula together leave this column in the same bank in every row"
    if step % WORD_BYTES:
        return f"each row moves the column by {step} bytes"
    turn = step // WORD_BYTES
    shared = math.gcd(turn, BANKS)
    return f"each row moves the column by {turn} bank{'s' * (turn != 1)}" + (f", whose common divisor with {BANKS} is {shared}" if shared > 1 else "")


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def unused(formula: str) -> list[str]:
    """Which of row and col a formula leaves out."""
    return [n for n in ("row", "col") if n not in names_in(formula)]
