"""Numbers as text, and the words that go with them."""

from __future__ import annotations

import pytest
from synthetic import ROOT
from transpose_study.report.marks import labels, reference, resolved, titled, untraced
from transpose_study.report.texts import EMPTY, ENGLISH, Language, Listing, Message, optional, plural, text
from transpose_study.report.wording import (
    HARD,
    PREDICTED,
    PUBLISHED,
    THIN,
    Amount,
    exact,
    highest,
    lowest,
    missing,
    number,
    product,
    quotient,
    relation,
)  # fmt: skip

EN, ZH = Language(ENGLISH), Language.of("zh", "transpose", ROOT)


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
    assert EN.amount(Amount(value, "MB", kind=PUBLISHED), "") == f"*{text}{HARD}MB*"


def test_kinds_of_figures_are_told_apart_without_colour() -> None:
    shown = {kind: EN.amount(Amount(4, kind=kind), "n") for kind in ("measured", PUBLISHED, PREDICTED)}
    assert shown == {"measured": "4", PUBLISHED: "*4*", PREDICTED: "**4**"}


def test_an_interval_is_shown_where_it_was_asked_for_and_is_one() -> None:
    assert EN.amount(Amount(2.0, "ms", low=1.5, high=2.5), "i") == f"2{HARD}ms [1.500, 2.500]"
    assert EN.amount(Amount(2.0, "ms", low=2.0, high=2.0), "i") == f"2{HARD}ms"
    assert EN.amount(Amount(2.0, "ms", low=1.5, high=2.5), "") == f"2{HARD}ms"


def test_quotient_takes_the_widest_interval_and_passes_reasons_on() -> None:
    ratio = quotient(Amount(20, low=18, high=22), Amount(10, low=8, high=12))
    assert (ratio.value, ratio.low, ratio.high) == (2, 18 / 12, 22 / 8)
    assert quotient(Amount(1), missing("time", "no GPU")).reason == "no GPU"
    assert quotient(Amount(1), Amount(0, name="time")).reason == "its denominator is zero"
    assert product(Amount(3), Amount(4), scale=2).value == 24
    assert product(Amount(3), missing("x", "why")).reason == "why"


def test_relation_needs_interval_and_noise_floor_cleared() -> None:
    assert relation(Amount(1.1, low=1.05, high=1.2), 0.02) == 1
    assert relation(Amount(1.1, low=1.01, high=1.2), 0.02) == 0
    assert relation(Amount(0.9, low=0.8, high=0.95), 0.02) == -1
    assert relation(Amount(1.1)) == 1
    assert relation(missing("ratio", "no GPU")) == 0


def test_a_text_without_its_figures_is_no_text() -> None:
    whole = text("{a} of {b:n}.", a=Amount(3, "GB/s"), b=Amount(4))
    assert EN.render(whole) == f"3{HARD}GB/s of 4." and not whole.lacking()
    lack = missing("hit rate", "no counters")
    assert text("{a}", a=lack).lacking() == (lack,) and EN.render(text("{a}", a=lack)) == ""
    assert text("{a}", a=text("{b}", b=Listing([lack]))).lacking() == (lack,)


def test_an_optional_text_is_left_out_without_a_complaint() -> None:
    whole = text("4{p}.", p=optional(" (published: {x})", x=missing("x", "why")))
    assert EN.render(whole) == "4." and whole.lacking() == ()
    assert EN.render(text("4{p}.", p=optional(" (published: {x})", x=Amount(5, kind=PUBLISHED)))) == "4 (published: *5*)."
    assert not EMPTY


def test_words_for_lists_and_extremes() -> None:
    assert EN.render(Listing(["a"])) == "a" and EN.render(Listing(["a", "b", "c"])) == "a, b and c"
    assert ZH.render(Listing(["a", "b", "c"])) == "a、b 和 c" and EN.render(Listing([])) == "none" and ZH.render(Listing([])) == "无"
    assert EN.render(Listing(["a", "b", "c"], last=";")) == "a; b; c"
    assert EN.render(plural(1, "{n} block", "{n} blocks")) == "1 block" and ZH.render(plural(3, "{n} block", "{n} blocks")) == "3 个块"
    amounts = [missing("x", "why"), Amount(2), Amount(1)]
    assert lowest(amounts).value == 1 and highest(amounts).value == 2
    assert lowest(amounts[:1]).reason == "why"


def test_an_edition_without_a_translation_keeps_the_english_text_and_remembers_it() -> None:
    language = Language.of("zh", "transpose", ROOT)
    assert language.render(text("Nobody translated {x} yet.", x=5)) == "Nobody translated 5 yet."
    assert language.untranslated == {"Nobody translated {x} yet."}


def test_messages_of_other_stages_are_translated_by_their_template() -> None:
    message = "without bounds checks rows and cols must be multiples of 32"
    assert ZH.render(Message(message)) == "不做边界检查时行数与列数必须是 32 的倍数"
    assert EN.render(Message(message)) == message
    assert ZH.render(Message("something else entirely")) == "something else entirely"


def test_a_trace_shows_in_html_and_nowhere_else() -> None:
    shown = EN.render(text("{x} seen.", x=Amount(3, "MB", origin='tables/a.csv: <b> "c"')))
    assert untraced(shown) == f"3{HARD}MB seen."
    assert titled(shown) == f'<span class="v" title="tables/a.csv: &lt;b&gt; &quot;c&quot;">3</span>{HARD}MB seen.'


def test_references_give_the_number_of_what_they_mean() -> None:
    found = labels("**Table 3.** x\ue010table:claims=3\ue012")
    assert found == {"table:claims": "3"}
    assert resolved(f"see {reference('table', 'claims')}", found, {"table": "表"}) == "see 表\u00a03"
    assert resolved(reference("table", "claims"), found, {"table": "Table"}, linked=True) == "[Table\u00a03](#table-3)"
    with pytest.raises(KeyError, match="refers to a figure 'nothing'"):
        resolved(reference("figure", "nothing"), found, {"figure": "Figure"})
