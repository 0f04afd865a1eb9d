"""The right GPU is named and measured, one run at a time on each, and the counters are those of the launch."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
from transpose_study.gpu.lock import gpu_lock
from transpose_study.progress import Log
from transpose_study.records import read_csv

CONFIG = {
    "shapes": [{"rows": 1024, "cols": 1024}],
    "variants": ["copy", "tiled", "naive_write_coalesced"],
    "axes": {"block_rows": [8]},
    "timing": {"min_samples": 4, "processes": 2, "budget_s": 1, "warmup_budget_s": 0.1},
    "profile": {"launches": {"counters": 2, "duration": 1, "source": 1}},
}
RAW = "results/test/transpose/raw"


def test_counters_equal_the_formulas(live_project) -> None:
    """1024 x 1024 floats are 32,768 warps of one element a lane: 4 sectors a contiguous request, 32 a strided one."""
    project = live_project(CONFIG)
    project.must_run(f"{RAW}/counters/1024x1024.csv")
    values = {}
    for row in read_csv(project.run_folder / "raw/counters/1024x1024.csv"):
        if row["value"]:
            values.setdefault((row["variant"], row["quantity"]), set()).add(float(row["value"]))
    warps = 1024 * 1024 // 32
    for variant in ("copy", "tiled"):
        for quantity, expected in {
            "global_load_requests": warps,
            "global_load_sectors": 4 * warps,
            "global_store_requests": warps,
            "global_store_sectors": 4 * warps,
        }.items():
            assert values[variant, quantity] == {expected}, (variant, quantity)
    assert values["naive_write_coalesced", "global_load_sectors"] == {32 * warps}
    assert values["tiled", "shared_wavefronts_ideal"] == {2 * warps}
    assert values["tiled", "shared_wavefronts_exact"] == {33 * warps}  # a store in one wavefront, a load in 32


def test_a_second_run_waits_and_says_for_whom(live_project, devices) -> None:
    project = live_project(CONFIG)
    with gpu_lock(devices[0].uuid, Log(), "a test"):
        process = subprocess.Popen(
            project.command(f"{RAW}/check/1024x1024.csv"), cwd=project.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        seen = []
        deadline = time.monotonic() + 60
        for line in process.stdout:
            seen.append(line)
            if "waiting for the GPU" in line:
                break
            assert time.monotonic() < deadline
        assert "a test" in seen[-1]
        assert process.poll() is None
    rest = process.stdout.read()
    assert process.wait() == 0, rest


def test_the_visible_device_is_the_one_measured(live_project, devices) -> None:
    if len(devices) < 2:
        pytest.skip("needs two GPUs")
    project = live_project(CONFIG)
    project.must_run(f"{RAW}/timing/1024x1024.csv", "results/test/transpose/run_config.yaml", env={"CUDA_VISIBLE_DEVICES": "1"})
    identity = json.loads((project.run_folder / "raw/run.json").read_text(encoding="utf-8"))
    assert identity["gpu_uuid"] == devices[1].uuid
    refused = project.snakemake(f"{RAW}/timing/1024x1024.csv", env={"CUDA_VISIBLE_DEVICES": "0"})
    assert refused.returncode != 0
    assert "--config run=NAME" in refused.stdout + refused.stderr
    again = project.snakemake(f"{RAW}/timing/1024x1024.csv", "--config", f"device={devices[1].uuid}")
    assert "Nothing to be done" in again.stdout + again.stderr
