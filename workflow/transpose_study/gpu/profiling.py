"""``profile``: one ncu process for a group and a metric batch, its values as rows, every missing one with its reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transpose_study.errors import StudyError
from transpose_study.gpu import ncu as tool
from transpose_study.gpu.lock import gpu_lock
from transpose_study.gpu.ncu_report_reader import Value, actions, values
from transpose_study.gpu.observing import VALUE_COLUMNS, observe_group
from transpose_study.gpu.plan import Plan, make_plan, refuse_unchecked
from transpose_study.metrics import Batch, study_metrics
from transpose_study.progress import Journal, Log
from transpose_study.records import read_csv, write_csv
from transpose_study.registry import Study

# The chip family of each compute capability: how the names that ncu --list-chips prints begin, which metrics.yaml tells apart.
CHIPS = {
    "7.5": "tu10", "8.0": "ga100", "8.6": "ga10", "8.7": "ga10b", "8.9": "ad10", "9.0": "gh100", "10.0": "gb100",
    "10.3": "gb110", "11.0": "gb10b", "12.0": "gb20", "12.1": "gb20",
}  # fmt: skip


def profile_group(settings: Mapping[str, Any], run: Path, log: Log, root: Path = Path()) -> None:
    """Profile one batch of a group; write its rows and, where ncu made one, its report."""
    plan = make_plan(settings, run)
    batch = study_metrics(root, plan.study)[settings["batch"]]
    if batch.observed:
        observe_group(plan, batch, settings, log)
        return
    journal = Journal(plan.paths.journal, f"profile {batch.name}", plan.name)
    refused = refuse_unchecked(plan)
    for number, cell in enumerate(plan.cells):
        if cell.variant.no_kernel:
            refused[number] = ("skipped", f"{cell.variant.no_kernel} has no kernel to profile")
    wanted = [i for i in range(len(plan.cells)) if i not in refused]
    chip = CHIPS.get(plan.device.compute_capability, "unknown")
    quantities = [(q, q.metric_on(chip)) for q in batch.quantities]
    rows: dict[int, list[dict[str, Any]]] = {}
    reason = "nothing to profile"
    report = plan.paths.ncu_report(plan.name, batch.name)
    report.unlink(missing_ok=True)
    facts: dict[str, Any] = {}
    if wanted:
        with gpu_lock(plan.device.uuid, log, f"profiling {plan.name}"):
            result, unknown, facts = _run(plan, settings, batch, quantities, wanted=wanted, report=report, log=log)
        reason = result.reason
        if result.report:
            rows, reason = _read(
                plan, [q for q in quantities if q[1] not in unknown], result.report, launches=settings["launches"], wanted=wanted
            )
        for number in rows:
            rows[number] += [_row(0, Value(q.key, m, None, q.unit, "unknown to this chip and version of ncu")) for q, m in quantities if m in unknown]
        if reason:
            log.say(f"profile {plan.name}, {batch.name}: {reason}")
    for number in range(len(plan.cells)):
        if number not in rows:
            why = refused[number][1] if number in refused else reason
            rows[number] = [_row(0, Value(q.key, m, None, q.unit, why)) for q, m in quantities]
    table = [plan.study.key(cell) | {"batch": batch.name} | row for i, cell in enumerate(plan.cells) for row in rows[i]]
    write_csv(plan.paths.counters_part(plan.name, batch.name), [*plan.study.key_columns, *VALUE_COLUMNS], table)
    journal.done(launches=settings["launches"], kernels=len(wanted), reason=reason, **facts, **plan.measured_with(settings))


def _row(launch: int, value: Value) -> dict[str, Any]:
    return {"launch": launch, **value._asdict()}


def _run(
    plan: Plan, settings: Mapping[str, Any], batch: Batch, quantities: list[Any], *, wanted: list[int], report: Path, log: Log
) -> tuple[tool.NcuResult, set[str], dict[str, Any]]:
    """Run ncu; if it refuses a metric's name, ask which it knows and run it once more without the others."""
    ncu = tool.find_ncu()
    if ncu is None:
        return tool.NcuResult(None, tool.MISSING, "", False), set(), {}
    facts = {"ncu": tool.version(ncu)}
    cells = [plan.cells[i] for i in wanted]
    job = json.dumps(plan.job(settings, cells) | {"launches": settings["launches"]})
    kernels = sorted({c.variant.name for c in cells})
    metrics = sorted({m for _, m in quantities})
    log.say(f"profile {plan.name}, {batch.name}: {len(cells)} kernels x {settings['launches']} launches, {len(metrics)} metrics")

    def attempt(names: list[str]) -> tool.NcuResult:
        result = tool.profile(ncu, batch, names, kernels, job, gpu_uuid=plan.device.uuid, report=report, timeout_s=settings["timeout_s"])
        log.note(result.output)
        return result

    result = attempt(metrics)
    unknown: set[str] = set()
    if result.unknown_metric:
        unknown = set(metrics) - tool.known_metrics(ncu, metrics, plan.device.uuid)
        log.say(f"ncu does not know {', '.join(sorted(unknown)) or 'one of the metrics'} on this chip; the others are read without")
        if unknown and unknown != set(metrics):
            result = attempt([m for m in metrics if m not in unknown])
    return result, unknown, facts


def _read(
    plan: Plan, quantities: list[Any], report: Path, *, launches: int, wanted: list[int]
) -> tuple[dict[int, list[dict[str, Any]]], str]:
    """Rows by cell. The report must hold exactly the planned launches, in the planned order."""
    try:
        found = actions(report)
    except StudyError as error:
        return {}, f"{error.what} ({error.where or 'reading the report'})"
    plans = [i for i in wanted for _ in range(launches)]
    names = [plan.cells[i].variant.name for i in plans]
    if [a.name() for a in found] != names:
        return {}, f"ncu profiled {len(found)} launches where {len(names)} were planned"
    rows: dict[int, list[dict[str, Any]]] = {i: [] for i in wanted}
    for position, (number, action) in enumerate(zip(plans, found, strict=True)):
        for value in values(action, quantities):
            rows[number].append(_row(position % launches, value))
    return rows, ""


def join_batches(study: Study, parts: list[Path], target: Path) -> None:
    """Join the batches of a group into ``raw/counters/<group>.csv``."""
    columns = [*study.key_columns, *VALUE_COLUMNS]
    write_csv(target, columns, [row for part in parts for row in read_csv(part, columns)])
