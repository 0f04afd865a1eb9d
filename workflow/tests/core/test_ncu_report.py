"""Reports that ncu wrote on the H200 (material/ncu-report), read without a GPU."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from projects import ROOT, TESTS
from transpose_study.errors import StudyError
from transpose_study.gpu.ncu_report_reader import actions, values
from transpose_study.metrics import Quantity, load_metrics

pytest.importorskip("ncu_report")
MATERIAL = TESTS / "material" / "ncu-report"
CHIP = "gh100"


def quantities(batch: str) -> list[tuple[Quantity, str]]:
    return [(q, q.metric_on(CHIP)) for q in load_metrics(ROOT / "config" / "metrics.yaml")[batch].quantities]


@pytest.fixture(scope="module")
def recorded() -> list[dict[str, str]]:
    """The counters of the same run as it recorded them on the GPU's machine."""
    with (MATERIAL / "1024x1024.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("batch", ["counters", "source"])
def test_values_are_those_recorded_on_the_gpu_s_machine(recorded: list[dict[str, str]], batch: str) -> None:
    found = actions(MATERIAL / f"1024x1024.{batch}.ncu-rep")
    cells: dict[tuple[str, ...], dict[tuple[int, str], str]] = {}
    for row in recorded:
        if row["batch"] == batch and row["value"]:
            cells.setdefault((row["variant"], row["block_rows"]), {})[int(row["launch"]), row["quantity"]] = row["value"]
    launches = len(found) // len(cells)
    assert [a.name() for a in found] == [variant for variant, _ in cells for _ in range(launches)]
    compared = 0
    for position, action in enumerate(found):
        expected = list(cells.values())[position // launches]
        for value in values(action, quantities(batch)):
            text = expected.get((position % launches, value.quantity))
            if text is not None and value.value is not None:
                assert float(text) == pytest.approx(value.value, rel=1e-12), (action.name(), value)
                compared += 1
    assert compared > len(found)


def test_unknown_metric_costs_its_own_cell_only() -> None:
    """ncu profiles the others and leaves the unknown name out of its report."""
    unknown = Quantity("mine", "things", "nothing", "counters", "gpu__no_such_thing.sum", {})
    action = actions(MATERIAL / "1024x1024.counters.ncu-rep")[0]
    found = {v.quantity: v for v in values(action, [(unknown, unknown.metric), *quantities("counters")])}
    assert found["mine"].value is None and found["mine"].reason == "the report has no gpu__no_such_thing.sum on this chip"
    assert found["warps_launched"].value == 1024 * 1024 / 32 and found["warps_launched"].reason == ""  # copy: one element a thread


def test_damaged_or_missing_report_is_named(tmp_path: Path) -> None:
    (tmp_path / "half.ncu-rep").write_bytes((MATERIAL / "1024x1024.counters.ncu-rep").read_bytes()[:1000])
    for name in ("half.ncu-rep", "absent.ncu-rep"):
        with pytest.raises(StudyError, match=r"is no readable ncu report|holds no profiled launch") as caught:
            actions(tmp_path / name)
        assert name in str(caught.value)
