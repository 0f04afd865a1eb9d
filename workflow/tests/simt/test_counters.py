"""Sectors and wavefronts against formulas that were derived by hand, as a second opinion."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transpose_study.simt.counters import sectors, wavefronts

LANES = np.arange(32)[None, :]
ALL = np.ones((1, 32), bool)


def served(address, width, mask=ALL):
    taken, ideal = wavefronts(np.broadcast_to(address, (1, 32)), mask, width)
    return int(taken[0]), int(ideal[0])


@given(st.integers(1, 200), st.integers(0, 100))
def test_a_column_of_pitch_p_is_a_gcd_p_32_way_conflict(pitch, column):
    """Lane r reads word r * P + c: bank (r P + c) mod 32 repeats after 32 / gcd(P, 32) lanes, each time with another word."""
    assert served(4 * (LANES * pitch + column), 4) == (math.gcd(pitch, 32), 1)


@given(st.integers(1, 64))
def test_lane_stride_s_of_4_byte_words(stride):
    """s[stride * lane]: gcd(stride, 32) different words in one bank."""
    assert served(4 * stride * LANES, 4) == (math.gcd(stride, 32), 1)


@given(st.integers(1, 64))
def test_lane_stride_s_of_8_byte_elements(stride):
    """Two phases of 16 lanes. Element s * lane lies in the bank pair s * lane mod 16: gcd(s, 16)-way in each phase."""
    assert served(8 * stride * LANES, 8) == (2 * math.gcd(stride, 16), 2)


@given(st.integers(1, 64))
def test_lane_stride_s_of_16_byte_elements(stride):
    """Four phases of 8 lanes over 8 groups of four banks: gcd(s, 8)-way in each phase."""
    assert served(16 * stride * LANES, 16) == (4 * math.gcd(stride, 8), 4)


@pytest.mark.parametrize(("width", "phases"), [(1, 1), (2, 1), (4, 1), (8, 2), (16, 4)])
def test_lanes_that_read_the_same_address_share_it(width, phases):
    assert served(np.full((1, 32), 64), width) == (phases, phases)


def test_small_elements_of_one_word_share_it():
    assert served(LANES, 1) == (1, 1)  # 32 chars lie in 8 words
    assert served(2 * LANES, 2) == (1, 1)  # 32 halves in 16 words
    assert served(2 * 34 * LANES, 2) == (1, 1)  # a column of half[32][34]: pitch 17 words, odd
    assert served(2 * 32 * LANES, 2) == (16, 1)  # a column of half[32][32]: pitch 16 words, gcd 16
    assert served(36 * LANES, 1) == (1, 1)  # a column of char[32][36]: pitch 9 words, odd
    assert served(32 * LANES, 1) == (8, 1)  # char[32][32]: pitch 8 words, gcd 8
    assert served(8 * 33 * LANES, 8) == (2, 2)  # double[32][33]: pitch 33 pairs, gcd(33, 16) = 1 in each phase
    assert served(8 * 32 * LANES, 8) == (32, 2)  # double[32][32]: 16-way in each of two phases


@pytest.mark.parametrize("wide", [8, 16, 32])
@pytest.mark.parametrize("permute", [lambda r, c, n: c ^ r, lambda r, c, n: (c + r) % n], ids=["xor", "rotation"])
def test_permuted_square_tiles_are_free_of_conflicts(wide, permute):
    """A warp of 32 / wide rows of threads writes rows of the tile and reads columns: each bank gets one word both times.

    Rows r and r' of a column share a bank only if 32 / wide divides r - r' and the permuted columns agree, which the rows
    and columns of one warp never do.
    """
    x, y = np.arange(32) % wide, np.arange(32) // wide
    for first in range(0, wide, 32 // wide):
        line = first + y
        written = line * wide + permute(line, x, wide)
        read = x * wide + permute(x, line, wide)
        plain = x * wide + line
        assert served(4 * written[None, :], 4) == (1, 1)
        assert served(4 * read[None, :], 4) == (1, 1)
        assert served(4 * plain[None, :], 4) == (wide * wide // 32, 1)  # without the permutation


@pytest.mark.parametrize(("offset", "expected"), [(0, 4), (8, 4), (16, 4), *[(o, 5) for o in (1, 2, 3, 4, 5, 6, 7, 9, 31)]])
def test_an_offset_of_o_floats_costs_a_fifth_sector_unless_it_is_a_multiple_of_8(offset, expected):
    assert sectors(4 * (LANES + offset), ALL, 4)[0] == expected


@given(st.integers(1, 80), st.integers(0, 7))
def test_lane_stride_in_floats_touches_the_sectors_of_its_span(stride, offset):
    """Lane i at float offset + i * stride; for strides of 8 and more every lane has its own sector."""
    expected = len({(offset + i * stride) // 8 for i in range(32)})
    assert sectors(4 * (LANES * stride + offset), ALL, 4)[0] == expected
    if stride >= 8:
        assert expected == 32
    if offset == 0 and stride < 8:
        assert expected == math.ceil((31 * stride + 1) / 8)


def test_float4_request_touches_16_sectors():
    assert sectors(16 * LANES, ALL, 16)[0] == 16


def test_inactive_lanes_count_for_nothing():
    none = np.zeros((1, 32), bool)
    first = np.arange(32)[None, :] < 1
    assert sectors(4 * 1000 * LANES, none, 4)[0] == 0
    assert sectors(4 * 1000 * LANES, first, 4)[0] == 1
    assert served(4 * 32 * LANES, 4, none) == (0, 0)
    assert served(16 * LANES, 16, first) == (1, 1)  # only the phase that has a lane


@given(st.lists(st.integers(0, 400), min_size=32, max_size=32), st.lists(st.booleans(), min_size=32, max_size=32), st.sampled_from([4, 8, 16]))
def test_wavefronts_against_a_naive_count(elements, active, width):
    address, mask = width * np.array([elements]), np.array([active])
    per_phase = 32 // (width // 4)
    total = ideal = 0
    for first in range(0, 32, per_phase):
        banks: dict[int, set[int]] = {}
        for lane in range(first, first + per_phase):
            if active[lane]:
                for word in range(elements[lane] * width // 4, (elements[lane] + 1) * width // 4):
                    banks.setdefault(word % 32, set()).add(word)
        total += max((len(w) for w in banks.values()), default=0)
        ideal += bool(banks)
    taken, least = wavefronts(address, mask, width)
    assert (taken[0], least[0]) == (total, ideal)
