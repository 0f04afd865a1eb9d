"""Looks up quantities in the tidy tables, each with its interval; what is not there raises with the table's own reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from transpose_study.analysis.formulas import Missing, evaluate
from transpose_study.analysis.judge.cells import Binding, Place
from transpose_study.analysis.judge.measure import FUNCTIONS, Measure, mean_interval
from transpose_study.analysis.judge.quantities import CORRECT, OPCODE, SPEEDUP, Known
from transpose_study.analysis.judge.swizzles import ARITHMETIC, NamedSwizzle
from transpose_study.analysis.run import NOT_MEASURED, OK, WRONG
from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.records import read_csv

Row = dict[str, str]
Key = tuple[str, ...]


class NoRow(Missing):
    """The tables hold no row for this cell at all: it is no cell of this run."""


class NoInterval(Missing):
    """There is a value, but one sample has no interval, so it decides nothing."""


@dataclass
class Used:
    """What a formula's value came from."""

    tables: list[str] = field(default_factory=list)
    floors: list[float] = field(default_factory=list)  # per cent


class Tidy:
    """The tables of one results folder, and the swizzles that its claims name. Raises :class:`StudyError` for a table that is
    missing or damaged.
    """

    def __init__(self, experiment: Experiment, swizzles: Mapping[str, NamedSwizzle] | None = None) -> None:
        self.experiment, self.study, self.known = experiment, experiment.study, Known(experiment)
        self.swizzles = swizzles or {}
        self._columns = self.study.key_columns
        self._timings = {(*self._key(r), r["cache_mode"]): r for r in self._read("timings", ["cache_mode", "reason"])}
        self._occupancy = {self._key(r): r for r in self._read("occupancy", ["reason"])}
        self._ratios = {(*self._key(r), r["cache_mode"], r["other"]): r for r in self._read("ratios", ["cache_mode", "other", SPEEDUP])}
        self._floors = {(self._group(r), r["cache_mode"]): float(r["floor_pct"]) for r in self._read("noise", ["floor_pct"]) if r["floor_pct"]}
        self._counters: dict[Key, dict[str, Row]] = {}
        for row in self._read("counters", ["quantity", "mean", "std", "launches", "reason"]):
            self._counters.setdefault(self._key(row), {})[row["quantity"]] = row
        self._opcodes: dict[Key, dict[str, Row]] = {}
        for row in self._read("opcodes", ["opcode", "instructions_per_warp", "reason"]):
            self._opcodes.setdefault(self._key(row), {})[row["opcode"]] = row

    def _read(self, name: str, columns: list[str]) -> list[Row]:
        return read_csv(self.experiment.paths.table(name), [*self._columns, *columns])

    def _key(self, row: Row) -> Key:
        return tuple(row[c] for c in self._columns)

    def _group(self, row: Row) -> str:
        return self.study.group_name({a: row[a] for a in self.study.group_axes})

    def key(self, place: Place) -> Key:
        """The identifying columns of a place's cell, as the tables write them."""
        return tuple(str(v) for v in self.study.key(place.cell).values())

    def evaluate(self, formula: str, binding: Binding, used: Used, where: str) -> Measure:
        """The value of ``formula`` with its aliases bound to cells."""

        def lookup(quantity: str, aliases: tuple[str, ...]) -> Measure:
            if aliases and aliases[0] in self.swizzles:
                used.tables.append(ARITHMETIC)
                return Measure.exact(self.swizzles[aliases[0]].value(quantity))
            return self.value(quantity, [binding[a] for a in aliases], used, where)

        return evaluate(formula, lookup, where=where, number=Measure.exact, functions=FUNCTIONS)

    def value(self, quantity: str, places: list[Place], used: Used, where: str = "") -> Measure:
        """A quantity of no, one or two cells."""
        if quantity in self.known.device_facts:
            facts = self.experiment.gpu | {"peak_gb_s": self.experiment.peak_gb_s}
            return Measure.exact(float(facts[quantity]))
        if quantity in self.known.group_facts:
            return self._fact(quantity, places[0].group if places else self.experiment.main_group)
        if quantity == SPEEDUP:
            return self._speedup(places[0], places[1], used, where)
        return self._of_cell(quantity, places[0], used)

    def _fact(self, name: str, group: str) -> Measure:
        study, values = self.study, self.experiment.groups[group].values
        computed = {"elements": study.element_count, "matrix_bytes": study.matrix_bytes, "effective_bytes": study.effective_bytes}
        if name == "itemsize":
            return Measure.exact(float(study.itemsize))
        return Measure.exact(float(computed[name](values) if name in computed else values[name]))

    def _speedup(self, fast: Place, slow: Place, used: Used, where: str) -> Measure:
        if (fast.group, fast.mode) != (slow.group, slow.mode):
            raise StudyError(f"{SPEEDUP} compares cells of two groups or cache modes, whose samples come in no common round", where=where)
        row = self._ratios.get((*self.key(fast), fast.mode, self.study.short_name(slow.cell)))
        if row is None:
            raise NoRow(self._no_row("ratios", fast))
        used.tables.append("ratios")
        return self._timed(row, SPEEDUP, fast, used)

    def _of_cell(self, quantity: str, place: Place, used: Used) -> Measure:
        key, sources = self.key(place), []
        if quantity.startswith(OPCODE):
            return self._opcode(quantity.removeprefix(OPCODE), place, used)
        if quantity in self.known.axes:
            if quantity not in place.cell.values:
                raise Missing(f"{self.study.short_name(place.cell)} takes no {quantity}")
            return Measure.exact(float(place.cell.values[quantity]))
        if quantity == CORRECT:
            return self._correct(place, used)
        if quantity in self.known.timed:
            row = self._timings.get((*key, place.mode))
            if row and row.get(quantity):
                used.tables.append("timings")
                return self._timed(row, quantity, place, used)
            sources.append(("timings", row))
        if quantity in self.known.counted:
            row = self._counters.get(key, {}).get(quantity)
            if row and row["mean"]:
                used.tables.append("counters")
                return Measure.between(float(row["mean"]), *mean_interval(row))
            sources.append(("counters", row))
        if quantity in self.known.of_kernel:
            row = self._occupancy.get(key)
            if row and row.get(quantity):
                used.tables.append("occupancy")
                return Measure.exact(float(row[quantity]))
            sources.append(("occupancy", row))
        if all(row is None for _, row in sources):
            raise NoRow(self._no_row(sources[0][0], place))
        reasons = [row["reason"] for _, row in sources if row and row["reason"]]
        table = next(name for name, row in sources if row is not None)
        raise Missing(reasons[0] if reasons else f"{NOT_MEASURED}: tables/{table}.csv has no {quantity} of {self.study.cell_name(place.cell)}")

    def _correct(self, place: Place, used: Used) -> Measure:
        """1 for a cell that was timed, which none is before its whole output was right; 0 for one whose output was wrong."""
        row = self._timings.get((*self.key(place), place.mode))
        if row is None:
            raise NoRow(self._no_row("timings", place))
        wrong = row["reason"].startswith(WRONG)
        if not wrong and row.get("status") != OK:
            raise Missing(row["reason"] or NOT_MEASURED)
        used.tables.append("timings")
        return Measure.exact(float(not wrong))

    def _opcode(self, opcode: str, place: Place, used: Used) -> Measure:
        rows = self._opcodes.get(self.key(place))
        if rows is None:
            raise NoRow(self._no_row("opcodes", place))
        if "" in rows:  # the row that says why there are none
            raise Missing(rows[""]["reason"] or NOT_MEASURED)
        used.tables.append("opcodes")
        return Measure.exact(float(rows[opcode]["instructions_per_warp"]) if opcode in rows else 0.0)

    def opcodes(self, places: Iterable[Place]) -> list[str]:
        """Every opcode that one of the cells executes, in alphabetical order."""
        return sorted({o for p in places for o in self._opcodes.get(self.key(p), {}) if o})

    def _timed(self, row: Row, quantity: str, place: Place, used: Used) -> Measure:
        """A timing with its interval and noise floor; one of a table that gives no number of samples is taken as it is."""
        if not row[quantity]:
            raise Missing(row["reason"] or f"{NOT_MEASURED}: the table gives no reason")
        value, floor = float(row[quantity]), self._floors.get((place.group, place.mode))
        used.floors += [] if floor is None else [floor]
        stem, _, unit = quantity.rpartition("_")
        for low, high in ((f"{quantity}_low", f"{quantity}_high"), (f"{stem}_low_{unit}", f"{stem}_high_{unit}")):
            if row.get(low) and row.get(high):
                return Measure.between(value, float(row[low]), float(row[high]), (floor or 0.0) / 100)
        if row.get("n") == "1":
            raise NoInterval("a single sample has no interval")
        return Measure.between(value, value, value, (floor or 0.0) / 100)

    def _no_row(self, table: str, place: Place) -> str:
        return f"{NOT_MEASURED}: tables/{table}.csv has no row of {self.study.cell_name(place.cell)}, {place.mode}"
