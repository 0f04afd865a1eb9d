"""``check``: no cell is timed before its output was compared, bit for bit, at its shape and at the edge shapes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transpose_study.errors import StudyError
from transpose_study.gpu.lock import gpu_lock
from transpose_study.gpu.plan import MEMORY_SHARE, Plan, describe, make_plan
from transpose_study.gpu.supervise import Worker, WorkerDied
from transpose_study.paths import RunPaths
from transpose_study.progress import Journal, Log, Progress
from transpose_study.records import read_csv, write_csv
from transpose_study.registry import Cell, Study

RESULT_COLUMNS = ["status", "reason", "row", "col", "expected", "got"]
CELL_TIMEOUT_S = 60  # far above the slowest check; a kernel that never ends stops here


def check_group(settings: Mapping[str, Any], run: Path, log: Log) -> None:
    """Check every cell of a group there and at the edge shapes; write ``raw/check/<group>.csv``."""
    plan = make_plan(settings, run)
    journal = Journal(plan.paths.journal, "check", plan.name)
    study = plan.study
    shapes = [*settings["edge_groups"], dict(plan.group)]
    cells: list[Cell] = []
    refused: dict[int, tuple[str, str]] = {}
    for shape in shapes:
        for number, cell in enumerate(plan.cells):
            here = Cell(cell.variant, cell.kernel_values, shape)
            refusal = study.cell_refusal(here, int(plan.device.memory_bytes * MEMORY_SHARE))
            if refusal:
                refused[len(cells)] = ("skipped", refusal)
            elif number in plan.refused and (plan.refused[number][0] != "skipped" or shape == dict(plan.group)):
                refused[len(cells)] = plan.refused[number]
            elif cell.variant.allocates is not None:
                refused[len(cells)] = ("ok", f"{cell.variant.no_kernel} computes nothing")
            cells.append(here)
    wanted = [i for i in range(len(cells)) if i not in refused]
    with gpu_lock(plan.device.uuid, log, f"checking {plan.name}"):
        results = _run(plan, settings, cells, wanted, log)
    for i, (status, reason) in refused.items():
        results[i] = {"status": status, "reason": reason}
    rows = [study.key(c) | {k: results[i].get(k, "") for k in RESULT_COLUMNS} for i, c in enumerate(cells)]
    for i, row in enumerate(rows):
        if row["status"] in ("wrong", "failed"):
            log.say(f"{study.cell_name(cells[i])}: {row['status']}: {row['reason'].splitlines()[0]}")
    write_csv(plan.paths.check_part(plan.name), [*study.key_columns, *RESULT_COLUMNS], rows)
    journal.done(cells=len(wanted), **plan.measured_with(settings))


def _run(plan: Plan, settings: Mapping[str, Any], cells: list[Cell], wanted: list[int], log: Log) -> dict[int, dict[str, Any]]:
    """Check the wanted cells; a worker that dies takes only the cell it was at with it."""
    results: dict[int, dict[str, Any]] = {}
    progress = Progress(log, f"check {plan.name}", len(wanted))
    left = list(wanted)
    while left:
        job = plan.job(settings, []) | {"cells": [describe(cells[i]) for i in left]}
        current: int | None = None
        with Worker("check", job, plan.device.uuid) as worker:
            try:
                for message in worker.results(CELL_TIMEOUT_S):
                    if "begin" in message:
                        current = left[message["begin"]]
                    else:
                        results[left[message.pop("cell")]] = message
                        progress.update(len(results))
            except WorkerDied as death:
                if current is None:
                    raise StudyError(f"the checking process ended before its first cell: {death.detail}") from None
                results[current] = {"status": "failed", "reason": death.detail}
        left = [i for i in left if i not in results]
    return results


def merge_checks(study: Study, run: Path, groups: list[str]) -> None:
    """Join the groups' verdicts into ``raw/check.csv``; the edge shapes, which every group repeats, stand once."""
    paths = RunPaths(run)
    columns = [*study.key_columns, *RESULT_COLUMNS]
    rank = {"wrong": 0, "failed": 1, "skipped": 2, "ok": 3}  # where repetitions differ, the worst verdict stands
    worst: dict[tuple[str, ...], dict[str, str]] = {}
    for group in groups:
        for row in read_csv(paths.check_part(group), columns):
            key = tuple(row[c] for c in study.key_columns)
            if key not in worst or rank[row["status"]] < rank[worst[key]["status"]]:
                worst[key] = row
    order = list(study.variants)

    def position(row: Mapping[str, str]) -> tuple[Any, ...]:
        return (order.index(row["variant"]), *((0, int(row[a]), "") if row[a].isdigit() else (1, 0, row[a]) for a in study.axes))

    write_csv(paths.check, columns, sorted(worst.values(), key=position))
