"""published.csv: no figure of the reference dropped, each computed from the right measured quantity."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
import synthetic
from synthetic import Model, make_run, rtx5060, small_config
from transpose_study.analysis import aggregate
from transpose_study.errors import StudyError
from transpose_study.records import read_yaml, write_csv, write_yaml

REFERENCE = synthetic.ROOT / "config" / "reference" / "rtx5060-laptop.yaml"
NOT_FIGURES = {"study", "kernels", "formulas", "scans", "open_questions"}


def figures(section: str, content) -> int:
    """Leaves of a section that are numbers, yes/no or null; the scanned axis's own value is a label, not a figure."""
    if isinstance(content, list):
        return sum(len(entry) - 1 for entry in content)
    if isinstance(content, dict):
        return sum(figures(section, v) for v in content.values())
    return int(not isinstance(content, str))


def published(experiment):
    _, rows = synthetic.read_rows(experiment.paths.table("published"))
    return {(r["section"], r["kernel"], r["quantity"]): r for r in rows}


def test_no_figure_is_dropped(make):
    rows = published(make())
    data = read_yaml(REFERENCE)
    for section, content in data.items():
        if section not in NOT_FIGURES:
            assert sum(key[0] == section for key in rows) == figures(section, content), section
    assert {key[0] for key in rows} == set(data) - NOT_FIGURES
    assert all(r["measured"] or r["reason"] for r in rows.values())
    assert all(r["published"] or r["reason"] for r in rows.values())


def test_fed_with_the_published_figures_every_ratio_is_one(make):
    rows = published(make(model=replace(rtx5060(), noise=0.0, round_noise=0.0, process_noise=0.0)))
    # The publication gives 303.98 GB/s, 302.1 GB/s and 0.44051 ms (304.7 GB/s) for one kernel, in different batches, so that
    # not all of its figures can be met to better than 1 %; and this configuration asks for 3 ncu launches, not 10.
    for key, row in rows.items():
        assert row["measured"] != "", key
        if row["ratio"] and key[2] != "ncu_runs":
            assert float(row["ratio"]) == pytest.approx(1, abs=0.01), key
        elif row["published"] == "0":
            assert float(row["measured"]) == 0, key


def test_units_and_sources(make):
    rows = published(make())
    for key, unit, source, cell in [
        (("headline", "", "percent_of_copy"), "%", "timings", "tiled_padded, block_rows 8; copy"),
        (("effective_bandwidth_gb_s", "naive", "effective_bandwidth_gb_s"), "GB/s", "timings", "naive_write_coalesced, block_rows 32"),
        (("dram_and_cache", "copy", "dram_read_mb"), "MB", "counters", "copy"),
        (("counters", "copy", "eligible_warps"), "warps", "counters", "copy"),
        (("occupancy", "tiled_padded_32x32", "warps_per_block"), "", "occupancy", "tiled_padded, block_rows 32"),
        (("block_rows_scan", "block_rows 4", "mean_ms"), "ms", "block_rows", "tiled_padded, block_rows 4"),
        (("environment", "", "dram_peak_gb_s"), "GB/s", "environment", ""),
    ]:
        row = rows[key]
        assert (row["unit"], row["source_table"], row["cell"]) == (unit, source, cell), key


def test_formulas_on_figures_that_can_be_checked_by_hand(make):
    quiet = {"noise": 0.0, "round_noise": 0.0, "process_noise": 0.0}
    counters = {
        "tiled_padded_b8:warp_instructions": 400.0, "tiled_padded_unchecked_b8:warp_instructions": 100.0,
        "tiled_padded_b8:shared_load_wavefronts": 550.0, "tiled_padded_b8:shared_wavefronts_ideal": 1000.0,
        "copy:dram_write_bytes": 0.0,
    }  # fmt: skip
    bandwidth = {**synthetic.BANDWIDTH, "tiled_padded_unchecked": 320.0}
    rows = published(make(model=Model(**quiet, counters=counters, bandwidth=bandwidth)))

    def measured(*key):
        return float(rows[key]["measured"])

    assert measured("headline", "", "looped_padded_32x8_gb_s") == pytest.approx(302.1)
    assert measured("headline", "", "percent_of_copy") == pytest.approx(100 * 302.1 / 306.9)
    assert measured("headline", "", "speedup_over_naive") == pytest.approx(302.1 / (176.7 * 0.6937))
    assert measured("headline", "", "unchecked_gives_clear_benefit") == 1  # 320 / 302.1 is above 1.03
    assert measured("derived", "", "unchecked_instruction_ratio") == 0.25
    assert measured("derived", "", "expected_stall_ratio_growth") == 4
    assert measured("derived", "", "ideal_shared_wavefronts_per_direction") == 500
    assert measured("derived", "", "loop_load_wavefront_excess_pct") == pytest.approx(10)
    assert measured("dram_and_cache", "copy", "dram_write_mb") == 0
    assert measured("block_rows_scan", "block_rows 4", "slower_than_8_pct") == pytest.approx(2.58)
    assert measured("block_rows_scan", "block_rows 8", "slower_than_8_pct") == 0
    assert measured("protocol", "", "tiles") == 16384
    assert measured("protocol", "", "ncu_runs") == 3


def test_a_change_in_the_raw_data_changes_what_depends_on_it_and_nothing_else(make):
    experiment = make()
    before = published(experiment)
    path = experiment.paths.counters("4096x4096")
    columns, rows = synthetic.read_rows(path)
    for row in rows:
        if (row["variant"], row["block_rows"], row["quantity"]) == ("tiled_padded", "8", "warp_instructions"):
            row["value"] = repr(2 * float(row["value"]))
    write_csv(path, columns, rows)
    aggregate(experiment)
    after = published(experiment)
    assert {r["run_id"] for r in before.values()}.isdisjoint(r["run_id"] for r in after.values())  # other data, said by every row
    changed = {key for key in before if before[key] | {"run_id": ""} != after[key] | {"run_id": ""}}
    assert changed == {
        ("counters", "looped_padded_32x8", "warp_instructions"),
        ("derived", "", "unchecked_instruction_ratio"),
        ("derived", "", "expected_stall_ratio_growth"),
    }


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"shapes": [{"rows": 1024, "cols": 1024}]}, "not measured: the published 4096x4096 is not configured"),
        ({"variants": ["copy"]}, "not measured: tiled_padded, block_rows 8 is not configured at 4096x4096"),
        ({"axes": {"block_rows": [16]}}, "not measured: tiled_padded, block_rows 8 is not configured at 4096x4096"),
        ({"timing": {"cache_modes": ["cold"]}}, "not measured: the cache mode hot is not configured"),
    ],
)
def test_what_is_not_configured_is_not_measured(make, changes, reason):
    rows = published(make(small_config(**changes)))
    row = rows["headline", "", "looped_padded_32x8_gb_s"]
    assert (row["measured"], row["reason"], row["published"]) == ("", reason, "303.98")
    row = rows["block_rows_scan", "block_rows 8", "mean_ms"]
    assert (row["measured"], row["reason"]) == ("", reason)


def test_missing_counters_keep_what_ptxas_knows(make):
    rows = published(make(model=Model(no_value={"*": "no permission"})))
    assert rows["counters", "copy", "eligible_warps"]["reason"] == "no permission"
    row = rows["occupancy", "looped_padded_32x8", "registers_per_thread"]
    assert (row["measured"], row["source_table"]) == ("26", "occupancy")
    assert rows["headline", "", "percent_of_copy"]["measured"] != ""


def test_without_a_reference_the_table_is_empty(make):
    assert published(make(small_config(report={"published": None}))) == {}


@pytest.fixture
def project(tmp_path):
    """A copy of the project's kernels and configuration that a test may change."""
    root = tmp_path / "project"
    for folder in ("kernels", "config"):
        shutil.copytree(synthetic.ROOT / folder, root / folder)
    return root


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["formulas"].update(tiles="blocks[looped]"), "unknown kernel 'looped'; did you mean"),
        (lambda d: d["formulas"].update(tiles="block[copy]"), "'block' is no measured quantity; did you mean 'blocks'"),
        (lambda d: d["formulas"].update(tiles="2 *"), "'2 *' is no formula"),
        (lambda d: d["formulas"].update(tiles="sum(rows, 2)"), "'sum(rows, 2)' in the formula"),
        (lambda d: d["formulas"].update(tiles="speedup[copy]"), "speedup is written speedup[kernel, other]"),
        (lambda d: d["kernels"]["copy"].update(cell="copi"), "unknown variant 'copi'; did you mean 'copy'"),
        (lambda d: d["kernels"]["copy"].update(cell="tiled"), "tiled takes block_rows, the cell of copy gives none"),
        (lambda d: d.pop("scans"), "does not say which variant block_rows_scan is of"),
    ],
)
def test_mistakes_in_a_reference_file_are_named(project, tmp_path, change, words):
    path = project / "config" / "reference" / "rtx5060-laptop.yaml"
    data = read_yaml(path)
    change(data)
    write_yaml(path, data)
    experiment = make_run(tmp_path / "run", small_config(), root=project)
    with pytest.raises(StudyError) as caught:
        aggregate(experiment)
    assert words in str(caught.value) and "config/reference/rtx5060-laptop.yaml" in str(caught.value)


def test_a_figure_without_a_formula_says_so(project, tmp_path):
    path = project / "config" / "reference" / "rtx5060-laptop.yaml"
    data = read_yaml(path)
    data["derived"]["magic"] = 7
    write_yaml(path, data)
    experiment = make_run(tmp_path / "run", small_config(), root=project)
    aggregate(experiment)
    row = published(experiment)["derived", "", "magic"]
    assert (row["published"], row["measured"]) == ("7", "") and row["reason"].startswith("no formula says how magic is computed")


def test_no_stage_knows_the_names_of_axes(project, tmp_path):
    """The same study with its axis called otherwise gives the same tables under that name."""
    for path in [*project.rglob("*.yaml")]:
        path.write_text(path.read_text(encoding="utf-8").replace("block_rows", "lane_rows"), encoding="utf-8")
    experiment = make_run(tmp_path / "run", small_config(axes={"lane_rows": [4, 8]}), root=project)
    aggregate(experiment)
    tables = sorted(p.name for p in (experiment.paths.folder / "tables").iterdir())
    assert "lane_rows.csv" in tables and "block_rows.csv" not in tables
    assert not [p for p in (experiment.paths.folder / "tables").iterdir() if "block_rows" in p.read_text(encoding="utf-8")]
    rows = published(experiment)
    assert rows["lane_rows_scan", "lane_rows 4", "slower_than_8_pct"]["measured"] != ""
