"""Classes of blocks against execution of every block, and their cost."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launches import LADDER, STUDY, cell_of, launch_of, plain
from other_kernels import DATA_DEPENDENT, OTHERS
from transpose_study.simt.blocks import count_memory
from transpose_study.simt.machine import DataDependent

shapes = st.tuples(st.integers(1, 150), st.integers(1, 150))


def whole_tiles(name, rows, cols):
    """The next shape that the kernel's preconditions allow."""
    if STUDY.cell_refusal(cell_of(LADDER[name], rows, cols)):
        return rows // 32 * 32 + 32, cols // 32 * 32 + 32
    return rows, cols


def agree(kernel, launch):
    classes, blocks = count_memory(kernel.program, launch), count_memory(kernel.program, launch, each_block=True)
    assert classes.totals == blocks.totals
    assert len(blocks.classes) == launch.grid[0] * launch.grid[1] * launch.grid[2] == sum(c.blocks for c in classes.classes)
    assert kernel.instructions(launch) == kernel.instructions(launch, each_block=True)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(LADDER)), shapes)
def test_classes_agree_with_every_block_on_the_ladder(ladder, name, shape):
    agree(ladder(name), launch_of(name, *whole_tiles(name, *shape)))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(OTHERS)), shapes)
def test_classes_agree_with_every_block_on_other_kernels(compiler, name, shape):
    source, block, grid = OTHERS[name]
    rows, cols = shape
    agree(compiler(source, "90"), plain(grid(rows, cols), block, rows * cols * 4, rows * cols * 4, numbers=shape))


@pytest.mark.parametrize("shape", [(4095, 4097), (1001, 4096), (8, 100003)])
@pytest.mark.parametrize(
    "name", ["copy", "copy_vectorized", "copy_looped_b4", "naive_read_coalesced_b8", "naive_write_coalesced_b4", "tiled_xor_b16"]
)
def test_ragged_shapes_need_few_classes(ladder, name, shape):
    """Interior, right and bottom edge, corner: the phases of the addresses are counted, not executed."""
    assert len(count_memory(ladder(name).program, launch_of(name, *shape)).classes) <= 4


def test_cost_does_not_grow_with_the_shape(ladder):
    names = sorted(LADDER)[::3]
    for name in names:
        ladder(name)

    def seconds(size):
        best = []
        for _ in range(4):
            start = time.process_time()
            for name in names:
                launch = launch_of(name, size, size)
                count_memory(ladder(name).program, launch)
                ladder(name).instructions(launch)
            best.append(time.process_time() - start)
        return min(best)

    small = seconds(1024)
    assert seconds(16384) <= 1.5 * small


def test_odd_and_even_blocks_are_two_classes(compiler):
    """blockIdx.x & 1 splits the grid into two combs, whatever its size."""
    source, block, grid = OTHERS["odd_even_blocks"]
    kernel = compiler(source, "90")
    rows, cols = 4096, 8192
    counts = count_memory(kernel.program, plain(grid(rows, cols), block, rows * cols * 4, rows * cols * 4, numbers=(rows, cols)))
    assert len(counts.classes) == 2
    assert counts.totals["global_load_requests"] == rows * cols // 32
    # an odd block's warp stores in two parts, 20 lanes and 12
    assert counts.totals["global_store_requests"] == rows * cols // 32 * 3 // 2


def test_dependence_on_data_is_said(compiler):
    kernel = compiler(DATA_DEPENDENT, "90")
    launch = plain((64,), (128,), 32768, 32768, numbers=(64, 128))
    with pytest.raises(DataDependent, match=r"kernel data_dependent, PTX line \d+.*depends on data"):
        count_memory(kernel.program, launch)
    with pytest.raises(DataDependent, match=r"kernel data_dependent, offset 0x.*depends on loaded data"):
        kernel.instructions(launch)


TABLE_DRIVEN = """extern "C" __global__ void table_driven(const float* in, float* out, int rows, int cols) {
    __shared__ int order[32];
    if (threadIdx.x < 32) order[threadIdx.x] = (threadIdx.x * 5 + blockIdx.x) % 32;
    __syncthreads();
    const int i = blockIdx.x * 64 + (threadIdx.x & 32) + order[threadIdx.x & 31];
    if (i < rows * cols) out[i] = in[i];
}"""


def test_addresses_from_shared_memory_are_followed(compiler):
    """Shared contents are tracked when an address needs them: a permutation within the warp still touches four sectors."""
    kernel = compiler(TABLE_DRIVEN, "90")
    counts = count_memory(kernel.program, plain((10,), (64,), 2560, 2560, numbers=(20, 32)))
    assert counts.totals["global_load_requests"] == 20
    assert counts.totals["global_load_sectors"] == 80
    assert len(counts.classes) == 10
