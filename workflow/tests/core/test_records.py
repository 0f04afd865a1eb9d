"""Files are whole or not there, and read with mistakes named by line."""

from __future__ import annotations

import math
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from transpose_study import records
from transpose_study.errors import StudyError


def test_atomic_path_leaves_the_old_file_when_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    records.write_text(path, "old\n")
    with pytest.raises(RuntimeError), records.atomic_path(path) as part:
        part.write_text("half", encoding="utf-8")
        raise RuntimeError
    assert path.read_text(encoding="utf-8") == "old\n" and list(tmp_path.iterdir()) == [path]


def test_written_file_has_the_usual_permissions(tmp_path: Path) -> None:
    """A temporary file is private; the finished one must be as readable as any other."""
    records.write_text(tmp_path / "a", "text")
    (tmp_path / "b").write_text("text", encoding="utf-8")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("", encoding="utf-8")
    with pytest.raises(StudyError, match=r"results/table\.csv: cannot write this file: .*nothing half-written"):
        records.write_text(tmp_path / "results" / "table.csv", "text")


def test_full_disk_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    """A limit on the size of files makes the kernel refuse the write halfway, as a full disk does."""
    program = f"""
from pathlib import Path
from transpose_study import records
from transpose_study.errors import StudyError
try:
    records.write_text(Path({str(tmp_path / "table.csv")!r}), "x" * 100_000)
except StudyError as error:
    print(error)
"""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731 - runs in the child, before its program
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, preexec_fn=limit, check=True)
    assert "table.csv: cannot write this file" in done.stdout and "free some disk space" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_csv_round_trip_and_exact_floats(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    records.write_csv(path, ["a", "b"], [{"a": 0.1, "b": None}, {"a": math.nan, "b": "x, \"y\"\nz"}, {"a": 1e22}])
    assert path.read_bytes() == b'a,b\n0.1,\n,"x, ""y""\nz"\n1e+22,\n'
    assert records.read_csv(path, ["a", "b"]) == [{"a": "0.1", "b": ""}, {"a": "", "b": 'x, "y"\nz'}, {"a": "1e+22", "b": ""}]


def test_column_that_a_table_lacks_is_a_fault_of_the_program(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="columns"):
        records.write_csv(tmp_path / "t.csv", ["a"], [{"b": 1}])


@pytest.mark.parametrize(
    ("text", "words"),
    [("a\n1\n", "lacks the columns b"), ("a,b\n1\n", "line 2"), ("a,b\n1,2\n1,2,3\n", "line 3"), ("a,b\n1," + "2" * 200_000 + "\n", "is no CSV")],
)
def test_damaged_csv(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(StudyError, match=words):
        records.read_csv(tmp_path / "t.csv", ["a", "b"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", r"key 'a' is given twice in line 3, column 1"),
        ("a: {b: 1, b: 2}\n", r"key 'b' is given twice in line 1"),
        ("a: [1\nb: 2\n", r"in line 2, column 2"),
        ("a: 1\n\tb: 2\n", r"in line 2, column 1"),
        ("? [a]\n: 1\n", r"cannot be a key in line 1"),
        ("a: *nowhere\n", r"undefined alias 'nowhere' in line 1"),
        ("a: !!python/object/apply:os.system [true]\n", r"in line 1"),
        ("a: \x01\n", r"special characters"),
        ("a: 2020-13-45\n", r"month"),
        ("[" * 3000, r"is no YAML"),
    ],
)
def test_damaged_yaml(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "t.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(StudyError, match=words) as caught:
        records.read_yaml(tmp_path / "t.yaml")
    assert str(caught.value).startswith(str(tmp_path / "t.yaml"))


def test_yaml_may_merge_mappings(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\n", encoding="utf-8")
    assert records.read_yaml(tmp_path / "t.yaml")["y"] == {"a": 1, "b": 3}


def test_damaged_json_and_text(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"a": 1,\n}', encoding="utf-8")
    with pytest.raises(StudyError, match="line 2"):
        records.read_json(tmp_path / "t.json")
    (tmp_path / "t.json").write_bytes(b"caf\xe9")
    with pytest.raises(StudyError, match=r"is not UTF-8 text: .* at byte 3"):
        records.read_text(tmp_path / "t.json")
    with pytest.raises(StudyError, match=r"cannot read this file: No such file"):
        records.read_text(tmp_path / "absent")


def test_digest_does_not_depend_on_order() -> None:
    assert records.digest_of({"a": 1, "b": [1, 2]}) == records.digest_of({"b": [1, 2], "a": 1}) != records.digest_of({"a": 1, "b": [2, 1]})
