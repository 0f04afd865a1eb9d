"""Reading of .ncu-rep files that ncu 2025.3.1 wrote on an H200 for copy, naive_write_coalesced b8 and tiled b8 at 1024 x 1024.

``1024x1024.csv`` beside them is what the profiling step made of them there.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from transpose_study.errors import StudyError
from transpose_study.gpu.ncu_report_reader import actions, values
from transpose_study.metrics import Quantity, load_metrics
from transpose_study.records import read_csv

ncu_report = pytest.importorskip("ncu_report", reason="ncu-report has wheels for x86-64 alone")

ROOT = Path(__file__).parents[3]
MATERIAL = ROOT / "workflow/tests/material/ncu-report"
ORDER = ["copy", "naive_write_coalesced", "tiled"]
WARPS = 1024 * 1024 // 32  # one element a lane


def _read(batch: str) -> list[dict[str, object]]:
    quantities = [(q, q.metric) for q in load_metrics(ROOT / "config/metrics.yaml")[batch].quantities]
    return [{v.quantity: v for v in values(a, quantities)} for a in actions(MATERIAL / f"1024x1024.{batch}.ncu-rep")]


def test_launches_come_in_order_two_of_each_kernel() -> None:
    names = [a.name() for a in actions(MATERIAL / "1024x1024.counters.ncu-rep")]
    assert names == [n for n in ORDER for _ in range(2)]


def test_counts_equal_the_formulas() -> None:
    for launch, name in zip(_read("counters"), [n for n in ORDER for _ in range(2)], strict=True):
        assert launch["global_load_requests"].value == WARPS
        assert launch["global_load_sectors"].value == (32 if name == "naive_write_coalesced" else 4) * WARPS
        assert launch["global_store_sectors"].value == 4 * WARPS
        assert launch["warps_launched"].value == (WARPS // 4 if name == "tiled" else WARPS)  # 8 rows of threads a tile of 32
    source = dict(zip(ORDER, _read("source"), strict=True))
    assert source["tiled"]["shared_wavefronts_ideal"].value == 2 * WARPS
    assert source["tiled"]["shared_wavefronts_exact"].value == 33 * WARPS  # a store takes one wavefront, a column read 32
    assert source["tiled"]["instructions_by_opcode[LDS]"].value == WARPS


@pytest.mark.parametrize("batch", ["counters", "source"])
def test_every_value_is_the_one_recorded_with_its_unit(batch: str) -> None:
    recorded = [r for r in read_csv(MATERIAL / "1024x1024.csv") if r["batch"] == batch and r["variant"] != "memcpy"]
    names = {r["quantity"] for r in recorded}  # the metrics that were read then; those that came since are in no recording
    read = [v for launch in _read(batch) for v in launch.values() if v.quantity in names]
    assert [(r["quantity"], r["metric"], r["unit"]) for r in recorded] == [(v.quantity, v.metric, v.unit) for v in read]
    assert [float(r["value"]) for r in recorded] == [pytest.approx(v.value, rel=1e-12) for v in read]


def test_a_metric_the_report_lacks_is_empty_with_a_reason() -> None:
    quantity = Quantity("nothing", "bytes", "no such thing", "counters", "gpu__no_such_thing.sum", {})
    action = actions(MATERIAL / "1024x1024.counters.ncu-rep")[0]
    (value,) = values(action, [(quantity, quantity.metric)])
    assert value.value is None
    assert "gpu__no_such_thing.sum" in value.reason


def test_a_damaged_report_is_named(tmp_path: Path) -> None:
    path = tmp_path / "damaged.ncu-rep"
    path.write_bytes((MATERIAL / "1024x1024.counters.ncu-rep").read_bytes()[:5000])
    with pytest.raises(StudyError, match=r"damaged\.ncu-rep"):
        actions(path)
