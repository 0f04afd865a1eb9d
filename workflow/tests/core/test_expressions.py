"""Registry expressions: integer arithmetic and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transpose_study.errors import StudyError
from transpose_study.expressions import evaluate, names_in

NAMES = {"rows": 4095, "cols": 4097, "block_rows": 8, "itemsize": 4}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ceil_div(cols, 32)", 129),  # 4097 = 128 * 32 + 1
        ("ceil_div(rows, 32)", 128),  # 4095 = 128 * 32 - 1
        ("2 * rows * cols * itemsize", 2 * 4095 * 4097 * 4),
        ("rows % 32 == 0 and cols % 32 == 0", 0),
        ("rows % 32 == 0 or 32 % block_rows == 0", 1),
        ("not rows", 0),
        ("0 < block_rows <= 8 < rows", 1),
        ("1 << 3 | 1", 9),
        ("rows & 1 ^ 1", 0),
        ("-2**2", -4),
        ("min(rows, cols) // 2", 2047),
        ("max(rows, cols, 5000)", 5000),
        (7, 7),
        ("True + True", 2),
        ("  rows\n", 4095),
    ],
)
def test_arithmetic(text: str | int, value: int) -> None:
    assert evaluate(text, NAMES) == value


@given(st.integers(1, 10**6), st.integers(1, 1024))
def test_ceil_div_is_the_least_number_of_blocks_that_covers(size: int, block: int) -> None:
    blocks = evaluate("ceil_div(rows, block)", {"rows": size, "block": block})
    assert blocks * block >= size > (blocks - 1) * block


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("row", "did you mean 'rows'"),
        ("rows / 2", "write // for division"),
        ("rows // 0", "divides by zero"),
        ("ceil_div(rows, 0)", "cannot be computed"),
        ("ceil_div(rows)", "cannot be computed"),
        ("9 ** 9 ** 9", "exponent or shift outside"),
        ("2 ** -1", "exponent or shift outside"),
        ("2 ** 128 * 2", "larger than 2**128"),
        ("1.5", "is not arithmetic"),
        ("'a' * 3", "is not arithmetic"),
        ("rows if cols else 1", "is not arithmetic"),
        ("rows is cols", "not arithmetic"),
        ("[r for r in (1, 2)]", "is not arithmetic"),
        ("__import__('os').system('true')", "is not arithmetic"),
        ("rows.bit_length()", "is not arithmetic"),
        ("ceil_div(a=1, b=2)", "is not arithmetic"),
        ("(lambda: 1)()", "is not arithmetic"),
        ("rows +", "is no expression"),
        ("(" * 500 + "1" + ")" * 500, "is no expression"),
        ("", "is no expression"),
    ],
)
def test_anything_else_is_refused_and_named(text: str, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        evaluate(text, NAMES, where="variants.yaml")
    assert words in str(caught.value) and str(caught.value).startswith("variants.yaml: ")


def test_names() -> None:
    assert names_in("ceil_div(rows * cols, 32) + itemsize") == {"rows", "cols", "itemsize"}
    assert names_in(5) == frozenset() == names_in("rows +")


@pytest.mark.parametrize("text", ["-" * 1500 + "1", "1" + "+1" * 1500])
def test_expressions_that_are_nested_too_deeply_are_refused(text: str) -> None:
    """Python's parser takes them, whatever evaluates them one level after the other does not."""
    with pytest.raises(StudyError, match=r"is nested too deeply|is no expression"):
        evaluate(text, {}, where="here")
