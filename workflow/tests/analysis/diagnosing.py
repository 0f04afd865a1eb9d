"""What the tests of ``diagnose`` share: the command, the archive of recorded kernels, and a run of one cell with stated counters."""

from pathlib import Path
from typing import Any

from projects import ROOT
from transpose_study.cli import main
from transpose_study.records import write_csv, write_yaml

ARCHIVE = str(ROOT / "results" / "archive" / "earlier" / "nvidia-h200-2026-11-29.crate.zip")  # whose recorded figures stand below

QUIET = {
    "dram_throughput_pct": 30, "l2_throughput_pct": 30, "memory_throughput_pct": 30, "l1tex_throughput_pct": 30, "sm_throughput_pct": 20,
    "issue_active_pct": 20, "eligible_warps": 0.4, "achieved_occupancy_pct": 90, "theoretical_occupancy_pct": 100, "threads_per_instruction": 32,
    "shared_wavefronts_exact": 1000, "shared_wavefronts_ideal": 1000, "warps_launched": 4 * 100 * 8 * 8, "resident_blocks_per_sm": 8,
    "stall_long_scoreboard": 8, "stall_short_scoreboard": 1, "stall_barrier": 0, "stall_mio_throttle": 0, "stall_lg_throttle": 0,
    "stall_math_pipe_throttle": 0, "stall_wait": 1, "stall_not_selected": 0, "stall_drain": 0, "stall_no_instruction": 0,
    "dram_read_bytes": 64e6, "dram_write_bytes": 64e6,
}  # fmt: skip


def diagnose(capsys: Any, *arguments: Any) -> tuple[int, str, str]:
    """Exit status and output of the command in the project's folder."""
    status = main(["diagnose", *map(str, arguments)])
    output = capsys.readouterr()
    return status, " ".join(output.out.split()), " ".join(output.err.split())


def stated_run(
    folder: Path, time_us: float = 100.0, predicted: dict[str, float] | None = None, reason: str = "ncu was not found", **counters: Any
) -> Path:
    """A run folder whose only cell has QUIET's counters but these; None takes one away."""
    key = {"variant": "tiled", "rows": 4096, "cols": 4096, "dtype": "float32", "block_rows": 8}
    gpu = {"name": "Stated GPU", "sm_count": 100, "l2_bytes": 10**6, "peak_gb_s": 2000.0}
    write_yaml(folder / "run_config.yaml", {"config": {"study": "transpose"}, "target": {"gpu": gpu}})
    rows = [{**key, "quantity": q, "mean": v, "reason": "" if v is not None else reason} for q, v in (QUIET | counters).items()]
    write_csv(folder / "tables" / "counters.csv", [*key, "quantity", "mean", "reason"], rows)
    timing = {"status": "ok", "median_us": time_us, "bandwidth_gb_s": 128e3 / time_us, "sm_clock_mhz": 1000}
    timing["footprint_to_l2"] = 128.0  # 128 MB: 64 in, 64 out
    times = [{**key, "cache_mode": m, **timing} for m in ("hot", "cold")]
    names = [*key, "cache_mode", "status", "reason", "median_us", "bandwidth_gb_s", "footprint_to_l2", "sm_clock_mhz"]
    write_csv(folder / "tables" / "timings.csv", names, times)
    write_csv(folder / "tables" / "occupancy.csv", [*key, "warps_per_block"], [{**key, "warps_per_block": 8}])
    rows = [{**key, "quantity": q, "predicted": v} for q, v in (predicted or {}).items()]
    write_csv(folder / "tables" / "predictions.csv", [*key, "quantity", "predicted"], rows)
    return folder
