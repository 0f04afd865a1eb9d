"""Numbers as text, the same in every locale and language, and the figures of a write-up.

An :class:`Amount` is a figure with its unit, or the reason why there is none. How it is set in running text, in each
language, is :mod:`transpose_study.report.texts`' business.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transpose_study.report.texts import Text

THIN = "\u202f"  # narrow no-break space: between thousands
HARD = "\u00a0"  # no-break space: between number and unit
MINUS = "\u2212"
DIGITS = 4  # significant digits of a measured figure
PLACES = 4  # decimals at most


def number(value: float, *, digits: int = DIGITS, places: int = PLACES) -> str:
    """``value`` with thousands separated; integers in full, others with ``digits`` significant digits."""
    if float(value).is_integer():
        text = f"{abs(int(value)):,}"
    else:
        size = abs(value)
        decimals = min(places, max(0, digits - 1 - math.floor(math.log10(size))))
        text = f"{size:,.{decimals}f}"
        if size >= 10**digits:  # a mean of counts: its fraction is worth one digit
            text = f"{size:,.1f}"
    text = text.replace(",", THIN) if abs(value) >= 10_000 else text.replace(",", "")
    return (MINUS if value < 0 and text.strip("0.") else "") + text


def exact(value: float) -> str:
    """``value`` as it was published: every digit that was given, thousands separated."""
    text = repr(float(value)).removesuffix(".0")
    whole, dot, rest = text.partition(".")
    if "e" in text:
        return number(value)
    return (f"{int(whole):,}".replace(",", THIN) if abs(value) >= 10_000 else whole) + dot + rest


def with_unit(text: str, unit: str) -> str:
    """Number and unit, held together."""
    return f"{text}{HARD}{unit}" if unit and unit != "ratio" else text


MEASURED, PUBLISHED, PREDICTED = "measured", "published", "predicted"


@dataclass(frozen=True)
class Amount:
    """A figure: value, unit, interval where it has one; or, with ``value`` None, the reason why it is missing.

    ``name`` says what it is, in words that fit after "the"; ``origin`` which row and column of which table it is;
    ``kind`` whether it was measured here, published by somebody, or predicted without a GPU.
    """

    value: float | None
    unit: str = ""
    name: str | Text = ""
    low: float | None = None
    high: float | None = None
    reason: str = ""
    kind: str = MEASURED
    origin: str = ""

    @property
    def known(self) -> bool:
        """False where the figure is missing."""
        return self.value is not None

    @property
    def number(self) -> float:
        """The value; asking for a missing one is a programming error."""
        if self.value is None:
            raise ValueError(f"{self.name or 'this figure'} is missing: {self.reason}")
        return self.value

    @property
    def has_interval(self) -> bool:
        """Whether both ends of an interval are there and apart."""
        return self.low is not None and self.high is not None and self.low < self.high

    def text(self) -> str:
        """The number alone."""
        return exact(self.number) if self.kind == PUBLISHED else number(self.number)

    def named(self, name: str | Text) -> Amount:
        """The same figure under another name."""
        return replace(self, name=name)


def why(reason: str) -> str:
    """A table's reason for whoever says himself that nothing was measured: without those words at its beginning."""
    return reason.removeprefix("not measured: ")


def missing(name: str | Text, reason: str, unit: str = "") -> Amount:
    """A figure that is not there."""
    return Amount(None, unit, name, reason=why(reason))


def quotient(top: Amount, bottom: Amount, *, unit: str = "", name: str | Text = "", scale: float = 1) -> Amount:
    """``scale * top / bottom``; the interval is the widest that the two intervals allow."""
    for part in (top, bottom):
        if not part.known:
            return missing(name or part.name, part.reason, unit)
    if not bottom.number:
        return missing(name or bottom.name, "its denominator is zero", unit)
    low = high = None
    if top.low is not None and top.high is not None and bottom.low and bottom.high:
        low, high = scale * top.low / bottom.high, scale * top.high / bottom.low
    origin = f"({top.origin or top.text()}) / ({bottom.origin or bottom.text()})"
    return Amount(scale * top.number / bottom.number, unit, name, low, high, origin=origin)


def product(*factors: Amount, unit: str = "", name: str | Text = "", scale: float = 1) -> Amount:
    """``scale`` times all factors, without an interval."""
    for part in factors:
        if not part.known:
            return missing(name or part.name, part.reason, unit)
    origin = " x ".join(f"({f.origin or f.text()})" for f in factors)
    return Amount(scale * math.prod(f.number for f in factors), unit, name, origin=origin)


def lowest(amounts: Sequence[Amount]) -> Amount:
    """The smallest of the known ones; where none is known, the first of the missing."""
    return min((a for a in amounts if a.known), key=lambda a: a.number, default=amounts[0])


def highest(amounts: Sequence[Amount]) -> Amount:
    """The largest of the known ones; where none is known, the first of the missing."""
    return max((a for a in amounts if a.known), key=lambda a: a.number, default=amounts[0])


def derived(value: float, unit: str = "", name: str | Text = "", origin: str = "") -> Amount:
    """A figure that follows from the configuration or from others."""
    return Amount(value, unit, name, origin=origin)


def listing(words: Sequence[str], last: str = "and") -> str:
    """``a, b and c``, for pages in English only; :class:`transpose_study.report.texts.Listing` knows more languages."""
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else "none"


def relation(ratio: Amount, margin: float = 0.0) -> int:
    """1 or -1 where ratio and interval lie clear of 1 by more than ``margin`` (a share), else 0; 0 for a missing one too.

    A ratio without an interval is taken by its value alone.
    """
    if not ratio.known:
        return 0
    low = ratio.number if ratio.low is None else ratio.low
    high = ratio.number if ratio.high is None else ratio.high
    return 1 if low > 1 + margin else -1 if high < 1 - margin else 0
