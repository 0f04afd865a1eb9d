"""The comparison's tables: every figure of every common cell with one column a side, environments, claims, verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

from transpose_study.comparison.sides import Key, Row, Side
from transpose_study.comparison.verdicts import Samples, Verdict, judge
from transpose_study.differences import UNKNOWN, facts
from transpose_study.errors import StudyError

TIMED = {"bandwidth_gb_s": "GB/s", "bandwidth_gb_s_low": "GB/s", "bandwidth_gb_s_high": "GB/s", "percent_of_peak": "%", "median_us": "us"}
RATIO = "ratio_to_"


@dataclass(frozen=True)
class Pair:
    """Two sides measured on the same model of GPU, and the verdict of every cell and cache mode both have."""

    first: Side
    second: Side
    same_unit: bool
    verdicts: Mapping[tuple[Key, str], Verdict | None] = field(default_factory=dict)


class Comparison:
    """Everything that is set side by side; ``columns`` are those that identify a cell, the same on every side."""

    def __init__(self, sides: Sequence[Side]) -> None:
        self.sides = list(sides)
        self.columns = self._columns()
        self.environments = {s.label: s.environment() for s in self.sides}
        self.timings = {s.label: {(s.key(r), r["cache_mode"]): r for r in s.table("timings")} for s in self.sides}
        self.held = {label: {k for (k, _), r in rows.items() if r["status"] == "ok"} for label, rows in self.timings.items()}
        shared = [k for k in dict.fromkeys(k for keys in self.held.values() for k in keys) if sum(k in h for h in self.held.values()) > 1]
        if not shared:
            told = "; ".join(f"{label} has {self._extent(keys)}" for label, keys in self.held.items())
            raise StudyError(f"no cell is common to two of them: {told}", where="configuration, key compare")

    def _columns(self) -> list[str]:
        found = {tuple(s.key_columns): s.label for s in self.sides if s.key_columns}
        for side in self.sides:
            if not side.key_columns:
                raise StudyError("has no measured cell", where=side.label, hint="run snakemake --cores 1 all there first")
        if len(found) > 1:
            told = "; ".join(f"{label} by {', '.join(c)}" for c, label in found.items())
            raise StudyError(f"their cells are named by different axes: {told}", where="configuration, key compare")
        return list(next(iter(found)))

    def _extent(self, keys: set[Key]) -> str:
        """What a side has, in a few words: its variants and the values of its axes."""
        parts = []
        for i, column in enumerate(self.columns):
            values = sorted({k[i] for k in keys if k[i]}, key=lambda v: (len(v), v))
            if values:
                parts.append(f"{column} {', '.join(values[:6])}{' and more' if len(values) > 6 else ''}")
        return "; ".join(parts) or "no measured cell"

    # -- cells --------------------------------------------------------------------------------------------------------

    @cached_property
    def order(self) -> list[Key]:
        """Cells that two sides or more have, in the order of the first side that has them."""
        keys = dict.fromkeys(key for s in self.sides for key in (s.key(r) for r in s.table("timings")))
        return [k for k in keys if sum(k in held for held in self.held.values()) > 1]

    def common(self) -> list[str]:
        """One sentence for each side: how many cells it has, and how many of them another has too."""
        shared = set(self.order)
        return [f"{label}: {len(keys)} measured cells, {len(keys & shared)} of them on another side too" for label, keys in self.held.items()]

    @cached_property
    def modes(self) -> list[str]:
        """Cache modes in order of appearance."""
        return list(dict.fromkeys(m for rows in self.timings.values() for _, m in rows))

    def timed(self, label: str, key: Key, mode: str, quantity: str) -> float | None:
        """A figure of timings.csv."""
        text = self.timings[label].get((key, mode), {}).get(quantity, "")
        return float(text) if text else None

    @cached_property
    def ratios(self) -> list[str]:
        """The ratios to baselines that a side has, such as ``ratio_to_copy``."""
        names = dict.fromkeys(c for s in self.sides for r in s.table("timings")[:1] for c in r if c.startswith(RATIO))
        return [n for n in names if not n.endswith(("_low", "_high"))]

    def timing_rows(self) -> Iterator[dict[str, Any]]:
        """timings.csv of the comparison: one row for each common cell, cache mode and quantity."""
        for key in self.order:
            for mode in self.modes:
                for quantity, unit in {**TIMED, **dict.fromkeys(self.ratios, "ratio")}.items():
                    values = {s.label: self.timed(s.label, key, mode, quantity) for s in self.sides}
                    if sum(v is not None for v in values.values()):
                        yield dict(zip(self.columns, key, strict=True)) | {"cache_mode": mode, "quantity": quantity, "unit": unit} | values

    @cached_property
    def counters(self) -> dict[tuple[Key, str], dict[str, float]]:
        """Means over launches by cell and quantity, then by side; only what two sides or more have."""
        found: dict[tuple[Key, str], dict[str, float]] = {}
        for side in self.sides:
            for row in side.table("counters"):
                if row["mean"]:
                    found.setdefault((side.key(row), row["quantity"]), {})[side.label] = float(row["mean"])
        return {k: v for k, v in found.items() if len(v) > 1}

    @cached_property
    def units(self) -> dict[str, str]:
        """Unit of each counter, from the sides that tell it."""
        return {r["quantity"]: r["unit"] for s in reversed(self.sides) for r in s.table("counters") if r["unit"]}

    def counter_rows(self) -> Iterator[dict[str, Any]]:
        """counters.csv of the comparison: one row for each cell and quantity that two sides or more have."""
        for (key, quantity), values in self.counters.items():
            yield dict(zip(self.columns, key, strict=True)) | {"quantity": quantity, "unit": self.units.get(quantity, "")} | values

    def without_counters(self) -> dict[str, str]:
        """Sides that have no counter at all, and the first reason they give."""
        found = {}
        for side in self.sides:
            rows = side.table("counters")
            if not any(r["mean"] for r in rows):
                found[side.label] = next((r["reason"] for r in rows if r["reason"]), "it has no table of counters")
        return found

    # -- the best value of an axis, claims, environments ---------------------------------------------------------------------

    def axes(self) -> list[str]:
        """Axes that select code and have a table of their own on some side."""
        return list(dict.fromkeys(a for s in self.sides for a in (*s.axes, *self.columns[1:]) if s.table(a)))

    def best_rows(self) -> Iterator[dict[str, Any]]:
        """best.csv: the axis value with the shortest time, for each variant, group and cache mode."""
        for axis in self.axes():
            others = [c for c in self.columns if c != axis]
            found: dict[Key, dict[str, str]] = {}
            for side in self.sides:
                for row in side.table(axis):
                    if row.get("best") == "true":
                        found.setdefault((*(row[c] for c in others), row["cache_mode"]), {})[side.label] = row[axis]
            for key, values in found.items():
                if len(values) > 1:
                    yield {"axis": axis} | dict(zip((*others, "cache_mode"), key, strict=True)) | values

    def claim_rows(self) -> Iterator[dict[str, Any]]:
        """claims.csv: the verdict of each claim on each side that judged it."""
        found: dict[str, dict[str, Any]] = {}
        for side in self.sides:
            for row in side.table("claims"):
                entry = found.setdefault(row["id"], {"id": row["id"], "says": row.get("says", "")})
                entry[side.label] = row["verdict"]
        yield from found.values()

    def environment_rows(self) -> Iterator[dict[str, Any]]:
        """environments.csv: every recorded fact, and whether the sides agree in it."""
        told = {label: facts(e) for label, e in self.environments.items()}
        for name in dict.fromkeys(n for f in told.values() for n in f):
            values = {label: f.get(name, UNKNOWN) for label, f in told.items()}
            yield {"fact": name, "equal": "true" if len(set(values.values())) == 1 else "false"} | values

    # -- verdicts -----------------------------------------------------------------------------------------------------------

    @cached_property
    def pairs(self) -> list[Pair]:
        """Every two sides with samples whose GPUs are of the same model."""
        made = []
        for first, second in combinations(self.sides, 2):
            gpus = [self.environments[s.label]["gpu"] for s in (first, second)]
            groups = [g for g in first.groups() if g in second.groups()]
            if gpus[0].get("name") == gpus[1].get("name") and groups:
                same = gpus[0].get("uuid") == gpus[1].get("uuid")
                made.append(Pair(first, second, same, dict(self._judged(first, second, groups, same))))
        return made

    def _judged(self, first: Side, second: Side, groups: list[str], same_unit: bool) -> Iterator[tuple[tuple[Key, str], Verdict | None]]:
        floors = [_floors(s) for s in (first, second)]
        for group in groups:
            raw = [_by_cell(s, group) for s in (first, second)]
            for place in raw[0]:
                if place in raw[1] and all(place[0] in self.held[s.label] for s in (first, second)):
                    floor = sum(f.get((s.group(place[0]), place[1]), 0.0) for f, s in zip(floors, (first, second), strict=True))
                    one, two = (Samples.of(r[place]) for r in raw)
                    yield place, judge(one, two, floors=floor, same_unit=same_unit, seed=" ".join((*place[0], place[1])))

    def verdict_rows(self) -> Iterator[dict[str, Any]]:
        """verdicts.csv: one row for each pair, cell and cache mode."""
        for pair in self.pairs:
            for (key, mode), verdict in pair.verdicts.items():
                row = dict(zip(self.columns, key, strict=True)) | {"cache_mode": mode, "first": pair.first.label, "second": pair.second.label}
                if verdict:
                    numbers = {"ratio": verdict.ratio, "ratio_low": verdict.low, "ratio_high": verdict.high}
                    row |= {**numbers, "tolerance_pct": 100 * verdict.tolerance, "verdict": verdict.verdict}
                yield row


def _by_cell(side: Side, group: str) -> dict[tuple[Key, str], list[Row]]:
    found: dict[tuple[Key, str], list[Row]] = {}
    for row in side.raw_timing(group):
        found.setdefault((side.key(row), row["cache_mode"]), []).append(row)
    return found


def _floors(side: Side) -> dict[tuple[Key, str], float]:
    """The A/A noise floor as a share, by group and cache mode."""
    return {(side.group(side.key(r)), r["cache_mode"]): float(r["floor_pct"]) / 100 for r in side.table("noise") if r["floor_pct"]}
