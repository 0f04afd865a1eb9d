"""Expressions over arrays: each element is what :func:`evaluate` makes of it, or both refuse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transpose_study.array_expressions import evaluate_array
from transpose_study.errors import StudyError
from transpose_study.expressions import FUNCTIONS, evaluate

EDGE = 2**63
NAMES = {"n": 5, "zero": 0, "large": EDGE - 1}
ARRAYS = {
    "i": np.arange(8, dtype=np.int64),
    "j": np.array([-7, -1, 0, 1, 2, 3, 64, 9], np.int64),
    "edge": np.array([EDGE - 1, -EDGE, EDGE - 2, -EDGE + 1, 2**62, -(2**62), 2**32, -1], np.int64),
}
PARTS = ("i", "7 - i", "j", "edge", "3", "-n", "large", str(EDGE), "True")


def agree(text: str) -> str:
    """Compare with element by element; what was said where it is refused."""
    before = {n: a.copy() for n, a in ARRAYS.items()}
    refused, expected = "", []
    for row in zip(*ARRAYS.values(), strict=True):
        try:
            expected.append(evaluate(text, {**NAMES, **dict(zip(ARRAYS, map(int, row), strict=True))}))
        except StudyError as error:
            refused = str(error)
    if refused or not all(-EDGE <= v < EDGE for v in expected):
        with pytest.raises(StudyError) as caught:
            evaluate_array(text, NAMES, ARRAYS, where="here")
        said = str(caught.value)
        assert said.startswith("here: ") and (refused or "64 bits do not hold" in said), text
    else:
        said, found = "", evaluate_array(text, NAMES, ARRAYS)
        assert found.dtype == np.int64 and found.shape == (8,) and found.tolist() == expected, text
    assert all(np.array_equal(a, before[n]) for n, a in ARRAYS.items()), f"{text} changed what it was given"
    return said


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_each_function_with_each_number_of_arguments(name: str, count: int) -> None:
    for args in itertools.islice(itertools.product(PARTS, repeat=count), None, None, 1 if count < 4 else 13):  # 13 divides no power of 9
        agree(f"{name}({', '.join(args)})")


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "<", "==", ">=", "and", "or"])
def test_each_operator(op: str) -> None:
    for a, b in itertools.product((*PARTS, "zero", "j * 3", "not j", "i < j < 3"), repeat=2):
        agree(f"({a}) {op} ({b})")


_expressions = st.recursive(
    st.sampled_from(PARTS),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "<=", "!="]), inner).map(
            "({0[0]}) {0[1]} ({0[2]})".format
        ),
        inner.map("-({})".format),
        inner.map("not ({})".format),
        st.tuples(st.sampled_from(["min", "max"]), st.lists(inner, min_size=2, max_size=4)).map(lambda t: f"{t[0]}({', '.join(t[1])})"),
        st.tuples(inner, inner, inner).map("where({0[0]}, {0[1]}, {0[2]})".format),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(_expressions)
def test_random_expressions(text: str) -> None:
    agree(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("edge + 1", "'edge + 1' is 9223372036854775808 for some element, which 64 bits do not hold"),
        ("3 << (i * 9)", "64 bits do not hold"),  # the processor would shift by 63 at most
        ("1 << j", "exponent or shift outside 0..128"),
        ("n // i", "divides by zero"),
        ("n % (i - 3)", "divides by zero"),  # not for the first element
        ("min(i)", "cannot be computed"),
        ("i + k", "is no axis here"),
        ("i ** 2", "cannot be computed for many elements at once"),
    ],
)
def test_what_is_said(text: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        evaluate_array(text, NAMES, ARRAYS)
    assert said in str(caught.value)


def test_an_intermediate_beyond_64_bits_is_exact() -> None:
    assert evaluate_array("edge * edge // edge", {}, ARRAYS).tolist() == ARRAYS["edge"].tolist()


def test_no_elements_and_more_dimensions() -> None:
    assert evaluate_array("i + 1", {}, {"i": np.zeros((0, 3), np.int64)}).shape == (0, 3)
    square = np.arange(6, dtype=np.int64).reshape(2, 3)
    assert evaluate_array("i * 2", {}, {"i": square}).tolist() == [[0, 2, 4], [6, 8, 10]]
    assert evaluate_array(f"i * {EDGE} // {EDGE}", {}, {"i": square}).tolist() == square.tolist()
