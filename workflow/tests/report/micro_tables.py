"""Tables of the study of banks and warps made from a seed instead of a device, for the tests of its report.

Every figure is drawn by a hash of the seed, the cell and the quantity, so that another seed changes all of them; wavefronts
per access lie from 1 to 32. Measured and predicted figures are equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synthetic import GPU, ROOT
from transpose_study import config as configuration
from transpose_study.experiment import Experiment
from transpose_study.records import read_yaml, write_csv, write_json, write_yaml
from transpose_study.registry import Cell

FEW = {"stride": [1, 2, 3, 32], "sharers": [1, 32], "pitch": [32, 33, 99], "lanes": [0, 1, 16, 32], "paths": [1, 2, 32], "offset": [0, 1, 8],
       "row_pitch": [1024, 1025], "threads": [32, 256], "ilp": [1, 8], "shared_kib": [0, 48], "live": [24, 32], "allocation": [1, 4096]}  # fmt: skip
CLAIMS = [
    "stride-2", "column-32", "consecutive-one-bank", "compiler-pads-static", "padding-formula", "pitch-33-multiple", "latency-linear",
    "store-instructions-rise", "vector-phases", "scalar-swizzle-float4", "xor-power-of-two", "xor-out-of-range", "pad-plus-xor",
    "misaligned-5-sectors", "misaligned-halves", "malloc-4-byte", "divergence-rounds", "divergence-peak-16", "ternary-no-divergence",
    "occupancy-lower-faster", "registers-multiple-32", "warp-order", "shared-fast-10x",
]  # fmt: skip
LAST = {"run_id": "0", "configuration_digest": "0", "cubin_digest": "0"}


def chance(*words: object) -> float:
    """A number from 0 to 1 that the words decide."""
    return int.from_bytes(hashlib.sha256("|".join(map(str, words)).encode()).digest()[:6], "big") / 2**48


def make(folder: Path, seed: int, *, languages: tuple[str, ...] = ("en",), denied: str = "", verdict: str = "", **changes: Any) -> Experiment:
    """A run folder with the tables that the write-up and the figures read.

    ``denied`` is the reason why no counter was read; with ``verdict`` every claim has that one. ``changes`` replace keys of
    config/micro.yaml.
    """
    data = read_yaml(ROOT / "config" / "micro.yaml")
    data |= {"axes": data["axes"] | FEW, "paper": {"language": list(languages)}} | changes
    target = {"gpu": dict(GPU), "archive": None, "archive_sha256": None}
    experiment = Experiment(configuration.parse(data), ROOT, target, folder)
    write_yaml(experiment.paths.run_config, experiment.resolved())
    write_json(experiment.paths.environment, {"gpu": experiment.gpu, "start": "2026-01-01T00:00:00+00:00"})
    tables: dict[str, list[dict[str, Any]]] = {n: [] for n in ("timings", "counters", "predictions", "instructions", "banks", "noise", "rounds")}
    for group in experiment.groups:
        for cell in experiment.cells(group):
            _measure(experiment, tables, cell, seed, denied)
        place = dict(experiment.groups[group].values)
        for mode in experiment.config.timing.cache_modes:
            tables["noise"].append(place | {"cache_mode": mode, "floor_pct": 0.1 + chance(seed, group, mode, "floor"), "reason": ""})
            clock = {"sm_clock_mhz": 1000 + round(900 * chance(seed, group)), "memory_clock_mhz": 3000 + seed}
            clock |= {"temperature_c": 40 + seed, "power_w": 200 + seed}
            tables["rounds"].append(place | {"cache_mode": mode, "process": 0, "round": 0, **clock, "throttle_reasons": "0x0"})
    if verdict:
        common = {"verdict": verdict, "reason": ""}
        tables["claims"] = [common | {"id": c, "source": "tutorials", "says": c.replace("-", " "), "note": "", "changed": ""} for c in CLAIMS]
        tables["claim_parts"] = []
        for claim in CLAIMS:
            x = 2 + chance(seed, claim)
            limit = {"condition": f"cycles > {x:.3f}", "threshold": f"> {x / 2:.3f}", "threshold_low": x / 2, "threshold_high": ""}
            tables["claim_parts"].append(common | limit | {"id": claim, "part": 1, "says": "", "measured": x, "low": "", "high": ""})
    for name, rows in tables.items():
        columns = dict.fromkeys(c for row in rows for c in row)
        write_csv(experiment.paths.table(name), [*columns, *LAST], [{c: row.get(c, "") for c in columns} | LAST for row in rows])
    return experiment


def _measure(experiment: Experiment, tables: Mapping[str, list[dict[str, Any]]], cell: Cell, seed: int, denied: str) -> None:
    study, key = experiment.study, experiment.study.key(cell)
    named = study.cell_name(cell)
    refusal = study.cell_refusal(cell) or study.shared_refusal(cell, 0, experiment.gpu["shared_bytes_per_sm"])
    for mode in experiment.config.timing.cache_modes:
        time = 1 + 99 * chance(seed, named, mode)
        figures = {"n": 7 + seed, "processes": 1, "mean_us": time, "median_us": time, "median_low_us": 0.99 * time, "median_high_us": 1.01 * time,
                   "interval_width_pct": 2 * chance(seed, named, "width"),
                   "bandwidth_gb_s": study.effective_bytes(cell) / time / 1e3, "percent_of_peak": 50 * chance(seed, named)}  # fmt: skip
        if cell.variant.allocates is not None or refusal:
            figures = dict.fromkeys(figures, "")
        tables["timings"].append(key | {"cache_mode": mode, "status": "skipped" if refusal else "ok", "reason": refusal} | figures | {"flags": ""})
    if refusal:
        return
    accesses = 1000 + round(9000 * chance(seed, named, "accesses"))
    counted = [q.key for name, batch in experiment.batches.items() if name != "kernel" for q in batch.quantities]
    values: dict[str, float] = {key: 1 + round(2000 * chance(seed, named, key)) for key in counted}
    full = 30 if cell.kernel_values.get("shared_kib") else 90
    values |= {
        "shared_load_instructions": accesses,
        "shared_load_wavefronts": accesses * (1 + 31 * chance(seed, named, "ways")),
        "theoretical_occupancy_pct": full + 10 * chance(seed, named),
        "global_load_sectors_per_request": 4 + chance(seed, named),
        "resident_blocks_per_sm": 1 + round(7 * chance(seed, named)),
    }
    observed = {o.name: 20 + 50 * chance(seed, named, o.name) for o in cell.variant.observes} | {
        f"{o.name}_cold": 300 + 500 * chance(seed, named, o.name, "cold") for o in cell.variant.observes
    }
    for quantity, value in ({} if cell.variant.no_kernel else values).items():
        measured = "" if denied else value
        counter = {"batch": "brief", "mean": measured, "launches": 1, "unit": "", "reason": denied}
        tables["counters"].append(key | {"quantity": quantity} | counter)
        tables["predictions"].append(key | {"quantity": quantity, "predicted": value, "measured": measured, "unit": "", "note": "exact"})
    for quantity, value in observed.items():
        tables["counters"].append(key | {"quantity": quantity, "batch": "kernel", "mean": value, "launches": 5, "unit": "cycles", "reason": ""})
    for opcode in () if cell.variant.no_kernel else ("BRA", "FMUL", "LDG"):
        count = 10 + round(200 * chance(seed, named, opcode))
        tables["instructions"].append(key | {"opcode": opcode, "predicted_per_warp": count, "measured_per_warp": "" if denied else count})
    for lane in () if cell.variant.no_kernel else range(32):
        for access in ("load", "store"):
            where = {"lane": lane, "bank_row": lane % 4, "bank": lane, "wavefronts": 1, "rows_of_banks": 32}
            tables["banks"].append(key | {"access": access} | where)
