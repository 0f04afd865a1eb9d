"""config/metrics.yaml: quantities, batches, names by chip."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from projects import ROOT
from transpose_study.cells import Observation
from transpose_study.errors import StudyError
from transpose_study.gpu.profiling import CHIPS
from transpose_study.metrics import load_metrics, study_metrics
from transpose_study.registry import Study

SHIPPED = ROOT / "config" / "metrics.yaml"
ONE = """batches:
  b: {meaning: some, cache_control: none}
quantities:
  q: {batch: b, unit: bytes, metric: dram__bytes_read.sum, by_chip: {gb20: dram__bytes_op_read.sum}, meaning: read}
  r: {batch: b, unit: ns, metric: gpu__time_duration.sum, meaning: duration}
"""


def write(tmp_path: Path, text: str) -> Path:
    (tmp_path / "metrics.yaml").write_text(text, encoding="utf-8")
    return tmp_path / "metrics.yaml"


def test_dram_counters_have_another_name_on_consumer_blackwell() -> None:
    """On GB20x the DRAM byte counters are called dram__bytes_op_*; elsewhere dram__bytes_* (Nsight Compute's metric lists)."""
    quantities = {q.key: q for b in load_metrics(SHIPPED).values() for q in b.quantities}
    read = quantities["dram_read_bytes"]
    assert read.metric_on(CHIPS["12.0"]) == "dram__bytes_op_read.sum"
    assert read.metric_on(CHIPS["9.0"]) == "dram__bytes_read.sum" == read.metric_on("unknown")


def test_every_batch_says_how_it_treats_the_caches() -> None:
    batches = load_metrics(SHIPPED)
    assert batches["duration"].cache_control == "none"  # comparable with timings, which leave the caches alone
    assert batches["counters"].cache_control == "all"  # as the study did


def test_digest_sees_what_is_read_and_not_how_it_is_told(tmp_path: Path) -> None:
    def digest(text: str) -> str:
        return load_metrics(write(tmp_path, text))["b"].digest

    lines = ONE.splitlines(keepends=True)
    before = digest(ONE)
    assert digest(ONE.replace("meaning: duration", "meaning: how long")) == before
    assert digest("".join([*lines[:3], lines[4], lines[3]])) == before
    assert before not in {digest(ONE.replace("duration.sum", "duration.max")), digest(ONE.replace("none", "all")), digest(ONE.replace("ns", "s"))}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("unit: bytes", "units: bytes", "quantity q: unknown key 'units'; did you mean 'unit'?"),
        ("batch: b, unit: ns", "unit: ns", "quantity r: lacks batch"),
        ("batch: b, unit: ns", "batch: c, unit: ns", "quantity r: unknown batch 'c'"),
        ("cache_control: none", "cache_control: some", "batch b: cache_control 'some' is not one of all, none"),
        ("meaning: some", "means: some", "batch b: unknown key 'means'"),
        ("quantities:", "quantity:", "has not the two keys batches and quantities"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        load_metrics(write(tmp_path, ONE.replace(old, new)))
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["batches: {b: }\nquantities: {}\n", "batches: [b]\nquantities: {}\n", "batches: {}\nquantities: {q: 5}\n"])
def test_things_of_the_wrong_shape_are_named_too(tmp_path: Path, text: str) -> None:
    with pytest.raises(StudyError):
        load_metrics(write(tmp_path, text))


@pytest.mark.parametrize(
    ("observes", "words"),
    [
        ({"cycles_per_access": "seconds"}, "key observes.cycles_per_access: its unit is seconds, where another variant says cycles"),
        ({"warp_instructions": "cycles"}, "key observes.warp_instructions: must be"),
        ({"cycles_cold": "cycles"}, "key observes.cycles_cold: must be"),
        ({"two words": "cycles"}, "key observes.two words: must be"),
    ],
)
def test_observed_quantities_have_one_unit_and_a_name_of_their_own(observes: dict[str, str], words: str) -> None:
    study = Study(ROOT / "kernels" / "micro" / "variants.yaml")
    last = study.variant("global_latency")
    study.variants["global_latency"] = replace(last, observes=tuple(Observation(n, u) for n, u in observes.items()))
    with pytest.raises(StudyError) as caught:
        study_metrics(ROOT, study)
    assert words in str(caught.value)


def test_kernels_that_observe_need_a_batch_that_reads_it() -> None:
    study = Study(ROOT / "kernels" / "transpose" / "variants.yaml")
    study.variants["copy"] = replace(study.variant("copy"), observes=(Observation("cycles", "cycles"),))
    with pytest.raises(StudyError, match=r"metrics.yaml: has no batch that reads what copy observes"):
        study_metrics(ROOT, study)
