"""Numbers as text, and the words that go with them."""

from __future__ import annotations

import pytest
from transpose_study.report.wording import (
    HARD,
    THIN,
    Amount,
    beside,
    exact,
    highest,
    listing,
    lowest,
    missing,
    number,
    plural,
    quotient,
    sentence,
    versus,
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (4, "4"), (1883.0, "1883"), (16777216, f"16{THIN}777{THIN}216"),
        (303.9762, "304.0"), (1146.2, "1146"), (82.1824, "82.18"), (0.99347, "0.9935"), (0.01, "0.0100"), (1.72541, "1.725"),
        (15990889.1, f"15{THIN}990{THIN}889.1"), (-2.5, "\u22122.500"), (0.00001, "0.0000"),
    ],
)  # fmt: skip
def test_measured_numbers_have_four_significant_digits_and_counts_are_whole(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(303.98, "303.98"), (0.45187, "0.45187"), (524288.0, f"524{THIN}288"), (15990889.1, f"15{THIN}990{THIN}889.1")],
)
def test_published_numbers_keep_every_digit(value: float, text: str) -> None:
    assert exact(value) == text
    assert f"{Amount(value, 'MB', published=True)}" == f"*{text}{HARD}MB*"


def test_quotient_takes_the_widest_interval_and_passes_reasons_on() -> None:
    ratio = quotient(Amount(20, low=18, high=22), Amount(10, low=8, high=12))
    assert (ratio.value, ratio.low, ratio.high) == (2, 18 / 12, 22 / 8)
    assert quotient(Amount(1), missing("time", "no GPU")).reason == "no GPU"
    assert "is zero" in quotient(Amount(1), Amount(0, name="time")).reason


def test_versus_needs_interval_and_noise_floor_cleared() -> None:
    words = {"above": "faster", "below": "slower", "level": "equal"}
    assert versus(Amount(1.1, low=1.05, high=1.2), 0.02, **words) == "faster"
    assert versus(Amount(1.1, low=1.01, high=1.2), 0.02, **words) == "equal"
    assert versus(Amount(0.9, low=0.8, high=0.95), 0.02, **words) == "slower"
    assert versus(Amount(1.1), 0, **words) == "faster"
    assert versus(missing("ratio", "no GPU"), 0, **words) == ""


def test_a_sentence_without_its_figures_is_no_sentence() -> None:
    whole = sentence("{a} of {b:n}.", a=Amount(3, "GB/s"), b=Amount(4))
    assert whole.text == f"3{HARD}GB/s of 4." and not whole.lacking
    lack = missing("hit rate", "no counters")
    assert sentence("{a}", a=lack) == type(whole)("", (lack,))


def test_words_for_lists_and_extremes() -> None:
    assert listing(["a"]) == "a" and listing(["a", "b", "c"]) == "a, b and c"
    assert plural(1, "launch", "launches") == "1 launch" and plural(3, "launch", "launches") == "3 launches"
    amounts = [missing("x", "why"), Amount(2), Amount(1)]
    assert lowest(amounts).value == 1 and highest(amounts).value == 2
    assert lowest(amounts[:1]).reason == "why"
    assert beside(missing("x", "why")) == "" and beside(Amount(2, published=True)) == " (published: *2*)"
