"""``status`` tells when data, configuration, kernels, tables and figures of a folder do not belong together; aggregate does not mix them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from archive_run import RUN, experiment_of
from projects import Project
from report import micro_tables
from transpose_study.analysis import aggregate
from transpose_study.errors import StudyError
from transpose_study.provenance import COLUMNS, Provenance
from transpose_study.records import digest_of, read_csv, read_json, write_json, write_text
from transpose_study.status import mismatches, notes

TIMING, RECORD, LADDER = "raw/timing/4096x4096.csv", "build/sm_90/copy.json", "figures/bandwidth_ladder.svg"


def edit(path: Path, change: Callable[[str], str]) -> None:
    text = path.read_text(encoding="utf-8")
    assert change(text) != text
    path.write_text(change(text), encoding="utf-8")


def test_finished_run_holds_together(finished: Project) -> None:
    assert mismatches(experiment_of(finished)) == []
    done = finished.command("status", "--run", RUN)
    assert done.returncode == 0 and "holds together" in done.stdout and Provenance(experiment_of(finished)).run_id in done.stdout


def test_every_row_and_figure_knows_where_it_comes_from(finished: Project) -> None:
    experiment = experiment_of(finished)
    provenance = Provenance(experiment)
    for path in sorted((experiment.paths.folder / "tables").glob("*.csv")):
        rows = read_csv(path, COLUMNS)
        assert {r["run_id"] for r in rows} <= {provenance.run_id}
        assert {r["configuration_digest"] for r in rows} <= {provenance.configuration_digest}
    record = read_json(experiment.paths.kernel("90", "tiled_padded_b8", "json"))
    rows = [r for r in read_csv(experiment.paths.table("timings")) if (r["variant"], r["block_rows"]) == ("tiled_padded", "8")]
    assert {r["cubin_digest"] for r in rows} == {record["cubin_sha256"][:12]}
    for figure in (experiment.paths.folder / "figures").glob("*.svg"):
        assert f"<dc:source>run {provenance.run_id}, configuration {provenance.configuration_digest}, cubins " in figure.read_text(encoding="utf-8")


def change_config(project: Project, change: Callable[[dict], None]) -> None:
    path = project.path(RUN) / "run_config.yaml"
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(data["config"])
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (TIMING, lambda t: t.replace(",hot,a,0,0,", ",hot,a,0,99,", 1), "tables/banks.csv was made from something else: run_id"),
        (TIMING, lambda t: t.replace("padded,4096,4096,float32,8", "padded,4096,4096,float32,4"), "holds what the configuration does not have"),
        ("raw/run.json", lambda t: t.replace("GPU-", "GPU-0"), "the raw data are those of another run than run_config.yaml names: gpu_uuid"),
        (RECORD, lambda t: t.replace('"cubin_sha256": "', '"cubin_sha256": "0'), "build/sm_90/copy.cubin is not the one its build record describes"),
        ("tables/timings.csv", lambda t: t.replace("run_id", "run"), "tables/timings.csv does not say what it was made from"),
        (LADDER, lambda t: t.replace("<dc:source>run ", "<dc:source>run 0"), f"{LADDER} was drawn from other tables"),
    ],
)  # fmt: skip
def test_edited_file_is_said(mine: Project, name: str, change: Callable[[str], str], said: str) -> None:
    edit(mine.path(RUN) / name, change)
    found = mismatches(experiment_of(mine))
    assert any(said in text for text in found), found


def test_edited_kernel_is_said_and_a_comment_is_not(mine: Project) -> None:
    mine.edit("kernels/transpose/copy.cu", "in[", "/* as before */ in[")
    assert mismatches(experiment_of(mine)) == []
    mine.edit("kernels/transpose/copy.cu", "/* as before */ in[", "0.0f + in[")
    assert mismatches(experiment_of(mine)) == ["the source of copy is not the one that was built: it was edited since"]
    done = mine.command("status", "--run", RUN)
    assert done.returncode == 1 and "does not hold together" in done.stdout


def test_changed_configuration_is_said(mine: Project) -> None:
    change_config(mine, lambda c: c["input"].update(seed=7))
    found = mismatches(experiment_of(mine))
    assert found, "another seed means other measurements"
    assert all("configuration" in text for text in found), found


def test_changed_axis_and_shape_are_said(mine: Project) -> None:
    change_config(mine, lambda c: c["shapes"].append({"rows": 64, "cols": 64}))
    assert "raw/timing/64x64.csv is missing" in mismatches(experiment_of(mine))
    change_config(mine, lambda c: (c["shapes"].pop(), c["axes"].update(block_rows=[8])))
    assert any("raw/timing/4096x4096.csv holds what the configuration does not have" in t for t in mismatches(experiment_of(mine)))


def journal(project: Project, **facts: object) -> None:
    """Let the journal's entry about the timings say what they were measured with."""
    path = project.path(RUN) / "logs" / "journal.jsonl"
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    entries = [e | facts if e["stage"] == "time" else e for e in entries]
    path.write_text("".join(json.dumps(e) + "\n" for e in entries), encoding="utf-8")


def test_journal_of_other_cubins_is_said_and_never_aggregated(mine: Project) -> None:
    experiment = experiment_of(mine)
    settings = digest_of(json.loads(experiment.time_settings("4096x4096")))
    own = {p.stem: read_json(p)["cubin_sha256"][:12] for p in experiment.kernel_records()}
    journal(mine, settings=settings, cubins=own)
    assert mismatches(experiment) == []
    journal(mine, settings=settings, cubins=own | {"copy": "0" * 12})
    said = "time at 4096x4096 was measured with other cubins than build/ holds: copy"
    assert said in mismatches(experiment)
    with pytest.raises(StudyError, match=said):
        aggregate(experiment)
    journal(mine, settings="0" * 16, cubins=own)
    assert mismatches(experiment) == ["time at 4096x4096 was measured with another configuration than run_config.yaml"]


def test_replay_is_compared_with_its_archive(project: Project) -> None:
    project.snakemake("results/mine/transpose/tables/timings.csv")
    from transpose_study.experiment import Experiment

    experiment = Experiment.from_run(project.path("results/mine/transpose"), project.root)
    assert not [t for t in mismatches(experiment, made=False)]
    edit(experiment.paths.timing("4096x4096"), lambda t: t.replace(",hot,a,0,0,", ",hot,a,0,99,", 1))
    assert "raw/timing/4096x4096.csv is not the archive's" in mismatches(experiment, made=False)
    project.edit("kernels/transpose/copy.cu", "in[", "0.0f + in[")
    changed = Experiment.from_run(project.path("results/mine/transpose"), project.root)
    assert any("copy was edited since the archive was made" in t for t in notes(changed))


@pytest.mark.parametrize(("group", "kernel", "said"), [("swizzles", "swizzle_none", False), ("banks", "bank_load_w4", True)])
def test_a_batch_that_a_group_no_longer_reads_is_nobody_s_business(tmp_path: Path, group: str, kernel: str, said: bool) -> None:
    """An entry of what kernels observe, of a group that observes nothing: no rule could make it anew."""
    experiment = micro_tables.make(tmp_path / "micro", 1)
    code = experiment.study.code_digest(experiment.study.variant(kernel.removesuffix("_w4")))
    write_json(experiment.paths.kernel(experiment.architecture, kernel, "json"), {"status": "ok", "cubin_sha256": "1" * 64, "code_digest": code})
    entry = {"stage": "profile kernel", "group": group, "cubins": {kernel: "0" * 12}}
    write_text(experiment.paths.journal, json.dumps(entry) + "\n")
    other = f"profile kernel at {group} was measured with other cubins than build/ holds: {kernel}"
    assert (other in mismatches(experiment)) is said
