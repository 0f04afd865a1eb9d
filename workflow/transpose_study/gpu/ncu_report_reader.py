"""Reads .ncu-rep files with NVIDIA's own reader: values with units, by launch; no printed text is parsed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transpose_study.errors import StudyError
from transpose_study.metrics import Quantity


class Value(NamedTuple):
    """One value of one launch; ``value`` is None with a ``reason`` where the report has none."""

    quantity: str
    metric: str
    value: float | int | None
    unit: str
    reason: str


def actions(report: Path) -> list[Any]:
    """The profiled launches of a report, in launch order."""
    try:
        import ncu_report
    except ImportError:
        raise StudyError("the Python package ncu-report is not installed", hint="pip install ncu-report") from None
    try:
        context = ncu_report.load_report(str(report))
    except Exception as error:  # the reader has no error type of its own
        raise StudyError(f"is no readable ncu report: {error}", where=str(report)) from None
    found = [action for number in range(context.num_ranges()) for action in context.range_by_idx(number)]
    if not found:
        raise StudyError("holds no profiled launch: it is empty or cut off", where=str(report), hint="profile this shape again")
    return found


def values(action: Any, quantities: Sequence[tuple[Quantity, str]]) -> Iterator[Value]:
    """The values of one launch for (quantity, ncu name) pairs.

    A metric with one instance for each opcode gives one value an opcode, the opcode in brackets behind our key.
    """
    names = set(action.metric_names())
    for quantity, metric in quantities:
        if metric not in names:
            yield Value(quantity.key, metric, None, quantity.unit, f"the report has no {metric} on this chip")
            continue
        found = action.metric_by_name(metric)
        if metric.endswith("_per_opcode"):
            ids = found.correlation_ids()
            for i in range(found.num_instances()):
                yield Value(f"{quantity.key}[{ids.as_string(i)}]", metric, int(found.as_uint64(i)), quantity.unit, "")
            continue
        yield Value(quantity.key, metric, *_converted(found, quantity))


# Units that ncu may report in place of ours, and the factor between them.
_FACTORS = {
    "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "byte/block": 1, "Kbyte/block": 1e3, "nsecond": 1, "ns": 1, "usecond": 1e3,
    "us": 1e3, "msecond": 1e6, "ms": 1e6, "second": 1e9, "s": 1e9,
}  # fmt: skip


def _converted(found: Any, quantity: Quantity) -> tuple[float | int | None, str, str]:
    """(value, unit, reason); bytes and nanoseconds are brought to our unit, whatever prefix the report used."""
    value = found.value()
    if value is None or isinstance(value, str):
        return None, quantity.unit, "the report holds no number for it"
    if quantity.unit in ("bytes", "ns"):
        unit = str(found.unit())
        if unit not in _FACTORS:
            return None, quantity.unit, f"the report gives it in the unknown unit {unit!r}"
        value = value * _FACTORS[unit]
    if isinstance(value, float) and value.is_integer() and quantity.unit not in ("%", "ratio", "warps"):
        value = int(value)
    return value, quantity.unit, ""
