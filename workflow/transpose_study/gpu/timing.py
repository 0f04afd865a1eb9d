"""``time``: rounds spread over fresh processes until every interval is narrow enough or the time budget ends."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transpose_study.errors import StudyError
from transpose_study.gpu.lock import gpu_lock
from transpose_study.gpu.plan import Plan, describe, make_plan, refuse_unchecked
from transpose_study.gpu.supervise import Worker, WorkerDied
from transpose_study.gpu.telemetry import COLUMNS, Telemetry
from transpose_study.progress import Journal, Log, Progress
from transpose_study.records import write_csv
from transpose_study.registry import Cell
from transpose_study.stats import median_interval

SAMPLE_COLUMNS = ["cache_mode", "replicate", "process", "round", "order", "launches", "sample_us", *COLUMNS]
ROUND_TIMEOUT_S = 120  # far above the slowest round

Rows = list[dict[str, Any]]


def time_group(settings: Mapping[str, Any], run: Path, log: Log) -> None:
    """Time every cell of a group that passed its check; write ``raw/timing/<group>.csv``."""
    plan = make_plan(settings, run)
    journal = Journal(plan.paths.journal, "time", plan.name)
    refused = refuse_unchecked(plan)
    for number, cell in enumerate(plan.cells):
        if cell.variant.allocates is not None:
            refused[number] = ("skipped", f"{cell.variant.no_kernel} is not timed")
    for number, (status, reason) in refused.items():
        log.note(f"{plan.study.cell_name(plan.cells[number])}: {status}: {reason}")
    entries = _entries(plan, settings, [c for i, c in enumerate(plan.cells) if i not in refused])
    rows: Rows = []
    facts: dict[str, Any] = {"processes": 0, "ended_by": "nothing to time"}
    if entries:
        with gpu_lock(plan.device.uuid, log, f"timing {plan.name}"):
            others = Telemetry(plan.device.uuid).other_processes({os.getpid()})
            if others:
                log.say(f"warning: other programs use this GPU, timings may suffer: {'; '.join(others)}")
            rows, facts = _sample(plan, settings, entries, log)
            facts["other_processes"] = others
    write_csv(plan.paths.timing(plan.name), [*plan.study.key_columns, *SAMPLE_COLUMNS], rows)
    log.say(f"time {plan.name}: {len(rows)} samples of {len(entries)} entries in {facts['processes']} processes, {facts['ended_by']}")
    journal.done(samples=len(rows), **facts, **plan.measured_with(settings))


def _entries(plan: Plan, settings: Mapping[str, Any], cells: list[Cell]) -> list[tuple[Cell, str]]:
    """Cells with their replicates: each once as a, and the noise-floor cell once more as b."""
    entries = [(c, "a") for c in cells]
    wanted = settings["noise_floor"]
    for cell in cells:
        if wanted and cell.variant.name == wanted["variant"] and all(wanted.get(a) == v for a, v in cell.kernel_values.items()):
            entries.append((cell, "b"))
    return entries


def _sample(plan: Plan, settings: Mapping[str, Any], entries: list[tuple[Cell, str]], log: Log) -> tuple[Rows, dict[str, Any]]:
    timing = settings["timing"]
    rounds = math.ceil(timing["min_samples"] / timing["processes"])
    job = plan.job(settings, []) | {
        "timing": timing,
        "rounds": rounds,
        "wait": True,
        "entries": [describe(c) | {"replicate": r} for c, r in entries],
    }
    rows: Rows = []
    warm_ups: list[dict[str, Any]] = []
    begin, process, width = time.monotonic(), 0, math.inf
    progress = Progress(log, f"time {plan.name}", rounds * timing["processes"])
    waiting = Worker("time", job | {"process": 0}, plan.device.uuid)
    try:
        while True:
            current, waiting = waiting, Worker("time", job | {"process": process + 1}, plan.device.uuid)
            with current:
                current.go()
                try:
                    for message in current.results(ROUND_TIMEOUT_S):
                        if "warmed_up" in message:
                            warm_ups.append({k: message[k] for k in ("passes", "unsettled", "seconds")})
                        else:
                            rows += _rows(plan, entries, process, message)
                            progress.update(process * rounds + message["round"] + 1)
                except WorkerDied as death:
                    raise StudyError(f"a timing process ended early: {death.detail}", where=plan.name) from None
            process += 1
            if process < timing["processes"]:
                continue
            width = _widest(rows, plan.study.key_columns)
            spent = time.monotonic() - begin
            if width <= timing["interval"]:
                ended_by = f"every interval within {timing['interval']:.1%}"
                break
            if spent * (process + 1) / process > timing["budget_s"]:
                ended_by = f"time budget of {timing['budget_s']:g} s, widest interval {width:.1%}"
                break
    finally:
        waiting.end()
    return rows, {"processes": process, "rounds": process * rounds, "ended_by": ended_by, "widest_interval": width, "warm_up": warm_ups}


def _rows(plan: Plan, entries: list[tuple[Cell, str]], process: int, message: Mapping[str, Any]) -> Rows:
    return [
        plan.study.key(entries[entry][0])
        | {
            "cache_mode": mode,
            "replicate": entries[entry][1],
            "process": process,
            "round": message["round"],
            "order": order,
            "launches": launches,
            "sample_us": round(value, 6),
            **message["telemetry"],
        }
        for order, (entry, mode, launches, value) in enumerate(message["samples"])
    ]


def _widest(rows: Rows, key_columns: list[str]) -> float:
    """Widest 95 % interval of any cell's median, relative to that median."""
    by_cell: dict[tuple[Any, ...], tuple[list[float], list[int]]] = {}
    for row in rows:
        samples, processes = by_cell.setdefault((*(row[c] for c in key_columns), row["cache_mode"], row["replicate"]), ([], []))
        samples.append(row["sample_us"])
        processes.append(row["process"])
    widths = (median_interval(np.array(s), np.array(p)).width for s, p in by_cell.values())
    return max(math.inf if math.isnan(w) else w for w in widths)
