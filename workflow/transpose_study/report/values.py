"""The figures of one run, by name: what the write-up and the drawings may know, read from tidy tables alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.records import read_csv, read_json
from transpose_study.registry import Cell, Variant
from transpose_study.report.texts import Listing, Text, text
from transpose_study.report.wording import PREDICTED, PUBLISHED, Amount, missing, why

RUN_VARIABLE = "TRANSPOSE_STUDY_RUN"
ROOT_VARIABLE = "TRANSPOSE_STUDY_ROOT"
LANGUAGES_VARIABLE = "TRANSPOSE_STUDY_LANGUAGES"

Row = Mapping[str, str]

# Units and words of the columns of tables/timings.csv that the report quotes.
_TIMING = {
    "median_us": ("µs", "median time of {cell}"),
    "mean_us": ("µs", "mean time of {cell}"),
    "min_us": ("µs", "shortest time of {cell}"),
    "std_us": ("µs", "standard deviation of the time of {cell}"),
    "bandwidth_gb_s": ("GB/s", "effective bandwidth of {cell}"),
    "mean_bandwidth_gb_s": ("GB/s", "effective bandwidth of {cell} from the mean"),
    "percent_of_peak": ("%", "share of the nominal peak of {cell}"),
    "footprint_to_l2": ("ratio", "footprint of {cell} as a multiple of L2"),
    "n": ("samples", "number of samples of {cell}"),
    "processes": ("processes", "number of processes of {cell}"),
    "launches": ("launches", "number of launches of {cell}"),
    "sm_clock_mhz": ("MHz", "SM clock of {cell}"),
    "memory_clock_mhz": ("MHz", "memory clock of {cell}"),
    "temperature_c": ("°C", "temperature of {cell}"),
    "power_w": ("W", "power of {cell}"),
}
RATIO = "ratio_to_"


class Results:
    """One run's tables, addressed by cell and quantity. A figure that is not there comes back with its reason."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment, self.study = experiment, experiment.study
        self._tables: dict[str, list[dict[str, str]]] = {}
        self._index: dict[tuple[str, ...], dict[tuple[str, ...], list[Row]]] = {}

    @classmethod
    def open(cls) -> Results:
        """The run named by the environment (``write`` sets it), else the run whose ``report`` folder this is."""
        folder = Path(os.environ.get(RUN_VARIABLE) or "..")
        root = Path(os.environ[ROOT_VARIABLE]) if ROOT_VARIABLE in os.environ else _project_above(folder)
        return cls(Experiment.from_run(folder, root))

    # -- tables -----------------------------------------------------------------------------------------------------

    def has_table(self, name: str) -> bool:
        """Whether the table exists; some stages are optional."""
        return self.experiment.paths.table(name).is_file()

    def table(self, name: str) -> list[dict[str, str]]:
        """All rows of a table, as text fields."""
        if name not in self._tables:
            self._tables[name] = read_csv(self.experiment.paths.table(name))
        return self._tables[name]

    def rows(self, name: str, cell: Cell, **wanted: str) -> list[Row]:
        """Rows of a table for one cell, whose further columns have the wanted values."""
        by = ("variant", *self.study.axes, *wanted)
        index = self._index.get((name, *by))
        if index is None:
            index = self._index[(name, *by)] = {}
            for row in self.table(name):
                index.setdefault(tuple(row[c] for c in by), []).append(row)
        key = (*(str(v) for v in self.study.key(cell).values()), *wanted.values())
        return index.get(key, [])

    @cached_property
    def environment(self) -> dict[str, Any]:
        """``environment.json``: GPU, driver, compiler, ncu, packages, commit, start and end."""
        return dict(read_json(self.experiment.paths.environment))

    # -- cells ------------------------------------------------------------------------------------------------------

    def cell(self, name: str, group: str | None = None, **values: int) -> Cell:
        """A cell by its variant and axis values, or written ``variant, axis value, axis value``.

        Without a group: of the main one, or the first that the variant is configured for where that one is not.
        """
        name, *written = (part.strip() for part in name.split(","))
        pairs = {axis: int(value) for axis, value in (part.split() for part in written)} | values
        variant = self.study.variant(name)
        lacking = [a for a in variant.takes if a not in pairs]
        if lacking or set(pairs) - set(variant.takes):
            raise StudyError(f"the cell {name!r} must name a value for each of the axes {list(variant.takes)}, no other", where="the write-up")
        return Cell(variant, {a: pairs[a] for a in variant.takes}, self.experiment.groups[group or self.home(variant)].values)

    def home(self, variant: Variant) -> str:
        """The group that is meant where none is named: the main one, else the first in which the variant is configured."""
        groups = [self.experiment.main_group, *self.experiment.groups]
        return next((g for g in groups if variant in self.experiment.variants(g)), self.experiment.main_group)

    def cells_of(self, name: str) -> list[Cell]:
        """All configured cells of a variant in the group that is meant; none where it is not configured."""
        variant = self.study.variant(name)
        return [c for c in self.cells(self.home(variant)) if c.variant is variant]

    def at(self, cell: Cell, group: str) -> Cell:
        """The same kernel in another group."""
        return Cell(cell.variant, cell.kernel_values, self.experiment.groups[group].values)

    def cells(self, group: str | None = None) -> list[Cell]:
        """All configured cells of a group, in the registry's order."""
        return self.experiment.cells(group or self.experiment.main_group)

    def label(self, cell: Cell) -> str:
        """The kernel's name, as it is set in the text."""
        return f"`{self.study.short_name(cell)}`"

    def best(self, cells: Iterable[Cell], mode: str = "hot") -> Cell | None:
        """The cell with the highest effective bandwidth; None where none was timed."""
        timed = [(self.timing(c, "bandwidth_gb_s", mode).value, c) for c in cells]
        known = [(v, c) for v, c in timed if v is not None]
        return max(known, key=lambda pair: pair[0])[1] if known else None

    # -- figures ----------------------------------------------------------------------------------------------------

    def timing(self, cell: Cell, column: str = "median_us", mode: str = "hot") -> Amount:
        """A figure of ``tables/timings.csv``."""
        if column.startswith(RATIO):
            unit, name = "ratio", text("speed of {cell} relative to {other}", cell=self.label(cell), other=f"`{column.removeprefix(RATIO)}`")
        else:
            unit, words = _TIMING.get(column, ("ratio", "figure of {cell}"))
            name = text(words, cell=self.label(cell))
        found = self.rows("timings", cell, cache_mode=mode)
        absent = "" if found else self._unconfigured(cell, mode)
        return _amount(found, column, unit, name, absent, f"tables/timings.csv: {self._place(cell)}, {mode}: {column}")

    def status(self, cell: Cell, mode: str = "hot") -> tuple[str, str]:
        """Status and reason of a cell in the timings."""
        found = self.rows("timings", cell, cache_mode=mode)
        return (found[0]["status"], found[0]["reason"]) if found else ("absent", self._unconfigured(cell, mode))

    def flags(self, cell: Cell, mode: str = "hot") -> list[str]:
        """What is flagged about a cell's timing, as the table writes it."""
        found = self.rows("timings", cell, cache_mode=mode)
        return [f for f in found[0]["flags"].split(";") if f] if found else []

    def counter(self, cell: Cell, quantity: str, column: str = "mean") -> Amount:
        """A figure of ``tables/counters.csv``: by default the arithmetic mean over the launches."""
        found = self.rows("counters", cell, quantity=quantity)
        unit = found[0]["unit"] if found else ""
        name = text("{quantity} of {cell}", quantity=f"`{quantity}`", cell=self.label(cell))
        origin = f"tables/counters.csv: {self._place(cell)}: {quantity}, {column}"
        return _amount(found, column, unit, name, "" if found else self._unconfigured(cell, ""), origin)

    def predicted(self, cell: Cell, quantity: str) -> Amount:
        """What was predicted for a cell (``tables/predictions.csv``)."""
        found = self.rows("predictions", cell, quantity=quantity) if self.has_table("predictions") else []
        name = text("predicted {quantity} of {cell}", quantity=f"`{quantity}`", cell=self.label(cell))
        if not found or found[0]["predicted"] == "":
            return missing(name, (found[0]["note"] if found else "") or "nothing was predicted")
        origin = f"tables/predictions.csv: {self._place(cell)}: {quantity}"
        return Amount(float(found[0]["predicted"]), found[0].get("unit", ""), name, kind=PREDICTED, origin=origin)

    def _place(self, cell: Cell) -> str:
        return f"{self.study.short_name(cell)}, {self.study.group_name(cell.group)}"

    def _unconfigured(self, cell: Cell, mode: str) -> str:
        group = self.study.group_name(cell.group)
        if cell not in self.experiment.cells(group):
            return f"{self.study.short_name(cell)} is not part of this run's configuration"
        if mode and mode not in self.experiment.config.timing.cache_modes:
            return f"cache mode {mode} is not part of this run's configuration"
        if not mode and not self.experiment.config.profile.enabled:
            return "profiling is switched off in this run's configuration"
        return "no row was recorded"

    def noise_floor(self, mode: str = "hot", group: str | None = None) -> Amount:
        """The A/A pair's difference at its interval's far end, in percent (``tables/noise.csv``); by default of the registry's first pair."""
        pairs = self.study.noise_pairs
        name = group or (self.home(self.study.variant(str(pairs[0]["variant"]))) if pairs else self.experiment.main_group)
        wanted = {a: str(v) for a, v in self.experiment.groups[name].values.items()} | {"cache_mode": mode}
        found = [r for r in self.table("noise") if all(r[c] == v for c, v in wanted.items())]
        return _amount(
            found, "floor_pct", "%", text("noise floor"), "no A/A pair is part of the registry", f"tables/noise.csv: {name}, {mode}: floor_pct"
        )

    def margin(self, mode: str = "hot") -> float:
        """The noise floor as a share; 0 where it is unknown."""
        floor = self.noise_floor(mode)
        return floor.number / 100 if floor.known else 0.0

    def absences(self) -> list[tuple[Listing, str, str, list[str]]]:
        """Cells that were not timed: (groups, status, reason, kernel names) in the order of the tables; groups that lack the same are one."""
        found: dict[tuple[str, str, str], dict[str, None]] = {}
        for group in self.experiment.groups:
            for cell in (c for c in self.cells(group) if c.variant.allocates is None):  # an allocation has no time
                for mode in self.experiment.config.timing.cache_modes:
                    status, reason = self.status(cell, mode)
                    if status != "ok":
                        found.setdefault((group, status, why(reason)), {})[self.label(cell)] = None
        alike: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for (group, status, reason), names in found.items():
            alike.setdefault((status, reason, tuple(names)), []).append(group)
        return [(Listing(groups), status, reason, list(names)) for (status, reason, names), groups in alike.items()]

    def counter_absences(self) -> dict[str, tuple[int, int]]:
        """Why counters are missing from cells that were timed: reason -> (figures missing, all figures)."""
        timed = {(r["variant"], *(r[a] for a in self.study.axes)) for r in self.table("timings") if r["status"] == "ok"}
        rows = [r for r in self.table("counters") if (r["variant"], *(r[a] for a in self.study.axes)) in timed]
        driver = {v.name for v in self.study.variants.values() if v.no_kernel}
        rows = [r for r in rows if r["variant"] not in driver]
        counts: dict[str, int] = {}
        for row in rows:
            if row["mean"] == "":
                counts[why(row["reason"])] = counts.get(why(row["reason"]), 0) + 1
        return {reason: (count, len(rows)) for reason, count in sorted(counts.items())}

    def launches(self, group: str) -> dict[str, tuple[int, int]]:
        """ncu launches really made at a group: batch -> (fewest, most) of its cells."""
        wanted = {a: str(v) for a, v in self.experiment.groups[group].values.items()}
        found: dict[str, list[int]] = {}
        for row in self.table("counters"):
            if row["batch"] in self.experiment.batches and row["launches"] not in ("", "0") and all(row[a] == v for a, v in wanted.items()):
                found.setdefault(row["batch"], []).append(int(row["launches"]))
        return {b: (min(found[b]), max(found[b])) for b in self.experiment.batch_names() if b in found}

    # -- published figures --------------------------------------------------------------------------------------------

    @cached_property
    def published_rows(self) -> dict[tuple[str, str, str], Row]:
        """Rows of ``tables/published.csv`` by section, quantity and kernel."""
        return {(r["section"], r["quantity"], r["kernel"]): r for r in self.table("published")} if self.has_table("published") else {}

    def published(self, section: str, quantity: str, kernel: str) -> Amount:
        """What the published study gives."""
        row = self.published_rows.get((section, quantity, kernel))
        name = text("published figure of {cell}", cell=kernel.replace("_", " "))
        if row is None or row["published"] == "":
            return missing(name, "the study gives no such figure")
        origin = f"tables/published.csv: {section}, {kernel}: {quantity}, published"
        return Amount(float(row["published"]), row["unit"], name, kind=PUBLISHED, origin=origin)

    def measured(self, section: str, quantity: str, kernel: str) -> Amount:
        """This device's counterpart of a published figure."""
        row = self.published_rows.get((section, quantity, kernel))
        name = text("{quantity} of {cell}", quantity=f"`{quantity}`", cell=kernel.replace("_", " "))
        origin = f"tables/published.csv: {section}, {kernel}: {quantity}, measured"
        return _amount([row] if row else [], "measured", row["unit"] if row else "", name, "the published figures are not configured", origin)


def _amount(rows: Sequence[Row], column: str, unit: str, name: Text, otherwise: str, origin: str) -> Amount:  # noqa: PLR0917 - six words of one row
    if not rows:
        return missing(name, otherwise, unit)
    row = rows[0]
    if row[column] == "":
        return missing(name, row.get("reason") or "no value was recorded", unit)
    stem = column.removesuffix("_us") if column == "median_us" else column
    suffix = "_us" if column == "median_us" else ""
    ends = [float(row[f"{stem}_{end}{suffix}"]) if row.get(f"{stem}_{end}{suffix}") else None for end in ("low", "high")]
    return Amount(float(row[column]), unit, name, *ends, origin=origin)


def _project_above(folder: Path) -> Path:
    for parent in (folder.resolve(), *folder.resolve().parents):
        if (parent / "kernels").is_dir() and (parent / "config" / "metrics.yaml").is_file():
            return parent
    raise StudyError("no project folder lies above this run", where=str(folder), hint=f"name it in the variable {ROOT_VARIABLE}")
