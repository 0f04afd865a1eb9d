"""tables/predictions.csv, instructions.csv and banks.csv: what was predicted beside what was measured, and how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from transpose_study.analysis.raw import Key
from transpose_study.analysis.run import FAILED, NOT_MEASURED, OK, Run
from transpose_study.analysis.tables import Row, write_table
from transpose_study.errors import StudyError
from transpose_study.records import read_csv
from transpose_study.registry import Cell

EXACT = "exact"
PREFIX, SUFFIX = "instructions_by_opcode[", "]"
WITHIN = 0.005  # of the predicted sectors: how far the hardware's own counter of store sectors strays between launches
STRAYS = 0.02  # far above what the mean of few launches was ever seen off by (0.56 % of three launches): beyond, something is wrong
COLUMNS = ["quantity", "predicted", "measured", "difference", "unit", "note"]
INSTRUCTION_COLUMNS = ["opcode", "predicted_per_warp", "measured_per_warp", "predicted", "measured", "difference", "note"]

BANK_COLUMNS = ["access", "lane", "bank_row", "bank", "wavefronts", "rows_of_banks"]

CHECK_FAILED = "check_failed"  # 1 where the check finds a fault: predicted by the emulator, measured by the GPU
CARVE_OUT = ("limit_shared_memory", "resident_blocks_per_sm", "theoretical_occupancy_pct")
LIMITS = ("limit_blocks", "limit_registers", "limit_warps")  # of resident blocks, whatever the carve-out
COMPULSORY = {"compulsory_dram_read_bytes": "dram_read_bytes", "compulsory_dram_write_bytes": "dram_write_bytes"}
ARBITRATED = ("l1tex__data_pipe_lsu_wavefronts_mem_shared", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared")  # how the metrics' names begin


@dataclass(frozen=True)
class Predicted:
    """One predicted quantity; NaN with a reason where nothing could be said."""

    value: float
    unit: str
    reason: str


class Predictions:
    """predicted.csv of a run by cell; empty where the run has none."""

    def __init__(self, run: Run) -> None:
        self.quantities: dict[Key, dict[str, Predicted]] = {}
        self.refusals: dict[Key, str] = {}
        names = run.study.key_columns
        path = run.experiment.paths.predicted
        for row in read_csv(path, [*names, "quantity", "value", "unit", "reason"]) if path.exists() else ():
            key = tuple(row[n] for n in names)
            if row["quantity"]:
                try:
                    value = float(row["value"]) if row["value"] else math.nan
                except ValueError:
                    raise StudyError(f"{row['value']!r} is no number", where=str(path), hint="run transpose-study predict again") from None
                self.quantities.setdefault(key, {})[row["quantity"]] = Predicted(value, row["unit"], row["reason"])
            else:
                self.refusals[key] = row["reason"]


def write_predictions(run: Run, counters: list[Row], opcodes: list[Row]) -> None:
    """Write predictions.csv, instructions.csv and banks.csv, for each configured cell, in the order of the tables."""
    predictions = Predictions(run)
    names = run.study.key_columns
    measured: dict[Key, dict[str, Row]] = {}
    for row in counters:
        measured.setdefault(_key(row, names), {})[row["quantity"]] = row
    mixes: dict[Key, list[Row]] = {}
    for row in opcodes:
        mixes.setdefault(_key(row, names), []).append(row)
    table: list[Row] = []
    instructions: list[Row] = []
    for group, cell in run.all_cells() if predictions.quantities or predictions.refusals else ():
        key = run.key(cell)
        compared = _Cell(run, group, cell, predicted=predictions.quantities.get(key, {}), measured=measured.get(key, {}), mix=mixes.get(key, []))
        if compared.predicted:
            table += [{**run.columns(cell), **row} for row in compared.rows()]
            instructions += [{**run.columns(cell), **row} for row in compared.instructions()]
        else:
            reason = predictions.refusals.get(key, "predicted.csv does not hold this cell: run transpose-study predict again")
            table.append({**run.columns(cell), "note": f"not predicted: {reason}"})
    write_table(run.experiment.paths.table("predictions"), [*names, *COLUMNS], table, run.provenance)
    write_table(run.experiment.paths.table("instructions"), [*names, *INSTRUCTION_COLUMNS], instructions, run.provenance)
    path = run.experiment.paths.predicted_banks
    banks = read_csv(path, [*names, *BANK_COLUMNS]) if path.exists() else []
    write_table(run.experiment.paths.table("banks"), [*names, *BANK_COLUMNS], banks, run.provenance)


def _key(row: Row, names: list[str]) -> Key:
    return tuple(str(row[n]) for n in names)


class _Cell:
    """One cell's predictions beside its measurements."""

    def __init__(self, run: Run, group: str, cell: Cell, *, predicted: Mapping[str, Predicted], measured: Mapping[str, Row], mix: list[Row]) -> None:
        self.run, self.group, self.cell, self.predicted, self.measured, self.mix = run, group, cell, predicted, measured, mix

    def rows(self) -> Iterator[Row]:
        """One row for each predicted quantity but the opcodes."""
        for quantity, predicted in self.predicted.items():
            if quantity.startswith(PREFIX):
                continue
            value, addition = predicted.value, ""
            if quantity in CARVE_OUT and not predicted.reason:
                value, addition = self._with_carve_out(quantity, value)
            yield self._row(quantity, value, predicted, addition)
        yield self._check()

    def _row(self, quantity: str, value: float, predicted: Predicted, addition: str) -> Row:
        measured, reason = self._measured(quantity)
        metric = str(self.measured.get(quantity, {}).get("metric") or "")
        note = self._note(quantity, value, measured, predicted.reason, reason, metric=metric)
        return {
            "quantity": quantity,
            "predicted": value,
            "measured": measured,
            "difference": measured - value,
            "unit": predicted.unit,
            "note": f"{note}; {addition}" if addition else note,
        }

    def _measured(self, quantity: str) -> tuple[float, str]:
        """The mean over launches, or NaN with the reason."""
        if quantity == "barriers":
            return self._barriers()
        if quantity == "compulsory_dram_time_us":
            return math.nan, "a bound, to be held against tables/timings.csv"
        if quantity == "shared_bytes":
            return math.nan, "ncu reads what is allocated: shared_allocated_bytes_per_block"
        row = self.measured.get(COMPULSORY.get(quantity, quantity))
        if row is None:
            return math.nan, f"{NOT_MEASURED}: {self.run.experiment.metrics_file} does not ask for it"
        mean = row.get("mean")
        return (math.nan, row["reason"]) if mean is None else (float(mean), "")

    def _barriers(self) -> tuple[float, str]:
        """Barrier instructions, from the opcode counts; none is 0 where opcodes were counted."""
        counted = [r for r in self.mix if r.get("opcode")]
        if not counted:
            return math.nan, self.mix[0]["reason"] if self.mix else NOT_MEASURED
        return float(sum(r["instructions"] for r in counted if r["opcode"] == "BAR")), ""

    @staticmethod
    def _note(quantity: str, predicted: float, measured: float, why_unpredicted: str, why_unmeasured: str, *, metric: str = "") -> str:
        if math.isnan(predicted):
            return f"not predicted: {why_unpredicted}"
        if math.isnan(measured):
            return why_unmeasured or NOT_MEASURED
        if quantity in COMPULSORY:
            return "a bound: each byte of the matrix once; caches add and hold back"
        off = abs(measured - predicted) / abs(predicted) if predicted else math.inf
        if off < 1e-9 or measured == predicted:
            return EXACT
        if metric.startswith(ARBITRATED) and measured > predicted:
            return "the unit's counter adds arbitration; shared_wavefronts_exact and shared_conflicts_exact are without it"
        if quantity.startswith("global_store_sectors") and off <= STRAYS:
            how = f"within {WITHIN:.1%}" if off <= WITHIN else f"off by {off:.2%}"
            return f"{how}: the hardware's own counter of store sectors varies between launches"
        return f"off by {off:.2%}" if predicted else "off: predicted 0"

    def _with_carve_out(self, quantity: str, largest: float) -> tuple[float, str]:
        """The quantity at the driver's choice of shared memory, which is measured; at the largest one where it was not."""
        config = self.measured.get("shared_config_bytes", {}).get("mean")
        if config is None:
            return largest, "at the largest shared-memory configuration, since the driver's choice was not measured"
        predicted = {q: self.predicted[q].value for q in (*LIMITS, *CARVE_OUT, "shared_allocated_bytes_per_block")}
        allocated = predicted["shared_allocated_bytes_per_block"]
        limit = config // allocated if allocated else predicted["limit_shared_memory"]
        resident = min(limit, *(predicted[q] for q in LIMITS))
        values = {
            "limit_shared_memory": limit,
            "resident_blocks_per_sm": resident,
            "theoretical_occupancy_pct": predicted["theoretical_occupancy_pct"] * resident / predicted["resident_blocks_per_sm"],
        }
        return float(values[quantity]), f"with the {int(config)} bytes of shared memory that the driver chose (measured)"

    def _check(self) -> Row:
        """Whether the emulator and the GPU find a fault; both must agree."""
        fault, silence = self.run.emulated_fault(self.cell), self.run.emulated_silence(self.cell)
        row = self.run.check.get(self.run.key(self.cell))
        measured = math.nan
        if row and row["status"] in (OK, "wrong", FAILED):
            measured = float(self.run.status(self.group, self.cell).status == FAILED)
        predicted = math.nan if silence else float(bool(fault))
        if silence:
            note = f"not predicted: {silence}"
        elif math.isnan(measured):
            note = "not checked on a GPU"
        else:
            note = EXACT if measured == predicted else "the emulator and the GPU disagree"
        return {
            "quantity": CHECK_FAILED,
            "predicted": predicted,
            "measured": measured,
            "difference": measured - predicted,
            "unit": "1 = fault",
            "note": f"{note}; {fault}" if fault else note,
        }

    def instructions(self) -> Iterator[Row]:
        """One row for each opcode that was predicted or measured."""
        predicted = {q[len(PREFIX) : -len(SUFFIX)]: p.value for q, p in self.predicted.items() if q.startswith(PREFIX)}
        measured = {r["opcode"]: float(r["instructions"]) for r in self.mix if r.get("opcode")}
        geometry = self.run.study.geometry(self.cell)
        warps = geometry.blocks * -(-geometry.threads // 32)
        absent = self.mix[0]["reason"] if self.mix and not measured else NOT_MEASURED
        total = self.predicted.get("warp_instructions")
        for opcode in sorted({*predicted, *measured}):
            expected = predicted.get(opcode, 0.0 if predicted else math.nan)
            seen = measured.get(opcode, 0.0 if measured else math.nan)
            note = self._note(opcode, expected, seen, total.reason if total else "", absent)
            yield {
                "opcode": opcode,
                "predicted_per_warp": expected / warps,
                "measured_per_warp": seen / warps,
                "predicted": expected,
                "measured": seen,
                "difference": seen - expected,
                "note": note,
            }
        if not predicted and total:
            yield {"note": f"not predicted: {total.reason}"}
