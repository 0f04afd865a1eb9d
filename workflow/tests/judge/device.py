"""A results folder made from published figures alone, and readers of the judge's tables."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import synthetic
from transpose_study.analysis.judge import judge
from transpose_study.experiment import Experiment
from transpose_study.records import read_csv, read_yaml, write_csv

REFERENCE = synthetic.ROOT / "config" / "reference" / "rtx5060-laptop.yaml"
Table = list[dict[str, Any]]

# The names of counters.csv for what the publication calls otherwise, with the factor to the counter's unit.
RENAMED = {
    "load_requests": ("global_load_requests", 1), "load_sectors": ("global_load_sectors", 1), "store_requests": ("global_store_requests", 1),
    "store_sectors": ("global_store_sectors", 1), "load_sectors_per_request": ("global_load_sectors_per_request", 1),
    "store_sectors_per_request": ("global_store_sectors_per_request", 1), "dram_read_mb": ("dram_read_bytes", 1e6),
    "dram_write_mb": ("dram_write_bytes", 1e6), "load_wavefronts": ("shared_load_wavefronts", 1), "store_wavefronts": ("shared_store_wavefronts", 1),
    "load_bank_conflicts": ("shared_load_bank_conflicts", 1), "store_bank_conflicts": ("shared_store_bank_conflicts", 1),
}  # fmt: skip


def published_run(folder: Path, root: Path = synthetic.ROOT) -> Experiment:
    """A results folder whose tables hold the published figures and nothing else: no intervals, no noise floor, no other cell."""
    data = read_yaml(REFERENCE)
    gpu = synthetic.GPU | {
        "name": data["environment"]["gpu"], "sm_count": data["environment"]["sm_count"], "l2_bytes": data["environment"]["l2_bytes"],
        "peak_gb_s": float(data["environment"]["dram_peak_gb_s"]),
    }  # fmt: skip
    config = synthetic.base_config(shapes=[{"rows": data["protocol"]["rows"], "cols": data["protocol"]["cols"]}])
    experiment = synthetic.make_run(folder, config, synthetic.Model(gpu=gpu), root=root)
    shutil.rmtree(folder / "raw" / "timing")
    shutil.rmtree(folder / "raw" / "counters")
    study, (group,) = experiment.study, list(experiment.groups)
    named = {synthetic._kernel_name(k["cell"]): name for name, k in data["kernels"].items()}
    cells = {named[study.kernel_name(c)]: c for c in experiment.cells(group) if study.kernel_name(c) in named}
    scan = {c.kernel_values["block_rows"]: c for c in experiment.cells(group) if c.variant.name == "tiled_padded"}
    keys = study.key_columns
    counters: Table = []
    for section in ("global_access", "dram_and_cache", "counters", "occupancy", "shared_memory"):
        for quantity, figures in data[section].items():
            name, factor = RENAMED.get(quantity, (quantity, 1))
            counters += [
                study.key(cells[k]) | {"quantity": name, "mean": v * factor, "std": "", "launches": data["protocol"]["ncu_runs"], "reason": ""}
                for k, v in figures.items()
            ]
    speed = dict(data["effective_bandwidth_gb_s"])
    loop, published = cells["looped_padded_32x8"], data["headline"]
    ratios = {(loop, cells["copy"]): published["percent_of_copy"] / 100, (loop, cells["naive"]): published["speedup_over_naive"]}
    for fast, slow in [(a, b) for a in speed for b in speed if a != b]:
        ratios.setdefault((cells[fast], cells[slow]), speed[fast] / speed[slow])
    times = {e["block_rows"]: e["mean_ms"] for e in data["block_rows_scan"]}
    for rows, time in times.items():
        ratios.setdefault((loop, scan[rows]), time / times[8])
    rows = [study.key(a) | {"cache_mode": "hot", "other": study.kernel_name(b), "speedup": v, "n": "", "reason": ""} for (a, b), v in ratios.items()]
    write_csv(experiment.paths.table("counters"), [*keys, "quantity", "mean", "std", "launches", "reason"], counters)
    write_csv(experiment.paths.table("ratios"), [*keys, "cache_mode", "other", "speedup", "n", "reason"], rows)
    for name, columns in {
        "timings": ["cache_mode", "reason"], "occupancy": ["reason"], "noise": ["cache_mode", "floor_pct"],
        "opcodes": ["opcode", "instructions_per_warp", "reason"],
    }.items():  # fmt: skip
        write_csv(experiment.paths.table(name), [*keys, *columns], [])
    return experiment


def verdicts(experiment: Experiment) -> dict[str, dict[str, str]]:
    """Judge, and return claims.csv by id."""
    judge(experiment)
    return {r["id"]: r for r in read_csv(experiment.paths.table("claims"))}


def parts(experiment: Experiment, claim: str) -> list[dict[str, str]]:
    """The comparisons of one claim."""
    return [r for r in read_csv(experiment.paths.table("claim_parts")) if r["id"] == claim]


def answers(experiment: Experiment, question: str, quantity: str) -> list[dict[str, str]]:
    """Rows of analysis.csv."""
    return [r for r in read_csv(experiment.paths.table("analysis")) if (r["question"], r["quantity"]) == (question, quantity)]
