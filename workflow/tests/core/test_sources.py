"""Which edits of a CUDA source count as edits."""

from __future__ import annotations

from pathlib import Path

import pytest
from transpose_study.errors import StudyError
from transpose_study.sources import local_includes, normalise, normalised_source

CODE = """#include "tile.cuh"
#define TWICE(x) \\
    ((x) + (x))
extern "C" __global__ void k(const float* __restrict__ in, float* out, int rows)
{
    const char* text = "a // b /* c */";
    if (rows >>= 1) out[0] = in[0] + 1.5e-3f;  // why
}
"""


@pytest.mark.parametrize(
    "same",
    [
        CODE.replace("  // why", ""),
        CODE.replace("// why", "/* why\n not */"),
        CODE.replace("\n{\n", " {\n\n\n"),
        CODE.replace("    ", "\t"),
        CODE.replace("in[0] + 1.5e-3f", "in[0]+1.5e-3f"),
        CODE.replace(" \\\n    ", " "),
        "// title\n" + CODE,
        CODE.replace("  // why", "  // why \\\n   goes on"),
    ],
)
def test_comments_and_white_space_do_not_count(same: str) -> None:
    assert same != CODE and normalise(same) == normalise(CODE)


@pytest.mark.parametrize(
    "other",
    [
        CODE.replace("// b", "// d"),  # inside a string it is no comment
        CODE.replace('"a //', '"a  //'),
        CODE.replace(">>=", ">> ="),
        CODE.replace("int rows", "introws"),
        CODE.replace("+ 1.5e-3f", "+ 1.5e-4f"),
        CODE.replace("+ 1.5", "+ +1.5"),
        CODE.replace(' \\\n    ((x) + (x))', "\n    ((x) + (x))"),  # the macro ends earlier
        CODE.replace("TWICE(x)", "TWICE (x)"),  # an object-like macro
    ],
)
def test_code_counts(other: str) -> None:
    assert other != CODE and normalise(other) != normalise(CODE)


def test_raw_strings_are_kept_as_they_are() -> None:
    assert normalise('auto s = R"x(// a  b)x";') != normalise('auto s = R"x(// a b)x";')


def test_local_includes_count_and_are_each_read_once(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text('#include "a.cuh"\n#include <cuda_fp16.h>\n#include "absent.cuh"\n', encoding="utf-8")
    (tmp_path / "a.cuh").write_text('#include "k.cu"\n#include "b.cuh"\nint a;\n', encoding="utf-8")
    (tmp_path / "b.cuh").write_text("int b;\n", encoding="utf-8")
    assert [p.name for p in local_includes(tmp_path / "k.cu")] == ["a.cuh", "k.cu", "b.cuh"]
    before = normalised_source(tmp_path / "k.cu")
    (tmp_path / "b.cuh").write_text("int c;\n", encoding="utf-8")
    assert normalised_source(tmp_path / "k.cu") != before


def test_includes_that_go_round_by_way_of_the_folder_above_end(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "k.cu").write_text('#include "../home/a.cuh"\n', encoding="utf-8")
    (home / "a.cuh").write_text('#pragma once\n#include "../home/a.cuh"\n#include "../b.cuh"\n', encoding="utf-8")
    (tmp_path / "b.cuh").write_text("int b;\n", encoding="utf-8")
    assert local_includes(home / "k.cu") == [home / "a.cuh", tmp_path / "b.cuh"]


def test_source_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match="is not UTF-8"):
        normalised_source(tmp_path / "k.cu")
