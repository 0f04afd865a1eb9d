"""Every figure of the text comes from the raw data: change those, and exactly the dependent figures and words change."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from report.conftest import editions, markdown, sections, table_row
from synthetic import BANDWIDTH, BLOCK_ROWS_FACTOR, Model, counter_values
from transpose_study.experiment import Experiment
from transpose_study.report.wording import number

Make = Callable[..., Experiment]
FIGURE = re.compile(r"(?<![\w.*])\d[\d\u202f]*(?:\.\d+)?(?![\w*])")
SUMMED_UP = {"Summary", "7"}  # these speak of everything


def prose_of(text: str) -> str:
    """Running text: no tables, captions, headings, names, published figures, references."""
    lines = [t for t in text.splitlines() if t and not t.startswith(("|", "#", "**", "!", "$", ">", "- `"))]
    return re.sub(
        r"`[^`]*`|\*{1,2}[^*\n]+\*{1,2}|32x\d+|tile\[\d+\]\[\d+\]|\d+x\d+|(?:Table|Figure)\u00a0\d+|95 %|RTX 5060|reference/[\w.-]+",
        "",
        "\n".join(lines),
    )


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {s for s in before if before[s] != after[s]}


def test_a_slower_kernel_changes_its_own_figures_and_no_others(make: Make, plain_text: str) -> None:
    slower = markdown(make("slower", time_factor={"tiled_padded_b8": 1.37}))
    before, after = sections(plain_text), sections(slower)
    assert not changed(before, after) & {"3.1", "3.2", "3.3.3", "4.1", "4.2", "4.5", "Where"}
    assert changed(before, after) >= {"Summary", "1", "2.1", "3.3.1", "3.3.4", "5.1", "7"}
    for name in ("`copy`", "`memcpy`", "`naive_write_coalesced_b32`", "`tiled_padded_b4`"):
        assert table_row(after["5.1"], name) == table_row(before["5.1"], name)
    old, new = (float(table_row(s["5.1"], "`tiled_padded_b8`").split("|")[2]) for s in (before, after))
    assert abs(new / old - 1.37) < 0.002
    assert "`tiled_padded_b8` is slower than `copy`" in after["Summary"]
    assert "BLOCK_ROWS 8 has the shortest median" in before["3.3.4"] and "BLOCK_ROWS 8 has the shortest median" not in after["3.3.4"]


def test_a_counter_changes_only_where_it_is_quoted(make: Make, plain_text: str) -> None:
    more = markdown(make("written", counters={"tiled_padded_b8:dram_write_bytes": 45.0e6}))
    before, after = sections(plain_text), sections(more)
    assert changed(before, after) <= {"3.2", "4.5"} | SUMMED_UP
    assert re.search(r"Written to DRAM are between 0\.670\d", after["3.2"])


def test_registers_change_only_the_occupancy(make: Make, plain_text: str) -> None:
    values = {"registers_per_thread": 47, "limit_registers": 5, "limit_warps": 9}
    more = markdown(make("registers", counters={f"tiled_padded_b8:{q}": v for q, v in values.items()}))
    before, after = sections(plain_text), sections(more)
    assert changed(before, after) - SUMMED_UP <= {"3.3.2", "4.3"}
    assert "limited by registers" in after["3.3.2"] and "room for 5 blocks" in after["3.3.2"]
    assert "`registers-not-limit` ✗ does not hold" in after["3.3.2"]
    assert "The loop uses 47 registers per thread against 18; that it uses more, and is not limited by them, does not hold here." in after["3.3.2"]


@pytest.fixture(scope="module")
def other(make: Make, plain: Experiment) -> list[str]:
    """Both editions about a run in which every time and every counter differs from the plain one's."""
    quantities = sorted(q.key for b in plain.batches.values() for q in b.quantities if q.key != "instructions_by_opcode")
    counters = {}
    for i, cell in enumerate(plain.cells(plain.main_group)):
        if not cell.variant.driver_copy:
            values = counter_values(plain, Model(), cell)
            # a different factor for each kernel and quantity, so that ratios of two of them change as well
            counters |= {f"{plain.study.kernel_name(cell)}:{q}": values[q] * (1.21 + 0.37 * i + 0.113 * j) + 0.7 for j, q in enumerate(quantities)}
    times = {name: 1.113 + 0.0713 * i for i, name in enumerate(BANDWIDTH)} | {f"tiled_padded_b{b}": 1.5 + 0.01 * b for b in (4, 8, 16, 32)}
    return editions(make("other", seed=5, time_factor=times, counters=counters, cold_factor=1.21, rounds=11, write_share=0.77))


def test_no_figure_of_the_prose_survives_a_change_of_all_measurements(other: list[str], plain: Experiment, plain_text: str) -> None:
    kept = set(FIGURE.findall(prose_of(plain_text))) & set(FIGURE.findall(prose_of(other[0])))
    group, study = plain.groups[plain.main_group].values, plain.study
    timing, gpu = plain.config.timing, plain.gpu
    configured = {
        study.element_count(group), study.matrix_bytes(group), study.effective_bytes(group), study.matrix_bytes(group) / 2**20,
        study.itemsize, 32, gpu["l2_bytes"] / 2**20, plain.peak_gb_s, gpu["threads_per_sm"] // 32, timing.processes, timing.min_samples,
        100 * timing.interval, timing.window_us, study.matrix_bytes(group) / 1e6, 3,  # launches of a batch
        16384, study.itemsize * 32 / 32,  # tiles of the shape; sectors of a full warp
        4, 8, 16,  # BLOCK_ROWS, and warps of a block
        1,  # the share by which mean and median may part, in percent
    }  # fmt: skip
    claims = len(re.findall(r"^\| .*\(`[\w-]+`; ", plain_text, re.MULTILINE))
    left = kept - {number(v) for v in (*configured, claims, 0)} - {"2026"}
    assert {k: re.findall(rf".{{30}}{k}.{{10}}", prose_of(other[0])) for k in left} == {}


NAMES = r"(?<![A-Za-z])L[12]|32x32|32x8|\]\([^)]*\)|`figures/[^`]*`"  # digits that belong to a name; paths of figures


def test_both_editions_hold_the_same_figures_in_the_same_order(plain_texts: list[str], like: list[str], unlike: list[str], other: list[str]) -> None:
    for texts in (plain_texts, like, unlike, other):
        english, chinese = (re.findall(r"\d+(?:[\u202f.,]\d+)*", re.sub(NAMES, "", t)) for t in texts)
        assert len(english) > 1000
        assert english == chinese


# (section, on a device where the study's conclusions hold, on one where they do not), in English and in Chinese
OPPOSITES = [
    ("Summary", "`tiled_padded_b8` is faster than `naive_write_coalesced_b32`", "`tiled_padded_b8` is slower than `naive_write_coalesced_b32`"),
    ("1", "Here it reaches the scalar copy as well", "Here it is not"),
    ("3.2", "does not come from DRAM again", "comes from DRAM again"),
    ("3.2", "As in the study, its L2 hit rate is far above", "does not carry over"),
    ("3.2", "Less than one matrix is written by every version", "Not every version writes less than one matrix"),
    ("3.3.1", "The loop is faster than the naive kernel", "The loop is not faster than the naive kernel"),
    ("3.3.1", "DRAM throughput rises from", "DRAM throughput falls from"),
    ("3.3.1", "this brings no clear gain in time", "Unlike in the study this changes the time"),
    ("3.3.1", "Both are close to that", "Not both are close to that"),
    ("3.3.1", "In sum, the loop runs close to the memory's limit", "In sum, DRAM is not shown to be the loop's limit"),
    ("3.3.3", "The loop's stores equal it", "The loop's stores exceed it by"),
    ("3.3.4", "BLOCK_ROWS 8 has the shortest median", "BLOCK_ROWS 32 has the shortest median"),
    ("3.3.4", "is the best of its three here as well", "is not the best of its three here"),
    ("4.5", "are not written when it ends", "all of it is written while the kernel runs"),
]
OPPOSITES_ZH = [
    ("摘要", "`tiled_padded_b8` 比 `naive_write_coalesced_b32` 快", "`tiled_padded_b8` 比 `naive_write_coalesced_b32` 慢"),
    ("1", "在这里它同样达到标量复制的水平", "在这里并非如此"),
    ("3.2", "大多没有再次来自 DRAM", "又从 DRAM 取了一遍"),
    ("3.2", "。每个版本写入的都少于一个矩阵", "并非每个版本写入的都少于一个矩阵"),
    ("3.3.1", "循环比 naive 核函数快", "循环并不比 naive 核函数快"),
    ("3.3.1", "这并未带来明显的时间收益", "与该研究不同，这改变了时间"),
    ("3.3.1", "总之，循环的运行接近显存极限", "总之，没有证据表明 DRAM 是循环的限制"),
    ("3.3.4", "BLOCK_ROWS 为 8 时中位数最短", "BLOCK_ROWS 为 32 时中位数最短"),
    ("4.5", "尚未写出", "没有需要解释的缺口"),
]


@pytest.mark.parametrize(("language", "section", "here", "there"), [*((0, *o) for o in OPPOSITES), *((1, *o) for o in OPPOSITES_ZH)])
def test_prose_says_opposite_things_on_opposite_devices(
    like: list[str], unlike: list[str], language: int, section: str, here: str, there: str
) -> None:
    one, other = sections(like[language])[section], sections(unlike[language])[section]
    assert here in one and there not in one
    assert there in other and here not in other


def test_words_follow_a_flipped_verdict(make: Make, plain_text: str) -> None:
    """The loop far faster than the naive kernel, and as fast as it."""
    level = sections(
        markdown(
            make(
                "level",
                time_factor={"naive_write_coalesced_b32": BANDWIDTH["naive_write_coalesced"] * BLOCK_ROWS_FACTOR[32] / BANDWIDTH["tiled_padded"]},
            )
        )
    )
    assert "`loop-beats-naive` ✓ holds" in sections(plain_text)["3.3.1"]
    assert "`loop-beats-naive` ✓ holds" not in level["3.3.1"] and "The loop is faster than the naive kernel" not in level["3.3.1"]


def test_every_figure_of_the_conclusions_is_named(like: list[str], unlike: list[str]) -> None:
    """Each line of the summary's table says what was compared, and what it must be; no cell holds two figures without names."""
    for text in (*like, *unlike):
        lines = text.splitlines()
        start = next(i for i, line in enumerate(lines) if re.match(r"\*\*(Table|表) 1\.\*\*", line)) + 4
        body = [[f.strip() for f in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[start : lines.index("", start)]]
        assert len(body) > len([row for row in body if row[0]]) >= 9, "claims of several parts have a line for each"
        for row in body:
            assert len(row) == 5
            if row[3] != "–":
                assert re.search(r"`\w+`$", row[2]) and row[4] and ";" not in row[3], row
