"""What the second study asks of the stages: run-time axes, what kernels observe, dynamic shared memory, allocations, index references."""

from __future__ import annotations

import yaml
from transpose_study.records import read_csv

AXES = {
    "width": [4, 16], "stride": [1, 2, 33], "sharers": [4], "bytes": [4, 8], "pitch": [1056, 33], "tile": [24], "lanes": [5], "paths": [3],
    "offset": [1], "row_pitch": [1025], "threads": [96], "ilp": [2], "shared_kib": [100], "live": [40], "block_x": [5], "block_y": [7],
    "touch": [2], "allocation": [257],
}  # fmt: skip
VARIANTS = ["bank_latency", "bank_store", "bank_column", "branch_long", "copy_offset", "allocation", "occupancy_memory", "warp_lanes"]


def test_a_study_of_other_axes_is_checked_timed_observed_and_profiled(live_project) -> None:
    project = live_project({"also": ["config/micro.yaml"]}, study="micro")
    config = project.folder / "config/micro.yaml"
    data = yaml.safe_load(config.read_text(encoding="utf-8"))
    data |= {"run": "test", "axes": AXES, "shapes": [{"experiment": "banks", "variants": VARIANTS}], "profile": {"launches": {"kernel": 3}}}
    data["timing"] = {"min_samples": 3, "processes": 1, "budget_s": 1, "warmup_budget_s": 0.1}
    config.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    raw = "results/test/micro/raw"
    project.must_run(f"{raw}/check.csv", f"{raw}/timing/banks.csv", f"{raw}/counters/banks.csv")

    verdicts = {(r["variant"], r["bytes"], r["pitch"]): (r["status"], r["reason"]) for r in read_csv(project.run_folder / "raw/check.csv")}
    status, reason = verdicts.pop(("bank_column", "8", "1056"))
    assert status == "skipped" and reason.startswith("a block needs 270336 bytes of shared memory")  # 32 * 1056 * 8
    assert {s for s, _ in verdicts.values()} == {"ok"}  # pitch 33 after 1056 too: the smaller must not lower the kernel's limit of shared memory
    timed = {r["variant"] for r in read_csv(project.run_folder / "raw/timing/banks.csv")}
    assert timed == set(VARIANTS) - {"allocation"}

    values: dict[tuple[str, ...], list[float]] = {}
    for row in read_csv(project.run_folder / "raw/counters/banks.csv"):
        if row["value"]:
            values.setdefault((row["variant"], row["width"], row["stride"], row["quantity"]), []).append(float(row["value"]))
    latency = {s: min(values["bank_latency", "4", s, "cycles_per_access"]) for s in ("1", "2", "33")}
    assert latency["1"] == latency["33"] < latency["2"] < 2 * latency["1"]  # gcd(stride, 32) ways; the second costs little
    warps = 4096 * 8
    for width in (4, 16):
        phases = width // 4  # of 32 or 8 lanes; at stride 2, two lanes of each meet in every bank
        ideal = values["bank_store", str(width), "2", "shared_wavefronts_ideal"]
        exact = values["bank_store", str(width), "2", "shared_wavefronts_exact"]
        assert exact[0] - ideal[0] == warps * (64 + 1) * phases, (width, exact, ideal)  # 64 stores, and one load of what they wrote
    assert min(values["allocation", "", "", "alignment_bytes"]) % 256 == 0
