"""The raw files of one run brought together: every configured cell with its status, samples and counters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from transpose_study.analysis.loads import load_bytes_in_flight
from transpose_study.analysis.raw import Counters, Key, Samples, Timing, cell_key, read_build, read_check, read_counters, read_timing
from transpose_study.container import Container
from transpose_study.experiment import Experiment
from transpose_study.measured_code import other_code
from transpose_study.provenance import Provenance
from transpose_study.records import read_csv
from transpose_study.registry import Cell, Value

OK, SKIPPED, FAILED, NOT_MEASURED = "ok", "skipped", "failed", "not measured"
WRONG = "wrong result"  # how the reason of a cell begins whose output is not what it must be
A, B = "a", "b"  # replicate a is the cell's own measurement; b is the second of the A/A pair


@dataclass(frozen=True)
class Status:
    """Whether a cell was measured, and if not, why not."""

    status: str
    reason: str = ""


class Run:
    """Everything that was measured in one run folder, read once."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment, self.study = experiment, experiment.study
        self.check = read_check(experiment)
        self.timing: dict[str, Timing] = {g: read_timing(experiment, g) for g in experiment.groups}
        self.counters: dict[str, Counters] = {g: read_counters(experiment, g) for g in experiment.groups}
        self._builds: dict[str, dict[str, Any]] = {}
        self._loads: dict[str, int | None] = {}
        self._keys: dict[Cell, Key] = {}

    @cached_property
    def provenance(self) -> Provenance:
        """The digests that every table row carries."""
        return Provenance(self.experiment)

    @cached_property
    def cells(self) -> dict[str, list[Cell]]:
        """The cells of each group, both in the order of the tables."""
        return {g: self.experiment.cells(g) for g in self.experiment.groups}

    def all_cells(self) -> Iterator[tuple[str, Cell]]:
        """(group, cell) of every configured cell."""
        for group, cells in self.cells.items():
            for cell in cells:
                yield group, cell

    def key(self, cell: Cell) -> Key:
        """The cell's key as the raw files write it."""
        if cell not in self._keys:
            self._keys[cell] = cell_key(self.study, cell)
        return self._keys[cell]

    def _kernel_key(self, key: Key) -> Key:
        """The key of a cell's kernel: the cell's without the group axes."""
        return tuple(k for c, k in zip(self.study.key_columns, key, strict=True) if c not in self.study.group_axes)

    def columns(self, cell: Cell) -> dict[str, Value]:
        """The cell's identifying columns for a table row."""
        return self.study.key(cell)

    def find(self, group: str, variant: str, values: dict[str, Value]) -> Cell | None:
        """The group's cell of that variant and those axis values (``values`` names the axes the variant takes)."""
        for cell in self.cells.get(group, ()):
            if cell.variant.name == variant and dict(cell.kernel_values) == values:
                return cell
        return None

    def build(self, cell: Cell) -> dict[str, Any]:
        """The build record of the cell's kernel."""
        name = self.study.kernel_name(cell)
        if name not in self._builds:
            self._builds[name] = read_build(self.experiment, cell)
        return self._builds[name]

    def load_bytes_in_flight(self, cell: Cell) -> int | None:
        """Bytes of global loads that one thread of the kernel has in flight; None without its disassembly."""
        name = self.study.kernel_name(cell)
        if name not in self._loads:
            path = self.experiment.paths.kernel(self.experiment.architecture, name, "sass")
            self._loads[name] = load_bytes_in_flight(path, cell.variant.name)
        return self._loads[name]

    @cached_property
    def _wrong(self) -> dict[Key, str]:
        """Kernels (by key without the group axes) that are wrong at any shape, or failed at an edge shape, and where."""
        wrong: dict[Key, str] = {}
        edges = {self.study.group_name(g) for g in self.study.edge_groups}
        for key, row in sorted(self.check.items()):
            shape = self.study.group_name({a: row[a] for a in self.study.group_axes})
            if row["status"] == "wrong" or (row["status"] == FAILED and shape in edges):
                what = WRONG if row["status"] == "wrong" else FAILED
                wrong.setdefault(self._kernel_key(key), f"{what} at {shape}: {self._difference(row)}")
        return wrong

    @staticmethod
    def _difference(row: dict[str, str]) -> str:
        first = ""
        if row["row"]:
            first = f"first wrong element at row {row['row']}, col {row['col']}: expected {row['expected']}, got {row['got']}"
        return "; ".join(t for t in (row["reason"], first) if t) or "no details were recorded"

    def samples(self, group: str, cell: Cell, cache_mode: str, replicate: str = A) -> Samples | None:
        """The cell's samples, or None where it was not measured or its result is not right."""
        if self._verdict(cell):
            return None
        return self.timing[group].samples.get((self.key(cell), cache_mode, replicate))

    def other_code(self, cell: Cell) -> str:
        """Why the archive's figures are not this cell's, "" where they are: its kernel was edited since."""
        if cell.variant.name not in self._other_code:
            return ""
        return f"not measured: {self.experiment.target['archive']} measured other code of {cell.variant.name}"

    @cached_property
    def _other_code(self) -> set[str]:
        archive = self.experiment.target["archive"]
        path = self.experiment.root / (archive or "")
        return other_code(self.study, Container(path)) if archive and path.is_file() else set()

    def _verdict(self, cell: Cell) -> Status | None:
        """What speaks against the cell: the compiler or an archive of other code in a replay, or the check."""
        if self.other_code(cell):
            record = self.build(cell)
            if record and record["status"] == FAILED:
                return Status(FAILED, record.get("reason") or "the kernel does not compile")
            return Status(NOT_MEASURED, self.other_code(cell))
        key = self.key(cell)
        row = self.check.get(key)
        if row and row["status"] == "skipped":
            return Status(SKIPPED, row["reason"] or "skipped by the check, which gives no reason")
        if row and row["status"] == "wrong":
            return Status(FAILED, f"{WRONG}: {self._difference(row)}")
        if row and row["status"] == "failed":
            return Status(FAILED, row["reason"] or "failed in the check, which gives no reason")
        if self._kernel_key(key) in self._wrong:
            return Status(FAILED, self._wrong[self._kernel_key(key)])
        if not row and self.emulated_fault(cell):  # not checked on a GPU: what the emulator found counts
            return Status(FAILED, self.emulated_fault(cell))
        return None

    def emulated_fault(self, cell: Cell) -> str:
        """What the check without a GPU found wrong with the cell, or with its kernel at an edge shape; "" for nothing."""
        key = self.key(cell)
        return self._emulated.get(key) or self._emulated.get(self._kernel_key(key), "")

    def emulated_silence(self, cell: Cell) -> str:
        """Why the check without a GPU says nothing of the cell, neither a fault nor that it is right; "" where it does."""
        row = self._emulated_rows.get(self.key(cell))
        if self.emulated_fault(cell) or (row and row["status"] == OK):
            return ""
        return row["reason"] if row else "predicted_check.csv does not hold this cell: run transpose-study predict again"

    @cached_property
    def _emulated_rows(self) -> dict[Key, dict[str, str]]:
        """What the emulator said, by the cell's key."""
        path, names = self.experiment.paths.predicted_check, self.study.key_columns
        rows = read_csv(path, [*names, "status", "reason"]) if path.exists() else ()
        return {tuple(row[n] for n in names): row for row in rows}

    @cached_property
    def _emulated(self) -> dict[Key, str]:
        """Faults that the emulator found, by the cell's key; of edge shapes by the kernel's."""
        found: dict[Key, str] = {}
        edges = {self.study.group_name(g) for g in self.study.edge_groups}
        for key, row in self._emulated_rows.items():
            if row["status"] in ("wrong", FAILED):
                shape = self.study.group_name({a: row[a] for a in self.study.group_axes})
                found.setdefault(self._kernel_key(key) if shape in edges else key, f"without a GPU, at {shape}: {row['reason']}")
        return found

    def status(self, group: str, cell: Cell, cache_mode: str | None = None) -> Status:
        """Whether the cell could be measured; with ``cache_mode``, whether there are samples in that mode."""
        verdict = self._verdict(cell)
        if verdict:
            return verdict
        modes = [cache_mode] if cache_mode else self.experiment.config.timing.cache_modes
        if any(self.samples(group, cell, m) for m in modes):
            return Status(OK)
        refusal = self.study.cell_refusal(cell, self.experiment.gpu.get("memory_bytes"))
        if refusal:
            return Status(SKIPPED, refusal)
        record = self.build(cell)
        if record and record["status"] != OK:
            status = SKIPPED if record["status"] == "skipped" else FAILED
            return Status(status, record.get("reason") or "the kernel was not built, and the build gives no reason")
        row = self.check.get(self.key(cell))
        if row and row["status"] == NOT_MEASURED:
            return Status(NOT_MEASURED, row["reason"] or "not checked, hence not measured")
        timing = self.timing[group]
        if timing.absent:
            return Status(NOT_MEASURED, timing.absent)
        if self.experiment.replay:
            return Status(NOT_MEASURED, f"not measured: not in {self.experiment.target['archive']}")
        return Status(NOT_MEASURED, f"no sample in {timing.path.relative_to(self.experiment.paths.folder)}")
