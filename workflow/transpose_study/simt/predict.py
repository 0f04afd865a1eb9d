"""``predict``: predicted.csv and predicted_check.csv of a run, from the build outputs and the device's limits alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from transpose_study import parallel
from transpose_study.errors import StudyError
from transpose_study.paths import RunPaths
from transpose_study.progress import Log, Progress
from transpose_study.records import write_csv
from transpose_study.registry import Cell, Kernel, Study, Values
from transpose_study.simt import emulate
from transpose_study.simt.cells import CompiledKernel, launch_of, predict_cell
from transpose_study.simt.explain import bank_picture
from transpose_study.simt.limits import shared_refusal

COLUMNS = ["quantity", "value", "unit", "reason"]
BANK_COLUMNS = ["access", "lane", "bank_row", "bank", "wavefronts", "rows_of_banks"]


class Plan:
    """The cells of a run, from the slice of the configuration that ``predict`` depends on."""

    def __init__(self, settings: Mapping[str, Any], run: Path) -> None:
        self.study = Study(Path("kernels") / settings["study"] / "variants.yaml")
        self.paths, self.architecture = RunPaths(run), str(settings["architecture"])
        self.compute_capability, self.peak_gb_s = str(settings["compute_capability"]), float(settings["peak_gb_s"])
        self.groups: list[dict[str, Any]] = settings["groups"]
        self.edge_groups: list[Values] = settings["edge_groups"]
        self.axes: dict[str, list[int]] = settings["axes"]
        self._kernels: dict[str, CompiledKernel] = {}

    def cells(self) -> Iterator[Cell]:
        """Every configured cell."""
        for group in self.groups:
            yield from self.study.cells(group["values"], group["variants"], self.axes)

    def edge_cells(self) -> Iterator[Cell]:
        """The edge shapes of every kernel that any group has."""
        names = {v for group in self.groups for v in group["variants"]}
        for values in self.edge_groups:
            yield from self.study.cells(values, sorted(names), self.axes)

    def kernel(self, cell: Cell) -> CompiledKernel:
        """The cell's compiled kernel, read once."""
        name = self.study.kernel_name(cell)
        if name not in self._kernels:
            self._kernels[name] = CompiledKernel(self.paths, self.architecture, name, cell.variant.name)
        return self._kernels[name]

    def refusal(self, cell: Cell) -> tuple[str, str]:
        """(status, reason) of a cell that cannot run, ("", "") otherwise."""
        if cell.variant.no_kernel:
            return "skipped", f"{cell.variant.no_kernel}: there is no kernel to predict"
        reason = self.study.cell_refusal(cell) or self.study.kernel_refusal(Kernel(cell.variant, cell.kernel_values))
        if reason:
            return "skipped", reason
        kernel = self.kernel(cell)
        if kernel.refusal:
            return "failed", kernel.refusal
        reason = shared_refusal(self.study, cell, int(kernel.record["shared_bytes"]), self.compute_capability)
        return ("skipped", reason) if reason else ("", "")


def predict_run(settings: Mapping[str, Any], run: Path, log: Log) -> None:
    """Predict and check every cell; write ``predicted.csv``, ``predicted_banks.csv`` and ``predicted_check.csv``."""
    plan = Plan(settings, run)
    cells = list(plan.cells())
    rows: list[dict[str, Any]] = []
    progress = Progress(log, "predict", len(cells))
    for number, found in enumerate(parallel.each(lambda cell: _predicted(plan, cell), cells)):
        rows += found
        progress.update(number + 1)
    write_csv(plan.paths.predicted, [*plan.study.key_columns, *COLUMNS], _sorted(plan.study, rows, "quantity"))
    banks = _sorted(plan.study, _banks(plan, cells), "access")
    write_csv(plan.paths.predicted_banks, [*plan.study.key_columns, *BANK_COLUMNS], banks)
    checked = check_cells(plan, list(plan.edge_cells()), cells, log)
    write_csv(plan.paths.predicted_check, [*plan.study.key_columns, *emulate.COLUMNS], _sorted(plan.study, checked, "status"))


def _predicted(plan: Plan, cell: Cell) -> list[dict[str, Any]]:
    """A cell's rows of ``predicted.csv``: one a quantity, or one with the reason why there is none."""
    key, (_, reason) = plan.study.key(cell), plan.refusal(cell)
    if reason:
        return [key | {"reason": reason}]
    found = predict_cell(plan.study, cell, plan.kernel(cell), plan.compute_capability, plan.peak_gb_s)
    return [key | {"quantity": p.quantity, "value": p.value, "unit": p.unit, "reason": p.reason} for p in found]


def _banks(plan: Plan, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The bank picture of each kernel, one row a lane of its load and of its store."""
    rows: list[dict[str, Any]] = []
    for cell in _pictured(plan, cells):
        try:
            kernel = plan.kernel(cell)
            picture = bank_picture(kernel.program, launch_of(plan.study, cell, kernel.program))
        except StudyError:
            continue  # what is wrong with the kernel stands in predicted.csv and predicted_check.csv
        for access, words, wavefronts in (
            (
                ("load", picture.load, picture.load_wavefronts),
                ("store", picture.store, picture.store_wavefronts),
            )
            if picture
            else ()
        ):
            common = {"access": access, "wavefronts": wavefronts, "rows_of_banks": picture.rows if picture else 0}
            for lane, (row, bank) in enumerate(words):
                rows.append(plan.study.key(cell) | common | {"lane": lane, "bank_row": row, "bank": bank})
    return rows


def _pictured(plan: Plan, cells: Sequence[Cell]) -> list[Cell]:
    """For each kernel the cell that pictures it: the last one of the first group that it can run in.

    Axes are configured from small to large, so that a tile whose width is an argument is shown at its widest.
    """
    chosen: dict[str, Cell] = {}
    for cell in cells:
        name = plan.study.kernel_name(cell)
        if (name not in chosen or chosen[name].group == cell.group) and not plan.refusal(cell)[1]:
            chosen[name] = cell
    return list(chosen.values())


def check_group(settings: Mapping[str, Any], run: Path, log: Log) -> int:
    """``check --emulate``: the cells of one group and its edge shapes, on the CPU; 1 if a kernel has a fault, 0 otherwise.

    ``settings`` is the slice that ``check`` takes on a GPU (group, edge shapes, axes, variants, architecture).
    """
    groups = [{"values": settings["group"], "variants": list(settings["variants"])}]
    plan = Plan({"compute_capability": "", "peak_gb_s": 0} | dict(settings) | {"groups": groups}, run)
    rows = check_cells(plan, list(plan.edge_cells()), list(plan.cells()), log)
    found = {status: sum(r["status"] == status for r in rows) for status in ("ok", "wrong", "failed", "not checked", "skipped")}
    log.say("checked without a GPU: " + ", ".join(f"{n} {s}" for s, n in found.items() if n))
    return int(bool(found["wrong"] or found["failed"]))


def check_cells(plan: Plan, small: Sequence[Cell], large: Sequence[Cell], log: Log) -> list[dict[str, Any]]:
    """The emulator's verdicts: ``small`` cells are executed whole and compared, of ``large`` ones the rules are checked."""
    rows = []
    work = [(cell, True) for cell in small] + [(cell, False) for cell in large]
    progress = Progress(log, "check without a GPU", len(work))

    def check(task: tuple[Cell, bool]) -> dict[str, Any]:
        status, reason = plan.refusal(task[0])
        if status:
            return {"status": status, "reason": reason}
        return emulate.check_cell(plan.study, task[0], plan.kernel(task[0]), task[1])

    for number, ((cell, _), verdict) in enumerate(zip(work, parallel.each(check, work), strict=True)):
        if verdict["status"] in ("wrong", "failed"):
            log.say(f"{plan.study.cell_name(cell)}: {verdict['status']}: {verdict['reason'].splitlines()[0]}")
        rows.append(plan.study.key(cell) | {c: verdict.get(c, "") for c in emulate.COLUMNS})
        progress.update(number + 1)
    return rows


def _sorted(study: Study, rows: list[dict[str, Any]], last: str) -> list[dict[str, Any]]:
    """Rows in the order of variant, axes (numbers as numbers) and one more column."""

    def order(row: dict[str, Any]) -> list[tuple[int, int, str]]:
        values = [row.get(c, "") for c in [*study.key_columns, last]]
        return [(0, v, "") if isinstance(v, int) else (1, 0, str(v)) for v in values]

    return sorted(rows, key=order)
