"""The check's bit patterns: told apart from one another, the same as harness.cu computes, special floats among them."""

from __future__ import annotations

import re

import numpy as np
from transpose_study.encoding import SPECIAL, encode
from transpose_study.sources import HARNESS

M = 2**32 - 1


def mixed(x: int) -> int:
    """``mix`` of harness.cu, its constants read from the source, in Python's integers."""
    body = re.search(r"unsigned mix\(unsigned x\) \{(.*?)\n\}", HARNESS.read_text(encoding="utf-8"), re.DOTALL)[1]
    for line in filter(None, map(str.strip, body.splitlines())):
        if match := re.fullmatch(r"x \^= x >> (\d+);", line):
            x ^= x >> int(match[1])
        elif match := re.fullmatch(r"x \*= 0x([0-9a-f]+)u;", line):
            x = x * int(match[1], 16) & M
        else:
            assert line == "return x;"
    return x


def test_the_harness_computes_the_same() -> None:
    numbers = [8, 9, 1000, 16384 * 16384 - 1, 2**32 + 8, 2**33 + 5]
    assert encode(np.array(numbers, np.uint64)).tolist() == [mixed(n & M) for n in numbers]
    table = re.search(r"special\[8\] = \{(.*?)\}", HARNESS.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert [int(n, 16) for n in re.findall(r"0x([0-9a-f]+)u", table)] == SPECIAL.tolist() == encode(np.arange(8)).tolist()


def test_no_two_elements_of_a_checked_shape_look_alike() -> None:
    patterns = encode(np.arange(1000 * 777))  # the largest edge shape
    assert len(np.unique(patterns)) == len(patterns)


def test_the_special_floats_are_those_that_arithmetic_would_change() -> None:
    floats = SPECIAL.view(np.float32)
    assert np.signbit(floats[0]) and floats[0] == 0 and floats[1] == -1
    assert np.isnan(floats[2:5]).all() and floats[5] == -np.inf and floats[6] == np.inf
    assert 0 < floats[7] < np.finfo(np.float32).tiny
