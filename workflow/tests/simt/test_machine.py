"""Results of the machine against numpy, bit for bit, and the order of barriers and divergent lanes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launches import LADDER, STUDY, cell_of, contents, fill, launch_of, plain
from other_kernels import OTHERS
from transpose_study.errors import StudyError
from transpose_study.simt import ptx
from transpose_study.simt.blocks import count_memory, run_grid
from transpose_study.simt.machine import Program
from transpose_study.simt.memory import Violation


def distinct(rows: int, cols: int) -> np.ndarray:
    """A matrix whose elements all differ, NaN patterns included."""
    return (np.arange(rows * cols, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(0x7FC00001)).reshape(rows, cols)


def execute(program, launch, matrix):
    fill(launch.arguments[0], matrix)
    fill(launch.arguments[1], np.full(matrix.size, 0xA5A5A5A5, np.uint32))
    run_grid(program, launch, lambda batch: [], tracked=True)
    return contents(launch.arguments[1], np.uint32)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(LADDER)), st.tuples(st.integers(1, 300), st.integers(1, 300)))
def test_the_ladder_computes_what_it_says(ladder, name, shape):
    rows, cols = shape
    if STUDY.cell_refusal(cell_of(LADDER[name], rows, cols)):
        rows, cols = rows // 32 * 32 + 32, cols // 32 * 32 + 32
    matrix = distinct(rows, cols)
    expected = matrix if LADDER[name].variant.computes == "copy" else matrix.T
    assert (execute(ladder(name).program, launch_of(name, rows, cols), matrix) == expected.reshape(-1)).all()


@pytest.mark.parametrize("name", sorted(LADDER))
def test_every_kernel_of_the_ladder_at_the_edges(ladder, name):
    for rows, cols in [(1, 1), (1, 300), (300, 1), (31, 33), (96, 64)]:
        if STUDY.cell_refusal(cell_of(LADDER[name], rows, cols)):
            continue
        matrix = distinct(rows, cols)
        expected = matrix if LADDER[name].variant.computes == "copy" else matrix.T
        assert (execute(ladder(name).program, launch_of(name, rows, cols), matrix) == expected.reshape(-1)).all(), (rows, cols)


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_other_kernels_compute_the_transpose(compiler, name):
    source, block, grid = OTHERS[name]
    kernel = compiler(source, "90")
    for rows, cols in [(64, 64), (77, 130)]:
        matrix = distinct(rows, cols)
        if name == "odd_even_blocks":
            matrix = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols).view(np.uint32)
        launch = plain(grid(rows, cols), block, rows * cols * 4, rows * cols * 4, numbers=(rows, cols))
        assert (execute(kernel.program, launch, matrix) == matrix.T.reshape(-1)).all()


def assembled(body: str, declarations: str = ""):
    """A kernel of two integer parameters from PTX text; %r1 is threadIdx.x."""
    text = f""".version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_out, .param .u32 k_n)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<4>;
    {declarations}
    ld.param.u64 %rd1, [k_out];
    ld.param.u32 %r0, [k_n];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    {body}
}}
"""
    return Program(ptx.parse(text)["k"])


def test_diverged_lanes_join_at_the_immediate_post_dominator():
    """Both ways of an inner and an outer branch store once for each part of the warp; after the join, once for all."""
    program = assembled("""
    setp.lt.u32 %p1, %r1, 20;
    @!%p1 bra OUTER_ELSE;
    setp.lt.u32 %p2, %r1, 5;
    @!%p2 bra INNER_ELSE;
    st.global.u32 [%rd1], %r1;
    bra INNER_END;
    INNER_ELSE:
    st.global.u32 [%rd1], %r1;
    INNER_END:
    st.global.u32 [%rd1], %r1;
    bra OUTER_END;
    OUTER_ELSE:
    st.global.u32 [%rd1], %r1;
    OUTER_END:
    st.global.u32 [%rd1], %r1;
    ret;
    """)
    counts = count_memory(program, plain((3,), (32,), 128, numbers=(0,)))
    # lanes 0-4, lanes 5-19, their join, lanes 20-31, all
    assert counts.totals["global_store_requests"] == 3 * 5
    assert counts.totals["global_store_bytes"] == 3 * 4 * (5 + 15 + 20 + 12 + 32)


def test_a_loop_with_different_trip_counts_joins_at_its_exit():
    program = assembled("""
    mov.u32 %r2, %r1;
    LOOP:
    st.global.u32 [%rd1], %r2;
    add.s32 %r2, %r2, -1;
    setp.ge.s32 %p1, %r2, 0;
    @%p1 bra LOOP;
    st.global.u32 [%rd1], %r2;
    ret;
    """)
    counts = count_memory(program, plain((1,), (64,), 256, numbers=(0,)))
    # the first warp's longest lane goes round 32 times, the second's 64 times; then one store each
    assert counts.totals["global_store_requests"] == 32 + 64 + 2
    assert counts.totals["global_store_bytes"] == 4 * (sum(range(1, 65)) + 64)


def test_lanes_that_left_are_not_waited_for():
    program = assembled(
        """
    setp.ge.u32 %p1, %r1, 40;
    @%p1 ret;
    mov.u32 %r2, tile;
    shl.b32 %r3, %r1, 2;
    add.u32 %r2, %r2, %r3;
    st.shared.u32 [%r2], %r1;
    bar.sync 0;
    ld.shared.u32 %r4, [%r2];
    st.global.u32 [%rd1], %r4;
    ret;
    """,
        ".shared .align 4 .b8 tile[512];",
    )
    launch = plain((2,), (96,), 384, numbers=(0,))
    counts = count_memory(program, launch)
    assert counts.totals["barriers"] == 2 * 2  # the third warp has left as a whole
    assert counts.totals["shared_load_instructions"] == 2 * 2


def test_barriers_of_a_part_of_the_block():
    """bar.sync 1, 64 is passed by two warps while a third is still busy elsewhere."""
    program = assembled("""
    setp.ge.u32 %p1, %r1, 64;
    @%p1 bra REST;
    bar.sync 1, 64;
    REST:
    bar.sync 0;
    st.global.u32 [%rd1], %r1;
    ret;
    """)
    counts = count_memory(program, plain((1,), (96,), 384, numbers=(0,)))
    assert counts.totals["barriers"] == 2 + 3
    assert counts.totals["global_store_requests"] == 3


@pytest.mark.parametrize(
    ("body", "declarations", "message"),
    [
        ("setp.lt.u32 %p1, %r1, 7; @%p1 bar.sync 0; ret;", "", "inside divergent code.*block|block.*inside divergent code"),
        ("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 0; ret; A: bar.sync 0; ret;", "", "not reached by all warps"),
        ("st.global.u32 [%rd1+4], %r1; ret;", "", r"block \(0, 0, 0\), thread \(63, 0, 0\), address 0x.*: out-of-bounds global store"),
        ("ld.global.u32 %r2, [%rd1+-4]; ret;", "", r"thread \(0, 0, 0\).*4 bytes before buffer 0"),
        ("mov.u32 %r2, tile; st.shared.u32 [%r2+128], %r1; ret;", ".shared .align 4 .b8 tile[128];", "out-of-bounds shared store .*128 bytes"),
        ("setp.lt.u32 %p1, %r1, 8; @%p1 st.global.v2.u32 [%rd1], {%r1, %r1}; ret;", "", "misaligned global store of 8 bytes"),
        ("trap; ret;", "", "the kernel traps"),
    ],
)
def test_broken_rules_name_line_block_thread(body, declarations, message):
    with pytest.raises(Violation, match=message) as error:
        count_memory(assembled(body, declarations), plain((1,), (64,), 256, numbers=(0,)))
    assert error.value.line >= 15 and error.value.thread is not None


def test_a_wrong_number_of_parameters_is_an_error():
    with pytest.raises(StudyError, match="takes 2 parameters, 1 are given"):
        count_memory(assembled("ret;"), plain((1,), (32,), 128))
