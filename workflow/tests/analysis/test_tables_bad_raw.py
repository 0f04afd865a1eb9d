"""Missing and damaged raw files: one message that names file, line and column."""

from __future__ import annotations

import pytest
import synthetic
from synthetic import base_config, make_run
from transpose_study.analysis import aggregate
from transpose_study.errors import StudyError
from transpose_study.records import write_csv

CONFIG = base_config(shapes=[{"rows": 4096, "cols": 4096}], variants=["copy", "tiled_padded"])
NAME = "4096x4096"


@pytest.fixture
def experiment(tmp_path):
    return make_run(tmp_path / "a run", CONFIG)


def refused(experiment) -> str:
    with pytest.raises(StudyError) as caught:
        aggregate(experiment)
    return str(caught.value)


def path_of(experiment, which):
    return {
        "check": experiment.paths.check,
        "timing": experiment.paths.timing(NAME),
        "counters": experiment.paths.counters(NAME),
        "build": experiment.paths.kernel("120", "tiled_padded_b8", "json"),
    }[which]


@pytest.mark.parametrize("which", ["check", "timing", "counters", "build"])
def test_a_missing_file_is_named_with_what_makes_it(experiment, which):
    path = path_of(experiment, which)
    path.unlink()
    text = refused(experiment)
    assert str(path) in text and "missing" in text and "snakemake" in text


@pytest.mark.parametrize(("which", "column"), [("check", "status"), ("timing", "sample_us"), ("timing", "block_rows"), ("counters", "value")])
def test_a_missing_column_is_named(experiment, which, column):
    path = path_of(experiment, which)
    columns, rows = synthetic.read_rows(path)
    write_csv(path, [c for c in columns if c != column], [{k: v for k, v in r.items() if k != column} for r in rows])
    assert refused(experiment) == f"{path}: lacks the columns {column}"


@pytest.mark.parametrize(
    ("which", "column", "value", "words"),
    [
        ("timing", "sample_us", "fast", "'fast' is no number"),
        ("timing", "sample_us", "", "'' is no number"),
        ("timing", "sample_us", "nan", "'nan' is no number"),
        ("timing", "sample_us", "0", "'0' is no duration above 0"),
        ("timing", "sample_us", "12,5", "'12,5' is no number"),
        ("timing", "round", "1.5", "'1.5' is no whole number"),
        ("timing", "launches", "many", "'many' is no whole number"),
        ("timing", "power_w", "hot", "'hot' is no number"),
        ("timing", "throttle_reasons", "0xzz", "'0xzz' is no hexadecimal number"),
        ("counters", "value", "n/a", "'n/a' is no number"),
        ("counters", "launch", "first", "'first' is no whole number"),
        ("check", "status", "fine", "'fine' is none of ok, not measured, skipped, failed, wrong"),
    ],
)
def test_a_bad_field_is_named_by_line_and_column(experiment, which, column, value, words):
    path = path_of(experiment, which)
    columns, rows = synthetic.read_rows(path)
    rows[5][column] = value  # the sixth row stands in line 7, behind the header
    write_csv(path, columns, rows)
    assert refused(experiment) == f"{path}: line 7, column {column}: {words}"


def test_lines_are_counted_past_fields_of_several_lines(experiment):
    path = path_of(experiment, "counters")
    columns, rows = synthetic.read_rows(path)
    rows[2] |= {"value": "", "reason": "first line\nsecond line\nthird line"}
    rows[5]["value"] = "n/a"
    write_csv(path, columns, rows)
    text = path.read_text(encoding="utf-8").splitlines()
    line = next(i for i, t in enumerate(text, start=1) if ",n/a," in t)
    assert f"line {line}, column value" in refused(experiment)


def test_a_short_line_is_named(experiment):
    path = path_of(experiment, "timing")
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: len(text) - 40], encoding="utf-8")
    assert f"{path}: line {text.count(chr(10))} does not have" in refused(experiment)


def test_two_samples_of_one_round_are_refused(experiment):
    path = path_of(experiment, "timing")
    columns, rows = synthetic.read_rows(path)
    write_csv(path, columns, [*rows, rows[0]])
    text = refused(experiment)
    assert f"{path}: holds two samples of {rows[0]['variant']}" in text and "process 0, round 0" in text


@pytest.mark.parametrize("content", ["[]", "{}", '{"status": '])
def test_a_damaged_build_record_is_named(experiment, content):
    path = path_of(experiment, "build")
    path.write_text(content, encoding="utf-8")
    assert str(path) in refused(experiment)


def test_nothing_is_written_when_the_input_is_bad(experiment):
    path_of(experiment, "timing").unlink()
    refused(experiment)
    assert not (experiment.paths.folder / "tables").exists()
