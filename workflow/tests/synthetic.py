"""A complete run folder made from a simple stated model instead of a GPU, for the tests of everything after raw/.

The model, every figure of which a test may override:

- time: moved bytes / (bandwidth of the variant x factor of its block_rows), at least ``launch_us``; hot samples of a
  footprint that fits into L2 are ``l2_speedup`` times as fast; cold samples are ``cold_factor`` times as long;
- noise: log-normal, ``noise`` per sample, ``round_noise`` shared by all cells of a round (pairing cancels it) and
  ``process_noise`` shared by the samples a cell has in one process; ``tail`` is the share of samples ``tail_factor`` long;
- counters: requests = elements / 32 a direction, 4 sectors a request where coalesced and 32 where strided, a wavefront a
  shared access and 32 where the whole warp hits one bank, DRAM bytes = one matrix (writes ``write_share`` of it), and
  plain constants for the rest.

``rtx5060()`` is a device on which the study's conclusions hold (it takes the published figures themselves);
``contrary()`` is one on which they do not.
"""

from __future__ import annotations

import copy
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from transpose_study import config as configuration
from transpose_study.experiment import Experiment
from transpose_study.records import read_yaml, write_csv, write_json, write_yaml
from transpose_study.registry import Cell

ROOT = Path(__file__).resolve().parents[2]

GPU = {
    "name": "Synthetic GPU", "uuid": "GPU-00000000-0000-0000-0000-000000000001", "ordinal": 0, "compute_capability": "12.0",
    "sm_count": 26, "l2_bytes": 32 * 2**20, "memory_bytes": 8 * 2**30, "clock_khz": 2_000_000, "memory_clock_khz": 12_000_000,
    "memory_bus_bits": 128, "threads_per_sm": 1536, "registers_per_sm": 65536, "blocks_per_sm": 24, "shared_bytes_per_sm": 102400,
    "ecc": False, "driver_cuda": "13.0", "peak_gb_s": 384.0,
}  # fmt: skip

# GB/s of a 4096 x 4096 transpose, hot; block_rows 8 where the variant takes it.
BANDWIDTH = {
    "copy": 306.9, "copy_looped": 306.0, "copy_vectorized": 318.0, "memcpy": 320.0, "naive_read_coalesced": 120.0,
    "naive_write_coalesced": 176.7, "tiled": 210.0, "tiled_padded": 302.1, "tiled_xor": 301.5, "tiled_rotated": 301.0,
    "tiled_padded_unchecked": 302.5,
}  # fmt: skip
BLOCK_ROWS_FACTOR = {4: 1 / 1.0258, 8: 1.0, 16: 1 / 1.0129, 32: 0.6937}
REGISTERS = {4: 32, 8: 26, 16: 20, 32: 18, None: 10}
VARYING = ("dram_", "achieved_", "issue_", "stall_", "duration_", "l1tex_", "l2_throughput", "memory_", "sm_")  # from launch to launch
INSTRUCTIONS_PER_WARP = {4: 214, 8: 122, 16: 78, 32: 47, None: 16}


@dataclass(frozen=True)
class Model:
    """The stated model; ``dataclasses.replace`` or the overrides of :func:`make_run` change single figures."""

    gpu: Mapping[str, Any] = field(default_factory=lambda: dict(GPU))
    bandwidth: Mapping[str, float] = field(default_factory=lambda: dict(BANDWIDTH))  # by variant, or by kernel name
    block_rows_factor: Mapping[int, float] = field(default_factory=lambda: dict(BLOCK_ROWS_FACTOR))
    unknown_bandwidth: float = 100.0
    launch_us: float = 2.0
    l2_speedup: float = 3.0
    cold_factor: float = 1.05
    noise: float = 0.002
    round_noise: float = 0.004
    process_noise: float = 0.0005
    tail: float = 0.0
    tail_factor: float = 3.0
    time_factor: Mapping[str, float] = field(default_factory=dict)  # by kernel name or variant: multiplies every sample
    replicate_b_factor: float = 1.0
    processes: int = 3
    rounds: int = 10  # of each process
    throttle_reasons: str = "0x0"
    sm_clock_mhz: float = 1980.0
    write_share: float = 0.9
    counters: Mapping[str, float] = field(default_factory=dict)  # "kernel:quantity", "variant:quantity" or "quantity"
    no_value: Mapping[str, str] = field(default_factory=dict)  # the same keys, or "*": empty values with that reason
    skipped: Mapping[str, str] = field(default_factory=dict)  # kernel name: reason in raw/check.csv
    wrong: Mapping[str, str] = field(default_factory=dict)  # kernel name: reason; wrong at the first edge shape
    build_failed: Mapping[str, str] = field(default_factory=dict)  # kernel name: the compiler's words


def base_config(**changes: Any) -> dict[str, Any]:
    """A small configuration: a shape within L2, the study's, and one that is no multiple of the tile."""
    config: dict[str, Any] = {
        "device": "auto",
        "shapes": [{"rows": 1024, "cols": 1024}, {"rows": 4096, "cols": 4096}, {"rows": 4095, "cols": 4097}],
        "axes": {"block_rows": [4, 8, 16, 32]},
        "timing": {"min_samples": 30},
    }
    return config | changes


def small_config(**changes: Any) -> dict[str, Any]:
    """Two shapes, one of them the study's, and the variants that the study and its comparisons need: quick to aggregate."""
    names = ["copy", "copy_vectorized", "memcpy", "naive_write_coalesced", "tiled", "tiled_padded", "tiled_padded_unchecked"]
    return base_config(shapes=[{"rows": 1024, "cols": 1024}, {"rows": 4096, "cols": 4096}], variants=names) | changes


def full_config(**changes: Any) -> dict[str, Any]:
    """The shipped experiment, config/config.yaml."""
    return read_yaml(ROOT / "config" / "config.yaml") | changes


def make_run(
    folder: Path, config: Mapping[str, Any] | None = None, model: Model | None = None, *, seed: int = 1, root: Path = ROOT,
    archive: str | None = None, **changes: Any,
) -> Experiment:  # fmt: skip
    """Write a complete run folder and return its experiment; ``changes`` replace fields of ``model``."""
    model = replace(model or Model(), **changes)
    target = {"gpu": dict(model.gpu), "archive": archive, "archive_sha256": "0" * 64 if archive else None}
    experiment = Experiment(configuration.parse(copy.deepcopy(dict(config or base_config()))), root, target, Path(folder))
    paths = experiment.paths
    write_yaml(paths.run_config, experiment.resolved())
    write_json(paths.identity, experiment.identity())
    write_json(paths.environment, _environment(experiment))
    for variant in experiment.variants():
        for kernel in experiment.kernels(variant) if not variant.driver_copy else ():
            _write_build(experiment, model, experiment.study.kernel_name(kernel), variant.name, dict(kernel.values))
    _write_check(experiment, model)
    for number, group in enumerate(experiment.groups):
        _write_timing(experiment, model, group, np.random.default_rng([seed, number]))
        if experiment.config.profile.enabled:
            _write_counters(experiment, model, group, np.random.default_rng([seed, number, 1]))
    return experiment


def pick(table: Mapping[str, Any], name: str, variant: str, default: Any = None) -> Any:
    """The entry of a kernel name, else of its variant, else ``default``."""
    return table.get(name, table.get(variant, default))


def time_us(experiment: Experiment, model: Model, cell: Cell, cache_mode: str) -> float:
    """The model's noiseless time of one launch, in microseconds."""
    study, name = experiment.study, experiment.study.kernel_name(cell)
    if name in model.bandwidth:
        bandwidth = model.bandwidth[name]
    else:
        rows = cell.kernel_values.get("block_rows")
        bandwidth = model.bandwidth.get(cell.variant.name, model.unknown_bandwidth) * model.block_rows_factor.get(rows, 1.0)
    time = study.effective_bytes(cell.group) / bandwidth / 1e3
    if cache_mode == "hot" and 2 * study.matrix_bytes(cell.group) <= model.gpu["l2_bytes"]:
        time /= model.l2_speedup
    if cache_mode == "cold":
        time *= model.cold_factor
    return max(time, model.launch_us) * pick(model.time_factor, name, cell.variant.name, 1.0)


# -- counters -----------------------------------------------------------------------------------------------------------------


def counter_values(experiment: Experiment, model: Model, cell: Cell) -> dict[str, float]:
    """The model's counters of one launch, by quantity."""
    study = experiment.study
    geometry, elements, matrix = study.geometry(cell), study.element_count(cell.group), study.matrix_bytes(cell.group)
    rows = cell.kernel_values.get("block_rows")
    tiled = cell.variant.name.startswith("tiled")
    width = 4 if cell.variant.name == "copy_vectorized" else 1
    requests = -(-elements // (32 * width))
    shared = requests if tiled else 0
    load_sectors = requests * (32 if cell.variant.name == "naive_write_coalesced" else 4 * width)
    store_sectors = requests * (32 if cell.variant.name == "naive_read_coalesced" else 4 * width)
    load_wavefronts = shared * (32 if cell.variant.name == "tiled" else 1)
    warps_per_block = -(-geometry.threads // 32)
    warps = geometry.blocks * warps_per_block
    limits = {
        "limit_blocks": model.gpu["blocks_per_sm"],
        "limit_registers": model.gpu["registers_per_sm"] // (max(REGISTERS.get(rows, 16), 8) * geometry.threads),
        "limit_shared_memory": (1 if rows == 32 else 12) if tiled else model.gpu["blocks_per_sm"],
        "limit_warps": model.gpu["threads_per_sm"] // 32 // warps_per_block,
    }
    occupancy = 100 * min(limits.values()) * warps_per_block * 32 / model.gpu["threads_per_sm"]
    time = time_us(experiment, model, cell, "cold")
    dram = 100 * 2 * matrix / time / 1e3 / float(model.gpu["peak_gb_s"])
    values: dict[str, float] = {
        "global_load_requests": requests, "global_load_sectors": load_sectors,
        "global_store_requests": requests, "global_store_sectors": store_sectors,
        "dram_read_bytes": 1.003 * matrix, "dram_write_bytes": model.write_share * matrix,
        "l1_hit_pct": 0.0, "l2_hit_pct": 76.5 if load_sectors > 8 * requests * width else 0.01,
        "l1tex_throughput_pct": 94.0 if load_sectors > 8 * requests * width else 35.0, "l2_throughput_pct": 30.0,
        "dram_throughput_pct": dram, "memory_throughput_pct": dram, "sm_throughput_pct": 33.0,
        "achieved_occupancy_pct": 0.94 * occupancy, "theoretical_occupancy_pct": occupancy,
        "eligible_warps": 0.5, "issue_active_pct": 20.0,
        "warp_instructions": warps * (INSTRUCTIONS_PER_WARP.get(rows, 16) * (0.623 if "unchecked" in cell.variant.name else 1)),
        "warps_launched": warps,
        "shared_load_wavefronts": 1.0036 * load_wavefronts, "shared_store_wavefronts": shared,
        "shared_load_bank_conflicts": 1.0036 * load_wavefronts - shared, "shared_store_bank_conflicts": 0,
        "shared_load_instructions": shared, "shared_store_instructions": shared,
        "registers_per_thread": REGISTERS.get(rows, 16), "shared_config_bytes": (8192 if rows == 32 else 65536) if tiled else 8192,
        "shared_allocated_bytes_per_block": 5248 if tiled else 1024, **limits,
        "duration_ns": 1e3 * time_us(experiment, model, cell, "hot"),
        "shared_wavefronts_exact": load_wavefronts + shared, "shared_wavefronts_ideal": 2 * shared,
    }  # fmt: skip
    for batch in experiment.batches.values():
        for quantity in batch.quantities:
            values.setdefault(quantity.key, 1.0)  # stall ratios, and quantities of a later metrics.yaml
    values |= {f"instructions_by_opcode[{o}]": warps * n for o, n in {"LDG": 1, "STG": 1, "IMAD": 6, "EXIT": 1}.items()}
    if tiled:
        values |= {f"instructions_by_opcode[{o}]": shared for o in ("LDS", "STS")} | {"instructions_by_opcode[BAR]": warps}
    values.pop("instructions_by_opcode")
    for quantity in values:
        for key in (quantity, f"{cell.variant.name}:{quantity}", f"{study.kernel_name(cell)}:{quantity}"):
            values[quantity] = model.counters.get(key, values[quantity])
    return values


def _write_counters(experiment: Experiment, model: Model, group: str, rng: np.random.Generator) -> None:
    study, rows = experiment.study, []
    quantities = {q.key: q for name in experiment.batch_names() for q in experiment.batch(name).quantities}
    configured = experiment.config.profile.launches | experiment.groups[group].launches
    for cell in experiment.cells(group):
        name = study.kernel_name(cell)
        refused = study.cell_refusal(cell, model.gpu["memory_bytes"])
        if cell.variant.driver_copy or refused or name in {**model.skipped, **model.wrong, **model.build_failed}:
            continue
        for key, value in counter_values(experiment, model, cell).items():
            quantity = quantities.get(key.split("[")[0])
            if quantity is None:
                continue
            keys = ("*", key, f"{cell.variant.name}:{key}", f"{name}:{key}")
            why = next((model.no_value[k] for k in reversed(keys) if k in model.no_value), "")
            for launch in range(configured.get(quantity.batch, 1)):
                shown = value * (1 + 0.001 * rng.standard_normal()) if key.startswith(VARYING) else value
                rows.append(
                    study.key(cell)
                    | {"batch": quantity.batch, "launch": launch, "quantity": key, "metric": quantity.metric, "unit": quantity.unit}
                    | {"value": "" if why else float(shown), "reason": why}
                )
    write_csv(experiment.paths.counters(group), [*study.key_columns, "batch", "launch", "quantity", "metric", "value", "unit", "reason"], rows)


# -- timings, check, build, environment -------------------------------------------------------------------------------------


def _write_timing(experiment: Experiment, model: Model, group: str, rng: np.random.Generator) -> None:
    study = experiment.study
    absent = {**model.skipped, **model.wrong, **model.build_failed}
    cells = [c for c in experiment.cells(group) if not study.cell_refusal(c, model.gpu["memory_bytes"]) and study.kernel_name(c) not in absent]
    floor = experiment.noise_pair(group)
    entries: list[tuple[Cell, str]] = [(c, "a") for c in cells]
    entries += [
        (c, "b") for c in cells if floor and c.variant.name == floor["variant"] and all(c.values[a] == v for a, v in floor.items() if a != "variant")
    ]
    rows: list[dict[str, Any]] = []
    for process in range(model.processes):
        place = np.exp(model.process_noise * rng.standard_normal(len(entries)))
        for number in range(model.rounds):
            for mode in experiment.config.timing.cache_modes:
                shared = np.exp(model.round_noise * rng.standard_normal())
                own = np.exp(model.noise * rng.standard_normal(len(entries)))
                tail = np.where(rng.random(len(entries)) < model.tail, model.tail_factor, 1.0)
                order = rng.permutation(len(entries))
                for i, (cell, replicate) in enumerate(entries):
                    time = time_us(experiment, model, cell, mode) * place[i] * shared * own[i] * tail[i]
                    time *= model.replicate_b_factor if replicate == "b" else 1.0
                    launches = max(1, min(experiment.config.timing.max_launches, int(experiment.config.timing.window_us / time)))
                    rows.append(
                        study.key(cell)
                        | {"cache_mode": mode, "replicate": replicate, "process": process, "round": number, "order": int(order[i])}
                        | {"launches": launches if mode == "hot" else 1, "sample_us": float(time), "sm_clock_mhz": model.sm_clock_mhz}
                        | {"memory_clock_mhz": 12000.0, "temperature_c": 55, "power_w": 80.5, "throttle_reasons": model.throttle_reasons}
                    )
    columns = ["cache_mode", "replicate", "process", "round", "order", "launches", "sample_us", "sm_clock_mhz", "memory_clock_mhz",
               "temperature_c", "power_w", "throttle_reasons"]  # fmt: skip
    write_csv(experiment.paths.timing(group), [*study.key_columns, *columns], rows)


def _write_check(experiment: Experiment, model: Model) -> None:
    study, rows = experiment.study, []
    first = study.edge_groups[0] if study.edge_groups else None
    names = [v.name for v in experiment.variants()]
    shapes = [*experiment.groups, *study.edge_groups]
    for shape in shapes:
        cells = experiment.cells(shape) if isinstance(shape, str) else study.cells(shape, names, experiment.config.axes)
        for cell in cells:
            if cell.variant.driver_copy:
                continue
            name = study.kernel_name(cell)
            refusal = study.cell_refusal(cell, model.gpu["memory_bytes"])
            verdict: dict[str, Any] = {"status": "ok"}
            if refusal or name in model.skipped:
                verdict = {"status": "skipped", "reason": refusal or model.skipped[name]}
            elif name in model.build_failed:
                verdict = {"status": "failed", "reason": model.build_failed[name]}
            elif name in model.wrong and shape is first:
                verdict = {"status": "wrong", "reason": model.wrong[name], "row": 0, "col": 0, "expected": 1.0, "got": 2.0}
            rows.append(study.key(cell) | verdict)
    write_csv(experiment.paths.check, [*study.key_columns, "status", "reason", "row", "col", "expected", "got"], rows)


def _write_build(experiment: Experiment, model: Model, name: str, variant: str, values: dict[str, Any]) -> None:
    rows = values.get("block_rows")
    failed = name in model.build_failed
    write_json(
        experiment.paths.kernel(experiment.architecture, name, "json"),
        {
            "variant": variant, "values": values, "kernel": name, "architecture": experiment.architecture,
            "status": "failed" if failed else "ok", "reason": model.build_failed.get(name, ""), "compiler": "nvcc 13.0.88",
            "registers": None if failed else REGISTERS.get(rows, 16),
            "shared_bytes": None if failed else (4224 if variant.startswith("tiled_padded") else 4096 if variant.startswith("tiled") else 0),
            "spill_store_bytes": 0, "spill_load_bytes": 0, "stack_bytes": 0, "barriers": 1 if variant.startswith("tiled") else 0,
            "cubin_sha256": "0" * 64, "ptx_sha256": "0" * 64, "code_digest": "0" * 16,
        },
    )  # fmt: skip


def _environment(experiment: Experiment) -> dict[str, Any]:
    return {
        "gpu": experiment.gpu, "driver": "580.00", "cuda": "13.0", "compiler": {"nvcc": "13.0.88", "origin": "pip"}, "ncu": "2025.3.1",
        "python": "3.11.0", "packages": {"numpy": "2.0"}, "git": {"commit": "0" * 40, "dirty": False}, "argv": ["snakemake"],
        "start": "2026-01-01T00:00:00+00:00", "end": "2026-01-01T00:09:00+00:00", "replayed_from": experiment.target["archive"],
    }  # fmt: skip


# -- ready-made devices -----------------------------------------------------------------------------------------------------


def rtx5060() -> Model:
    """The published figures as if they were a device: bandwidths and counters of the kernels that the publication has."""
    data = read_yaml(ROOT / "config" / "reference" / "rtx5060-laptop.yaml")
    names = {k: _kernel_name(v["cell"]) for k, v in data["kernels"].items()}
    bandwidth = dict(BANDWIDTH) | {names[k]: v for k, v in data["effective_bandwidth_gb_s"].items()}
    moved = data["protocol"]["effective_bytes"]
    for entry in data["block_rows_scan"]:
        bandwidth[f"tiled_padded_b{entry['block_rows']}"] = moved / entry["mean_ms"] / 1e6
    bandwidth["tiled_padded_unchecked_b8"] = bandwidth["tiled_padded_b8"] * 1.002
    counters: dict[str, float] = {}
    rename = {"load_wavefronts": "shared_load_wavefronts", "store_wavefronts": "shared_store_wavefronts",
              "load_bank_conflicts": "shared_load_bank_conflicts", "store_bank_conflicts": "shared_store_bank_conflicts",
              "dram_read_mb": "dram_read_bytes", "dram_write_mb": "dram_write_bytes"}  # fmt: skip
    for section in ("dram_and_cache", "counters", "occupancy", "shared_memory"):
        for quantity, figures in data[section].items():
            for kernel, figure in figures.items():
                scale = 1e6 if quantity.endswith("_mb") else 1
                counters[f"{names[kernel]}:{rename.get(quantity, quantity)}"] = figure * scale
    return Model(bandwidth=bandwidth, counters=counters)


def contrary() -> Model:
    """A device on which the study's conclusions do not hold: the naive kernel as fast as the loop, which is far from
    the copy, checks that cost time but few instructions, the fastest block_rows elsewhere, and all that is written reaching DRAM."""
    bandwidth = dict(BANDWIDTH) | {"naive_write_coalesced": 280.0, "naive_write_coalesced_b32": 282.0, "tiled_padded": 220.0, "tiled_xor": 180.0,
                                   "tiled": 260.0, "tiled_padded_unchecked": 290.0}  # fmt: skip
    return Model(
        gpu={**GPU, "name": "Contrary GPU", "uuid": "GPU-00000000-0000-0000-0000-000000000002"},
        bandwidth=bandwidth,
        block_rows_factor={4: 1.06, 8: 1.0, 16: 1.02, 32: 1.1},
        write_share=1.001,
        counters={
            "naive_write_coalesced:l2_hit_pct": 2.0,
            "naive_write_coalesced:dram_read_bytes": 5.0e8,
            "l1tex_throughput_pct": 20.0,
            "tiled_padded_b8:shared_store_wavefronts": 900000.0,
            "tiled_padded_unchecked_b8:stall_barrier": 0.2,
            "tiled_padded_unchecked_b8:warp_instructions": 15.0e6,
        },
    )


def _kernel_name(cell: str) -> str:
    name, *axes = (p.strip() for p in cell.split(","))
    return name + "".join(f"_b{a.split()[1]}" for a in axes)


# -- for tests that damage or shuffle raw files -------------------------------------------------------------------------


def read_rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Columns and rows of a CSV."""
    with path.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        rows = list(reader)
    return list(reader.fieldnames or ()), rows


def shuffle_rows(paths: Sequence[Path], seed: int = 7) -> None:
    """Write the rows of each CSV in another order."""
    rng = np.random.default_rng(seed)
    for path in paths:
        columns, rows = read_rows(path)
        write_csv(path, columns, [rows[i] for i in rng.permutation(len(rows))])


if __name__ == "__main__":
    import sys

    from transpose_study.analysis import aggregate

    models = {"rtx5060": rtx5060, "contrary": contrary, "plain": Model}
    if len(sys.argv) < 3 or sys.argv[2] not in models:
        sys.exit(f"usage: python {sys.argv[0]} FOLDER {'|'.join(models)} [full]")
    run = make_run(Path(sys.argv[1]), full_config() if sys.argv[3:] == ["full"] else base_config(), models[sys.argv[2]]())
    aggregate(run)
