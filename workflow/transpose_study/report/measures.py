"""Quantities that are made of others, as figures and write-ups name them: sums, differences and shares of counters, or times.

A measure is a mapping: ``quantity`` (one or a list, summed up), ``less`` (subtracted), ``per`` (the sum of these divides); or
``timing``, a column of tables/timings.csv, with a ``mode``; or ``axis``, the cell's own value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from transpose_study.errors import StudyError, nearest
from transpose_study.registry import Cell
from transpose_study.report.values import Results
from transpose_study.report.wording import PREDICTED, Amount, missing, quotient

Measure = Mapping[str, Any]
KEYS = {"axis", "timing", "mode", "quantity", "less", "per"}


def measured(results: Results, cell: Cell, measure: Measure) -> Amount:
    """The measured figure of a cell, or the cell's value on an axis."""
    if "axis" in measure:
        value = cell.values.get(measure["axis"])
        return Amount(float(value)) if isinstance(value, int) else missing(measure["axis"], "the variant does not take this axis")
    if "timing" in measure:
        return results.timing(cell, measure["timing"], measure.get("mode", results.experiment.config.timing.cache_modes[0]))
    return _combined(measure, lambda quantity: results.counter(cell, quantity))


def predicted(results: Results, cell: Cell, measure: Measure) -> Amount:
    """The predicted figure of a cell; times are not predicted."""
    if "quantity" not in measure:
        return missing("prediction", "times are not predicted")
    return _combined(measure, lambda quantity: results.predicted(cell, quantity))


def known_keys(measure: Measure, where: str) -> None:
    """Raise :class:`StudyError` for a key that no measure has."""
    for key in measure:
        if key not in KEYS:
            raise StudyError(f"unknown key {key!r} of a measure; {nearest(key, KEYS)}", where=where)


def _combined(measure: Measure, figure: Callable[[str], Amount]) -> Amount:
    top = _sum([(figure(q), 1) for q in _listed(measure["quantity"])] + [(figure(q), -1) for q in _listed(measure.get("less", ()))])
    if "per" not in measure:
        return top
    result = quotient(top, _sum([(figure(q), 1) for q in _listed(measure["per"])]), name=top.name)
    return Amount(result.value, "", result.name, reason=result.reason, kind=top.kind, origin=result.origin)


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _sum(terms: list[tuple[Amount, int]]) -> Amount:
    for amount, _ in terms:
        if not amount.known:
            return amount
    first = terms[0][0]
    if len(terms) == 1:
        return first
    origin = " ".join(f"{'+' if sign > 0 else '-'} ({a.origin})" for a, sign in terms).removeprefix("+ ")
    kind = PREDICTED if any(a.kind == PREDICTED for a, _ in terms) else first.kind
    return Amount(sum(sign * a.number for a, sign in terms), first.unit, first.name, kind=kind, origin=origin)
