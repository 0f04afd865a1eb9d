"""The claims file: complete, generic, and every mistake named with the nearest known name."""

from __future__ import annotations

import copy
import subprocess

import pytest
import synthetic
from judge.device import published_run, verdicts
from transpose_study.analysis import aggregate
from transpose_study.analysis.judge import judge
from transpose_study.analysis.judge.claims import load_claims
from transpose_study.errors import StudyError
from transpose_study.records import read_csv, read_yaml

FILE = read_yaml(synthetic.ROOT / "config" / "claims.yaml")
IDS = [
    "naive-read-sectors", "naive-mapping-swap", "tiling-coalesces-both", "same-requests", "dram-reads-one-matrix", "naive-l2-hits",
    "write-deficit", "loop-near-copy", "loop-matches-copy", "loop-over-naive", "loop-beats-naive", "loop-over-32x32", "loop-beats-32x32",
    "block-rows-8-best", "unchecked-fewer-instructions", "unchecked-no-gain", "conflict-slower", "pad-xor-equal", "unpadded-32way",
    "padding-no-conflict", "xor-no-conflict", "counters-near-zero", "loop-wavefronts", "residual-not-bottleneck", "tiling-not-enough",
    "occupancy-32x32", "carveout-limits-32x32", "achieved-near-theoretical", "registers-not-limit", "loop-dram-limited", "naive-l1tex-pressure",
    "loop-fewer-instructions", "loop-more-eligible", "stall-ratio-denominator", "occupancy-not-speed",
]  # fmt: skip

STAGES = ("analysis", "archive", "gpu", "report", "cli/analyse.py", "experiment.py", "registry.py")


def only(**changes):
    """A claims file of one claim of the user's own."""
    claim = {"id": "mine", "source": "me", "says": "the copy is quick", "kind": "at_least", "value": 1, "cells": {"a": "copy"},
             "measure": "bandwidth_gb_s[a]"} | changes  # fmt: skip
    return {"study": "transpose", "sources": {"me": "myself"}, "claims": [{k: v for k, v in claim.items() if v is not None}]}


def test_every_listed_claim_is_there_and_says_when_it_was_changed():
    assert [c["id"] for c in FILE["claims"]] == IDS
    assert all(c["says_zh"] for c in FILE["claims"])
    assert {c["id"] for c in FILE["claims"] if c.get("changed")} >= {"residual-not-bottleneck", "stall-ratio-denominator", "carveout-limits-32x32"}


def test_the_shipped_file_is_read(project, tmp_path):
    declared = load_claims(synthetic.make_run(tmp_path / "run", root=project()))
    assert len(declared.claims) == len(IDS) and {q.id for q in declared.questions} >= {"residual-conflicts", "bytes-in-flight", "write-deficit"}


def test_a_claim_of_ones_own_is_one_entry(project, tmp_path):
    experiment = synthetic.make_run(tmp_path / "run", synthetic.small_config(), root=project(only()))
    aggregate(experiment)
    assert {i: r["verdict"] for i, r in verdicts(experiment).items()} == {"mine": "holds"}
    assert read_csv(experiment.paths.table("ratios")) == []


def test_a_claim_on_a_scan_of_shapes_and_modes(project, tmp_path):
    file = only(cells={"a": "tiled_padded, group *, mode *", "b": "copy, group *, mode *"}, kind="order", measure="speedup[a, b] > 0.5", value=None)
    experiment = synthetic.make_run(tmp_path / "run", synthetic.small_config(), root=project(file))
    aggregate(experiment)
    judge(experiment)
    found = read_csv(experiment.paths.table("claim_parts"))
    assert len(found) == 4 * 2 * 2  # block_rows x shapes x modes: the open ones are shared, not crossed
    assert {(r["group"], r["cache_mode"]) for r in found} == {(g, m) for g in ("1024x1024", "4096x4096") for m in ("hot", "cold")}


MISTAKES = [
    (only(cells={"a": "coppy"}), "claim mine, cells a", "unknown cell 'coppy'; did you mean 'copy'?"),
    (only(cells={"a": "tiled, block_row 8"}), "claim mine, cells a", "unknown axis 'block_row' in 'tiled, block_row 8'; did you mean 'block_rows'?"),
    (only(cells={"a": "tiled, block_rows 9"}), "claim mine, cells a", "BLOCK_ROWS must divide the tile"),
    (only(cells={"a": "copy, mode warm"}), "claim mine, cells a", "unknown cache mode 'warm'"),
    (only(cells={"a": []}), "claim mine, cells a", "names no cells"),
    (only(measure="bandwith_gb_s[a]"), "claim mine", "unknown quantity 'bandwith_gb_s'; did you mean 'bandwidth_gb_s'?"),
    (only(measure="bandwidth_gb_s[b]"), "claim mine", "unknown cell 'b' in 'bandwidth_gb_s[b]'"),
    (only(measure="bandwidth_gb_s"), "claim mine", "bandwidth_gb_s is written bandwidth_gb_s[cell]"),
    (only(measure="speedup[a]"), "claim mine", "speedup is written speedup[cell, other]"),
    (only(measure="__import__('os')"), "claim mine", "is not understood"),
    (only(measure="bandwidth_gb_s[a] +"), "claim mine", "is no formula"),
    (only(measure="matrix_bytes"), "claim mine", "speaks of no cell"),
    (only(kind="atleast"), "claim mine", "unknown kind 'atleast'; did you mean 'at_least'?"),
    (only(kind="order"), "claim mine", "compares two things where its kind is order"),
    (only(measure="bandwidth_gb_s[a] > 1"), "claim mine", "compares two things where its kind is order"),
    (only(kind="range", value=[3, 1]), "claim mine", "is no range"),
    (only(kind="near"), "claim mine", "is no number above 0"),
    (only(value=None), "claim mine", "needs a value"),
    (only(sauce="x"), "claim mine", "unknown key 'sauce'; did you mean 'source'?"),
    (only(source="us"), "claim mine", "unknown source 'us'"),
    (only(says=None), "claim mine", "lacks says"),
    (only(cells={"a": "copy", "b": "tiled"}), "claim mine", "b in cells is used by no condition"),
    (only(over="all"), "claim mine", "over 'all'"),
    (only(measure=None), "claim mine", "has either measure or parts"),
]


@pytest.mark.parametrize(("file", "where", "what"), MISTAKES, ids=[m[2][:40] for m in MISTAKES])
def test_a_mistake_is_named(project, tmp_path, file, where, what):
    with pytest.raises(StudyError) as caught:
        load_claims(synthetic.make_run(tmp_path / "run", synthetic.small_config(), root=project(file)))
    assert what in caught.value.what and caught.value.where == f"config/claims.yaml, {where}"


def test_a_claim_given_twice(project, tmp_path):
    file = only()
    file["claims"] *= 2
    with pytest.raises(StudyError, match="mine is there twice"):
        load_claims(synthetic.make_run(tmp_path / "run", synthetic.small_config(), root=project(copy.deepcopy(file))))


def test_claims_of_another_study_are_not_judged(project, tmp_path):
    experiment = synthetic.make_run(tmp_path / "run", synthetic.small_config(), root=project(only() | {"study": "bank_conflicts"}))
    aggregate(experiment)
    assert verdicts(experiment) == {}


def test_cells_may_be_named_as_the_publication_does(project, tmp_path):
    file = only(cells={"a": "looped_padded_32x8", "b": "naive"}, kind="order", measure="speedup[a, b] > 1", value=None)
    assert verdicts(published_run(tmp_path / "run", project(file)))["mine"]["verdict"] == "holds"


def test_an_edited_claim_judges_again(project, tmp_path):
    first = synthetic.make_run(tmp_path / "run", root=project(only()))
    settings = first.analysis_settings()
    other = only()
    other["claims"][0]["value"] = 2
    second = type(first)(first.config, project(other), first.target, tmp_path / "run")
    assert settings != second.analysis_settings()
    assert first.time_settings("4096x4096") == second.time_settings("4096x4096")


def test_no_stage_knows_the_studys_axes():
    """Stages name no axis of the transpose: the registry, the claims, the reference and the write-up do."""
    names = subprocess.run(
        ["git", "grep", "-l", "block_rows", "--", *(f"workflow/transpose_study/{s}" for s in STAGES), "workflow/rules", "Snakefile"],
        cwd=synthetic.ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if names.returncode > 1:
        pytest.skip("not a git checkout")
    assert names.stdout.split() == []
