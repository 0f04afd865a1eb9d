"""``profile`` of the batch ``kernel``: quantities that kernels measure themselves, read without ncu."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transpose_study.gpu.lock import gpu_lock
from transpose_study.gpu.plan import Plan, refuse_unchecked
from transpose_study.gpu.supervise import Worker, WorkerDied
from transpose_study.metrics import COLD, OBSERVED, Batch
from transpose_study.progress import Journal, Log
from transpose_study.records import write_csv

VALUE_COLUMNS = ["batch", "launch", "quantity", "metric", "value", "unit", "reason"]
CELL_TIMEOUT_S = 60


def observe_group(plan: Plan, batch: Batch, settings: Mapping[str, Any], log: Log) -> None:
    """Read what a group's kernels observe; write the batch's rows. A worker that dies leaves its reason in the cells it did not reach."""
    journal = Journal(plan.paths.journal, f"profile {batch.name}", plan.name)
    refused = refuse_unchecked(plan)
    wanted = [i for i, c in enumerate(plan.cells) if c.variant.observes and i not in refused]
    found, reason = _run(plan, settings, wanted, log) if wanted else ({}, "")
    units = {q.key: q.unit for q in batch.quantities}
    rows = []
    for number, cell in enumerate(plan.cells):
        why = refused[number][1] if number in refused else reason
        for observation in cell.variant.observes:
            for name in (observation.name, observation.name + COLD):
                values = found.get(number, {}).get(name)
                common = plan.study.key(cell) | {"batch": batch.name, "quantity": name, "metric": OBSERVED, "unit": units[name]}
                if values is None:
                    rows.append(common | {"launch": 0, "value": None, "reason": why or "an allocation is neither warm nor cold"})
                rows += [common | {"launch": n, "value": v, "reason": ""} for n, v in enumerate(values or ())]
    write_csv(plan.paths.counters_part(plan.name, batch.name), [*plan.study.key_columns, *VALUE_COLUMNS], rows)
    journal.done(launches=settings["launches"], kernels=len(wanted), reason=reason, **plan.measured_with(settings))


def _run(plan: Plan, settings: Mapping[str, Any], wanted: list[int], log: Log) -> tuple[dict[int, dict[str, list[float]]], str]:
    found: dict[int, dict[str, list[float]]] = {}
    job = plan.job(settings, [plan.cells[i] for i in wanted]) | {"launches": settings["launches"]}
    with gpu_lock(plan.device.uuid, log, f"observing {plan.name}"), Worker("observe", job, plan.device.uuid) as worker:
        try:
            for message in worker.results(CELL_TIMEOUT_S):
                found[wanted[message["cell"]]] = message["values"]
        except WorkerDied as death:
            log.say(f"profile {plan.name}, kernel: {death.detail}")
            return found, death.detail
    return found, ""
