"""The worker's side of ``time``: warm-up, then rounds in which every cell is sampled once, in a seeded random order."""

from __future__ import annotations

import random
import statistics
import time
from typing import Any

from transpose_study.gpu.sampling import Cold, Sampler
from transpose_study.gpu.session import Emit, Session
from transpose_study.gpu.telemetry import Telemetry
from transpose_study.registry import Cell, Study

WARMUP_SAMPLES = 3  # of each cell in one pass of the warm-up


def run(study: Study, job: dict[str, Any], emit: Emit) -> None:
    """Sample ``job["entries"]`` (cells, each with a replicate) for ``job["rounds"]`` rounds; emit one message a round."""
    timing, group = job["timing"], job["group"]
    session = Session(study, job["build"])
    telemetry = Telemetry(job["gpu"])
    cells = [Cell(study.variant(e["variant"]), e["kernel_values"], group) for e in job["entries"]]
    buffers = session.buffers(cells)
    session.fill_input(buffers.input, job["input"])
    cold = None
    if "cold" in timing["cache_modes"]:
        flush = session.allocate(int(job["l2_bytes"] * timing["flush_l2"]))
        cold = Cold(flush.pointer, flush.size)
    sampler = Sampler(session, cold)
    launches = [session.launcher(c, buffers) for c in cells]
    counts = _warm_up(sampler, launches, timing, emit)

    tasks = [(i, mode) for i in range(len(cells)) for mode in timing["cache_modes"]]
    for number in range(job["rounds"]):
        random.Random(f"{job['input']['seed']} {group} {job['process']} {number}").shuffle(tasks)
        samples = []
        for entry, mode in tasks:
            hot = mode == "hot"
            value = sampler.hot(launches[entry], counts[entry]) if hot else sampler.cold(launches[entry])
            samples.append([entry, mode, counts[entry] if hot else 1, value])
        emit({"round": number, "samples": samples, "telemetry": telemetry.now()})


def _warm_up(sampler: Sampler, launches: list[Any], timing: dict[str, Any], emit: Emit) -> list[int]:
    """Run every cell until its successive medians agree or the budget ends; return launches for each cell's hot sample."""
    begin = time.monotonic()
    medians = [statistics.median(sampler.hot(launch, 2) for _ in range(WARMUP_SAMPLES)) for launch in launches]
    counts = [sampler.launches_for(m, timing["window_us"], timing["max_launches"]) for m in medians]
    passes, unsettled = 1, len(launches)
    while unsettled and time.monotonic() - begin < timing["warmup_budget_s"]:
        unsettled = 0
        for i, launch in enumerate(launches):
            median = statistics.median(sampler.hot(launch, counts[i]) for _ in range(WARMUP_SAMPLES))
            unsettled += abs(median - medians[i]) > timing["warmup_tolerance"] * medians[i]
            medians[i] = median
        passes += 1
    counts = [sampler.launches_for(m, timing["window_us"], timing["max_launches"]) for m in medians]
    emit({"warmed_up": True, "passes": passes, "unsettled": unsettled, "seconds": time.monotonic() - begin})
    return counts
