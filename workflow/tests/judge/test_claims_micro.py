"""The claims about banks, warps, alignment and occupancy: the recorded run's verdicts, contrary data that turn each, and what their file may say.

The recorded run is the archive of the study `micro` that ships with the project; its raw data go through the normal analysis.
"""

from __future__ import annotations

import copy
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import synthetic
from judge.device import answers, parts, verdicts
from transpose_study.analysis import aggregate
from transpose_study.analysis.judge.cells import parse_selectors, places
from transpose_study.analysis.judge.claims import load_claims
from transpose_study.analysis.judge.decide import DOES_NOT_HOLD, HOLDS, NOT_MEASURED
from transpose_study.analysis.judge.swizzles import parse_swizzles
from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.records import read_csv, read_yaml, write_csv, write_yaml

ARCHIVES = synthetic.ROOT / "results" / "archive"
NAMED = "nvidia-h200-micro-*.crate.zip"
INPUTS = ("run_config.yaml", "environment.json", "raw/", "build/")
CLAIMS = "claims-micro.yaml"
FILE = read_yaml(synthetic.ROOT / "config" / CLAIMS)

# What the H200 of the archive shows, and what contrary data (below) make of each.
VERDICTS = {
    "stride-2": (HOLDS, DOES_NOT_HOLD),
    "column-32": (HOLDS, DOES_NOT_HOLD),
    "consecutive-one-bank": (DOES_NOT_HOLD, HOLDS),
    "compiler-pads-static": (DOES_NOT_HOLD, HOLDS),
    "padding-formula": (DOES_NOT_HOLD, HOLDS),
    "pitch-33-multiple": (DOES_NOT_HOLD, HOLDS),
    "latency-linear": (DOES_NOT_HOLD, HOLDS),
    "store-instructions-rise": (DOES_NOT_HOLD, HOLDS),
    "vector-phases": (HOLDS, DOES_NOT_HOLD),
    "scalar-swizzle-float4": (HOLDS, DOES_NOT_HOLD),
    "xor-power-of-two": (HOLDS, DOES_NOT_HOLD),
    "xor-out-of-range": (HOLDS, DOES_NOT_HOLD),
    "pad-plus-xor": (DOES_NOT_HOLD, HOLDS),
    "misaligned-5-sectors": (HOLDS, DOES_NOT_HOLD),
    "misaligned-halves": (DOES_NOT_HOLD, HOLDS),
    "malloc-4-byte": (DOES_NOT_HOLD, HOLDS),
    "divergence-rounds": (HOLDS, DOES_NOT_HOLD),
    "divergence-peak-16": (DOES_NOT_HOLD, HOLDS),
    "ternary-no-divergence": (DOES_NOT_HOLD, HOLDS),
    "occupancy-lower-faster": (HOLDS, DOES_NOT_HOLD),
    "registers-multiple-32": (DOES_NOT_HOLD, HOLDS),
    "warp-order": (HOLDS, DOES_NOT_HOLD),
    "shared-fast-10x": (DOES_NOT_HOLD, HOLDS),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """The archived run with its tables made anew from its raw data."""
    found = sorted(ARCHIVES.glob(NAMED))
    assert found, f"{ARCHIVES} holds no {NAMED}: the archived run of the study ships with the project"
    folder = tmp_path_factory.mktemp("micro") / "run"
    with zipfile.ZipFile(found[-1]) as container:
        container.extractall(folder, [n for n in container.namelist() if n.startswith(INPUTS)])
    experiment = Experiment.from_run(folder, synthetic.ROOT)
    aggregate(experiment)
    return experiment


@pytest.fixture
def tables(recorded: Experiment) -> Iterator[Callable[..., None]]:
    """``tables(name, change)`` lets ``change(row)`` alter each row of a table for one test."""
    folder = recorded.paths.table("timings").parent
    kept = folder.with_name("kept")
    shutil.copytree(folder, kept)

    def alter(name: str, change: Callable[[dict[str, str]], None]) -> None:
        rows = read_csv(recorded.paths.table(name))
        for row in rows:
            change(row)
        write_csv(recorded.paths.table(name), list(rows[0]), rows)

    yield alter
    shutil.rmtree(folder)
    kept.rename(folder)


def with_claims(experiment: Experiment, folder: Path, claims: Mapping[str, Any]) -> Experiment:
    """The same run, judged by another file of claims."""
    root = folder / "project"
    for name in ("kernels", "config"):
        shutil.copytree(synthetic.ROOT / name, root / name)
    write_yaml(root / "config" / CLAIMS, claims)
    return Experiment.from_run(experiment.paths.folder, root)


def only(**changes: Any) -> dict[str, Any]:
    """A file of one claim."""
    claim = {"id": "mine", "source": "me", "says": "mine", "kind": "equal", "value": 1, "cells": {"a": "bank_load, width 4, stride 1"},
             "measure": "shared_wavefronts_exact[a] / shared_wavefronts_ideal[a]"} | changes  # fmt: skip
    return {"study": "micro", "sources": {"me": "myself"}, "swizzles": {"xor": {"formula": "col ^ row", "width": 8}},
            "claims": [{k: v for k, v in claim.items() if v is not None}]}  # fmt: skip


# -- the file ---------------------------------------------------------------------------------------------------------------


def test_every_listed_claim_is_there_in_both_languages_and_says_why():
    assert [c["id"] for c in FILE["claims"]] == list(VERDICTS)
    for claim in FILE["claims"]:
        assert claim["says_zh"] and claim["note"] and claim["note_zh"], claim["id"]
        assert bool(claim.get("changed")) == bool(claim.get("changed_zh")), claim["id"]
        assert all(p["says"] and p["says_zh"] for p in claim.get("parts", ())), claim["id"]


def test_the_file_holds_no_verdict():
    assert not any(v in str(value) for c in FILE["claims"] for value in c.values() for v in (DOES_NOT_HOLD, NOT_MEASURED))


# -- verdicts ---------------------------------------------------------------------------------------------------------------


def test_verdicts_of_the_recorded_run(recorded):
    judged = verdicts(recorded)
    assert {i: r["verdict"] for i, r in judged.items()} == {i: v for i, (v, _) in VERDICTS.items()}
    assert all((r["reason"] == "") == (r["verdict"] == HOLDS) and r["figures"] for r in judged.values())


def test_the_cost_of_a_conflict_way(recorded):
    verdicts(recorded)
    ways = {r["stride"]: float(r["value"]) for r in answers(recorded, "cost-of-a-way", "ways") if r["width"] == "4"}
    assert ways == {"2": 2, "4": 4, "8": 8, "16": 16, "32": 32}  # gcd(stride, 32)
    # A wavefront takes the pipe of an SM one cycle; a few per cent are lost between them, or measured wrong where ways are few.
    busy = [float(r["value"]) for r in answers(recorded, "cost-of-a-way", "busy_cycles_of_a_further_wavefront")]
    assert len(busy) == 15 and all(0.95 < b < 1.1 for b in busy)
    # To one warp that waits, each further wavefront costs the same whatever the width of the access and the number of ways.
    latency = [float(r["value"]) for r in answers(recorded, "cost-of-a-way", "latency_of_a_further_wavefront")]
    assert len(latency) == 15 and max(latency) - min(latency) < 0.1


def test_the_part_that_decides_is_told(recorded):
    verdicts(recorded)
    found = parts(recorded, "latency-linear")
    assert {r["part"] for r in found if r["verdict"] == DOES_NOT_HOLD} == {"2"}  # the latency; not wavefronts, not the time of a busy pipe
    found = parts(recorded, "shared-fast-10x")
    assert {r["verdict"] for r in found if r["part"] in "24"} == {HOLDS}  # L2, and the bandwidth; nearer is L1, further is DRAM


def counted(row: dict[str, str], variant: str, quantity: str, **axes: Any) -> bool:
    wanted = {a: [str(x) for x in (v if isinstance(v, list) else [v])] for a, v in axes.items()}
    return (row["variant"], row["quantity"]) == (variant, quantity) and all(row[a] in values for a, values in wanted.items())


def put(row: dict[str, str], value: float) -> None:
    row["mean"] = row["min"] = row["max"] = repr(float(value))
    row["std"] = ""


EXACT = "shared_wavefronts_exact"


def contrary(columns: Sequence[str], ideal: Mapping[tuple[str, ...], float]) -> Callable[[dict[str, str]], None]:
    """Counters of a device on which the statements are the other way round; ``ideal`` holds the ideal wavefronts by cell."""

    def change(row: dict[str, str]) -> None:
        needed = ideal.get(tuple(row[c] for c in columns), 0.0)
        if counted(row, "bank_load", EXACT, width=4, stride=1):
            put(row, 32 * needed)
        elif counted(row, "bank_column", EXACT, bytes=4, pitch=[32, 64, 96, 40]) or counted(row, "bank_load", EXACT, width=8, stride=2):
            put(row, needed)
        elif counted(row, "bank_column", EXACT, bytes=4, pitch=[33, 35, 37, 39, 66, 99, 1056]):
            put(row, 2 * needed)
        elif row["variant"] in ("swizzle_padded", "swizzle_xor_masked", "swizzle_padded_xor") and row["quantity"] == EXACT:
            put(row, needed * (1 if row["variant"] == "swizzle_padded_xor" else 2))
        elif counted(row, "bank_store", "shared_store_instructions", width=4, stride=32):
            put(row, 32 * float(row["mean"]))
        elif counted(row, "vector_scalar_xor", "shared_load_instructions"):
            put(row, float(row["mean"]) / 4)
        elif counted(row, "copy_offset", "global_load_sectors_per_request", offset=3) or counted(row, "allocation", "alignment_bytes", allocation=1):
            put(row, 4)
        elif counted(row, "branch_long", "warp_instructions", lanes=16) or counted(row, "branch_short", "warp_instructions"):
            put(row, 2 * float(row["mean"]))
        elif counted(row, "branch_short", "threads_per_instruction"):
            put(row, 20)
        elif counted(row, "occupancy_registers", "theoretical_occupancy_pct", live=[32, 40, 48, 56, 64]):  # 40 to 72 registers
            put(row, 25 if row["live"] == "64" else 50)
        elif counted(row, "warp_lanes", "global_store_sectors_per_request", block_x=32, block_y=4):
            put(row, 8)
        elif row["variant"] == "global_latency" and row["quantity"].startswith("cycles_per_access"):
            put(row, 300)  # about ten times the 30 cycles of shared memory, wherever the line is

    return change


def test_contrary_data_turn_the_verdicts(recorded, tables):
    columns = recorded.study.key_columns
    rows = [r for r in read_csv(recorded.paths.table("counters")) if r["quantity"] == "shared_wavefronts_ideal" and r["mean"]]
    tables("counters", contrary(columns, {tuple(r[c] for c in columns): float(r["mean"]) for r in rows}))

    def times(row: dict[str, str]) -> None:
        if row["variant"] == "branch_long" and row["lanes"] == "3":
            row["median_us"] = row["median_low_us"] = row["median_high_us"] = "19.5"  # as long as one path
        if row["variant"] == "swizzle_xor_masked" and row["tile"] == "16":
            row |= {"status": "failed", "reason": "wrong result: first wrong element at row 0, col 8"}

    def ratios(row: dict[str, str]) -> None:
        speedup = 0.8 if row["variant"] == "occupancy_memory" else 2.0
        row |= {"speedup": repr(speedup), "speedup_low": repr(speedup * 0.99), "speedup_high": repr(speedup * 1.01)}

    tables("timings", times)
    tables("ratios", ratios)
    judged = {i: r["verdict"] for i, r in verdicts(recorded).items()}
    others = {"compiler-pads-static", "latency-linear", "xor-out-of-range"}  # below: their data contradict those of others here
    assert {i: v for i, v in judged.items() if i not in others} == {i: v for i, (_, v) in VERDICTS.items() if i not in others}


def test_contrary_data_turn_the_other_verdicts(recorded, tables, tmp_path):
    def counters(row: dict[str, str]) -> None:
        if row["variant"] in ("swizzle_none", "vector_none") and row["quantity"] == EXACT:
            put(row, 1)
        if row["variant"] in ("swizzle_none", "vector_none") and row["quantity"] == "shared_wavefronts_ideal":
            put(row, 1)
        if counted(row, "bank_latency", "cycles_per_access", width=4, stride=[1, 2, 4, 8, 16, 32]):
            put(row, 29 * int(row["stride"]))

    tables("counters", counters)
    tables("noise", lambda row: row.update(floor_pct="0.1") if row["floor_pct"] else None)  # small enough to tell times of 1 ± 0.1 apart
    tables("occupancy", lambda row: row.update(shared_bytes="4224") if row["variant"] in ("swizzle_none", "vector_none") else None)
    file = copy.deepcopy(FILE)
    file["swizzles"]["xor_8"] = {"formula": "col ^ row", "width": 8, "rows": 8}  # rows that do not exceed the width
    judged = verdicts(with_claims(recorded, tmp_path, file))
    assert {i: judged[i]["verdict"] for i in ("compiler-pads-static", "latency-linear", "xor-out-of-range")} == {
        "compiler-pads-static": HOLDS, "latency-linear": HOLDS, "xor-out-of-range": DOES_NOT_HOLD,
    }  # fmt: skip
    assert judged["xor-out-of-range"]["reason"] == "elements outside their row, width 8: 0 (not >= 1)"


def test_what_is_not_measured_is_said_to_be(recorded, tables):
    why = "ERR_NVGPUCTRPERM: this user may not read counters"

    def silent(row: dict[str, str]) -> None:
        row.update(mean="", min="", max="", std="", reason=why) if row["batch"] in ("brief", "derived") else None

    tables("counters", silent)
    judged = verdicts(recorded)
    assert (judged["column-32"]["verdict"], judged["column-32"]["reason"]) == (NOT_MEASURED, why)
    assert judged["xor-out-of-range"]["verdict"] == HOLDS  # arithmetic
    assert judged["malloc-4-byte"]["verdict"] == DOES_NOT_HOLD and judged["misaligned-halves"]["verdict"] == DOES_NOT_HOLD


# -- what the file may say ----------------------------------------------------------------------------------------------------


def named(experiment: Experiment, text: str) -> list[str]:
    return [experiment.study.cell_name(p.cell) for p in places(experiment, parse_selectors(experiment, text, "here"))]


def test_a_selector_without_a_group_finds_the_experiment_of_its_variant(recorded):
    assert named(recorded, "vector_xor") == ["vector_xor at swizzles"] and recorded.main_group != "swizzles"
    assert named(recorded, "vector_xor, group banks") == []


def test_a_range_leaves_an_axis_open_between_its_ends(recorded, tmp_path):
    assert named(recorded, "copy_offset, offset 30..32") == [f"copy_offset, offset {o} at alignment" for o in (30, 31, 32)]
    assert named(recorded, "warp_lanes, block_x 32..64, block_y 2..7") == [
        f"warp_lanes, block_x {x}, block_y {y} at warps" for x in (32, 64) for y in (4, 7)
    ]
    both = only(cells={"a": "branch_short, lanes 3..5", "b": "branch_ternary, lanes 4..32"}, measure="warp_instructions[a] / warp_instructions[b]")
    experiment = with_claims(recorded, tmp_path, both)
    verdicts(experiment)
    assert [r["cell"] for r in parts(experiment, "mine")] == [f"branch_short, lanes {k}; branch_ternary, lanes {k}" for k in (4, 5)]  # shared


def test_a_value_may_follow_the_cells_axes_and_a_tolerance_the_value(recorded, tmp_path):
    file = only(cells={"a": "bank_load, width 4"}, value="1.05 * gcd(stride[a], 32)", tolerance="10 %")
    experiment = with_claims(recorded, tmp_path, file)
    assert verdicts(experiment)["mine"]["verdict"] == HOLDS
    (part,) = [r for r in parts(experiment, "mine") if "stride 24" in r["cell"]]
    assert (float(part["measured"]), float(part["threshold_low"]), float(part["threshold_high"])) == pytest.approx((8, 7.56, 9.24))
    assert part["threshold"] == "= 8.4 ± 0.84"


@pytest.mark.parametrize(
    ("tile", "expected"),
    [
        ({"formula": "col ^ row", "width": 8}, {"fits": 0, "elements_outside": 24 * 8}),  # every row from 8 on
        ({"formula": "col ^ row", "width": 32}, {"fits": 1, "elements_outside": 0, "column_ways": 1, "row_ways": 1}),
        ({"formula": "col", "width": 32}, {"fits": 1, "column_ways": 32}),
        ({"formula": "col", "width": 32, "pitch": 33}, {"fits": 1, "column_ways": 1}),
        ({"formula": "col", "width": 8, "bytes": 16}, {"column_ways": 8}),  # 8 lanes of a phase in the same 4 banks
        ({"formula": "0", "width": 8}, {"fits": 0, "elements_outside": 0}),  # in the row, but in one place
    ],
)
def test_swizzles_are_arithmetic(tile, expected):
    (swizzle,) = parse_swizzles({"one": tile}, "here").values()
    assert {q: swizzle.value(q) for q in expected} == expected


MISTAKES = [
    (only(value="cycles_per_access[a]"), "holds cycles_per_access, which is measured"),
    (only(measure="fits[a]"), "fits is a quantity of swizzles, not of cells"),
    (only(measure="stride[xor]", cells={}), "'stride' is no quantity of the swizzle xor"),
    (only(measure="stride[xors]", cells={}), "unknown cell 'xors' in 'stride[xors]'; did you mean 'xor'?"),
    (only(cells={"xor": "vector_xor"}, measure="fits[xor]"), "xor in cells is the name of a swizzle"),
    (only(tolerance="ten %"), "tolerance 'ten %' is no number above 0"),
    (only() | {"swizzles": {"s": {"formula": "col ^ lane", "width": 8}}}, "lane in 'col ^ lane' is neither row nor col"),
    (only() | {"swizzles": {"s": {"formula": "col", "wide": 8}}}, "unknown key 'wide'; did you mean 'width'?"),
    (only() | {"swizzles": {"s": {"formula": "col"}}}, "lacks its formula or its width"),
    (only() | {"swizzles": {"s": {"formula": "col", "width": 8, "pitch": 4}}}, "pitch is 4, less than the width of 8"),
    (only() | {"swizzles": {"s": {"formula": "__import__('os')", "width": 8}}}, "is neither row nor col"),
]


@pytest.mark.parametrize(("file", "what"), MISTAKES, ids=[m[1][:40] for m in MISTAKES])
def test_a_mistake_is_named(recorded, tmp_path, file, what):
    with pytest.raises(StudyError) as caught:
        load_claims(with_claims(recorded, tmp_path, file))
    assert what in caught.value.what and caught.value.where.startswith(f"config/{CLAIMS}")
