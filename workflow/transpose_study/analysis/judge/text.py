"""How conditions, thresholds and figures are written in the tables of verdicts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from transpose_study.analysis.judge.cells import Binding
from transpose_study.analysis.judge.claims import Part
from transpose_study.analysis.judge.decide import DOES_NOT_HOLD, HOLDS, NOT_MEASURED
from transpose_study.analysis.judge.swizzles import NamedSwizzle
from transpose_study.registry import Study

if TYPE_CHECKING:
    from transpose_study.analysis.judge.verdicts import Comparison

SHOWN = 3  # comparisons named one by one; more are summed up by their extremes
_ALIASES = re.compile(r"\[(\w+(?:\s*,\s*\w+)?)\]")


def number_text(value: float) -> str:
    """Whole numbers in full with thousands separated, others to four significant digits."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 10000 else f"{value:.4g}"


def declared_text(value: float) -> str:
    """A number of the file, all its digits."""
    return f"{value:,}" if isinstance(value, int) else number_text(value) if float(value).is_integer() else f"{value:.10g}"


def threshold_text(kind: str, value: Any, tolerance: float) -> str:
    """What a measured value is held against, such as ``>= 0.97``."""
    match kind:
        case "range":
            return f"within {declared_text(value[0])} to {declared_text(value[1])}"
        case "at_least":
            return f">= {declared_text(value)}"
        case "at_most":
            return f"<= {declared_text(value)}"
        case "equal" if not tolerance:
            return f"= {declared_text(value)}"
    return f"= {declared_text(value)} ± {declared_text(tolerance)}"


def expected_text(part: Part) -> str:
    """The part's condition with its aliases as they stand in the file."""
    if part.kind == "order":
        return part.measure
    value, tolerance = part.value, f" ± {declared_text(part.tolerance)}{' %' if part.percent else ''}" if part.tolerance else ""
    if isinstance(value, str) or part.percent:
        sign = {"at_least": ">=", "at_most": "<="}.get(part.kind, "=")
        return f"{part.measure} {sign} {value if isinstance(value, str) else declared_text(value)}{tolerance}"
    return f"{part.measure} {threshold_text(part.kind, value, part.tolerance)}"


def condition_text(study: Study, formula: str, binding: Binding, swizzles: Mapping[str, NamedSwizzle]) -> str:
    """A formula with its aliases replaced by the kernels or swizzles they stand for."""

    def kernels(match: re.Match[str]) -> str:
        names = [a.strip() for a in match[1].split(",")]
        if names[0] in swizzles:
            return f"[{swizzles[names[0]].text}]"
        return "[" + ", ".join(study.short_name(binding[a].cell) for a in names) + "]"

    return _ALIASES.sub(kernels, formula)


def measured_text(c: Comparison) -> str:
    """The measured value with its interval, where it has one, and what it was held against."""
    if c.measured is None:
        return c.reason or NOT_MEASURED
    low, high = c.measured.interval
    text = number_text(c.measured.value)
    return text if low == high else f"{text} [{number_text(low)}, {number_text(high)}]"


def kernels_text(study: Study, c: Comparison) -> str:
    """The kernels of a comparison; a group or cache mode other than the main one's stands in the table's own columns."""
    names = dict.fromkeys(study.short_name(p.cell) for p in c.places)
    return (" / " if any("," in n for n in names) else ", ").join(names)


def figures_text(study: Study, part: Part, compared: Sequence[Comparison]) -> str:
    """The figures of one part: each comparison, or of many the two extremes; of ``some``, those for which it holds."""
    known = [c for c in compared if c.measured is not None]
    if part.over == "some":
        known = [c for c in known if c.verdict == HOLDS] or known
    if not known:
        return f"{part.shows}: {measured_text(compared[0])}"
    least, most = (f(known, key=lambda c: c.measured.value if c.measured else 0.0) for f in (min, max))
    shown = known
    if len(known) > SHOWN:
        shown = [least] if measured_text(least) == measured_text(most) else [least, most]
    texts = [measured_text(c) + _aside(kernels_text(study, c) + _against(c)) for c in shown]
    if len(shown) == 1 and len(known) > 1:
        texts = [f"{measured_text(least)} (all {len(known)}{_against(least)})"]
    many = f"{len(known)} from " if len(shown) < len(known) and len(shown) > 1 else ""
    return f"{part.shows}: {many}{' to '.join(texts) if many else ', '.join(texts)}"


def _against(c: Comparison) -> str:
    return f"; {c.threshold}" if c.threshold else ""


def _aside(text: str) -> str:
    """In parentheses, without the separator of a first part that is not there."""
    inside = text.removeprefix("; ")
    return f" ({inside})" if inside else ""


def reason_text(study: Study, verdict: str, deciding: Sequence[tuple[Part, Comparison]]) -> str:
    """Which comparisons decided, and why; empty where everything holds."""
    if verdict == HOLDS or not deciding:
        return ""
    reasons = dict.fromkeys(c.reason for _, c in deciding)
    if len(reasons) == 1 and deciding[0][1].measured is None:
        return deciding[0][1].reason
    named = []
    for part, c in deciding[:SHOWN]:
        why = f"not {c.threshold}" if verdict == DOES_NOT_HOLD else c.reason
        told = f"{part.shows}: {measured_text(c)}" + _aside(f"{kernels_text(study, c)}; {why}")
        named.append(told if c.measured is not None else f"{part.shows}: {c.reason}")
    rest = len(deciding) - SHOWN
    return "; ".join(named) + (f"; and {rest} more" if rest > 0 else "")
