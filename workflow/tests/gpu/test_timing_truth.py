"""Timings against two independent clocks: ncu's duration of a launch, and nvbench's cold GPU time.

Allowed is 1 us + 3 %: an event pair alone reads about 1.3 us, and two runs of one kernel part by about a per cent.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys

import pytest
from transpose_study.records import read_csv

SHAPES = ["1024x1024", "4096x4096", "16384x16384"]
CELLS = [("copy_vectorized", ""), ("tiled_padded_unchecked", "4"), ("naive_write_coalesced", "32")]
CONFIG = {
    "shapes": [{"rows": int(s.split("x")[0]), "cols": int(s.split("x")[1])} for s in SHAPES],
    "variants": ["copy", "memcpy", *(v for v, _ in CELLS)],
    "axes": {"block_rows": [4, 32]},
    "timing": {"budget_s": 8, "warmup_budget_s": 0.5},
    "profile": {"batches": ["duration"], "launches": {"duration": 7}},
}


@pytest.fixture
def truth(live_project):
    """Medians in us of hot and cold samples, of ncu's durations, and nvbench's cold medians where it is installed."""
    project = live_project(CONFIG)
    raw = "results/test/transpose/raw"
    project.must_run(*(f"{raw}/{kind}/{s}.csv" for kind in ("timing", "counters") for s in SHAPES))
    medians: dict[tuple[str, str, str, str], float] = {}
    for shape in SHAPES:
        samples: dict[tuple[str, str, str, str], list[float]] = {}
        for row in read_csv(project.run_folder / "raw/timing" / f"{shape}.csv"):
            samples.setdefault((row["variant"], row["block_rows"], shape, row["cache_mode"]), []).append(float(row["sample_us"]))
        for row in read_csv(project.run_folder / "raw/counters" / f"{shape}.csv"):
            if row["value"]:
                samples.setdefault((row["variant"], row["block_rows"], shape, "ncu"), []).append(float(row["value"]) / 1e3)
        medians |= {k: statistics.median(v) for k, v in samples.items()}
    if importlib.util.find_spec("cuda.bench"):
        cells = [(v, b, s) for s in SHAPES[1:] for v, b in CELLS]
        words = [w for v, b, s in cells for w in (v, json.dumps({"block_rows": int(b)} if b else {}), s)]
        output = project.folder / "nvbench.json"
        build = next((project.run_folder / "build").iterdir())
        script = str(__file__).replace("test_timing_truth", "nvbench_cold")
        command = [sys.executable, script, "kernels/transpose/variants.yaml", str(build), str(output), *words]
        subprocess.run(command, cwd=project.folder, check=True, stdout=subprocess.DEVNULL)
        for (v, b, s), median in zip(cells, json.loads(output.read_text()).values(), strict=True):
            medians[v, b, s, "nvbench"] = median
    return medians


def test_hot_agrees_with_ncu_and_cold_with_nvbench(truth) -> None:
    lines, wrong = [], []
    for shape in SHAPES:
        for variant, rows in CELLS:
            times = {m: truth.get((variant, rows, shape, m)) for m in ("hot", "ncu", "cold", "nvbench")}
            lines.append(f"{variant:24}{rows:>4} {shape:12}" + "".join(f"{m} {t:9.2f}  " if t else f"{m}         -  " for m, t in times.items()))
            for ours, theirs in (("hot", "ncu"), ("cold", "nvbench")):
                reference = times[theirs]
                if reference and abs(times[ours] - reference) > 1 + 0.03 * reference:
                    wrong.append(f"{variant} {rows} {shape}: {ours} {times[ours]:.2f} us, {theirs} {reference:.2f} us")
    print("\nmedians in us\n" + "\n".join(lines))
    assert not wrong
    assert all((v, b, s, "ncu") in truth for v, b in CELLS for s in SHAPES)
