"""A user's faulty kernel costs only its own cells: the GPU's check names what is wrong, the others are timed."""

from __future__ import annotations

import yaml
from transpose_study.records import read_csv

SIGNATURE = 'extern "C" __global__ void {name}(const float* __restrict__ in, float* __restrict__ out, int rows, int cols)'
INDEX = (
    "const long long i = (long long)blockIdx.x * 256 + threadIdx.x; if (i >= (long long)rows * cols) return; "
    "const int r = i / cols, c = i % cols;"
)
BODIES = {
    "right": "out[(size_t)c * rows + r] = in[i];",
    "one_missing": "if (i != 5) out[(size_t)c * rows + r] = in[i];",
    "adds_zero": "out[(size_t)c * rows + r] = in[i] + 0.0f;",  # turns -0.0 into 0.0 and quietens a NaN
    "before_the_start": "out[(size_t)c * rows + r] = in[i]; if (i == 0) out[-1] = 1.0f;",
    "past_the_end": "out[(size_t)c * rows + r] = in[i]; if (i == 0) out[(size_t)rows * cols + 3] = 1.0f;",
    "right_after_an_overrun": "out[(size_t)c * rows + r] = in[i];",
    "wild_pointer": "out[(size_t)c * rows + r] = in[i]; if (i == 0) *(float*)16 = 1.0f;",
    "changes_input": "out[(size_t)c * rows + r] = in[i]; __syncthreads(); if (i == 9) ((float*)in)[i] = 1.0f;",
}


def test_each_fault_is_named_and_the_right_kernel_is_timed(live_project) -> None:
    project = live_project(
        {
            "shapes": [{"rows": 512, "cols": 256}],
            "variants": ["copy", *BODIES],
            "axes": {"block_rows": [8]},
            "timing": {"min_samples": 3, "processes": 1, "budget_s": 1, "warmup_budget_s": 0.1},
        }
    )
    registry = project.folder / "kernels/transpose/variants.yaml"
    data = yaml.safe_load(registry.read_text(encoding="utf-8"))
    for name, body in BODIES.items():
        source = SIGNATURE.format(name=name) + " { " + INDEX + body + " }\n"
        (registry.parent / f"{name}.cu").write_text(source, encoding="utf-8")
        data["variants"][name] = {"source": f"{name}.cu", "block": [256], "grid": ["ceil_div(rows * cols, 256)"]}
    registry.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")

    raw = "results/test/transpose/raw"
    project.must_run(f"{raw}/check.csv", f"{raw}/timing/512x256.csv")
    verdicts: dict[str, set[str]] = {}
    reasons: dict[str, str] = {}
    for row in read_csv(project.run_folder / "raw/check.csv"):
        verdicts.setdefault(row["variant"], set()).add(row["status"])
        if row["rows"] == "512":
            reasons[row["variant"]] = row["reason"]
    assert verdicts["right"] == verdicts["right_after_an_overrun"] == {"ok"}
    assert "wrong" in verdicts["one_missing"]
    assert "1 of 131072 elements differ, the first at row 5, column 0 (never written)" in reasons["one_missing"]
    assert "wrong" in verdicts["adds_zero"]
    assert "first at row 0, column 0" in reasons["adds_zero"]  # element 0 is -0.0
    assert reasons["before_the_start"].startswith("wrote before the buffer, 1 bytes ahead of it")
    assert reasons["past_the_end"].startswith("wrote after the buffer, 12 bytes past its end")
    assert verdicts["wild_pointer"] == {"failed"}
    assert "illegal" in reasons["wild_pointer"].lower()
    assert "input was changed" in reasons["changes_input"]
    timed = {row["variant"] for row in read_csv(project.run_folder / "raw/timing/512x256.csv")}
    assert timed == {"copy", "right", "right_after_an_overrun"}
