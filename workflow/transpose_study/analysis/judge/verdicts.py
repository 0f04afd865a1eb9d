"""tables/claims.csv and claim_parts.csv: every claim's verdict, and every comparison that decided it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from transpose_study.analysis.formulas import Missing, comparisons
from transpose_study.analysis.judge.cells import Binding, Place, places
from transpose_study.analysis.judge.claims import Claim, Part
from transpose_study.analysis.judge.decide import CANNOT_BE_TOLD, DOES_NOT_HOLD, HOLDS, NOT_MEASURED, combine, compare, within
from transpose_study.analysis.judge.measure import Ends, Measure
from transpose_study.analysis.judge.pairs import bound
from transpose_study.analysis.judge.text import condition_text, expected_text, figures_text, number_text, reason_text, threshold_text
from transpose_study.analysis.judge.tidy import NoInterval, NoRow, Tidy, Used
from transpose_study.analysis.tables import Row, write_table
from transpose_study.experiment import Experiment
from transpose_study.provenance import Provenance

CLAIM_COLUMNS = [
    "id", "verdict", "figures", "reason", "source", "says", "says_zh", "kind", "expected", "note", "note_zh", "changed", "changed_zh", "cell",
]  # fmt: skip
PART_COLUMNS = [
    "id", "part", "says", "says_zh", "kind", "over", "condition", "cell", "group", "cache_mode", "measured", "low", "high", "threshold",
    "threshold_low", "threshold_high", "noise_floor_pct", "verdict", "reason", "source_table",
]  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """One comparison: a part with its aliases bound to cells. ``allowed`` is where the measured interval must lie."""

    part: int
    condition: str
    places: tuple[Place, ...]
    measured: Measure | None
    threshold: str
    allowed: Ends | None
    floor: float | None
    verdict: str
    reason: str
    tables: tuple[str, ...]


def write_verdicts(experiment: Experiment, claims: Sequence[Claim], tidy: Tidy) -> None:
    """Judge every claim and write claims.csv (one row a claim) and claim_parts.csv (one row a comparison)."""
    summary: list[Row] = []
    details: list[Row] = []
    for claim in claims:
        compared = [c for part in claim.parts for c in _Judge(experiment, tidy, claim).part(part)]
        summary.append(_claim_row(tidy, claim, compared))
        details += [_part_row(claim, c) for c in compared]
    _write(experiment, "claims", CLAIM_COLUMNS, ("note_zh", "changed_zh"), summary)
    _write(experiment, "claim_parts", PART_COLUMNS, ("says_zh",), details)


def _write(experiment: Experiment, name: str, columns: Sequence[str], optional: Sequence[str], rows: Sequence[Row]) -> None:
    """Write a table, of the ``optional`` columns those that any row fills: what a file gives in one language alone needs no column."""
    empty = [c for c in optional if not any(row.get(c) for row in rows)]
    kept = [{c: value for c, value in row.items() if c not in empty} for row in rows]
    write_table(experiment.paths.table(name), [c for c in columns if c not in empty], kept, Provenance(experiment))


@dataclass(frozen=True)
class _Judge:
    """Judges the parts of one claim."""

    experiment: Experiment
    tidy: Tidy
    claim: Claim

    def part(self, part: Part) -> list[Comparison]:
        """The comparisons of one part; cells of which the tables have no row at all are no cells of this run."""
        found: list[Comparison] = []
        absent: list[str] = []
        for binding in bound(self.experiment, self.claim.cells, part.aliases):
            try:
                found += self._bound(part, binding)
            except NoRow as missing:
                absent.append(str(missing))
        if not found:
            why = absent[0] if absent else self._unconfigured(part)
            found = [Comparison(part.number, part.measure, (), None, "", None, None, NOT_MEASURED, why, ())]
        return found

    def _unconfigured(self, part: Part) -> str:
        """Which cells of the part this run's configuration leaves out."""
        cells = [self.claim.cells[a] for a in part.aliases]
        empty = [c for c in cells if not places(self.experiment, c)] or cells
        texts = "; ".join(dict.fromkeys(s.text for selectors in empty for s in selectors))
        groups = ", ".join(dict.fromkeys(s.group for selectors in empty for s in selectors))
        return f"{NOT_MEASURED}: this run's configuration has no cell {texts} at {groups}"

    def _bound(self, part: Part, binding: Binding) -> list[Comparison]:
        pieces = comparisons(part.measure, where=self.claim.where)
        if not pieces:
            return [self._one(part, binding, part.measure, None)]
        results = [self._one(part, binding, left, (sign, right)) for left, sign, right in pieces]
        if part.over == "some" and len(results) > 1:  # the pair must meet all of them at once
            return [_joined(results, binding)]
        return results

    def _one(self, part: Part, binding: Binding, left: str, against: tuple[str, str] | None) -> Comparison:
        used, where, study = Used(), self.claim.where, self.experiment.study
        condition = condition_text(study, left, binding, self.tidy.swizzles)
        threshold, allowed, measured = "", None, None
        try:
            if against:
                sign, text = against
                condition = f"{condition} {sign} {condition_text(study, text, binding, self.tidy.swizzles)}"
                other = self.tidy.evaluate(text, binding, used, where)
                threshold, allowed = f"{sign} {number_text(other.value)}", other.interval
                measured = self.tidy.evaluate(left, binding, used, where)
                verdict = compare(measured, sign, other)
            else:
                value = part.value
                if isinstance(value, str):
                    value = self.tidy.evaluate(value, binding, Used(), where).value
                tolerance = part.tolerance / 100 * abs(value) if part.percent else part.tolerance
                allowed, threshold = _allowed(part.kind, value, tolerance), threshold_text(part.kind, value, tolerance)
                condition = f"{condition} {threshold}"
                measured = self.tidy.evaluate(left, binding, used, where)
                verdict = within(measured, allowed)
            reason = "" if verdict != CANNOT_BE_TOLD else _across(measured, used)
        except NoRow:
            raise
        except NoInterval as single:
            verdict, reason = CANNOT_BE_TOLD, str(single)
        except Missing as missing:
            verdict, reason = NOT_MEASURED, str(missing)
        floor = max(used.floors) if used.floors else None
        tables = tuple(dict.fromkeys(used.tables))
        return Comparison(part.number, condition, tuple(binding.values()), measured, threshold, allowed, floor, verdict, reason, tables)


def _across(measured: Measure, used: Used) -> str:
    low, high = measured.interval
    text = f"the interval {number_text(low)} to {number_text(high)}"
    if used.floors:
        text += f", widened by the A/A noise floor of {max(used.floors):.2g} %,"
    return f"{text} crosses the threshold"


def _allowed(kind: str, value: Any, tolerance: float) -> Ends:
    """Where a value may lie; an exact count may differ by what twelve digits of a table leave out."""
    infinite = float("inf")
    match kind:
        case "at_least":
            return float(value), infinite
        case "at_most":
            return -infinite, float(value)
        case "range":
            return float(value[0]), float(value[1])
    slack = max(tolerance, 1e-10 * abs(float(value)))
    return float(value) - slack, float(value) + slack


def _joined(results: list[Comparison], binding: Binding) -> Comparison:
    """One comparison out of several of the same cells; its figures are those of the last, the one in question."""
    first, last = results[0], results[-1]
    tables = tuple(dict.fromkeys(t for r in results for t in r.tables))
    reason = next((r.reason for r in results if r.reason), "")
    verdict = combine([r.verdict for r in results])
    return Comparison(
        first.part, " and ".join(r.condition for r in results), tuple(binding.values()), last.measured, last.threshold, last.allowed, last.floor,
        verdict, reason, tables,
    )  # fmt: skip


def _part_verdict(part: Part, verdicts: Sequence[str]) -> str:
    if part.over == "every":
        return combine(verdicts)
    order = (HOLDS, CANNOT_BE_TOLD, NOT_MEASURED, DOES_NOT_HOLD)
    return min(verdicts, key=order.index)


def _claim_row(tidy: Tidy, claim: Claim, compared: Sequence[Comparison]) -> Row:
    parts = [[c for c in compared if c.part == p.number] for p in claim.parts]
    each = [_part_verdict(p, [c.verdict for c in found]) for p, found in zip(claim.parts, parts, strict=True)]
    verdict = combine(each)
    decided = [(p, found) for p, found, v in zip(claim.parts, parts, each, strict=True) if v == verdict]
    return {
        "id": claim.id, "verdict": verdict, "figures": "; ".join(figures_text(tidy.study, p, f) for p, f in zip(claim.parts, parts, strict=True)),
        "reason": reason_text(tidy.study, verdict, [(p, c) for p, found in decided for c in found if c.verdict == verdict]),
        "source": "; ".join(claim.sources), "says": claim.says, "says_zh": claim.says_zh, "kind": claim.kind,
        "expected": "; ".join(dict.fromkeys(expected_text(p) for p in claim.parts)), "note": claim.note, "note_zh": claim.note_zh,
        "changed": claim.changed, "changed_zh": claim.changed_zh,
        "cell": _cells(p for c in compared for p in c.places),
    }  # fmt: skip


def _part_row(claim: Claim, c: Comparison) -> Row:
    part = claim.parts[c.part - 1]
    row: Row = {
        "id": claim.id, "part": c.part, "says": part.says or claim.says,
        "says_zh": part.says_zh, "kind": part.kind, "over": part.over, "condition": c.condition,
        "cell": _cells(c.places), "group": "; ".join(dict.fromkeys(p.group for p in c.places)),
        "cache_mode": "; ".join(dict.fromkeys(p.mode for p in c.places)) if {"timings", "ratios"} & set(c.tables) else "",
        "threshold": c.threshold, "noise_floor_pct": c.floor, "verdict": c.verdict, "reason": c.reason, "source_table": "; ".join(c.tables),
    }  # fmt: skip
    if c.measured is not None:
        row |= {"measured": c.measured.value, "low": c.measured.interval[0], "high": c.measured.interval[1]}
    if c.allowed:
        row |= {"threshold_low": c.allowed[0], "threshold_high": c.allowed[1]}
    return row


def _cells(named: Iterable[Place]) -> str:
    """Cells as ``variant, axis value; ...``, each once."""
    texts = (", ".join([p.cell.variant.name, *(f"{a} {v}" for a, v in p.cell.kernel_values.items())]) for p in named)
    return "; ".join(dict.fromkeys(texts))
