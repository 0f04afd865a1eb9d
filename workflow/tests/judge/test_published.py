"""The published figures judged as if they were a device's: what the study says must follow from the study's own tables."""

from __future__ import annotations

import pytest
import synthetic
from judge.device import parts, published_run, verdicts
from transpose_study.records import read_yaml

LISTED = read_yaml(synthetic.ROOT / "config" / "claims.yaml")["claims"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return published_run(tmp_path_factory.mktemp("published") / "run")


@pytest.fixture(scope="module")
def judged(run):
    return verdicts(run)


def test_every_claim_of_the_study_holds_but_the_one_its_own_table_contradicts(judged):
    studys = {i: r["verdict"] for i, r in judged.items() if "study" in r["source"].split("; ")}
    contradicted = {i for i, v in studys.items() if v not in ("holds", "not measured")}
    noted = {c["id"] for c in LISTED if c["source"] == "study" and "the study's own table" in c.get("note", "")}
    assert contradicted == noted == {"loop-more-eligible"}
    assert judged["loop-more-eligible"]["verdict"] == "does not hold"


# Not measured is a way out: these are all the study's claims that may take it, with what the publication lacks for each.
LACKING = {
    "padding-no-conflict": "shared_conflicts_exact",  # published are only the unit's own counters
    "unchecked-no-gain": "ratios",  # published is that there is none, but no time
}


def test_only_what_the_publication_lacks_is_not_measured(judged):
    missing = {i for i, r in judged.items() if r["verdict"] == "not measured" and "study" in r["source"].split("; ")}
    assert missing == set(LACKING)
    for claim, table in LACKING.items():
        assert table in judged[claim]["reason"] or "counters.csv" in judged[claim]["reason"]


def test_the_contradiction_is_named_with_its_figures(run, judged):
    assert "0.64" in judged["loop-more-eligible"]["reason"] and "0.842" in judged["loop-more-eligible"]["reason"]
    wrong = [p for p in parts(run, "loop-more-eligible") if p["verdict"] == "does not hold"]
    assert [(p["measured"], p["threshold_low"]) for p in wrong] == [("0.64", "0.842")]


def test_a_tutorials_claim_that_the_study_contradicts_is_told(judged):
    # (22249.8 + 88311.3) / (546537.8 + 612599.3) of the 1,024-thread tile, against 2 %
    assert judged["counters-near-zero"]["verdict"] == "does not hold"
    assert f"{(22249.8 + 88311.3) / (546537.8 + 612599.3):.4g}" in judged["counters-near-zero"]["reason"]


def test_figures_without_intervals_are_judged_by_their_value(run, judged):
    (part,) = parts(run, "loop-near-copy")
    assert (part["measured"], part["low"], part["high"], part["noise_floor_pct"]) == ("0.9905", "0.9905", "0.9905", "")
    assert judged["loop-near-copy"]["verdict"] == "holds"
