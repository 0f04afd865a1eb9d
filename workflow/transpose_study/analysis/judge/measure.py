"""A measured value with its interval, and interval arithmetic over it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from transpose_study.analysis.formulas import Missing, common_divisor

Ends = tuple[float, float]

# Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom; beyond the last, that of the normal distribution.
STUDENT_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
    2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
NORMAL = 1.960


def mean_interval(row: Mapping[str, str]) -> Ends:
    """The 95 % interval of a counter's mean over ncu's launches (of one launch: the value), from a row of counters.csv."""
    mean = float(row["mean"])
    if not row["std"] or not row["launches"]:
        return mean, mean
    freedom = int(row["launches"]) - 1
    quantile = STUDENT_T[freedom - 1] if freedom <= len(STUDENT_T) else NORMAL
    half = quantile * float(row["std"]) / math.sqrt(freedom + 1)
    return mean - half, mean + half


def _span(op: Callable[[float, float], float], a: Ends, b: Ends) -> Ends:
    """The ends of ``op`` over two intervals, for an operation that is monotone in each operand."""
    values = [op(x, y) for x in a for y in b]
    return min(values), max(values)


def _difference(a: float, b: float) -> float:
    """``a - b``, and 0 where they differ by less than the twelve digits that the tables keep."""
    return 0.0 if abs(a - b) < 1e-12 * max(abs(a), abs(b)) else a - b


@dataclass(frozen=True)
class Measure:
    """A value with the interval of its samples or launches, and the same interval widened by the A/A noise floor.

    A value without an interval has ends equal to itself. Arithmetic treats operands as independent, so ends are never too narrow.
    """

    value: float
    interval: Ends
    widened: Ends

    @classmethod
    def exact(cls, value: float) -> Measure:
        """A value that does not vary."""
        return cls(value, (value, value), (value, value))

    @classmethod
    def between(cls, value: float, low: float, high: float, floor: float = 0.0) -> Measure:
        """A value with its interval; ``floor`` is the noise floor as a share of the value."""
        spread = abs(value) * floor
        return cls(value, (low, high), (low - spread, high + spread))

    def _with(self, other: Measure, op: Callable[[float, float], float]) -> Measure:
        return Measure(op(self.value, other.value), _span(op, self.interval, other.interval), _span(op, self.widened, other.widened))

    def __add__(self, other: Measure) -> Measure:
        return self._with(other, operator.add)

    def __sub__(self, other: Measure) -> Measure:
        return self._with(other, _difference)

    def __mul__(self, other: Measure) -> Measure:
        return self._with(other, operator.mul)

    def __truediv__(self, other: Measure) -> Measure:
        return self._with(other, operator.truediv)

    def __neg__(self) -> Measure:
        return Measure.exact(0.0) - self

    def __bool__(self) -> bool:
        """False where 0 lies within the interval, so that nothing can be divided by it."""
        return not self.widened[0] <= 0 <= self.widened[1]

    def __abs__(self) -> Measure:
        def ends(low: float, high: float) -> Ends:
            return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))

        return Measure(abs(self.value), ends(*self.interval), ends(*self.widened))


def smallest(*values: Measure) -> Measure:
    """The least of several, end by end."""
    first, *rest = values
    for other in rest:
        first = first._with(other, min)
    return first


def largest(*values: Measure) -> Measure:
    """The greatest of several, end by end."""
    first, *rest = values
    for other in rest:
        first = first._with(other, max)
    return first


def divisor(*values: Measure) -> Measure:
    """The greatest common divisor of exact whole numbers."""
    for value in values:
        if value.interval[0] != value.interval[1]:
            raise Missing("a value with an interval has no common divisor with another")
    return Measure.exact(common_divisor(*(v.value for v in values)))


FUNCTIONS: dict[str, Callable[..., Measure]] = {"min": smallest, "max": largest, "abs": abs, "gcd": divisor}
