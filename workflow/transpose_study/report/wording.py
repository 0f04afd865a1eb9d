"""Numbers as text, and the words that say what numbers say: the same in every locale.

An :class:`Amount` is a figure with its unit, or the reason why there is none. Formatted, ``{amount}`` gives number and
unit, ``{amount:n}`` the number alone, ``{amount:i}`` number, unit and interval; published figures come in italics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Amount:
    """A figure: value, unit, interval where it has one; or, with ``value`` None, the reason why it is missing.

    ``name`` says what it is, in words that fit after "the". ``published`` marks a figure that was not measured here.
    """

    value: float | None
    unit: str = ""
    name: str = ""
    low: float | None = None
    high: float | None = None
    reason: str = ""
    published: bool = False

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

    def text(self) -> str:
        """The number alone."""
        return exact(self.number) if self.published else number(self.number)

    def __format__(self, specification: str) -> str:
        plain = self.text() if specification == "n" else with_unit(self.text(), self.unit)
        if self.published:
            return f"*{plain}*"
        if specification == "i" and self.low is not None and self.high is not None:
            return f"{plain} (interval {number(self.low)} to {number(self.high)})"
        return plain

    def named(self, name: str) -> Amount:
        """The same figure under another name."""
        return replace(self, name=name)


def missing(name: str, reason: str, unit: str = "") -> Amount:
    """A figure that is not there."""
    return Amount(None, unit, name, reason=reason)


def quotient(top: Amount, bottom: Amount, *, unit: str = "", name: str = "", scale: float = 1) -> Amount:
    """``scale * top / bottom``; the interval is the widest that the two intervals allow."""
    name = name or f"ratio of the {top.name} to the {bottom.name}"
    for part in (top, bottom):
        if not part.known:
            return missing(name, part.reason, unit)
    if not bottom.number:
        return missing(name, f"the {bottom.name} is zero", unit)
    low = high = None
    if top.low is not None and top.high is not None and bottom.low and bottom.high:
        low, high = scale * top.low / bottom.high, scale * top.high / bottom.low
    return Amount(scale * top.number / bottom.number, unit, name, low, high)


def lowest(amounts: Sequence[Amount]) -> Amount:
    """The smallest of the known ones; where none is known, the first of the missing."""
    return min((a for a in amounts if a.known), key=lambda a: a.number, default=amounts[0])


def highest(amounts: Sequence[Amount]) -> Amount:
    """The largest of the known ones; where none is known, the first of the missing."""
    return max((a for a in amounts if a.known), key=lambda a: a.number, default=amounts[0])


def beside(published: Amount) -> str:
    """`` (published: figure)``, or nothing where the publication gives none."""
    return f" (published: {published})" if published.known else ""


def derived(value: float, unit: str = "", name: str = "") -> Amount:
    """A figure that follows from the configuration or from others."""
    return Amount(value, unit, name)


def listing(words: Sequence[str], last: str = "and") -> str:
    """``a, b and c``."""
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else "none"


def plural(count: int, one: str, many: str = "") -> str:
    """``1 launch``, ``3 launches``."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def versus(ratio: Amount, margin: float, *, above: str, below: str, level: str) -> str:
    """``above`` or ``below`` where ratio and interval lie clear of 1 by more than ``margin`` (a share), else ``level``.

    A ratio without an interval is taken by its value alone; a missing one gives "".
    """
    if not ratio.known:
        return ""
    low = ratio.number if ratio.low is None else ratio.low
    high = ratio.number if ratio.high is None else ratio.high
    if low > 1 + margin:
        return above
    if high < 1 - margin:
        return below
    return level


@dataclass(frozen=True)
class Sentence:
    """A sentence whose figures are all there; or no text, and the figures that lack."""

    text: str
    lacking: tuple[Amount, ...] = ()


def sentence(template: str, **amounts: object) -> Sentence:
    """Fill ``template``; where a figure it needs is missing there is no sentence, only what lacks."""
    lacking = tuple(a for a in amounts.values() if isinstance(a, Amount) and not a.known)
    return Sentence("", lacking) if lacking else Sentence(template.format(**amounts))
