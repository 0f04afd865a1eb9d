"""The four verdicts, and how an interval decides between them.

A verdict looks at the interval widened by the A/A noise floor, so that a difference smaller than what two measurements
of one and the same cell differ by decides nothing. Without an interval (exact counts, published figures) the value does.
"""

from __future__ import annotations

from collections.abc import Iterable

from transpose_study.analysis.judge.measure import Ends, Measure

HOLDS, DOES_NOT_HOLD, CANNOT_BE_TOLD, NOT_MEASURED = "holds", "does not hold", "cannot be told", "not measured"
_WEAKEST_FIRST = (DOES_NOT_HOLD, CANNOT_BE_TOLD, NOT_MEASURED, HOLDS)


def within(measured: Measure, allowed: Ends) -> str:
    """Inside ``allowed`` (ends included) holds, outside does not, across cannot be told."""
    low, high = measured.widened
    if allowed[0] <= low and high <= allowed[1]:
        return HOLDS
    if high < allowed[0] or low > allowed[1]:
        return DOES_NOT_HOLD
    return CANNOT_BE_TOLD


def compare(left: Measure, sign: str, right: Measure) -> str:
    """Whether ``left sign right`` (< <= > >=) wherever in their intervals the two lie, nowhere, or only in part."""
    if sign in (">", ">="):
        left, right, sign = right, left, {">": "<", ">=": "<="}[sign]
    (low, high), (other_low, other_high) = left.widened, right.widened
    if sign == "<":
        return HOLDS if high < other_low else DOES_NOT_HOLD if low >= other_high else CANNOT_BE_TOLD
    return HOLDS if high <= other_low else DOES_NOT_HOLD if low > other_high else CANNOT_BE_TOLD


def combine(verdicts: Iterable[str]) -> str:
    """The verdict of all together: one part that does not hold decides, then one that cannot be told, then one not measured."""
    return min(verdicts, key=_WEAKEST_FIRST.index)
