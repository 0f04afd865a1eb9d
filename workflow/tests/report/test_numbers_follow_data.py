"""Every figure of the text comes from the raw data: change those, and exactly the dependent figures change."""

from __future__ import annotations

import re
from collections.abc import Callable

from conftest import markdown, sections, table_row
from synthetic import BANDWIDTH, Model, contrary, counter_values, rtx5060
from transpose_study.experiment import Experiment
from transpose_study.report.wording import number

Make = Callable[..., Experiment]
FIGURE = re.compile(r"(?<![\w.*])\d[\d\u202f]*(?:\.\d+)?(?![\w*])")


def prose_of(text: str) -> str:
    """Running text: no tables, captions, headings, names, published figures."""
    lines = [t for t in text.splitlines() if t and not t.startswith(("|", "#", "**", "!", "$", ">"))]
    return re.sub(r"`[^`]*`|\*[^*]+\*|32x\d+|tile\[\d+\]\[\d+\]|\d+x\d+", "", "\n".join(lines))


def test_a_slower_kernel_changes_its_own_figures_and_no_others(make: Make, plain_text: str) -> None:
    slower = markdown(make("slower", time_factor={"tiled_padded_b8": 1.37}))
    before, after = sections(plain_text), sections(slower)
    for untouched in ("3.1", "3.2", "3.3.2", "3.3.3", "Where"):
        assert after[untouched] == before[untouched]
    for changed in ("1", "2.1", "3.3.1", "3.3.4", "4.1", "4.2", "4.3"):
        assert after[changed] != before[changed]
    for name in ("`copy`", "`memcpy`", "`naive_write_coalesced_b32`", "`tiled_padded_b4`"):
        assert table_row(after["4.1"], name) == table_row(before["4.1"], name)
    old, new = (float(table_row(s["4.1"], "`tiled_padded_b8`").split("|")[2]) for s in (before, after))
    assert abs(new / old - 1.37) < 0.002
    assert "The 32x8 loop is slower than the scalar copy" in after["1"]
    assert "BLOCK_ROWS 8 has the shortest median" in before["3.3.4"] and "BLOCK_ROWS 8 has the shortest median" not in after["3.3.4"]


def test_a_counter_changes_only_where_it_is_quoted(make: Make, plain_text: str) -> None:
    more = markdown(make("written", counters={"tiled_padded_b8:dram_write_bytes": 45.0e6}))
    before, after = sections(plain_text), sections(more)
    assert [s for s in before if before[s] != after[s]] == ["3.2"]
    assert re.search(r"Written to DRAM are between 0\.670\d", after["3.2"])


def test_registers_change_only_the_occupancy(make: Make, plain_text: str) -> None:
    changed = {"registers_per_thread": 47, "limit_registers": 5, "limit_warps": 9}
    more = markdown(make("registers", counters={f"tiled_padded_b8:{q}": v for q, v in changed.items()}))
    before, after = sections(plain_text), sections(more)
    assert [s for s in before if before[s] != after[s]] == ["3.3.2"]
    assert "limited by registers" in after["3.3.2"] and "room for 5 blocks" in after["3.3.2"]
    assert "(47 against 18); they are among what limits its residency" in after["3.3.2"]


def test_no_figure_of_the_prose_survives_a_change_of_all_measurements(make: Make, plain: Experiment, plain_text: str) -> None:
    quantities = sorted(q.key for b in plain.batches.values() for q in b.quantities if q.key != "instructions_by_opcode")
    counters = {}
    for i, cell in enumerate(plain.cells(plain.main_group)):
        if not cell.variant.driver_copy:
            values = counter_values(plain, Model(), cell)
            # a different factor for each kernel and quantity, so that ratios of two of them change as well
            counters |= {f"{plain.study.kernel_name(cell)}:{q}": values[q] * (1.21 + 0.037 * i + 0.0113 * j) + 0.5 for j, q in enumerate(quantities)}
    times = {name: 1.113 + 0.0713 * i for i, name in enumerate(BANDWIDTH)} | {f"tiled_padded_b{b}": 1.5 + 0.01 * b for b in (4, 8, 16, 32)}
    other = markdown(make("other", seed=5, time_factor=times, counters=counters, cold_factor=1.21, rounds=11, write_share=0.77))
    kept = set(FIGURE.findall(prose_of(plain_text))) & set(FIGURE.findall(prose_of(other)))
    group, study = plain.groups[plain.main_group].values, plain.study
    timing, gpu = plain.config.timing, plain.gpu
    configured = {
        study.element_count(group), study.matrix_bytes(group), study.effective_bytes(group), study.matrix_bytes(group) / 2**20,
        study.itemsize, 32, gpu["l2_bytes"] / 2**20, plain.peak_gb_s, gpu["threads_per_sm"] // 32, timing.processes, timing.min_samples,
        100 * timing.interval, timing.window_us, study.matrix_bytes(group) / 1e6, 3,  # launches of a batch
        16384, study.itemsize * 32 / 32,  # tiles of the shape; sectors of a full warp
        4, 8, 16,  # BLOCK_ROWS, and warps of a block
    }  # fmt: skip
    assert kept <= {number(v) for v in configured} | {"2026"}


def test_prose_says_opposite_things_on_opposite_devices(make: Make) -> None:
    like, unlike = (sections(markdown(make(m.__name__, model=m()))) for m in (rtx5060, contrary))
    for section, here, there in (
        ("1", "The 32x8 loop is faster than the naive kernel", "The 32x8 loop is slower than the naive kernel"),
        ("1", "Between the unchecked loop and the 32x8 loop no clear difference", "The unchecked loop is faster than the 32x8 loop"),
        ("3.2", "does not come from DRAM again", "comes from DRAM again"),
        ("3.2", "Less than one matrix is written by", "No version writes less than one matrix"),
        ("3.3.1", "DRAM throughput rises from", "DRAM throughput falls from"),
        ("3.3.1", "Both are close to that", "Neither is close to that"),
        ("3.3.1", "works mainly near the limit of the memory", "No unit of the loop is near its peak"),
        ("3.3.3", "The loop's stores equal it", "The loop's stores exceed it by"),
        ("3.3.4", "BLOCK_ROWS 8 has the shortest median", "BLOCK_ROWS 32 has the shortest median"),
    ):
        assert here in like[section] and there not in like[section]
        assert there in unlike[section] and here not in unlike[section]
