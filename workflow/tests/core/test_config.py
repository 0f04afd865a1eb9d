"""The configuration: strict, with every mistake named by its key and the nearest known word."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from projects import ROOT
from transpose_study import config
from transpose_study.analysis.timings import _footprint
from transpose_study.entries import read_variant
from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.records import write_yaml
from transpose_study.validation import validate

GPU = {"name": "Some GPU", "uuid": "GPU-1", "compute_capability": "9.0", "driver_cuda": "13.0", "peak_gb_s": 1000.0, "memory_bytes": 2**37}
TARGET = {"gpu": GPU, "archive": None, "archive_sha256": None}


def shipped(**changes: Any) -> dict[str, Any]:
    data = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    return {**data, **changes}


def experiment(**changes: Any) -> Experiment:
    return Experiment(config.parse(shipped(**changes)), ROOT, TARGET, Path("results/x/transpose"))


def test_schema_file_is_the_model_s() -> None:
    """Drift: python -m transpose_study.config > config/schema.json writes it anew."""
    assert (ROOT / "config" / "schema.json").read_text(encoding="utf-8") == config.schema()


@pytest.mark.parametrize("changes", [{}, {"timing": {"budget_s": 7, "window_us": 400.0}, "profile": {"timeout_s": 900}}])
def test_settings_survive_the_resolved_configuration(changes: dict[str, Any], tmp_path: Path) -> None:
    """What a run was measured with is told by a digest of its settings: 900 must not come back as 900.0 from run_config.yaml."""
    first = experiment(**changes)
    write_yaml(tmp_path / "run_config.yaml", first.resolved())
    again = Experiment.from_run(tmp_path, ROOT)
    for name in ("check_settings", "time_settings"):
        assert getattr(first, name)("4096x4096") == getattr(again, name)("4096x4096")
    for batch in first.batch_names():
        assert first.profile_settings("4096x4096", batch) == again.profile_settings("4096x4096", batch)


def test_shipped_configurations_are_valid() -> None:
    shapes = experiment().groups
    assert len(shapes) == 8 and {"4096x4096", "4095x4097"} <= set(shapes)
    quick = yaml.safe_load((ROOT / "config" / "quick.yaml").read_text(encoding="utf-8"))
    assert len(experiment(**quick).groups) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shape": []}, "unknown key 'shape', did you mean 'shapes'?"),
        ({"timing": {"min_sample": 3}}, "unknown key 'timing.min_sample', did you mean 'min_samples'?"),
        ({"report": {"format": ["md"]}}, "unknown key 'report.format', did you mean 'formats'?"),
        ({"timing": {"min_samples": 0}}, "timing.min_samples: input should be greater than or equal to 1 (got 0)"),
        ({"timing": {"cache_modes": ["warm"]}}, "timing.cache_modes.0: input should be 'hot' or 'cold' (got 'warm')"),
        ({"timing": 3}, "timing: "),
        ({"shapes": []}, "shapes: "),
        ({"shapes": [{"rows": 1.5, "cols": 3}]}, "shapes.0.rows"),
        ({"run": "../elsewhere"}, "run: "),
        ({"run": ".."}, "run: "),
        ({"run": "archive"}, "results/archive is kept for other things"),
        ({"input": {"seed": -1}}, "input.seed: "),
        ({"build": {"architecture": "sm_90"}}, "build.architecture: "),
        ({"run": "a" * 300}, "run: string should have at most 100 characters"),  # a file system's limit is 255 bytes
        ({"study": "../config"}, "study: "),
        ({"report": {"published": "../claims"}}, "report.published: "),
        ({"variants": []}, "variants: value should have at least 1 item"),
        ({"variants": "tiled"}, "variants: input should be a valid list (got 'tiled'); variants: input should be 'all'"),
        ({"variants": ["copy", "copy"]}, "variants: copy is listed twice"),
        ({"shapes": [{"rows": 8, "cols": 8, "variants": []}]}, "shapes.0.variants: value should have at least 1 item"),
        ({"shapes": [{"rows": 8, "cols": 8, "variants": ["copy", "copy"]}]}, "shapes.0.variants: copy is listed twice"),
        ({"report": {"formats": ["md", "md"]}}, "report.formats: md is listed twice"),
        ({"paper": {"language": ["en", "en"]}}, "paper.language: en is listed twice"),
        ({"timing": {"cache_modes": ["hot", "hot"]}}, "timing.cache_modes: hot is listed twice"),
        ({"profile": {"batches": ["source", "source"]}}, "profile.batches: source is listed twice"),
    ],
)
def test_mistakes_of_form(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        config.parse(shipped(**changes))
    assert words in str(caught.value) and "config/schema.json" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"variants": ["copy", "tiled_paded"]}, "unknown variant 'tiled_paded'; did you mean 'tiled_padded'?"),
        ({"shapes": [{"row": 8, "cols": 8}]}, "key shapes[0]: unknown key 'row'; did you mean 'rows'?"),
        ({"shapes": [{"rows": 8}]}, "key shapes[0]: lacks cols"),
        ({"shapes": [{"rows": "many", "cols": 3}]}, "key shapes[0]: rows should be a whole number (got 'many')"),
        ({"shapes": [{"rows": 8, "cols": 8}, {"rows": 8, "cols": 8}]}, "key shapes[1]: 8x8 is listed twice"),
        ({"shapes": [{"rows": -8, "cols": 8}]}, "rows is -8; a size is not negative"),
        ({"shapes": [{"rows": 8, "cols": 8, "variants": ["copi"]}]}, "did you mean 'copy'?"),
        ({"shapes": [{"rows": 8, "cols": 8, "launches": {"counter": 1}}]}, "unknown metric batch 'counter'; did you mean 'counters'?"),
        ({"profile": {"batches": ["sorce"]}}, "key profile.batches: unknown metric batch 'sorce'; did you mean 'source'?"),
        ({"profile": {"launches": {"duration": 0}}}, "duration needs at least one launch"),
        ({"axes": {"block_row": [8]}}, "unknown axis 'block_row'; did you mean 'block_rows'?"),
        ({"axes": {}}, "takes the axis block_rows, which has no values"),
        ({"axes": {"block_rows": [8, 8]}}, "key axes.block_rows: needs one or more different values"),
        ({"axes": {"block_rows": [0]}}, "key axes.block_rows: needs one or more different values of at least 1"),
        ({"variants": ["copy"], "shapes": [{"rows": 8, "cols": 8, "variants": ["tiled"]}]}, "key variants: no shape has one of these variants"),
        ({"axes": {"block_rows": [8, 4, 8, 0]}}, "at least 1; given: 0, 8 (twice or too small)"),
        ({"report": {"group": "4096x4095"}}, "is no configured shape; did you mean '4096x4096'?"),
        ({"report": {"published": "rtx5060"}}, "did you mean 'rtx5060-laptop'?"),
        ({"study": "transpos"}, "did you mean 'transpose'?"),
    ],
)
def test_mistakes_of_meaning(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        experiment(**changes)
    assert words in str(caught.value)


def test_a_shape_of_which_no_variant_is_left_is_no_part_of_the_run() -> None:
    """Nothing is measured of it, so an archive of such a run holds nothing of it either, and a replay asks for nothing."""
    shapes = [{"rows": 8, "cols": 8, "variants": ["tiled"]}, {"rows": 16, "cols": 16}, {"rows": 4, "cols": 4, "variants": ["copy", "tiled"]}]
    some = experiment(variants=["copy"], shapes=shapes)
    assert list(some.groups) == ["16x16", "4x4"] == [some.study.group_name(g.values) for g in some.config.measured_shapes()]
    assert [p.stem for p in some.raw_files() if p.parent.name == "timing"] == list(some.groups)
    assert len(experiment(shapes=shapes).groups) == 3


def test_sizes_that_no_gpu_can_hold_are_cells_with_a_reason() -> None:
    """A shape of zero, or one that no memory holds, is valid: its cells are skipped, and the others go on."""
    some = experiment(shapes=[{"rows": 0, "cols": 8}, {"rows": 2**20, "cols": 2**20}, {"rows": 2**40, "cols": 1}])
    study = some.study

    def reasons(group: str) -> set[str]:
        return {study.cell_refusal(c, GPU["memory_bytes"]) for c in some.cells(group)}

    assert reasons("0x8") == {"rows is 0; it must be at least 1"}
    assert any("input and output need 8192.0 GiB, the device has 128.0 GiB for them" in r for r in reasons("1048576x1048576"))
    assert "" not in reasons("1048576x1048576")
    assert any("the grid's y of" in r and "is outside 1..65535" in r for r in reasons(f"{2**40}x1"))


def test_block_rows_that_do_not_divide_the_tile_are_cells_with_a_reason() -> None:
    some = experiment(axes={"block_rows": [7, 8]})
    reasons = {(c.variant.name, c.kernel_values.get("block_rows")): some.study.cell_refusal(c) for c in some.cells("4096x4096")}
    assert reasons["tiled", 7] == "BLOCK_ROWS must divide the tile of 32 rows" and reasons["tiled", 8] == ""
    assert reasons["copy", None] == ""


def test_unchecked_kernel_on_a_shape_that_is_no_multiple_of_the_tile() -> None:
    some = experiment()
    reasons = {c.variant.name: some.study.cell_refusal(c) for c in some.cells("4095x4097")}
    assert "must be multiples of 32" in reasons["tiled_padded_unchecked"] and reasons["tiled_padded"] == ""


def test_files_with_a_key_twice_or_no_keys(tmp_path: Path) -> None:
    """Snakemake's own reader takes the second of two equal keys without a word."""
    path = tmp_path / "c.yaml"
    path.write_text("run: a\ntiming: {budget_s: 1}\nrun: b\n", encoding="utf-8")
    with pytest.raises(StudyError, match="key 'run' is given twice in line 3"):
        config.check_files([path])
    path.write_text("- a\n", encoding="utf-8")
    with pytest.raises(StudyError, match="holds no keys"):
        config.check_files([path])
    config.check_files([tmp_path / "absent.yaml"])  # Snakemake names a file that is not there


def test_results_folder_that_is_a_link(tmp_path: Path) -> None:
    """A link to a folder serves; one to nowhere, or a file, is said before any work."""
    for name, target in {"fine": tmp_path, "nowhere": tmp_path / "gone", "file": Path(__file__)}.items():
        (tmp_path / name).symlink_to(target)
    Experiment(config.parse(shipped()), ROOT, TARGET, tmp_path / "fine" / "transpose").guard_folder()
    for name in ("nowhere", "file"):
        with pytest.raises(StudyError, match=f"{name}: is no folder"):
            Experiment(config.parse(shipped()), ROOT, TARGET, tmp_path / name / "transpose").guard_folder()


def test_main_group_is_the_published_study_s() -> None:
    assert experiment().main_group == "4096x4096"
    assert experiment(shapes=[{"rows": 64, "cols": 64}]).main_group == "64x64"
    assert experiment(report={"group": "1024x1024"}).main_group == "1024x1024"


def micro(**entry: Any) -> Experiment:
    """The shipped second study, with changes to the registry's bank_load."""
    data = yaml.safe_load((ROOT / "config" / "micro.yaml").read_text(encoding="utf-8"))
    data = data | {"shapes": [{"experiment": "banks", "variants": ["bank_load"]}], "variants": ["bank_load"]}
    registry = yaml.safe_load((ROOT / "kernels" / "micro" / "variants.yaml").read_text(encoding="utf-8"))
    registry["variants"]["bank_load"] |= entry
    made = Experiment(config.parse(data), ROOT, TARGET, Path("results/x/micro"))
    made.study.variants["bank_load"] = read_variant(made.study, "bank_load", registry["variants"]["bank_load"])
    validate(made)
    return made


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"shared_bytes": "4 - stride * 8"}, "shared_bytes is -4 for bank_load_w4, stride 1 at banks; it must be at least 0"),
        ({"elements": "stride - 1"}, "elements is 0"),
        ({"input_elements": 0}, "input_elements is 0"),
        ({"bytes": -1}, "bytes is -1"),
        ({"computes": "i * 2"}, "output element 1048575 of bank_load_w4, stride 1 at banks would be input element 2097150 of 131072"),
        ({"computes": "i - 1"}, "would be input element -1 of 131072"),
        ({"computes": "i.real"}, "'i.real' in the expression 'i.real' is not arithmetic"),
        ({"arguments": ["input", "output", "observed", "1 // (stride - 1)"], "observes": {"c": {"unit": "cycles"}}}, "divides by zero"),
        ({"arguments": ["input", "observed", "output"], "observes": {"c": {"unit": "cycles", "per": "stride - 1"}}}, "observes.c.per is 0"),
    ],
)
def test_registry_values_that_mean_nothing_are_said_before_any_work(entry: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        micro(**entry)
    assert words in str(caught.value) and "variant bank_load" in str(caught.value)


def test_expressions_are_not_evaluated_for_cells_that_their_preconditions_refuse() -> None:
    """A tile of 0 columns: skipped with its reason, though the elements would be 65536 // 0."""
    data = yaml.safe_load((ROOT / "config" / "micro.yaml").read_text(encoding="utf-8"))
    some = Experiment(config.parse(data | {"axes": data["axes"] | {"tile": [0, 8]}}), ROOT, TARGET, Path("results/x/micro"))
    refusals = [some.study.cell_refusal(c) for c in some.cells("swizzles") if c.variant.name == "swizzle_none"]
    assert refusals == ["the shared tile has 8, 16, 24 or 32 columns", ""]
    run = SimpleNamespace(study=some.study, experiment=SimpleNamespace(gpu={"l2_bytes": 2**20}))
    sizes = [_footprint(run, c) for c in some.cells("swizzles") if c.variant.name == "swizzle_none"]
    assert sizes == [None, 2 * 65536 // 8 * 32 * 8 * 4 / 2**20]


def test_words_that_become_file_names() -> None:
    data = yaml.safe_load((ROOT / "config" / "micro.yaml").read_text(encoding="utf-8"))
    with pytest.raises(StudyError, match=r"key shapes\[0\]: '../banks' would be part of file names"):
        Experiment(config.parse(data | {"shapes": [{"experiment": "../banks"}]}), ROOT, TARGET, Path("results/x/micro"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project on a machine with a GPU, where a further study may be named."""
    for name in ("kernels", "config", "paper"):
        (tmp_path / name).symlink_to(ROOT / name)
    archives = {"archive": "a.zip"}
    monkeypatch.setattr("transpose_study.experiment.find_target", lambda given, _: TARGET | {"archive": archives.get(given.device)})
    return tmp_path


@pytest.mark.parametrize(
    ("further", "words"),
    [
        (None, "config/none.yaml"),
        ({"study": "transpose", "report": None}, "further.yaml, configuration: report"),
        ({"study": "transpos"}, "further.yaml, configuration: there is no folder"),
        ({"study": "transpose"}, "further.yaml: is an experiment of the study transpose, which is run already"),
        ({"also": ["x.yaml"], "run": "other"}, "further.yaml: is named by the key also, so it cannot name further files itself"),
        ({"device": "archive", "run": "other"}, "further.yaml: replays an archive, where the main experiment is measured"),
        ({"variant": "all"}, "unknown key 'variant', did you mean 'variants'?"),
    ],
)
def test_mistakes_in_a_further_study(project: Path, further: dict[str, Any] | None, words: str) -> None:
    base = {"shapes": [{"rows": 8, "cols": 8}], "axes": {"block_rows": [8]}}
    write_yaml(project / "further.yaml", {**base, **(further or {})})
    with pytest.raises(StudyError) as caught:
        Experiment.all_from_snakemake(shipped(also=["further.yaml" if further else "config/none.yaml"]), project)
    assert words in str(caught.value)


def test_a_further_study_shares_device_and_folder(project: Path) -> None:
    main, further = Experiment.all_from_snakemake(shipped(run="mine"), project)
    assert [e.paths.folder for e in (main, further)] == [Path("results/mine/transpose"), Path("results/mine/micro")]
    assert [e.study.name for e in (main, further)] == ["transpose", "micro"]
