"""The checker: each kind of fault is found and named with kernel, PTX line, block, thread and address."""

import re

import numpy as np
import pytest
from launches import fill, launch_of, plain
from other_kernels import FAULTY, OTHERS, SIGNATURE, faulty
from transpose_study.simt import lockstep
from transpose_study.simt.checker import check_output, check_rules
from transpose_study.simt.machine import DataDependent
from transpose_study.simt.memory import Violation

ROWS, COLS = 64, 96


def matrix(rows=ROWS, cols=COLS):
    return np.arange(rows * cols, dtype=np.uint32).reshape(rows, cols) + np.uint32(0x7F812345)


def check(program, launch, values, expected):
    fill(launch.arguments[0], values)
    fill(launch.arguments[1], np.zeros(expected.size, np.uint32))
    width = expected.shape[1]
    check_output(program, launch, launch.arguments[1], expected.reshape(-1), lambda n: f"row {n // width}, column {n % width}")


def line_of(program, number):
    return next(i for i in program.kernel.instructions if i.line == number)


@pytest.mark.parametrize("name", sorted(FAULTY))
def test_faulty_kernels_are_named(compiler, name):
    kernel = compiler(faulty(name), "90")
    launch = plain((COLS // 32, ROWS // 32), (32, 8), ROWS * COLS * 4, ROWS * COLS * 4, numbers=(ROWS, COLS))
    with pytest.raises(Violation, match=FAULTY[name][3]) as error:
        check(kernel.program, launch, matrix(), np.ascontiguousarray(matrix().T))
    fault = error.value
    assert fault.kernel == name and fault.line and fault.block is not None and fault.thread is not None
    assert (fault.address is None) == ("barrier" in name and name != "no_barrier")
    expected = {"out_of_bounds_load": "ld", "out_of_bounds_store": "st", "wrong_element": "st"}.get(name)
    if expected:
        assert line_of(kernel.program, fault.line).opcode == expected
    for part in (f"kernel {name}", f"PTX line {fault.line}", "block (", "thread ("):
        assert part in str(fault)


def test_the_place_of_an_out_of_bounds_access_is_exact(compiler):
    """Row r + 1 of the last row: thread (0, 7) of block (0, 1) in its last step is the first past the end."""
    kernel = compiler(faulty("out_of_bounds_load"), "90")
    launch = plain((COLS // 32, ROWS // 32), (32, 8), ROWS * COLS * 4, ROWS * COLS * 4, numbers=(ROWS, COLS))
    with pytest.raises(Violation) as error:
        check_rules(kernel.program, launch)
    fault = error.value
    assert fault.block[1] == 1 and fault.thread[1] == 7
    first_outside = launch.arguments[0].address + ROWS * COLS * 4
    assert first_outside <= fault.address < first_outside + COLS * 4
    assert re.search(r"at byte \d+ of buffer 0, which has 24576", str(fault))


@pytest.mark.parametrize("name", sorted(set(FAULTY) - {"wrong_element"}))
@pytest.mark.parametrize("rows, cols", [(64, 96), (16384, 8192)])
def test_rules_are_checked_at_any_size_without_data(compiler, name, rows, cols):
    kernel = compiler(faulty(name), "90")
    with pytest.raises(Violation, match=FAULTY[name][3]):
        check_rules(kernel.program, plain((cols // 32, rows // 32), (32, 8), rows * cols * 4, rows * cols * 4, numbers=(rows, cols)))


ENDLESS = {
    "barriers": "while (rows > 0) __syncthreads(); out[0] = 1;",
    "waiting": "volatile int* flag = (volatile int*)out; while (*flag == *flag) { }",
    "counting": "for (long long i = 0; i < 1LL << 60; i++) out[i & 7] = i;",
}


@pytest.mark.parametrize("name", sorted(ENDLESS))
def test_endless_kernels_end_in_a_verdict(compiler, monkeypatch, name):
    """On the CPU nothing else would stop them; the other kernels of a study must get their turn."""
    monkeypatch.setattr(lockstep, "MAX_INSTRUCTIONS", 5000)
    kernel = compiler(f'extern "C" __global__ void {name}({SIGNATURE}) {{ {ENDLESS[name]} }}', "90")
    launch = plain((2, 1), (32, 2), 64 * 4, 64 * 4, numbers=(8, 8))
    with pytest.raises(lockstep.Endless, match=f"kernel {name}: still runs after 5,000 instructions"):
        check(kernel.program, launch, matrix(8, 8), matrix(8, 8))
    with pytest.raises(DataDependent):  # of large shapes: no verdict instead of a fault
        check_rules(kernel.program, launch)


def test_rules_that_depend_on_a_local_array_are_not_told(compiler):
    source = f"""extern "C" __global__ void local_array({SIGNATURE}) {{
        int place[16];
        for (int i = 0; i < 16; i++) place[i] = in[i] > 0 ? i : rows;
        out[place[cols % 16]] = in[place[rows % 16]];
    }}"""
    kernel = compiler(source, "90")
    with pytest.raises(DataDependent, match="local_array"):
        check_rules(kernel.program, plain((3, 2), (32, 8), ROWS * COLS * 4, ROWS * COLS * 4, numbers=(ROWS, COLS)))


def test_elements_never_written_are_told_from_wrong_ones(compiler):
    source = f"""extern "C" __global__ void forgetful({SIGNATURE}) {{
        const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y;
        if (c < cols && !(r == 3 && c == 40)) out[(size_t)c * rows + r] = in[(size_t)r * cols + c];
    }}"""
    kernel = compiler(source, "90")
    with pytest.raises(Violation, match="1 elements are never written, the first is row 40, column 3") as error:
        check(
            kernel.program,
            plain((3, ROWS), (32,), ROWS * COLS * 4, ROWS * COLS * 4, numbers=(ROWS, COLS)),
            matrix(),
            np.ascontiguousarray(matrix().T),
        )
    assert error.value.kernel == "forgetful" and error.value.address is not None


def test_a_wrong_element_names_its_writer(compiler):
    source = f"""extern "C" __global__ void swapped({SIGNATURE}) {{
        const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y;
        out[(size_t)c * rows + r] = in[(size_t)r * cols + (r == 5 && c == 33 ? 34 : c)];
    }}"""
    kernel = compiler(source, "90")
    with pytest.raises(Violation, match=r"1 elements are wrong, the first is row 33, column 5: expected 0x.*, got 0x") as error:
        check(
            kernel.program,
            plain((3, ROWS), (32,), ROWS * COLS * 4, ROWS * COLS * 4, numbers=(ROWS, COLS)),
            matrix(),
            np.ascontiguousarray(matrix().T),
        )
    assert (error.value.block, error.value.thread) == ((1, 5, 0), (1, 0, 0))
    assert line_of(kernel.program, error.value.line).opcode == "st"


def test_a_tile_that_is_reused_too_early_is_a_race(compiler):
    """Two tiles by the same block: the second write needs a barrier after the first read, too."""
    source = f"""extern "C" __global__ void reused({SIGNATURE}) {{
        __shared__ float tile[32][33];
        for (int step = 0; step < 2; ++step) {{
            const int c0 = (blockIdx.x * 2 + step) * 32, r0 = blockIdx.y * 32;
            for (int j = threadIdx.y; j < 32; j += 8) tile[j][threadIdx.x] = in[(size_t)(r0 + j) * cols + c0 + threadIdx.x];
            __syncthreads();
            for (int j = threadIdx.y; j < 32; j += 8) out[(size_t)(c0 + j) * rows + r0 + threadIdx.x] = tile[threadIdx.x][j];
            BARRIER
        }}
    }}"""
    launch = plain((1, 2), (32, 8), 64 * 64 * 4, 64 * 64 * 4, numbers=(64, 64))
    values = matrix(64, 64)
    with pytest.raises(Violation, match="writes a shared word that another warp reads"):
        check(compiler(source.replace("BARRIER", ""), "90").program, launch, values, np.ascontiguousarray(values.T))
    check(compiler(source.replace("BARRIER", "__syncthreads();"), "90").program, launch, values, np.ascontiguousarray(values.T))


@pytest.mark.parametrize("name", ["tiled_padded_b8", "tiled_xor_b32", "copy_vectorized", "naive_read_coalesced_b4"])
def test_good_kernels_pass(ladder, name):
    values = matrix(67, 45)
    expected = values if "copy" in name else np.ascontiguousarray(values.T)
    check(ladder(name).program, launch_of(name, 67, 45), values, expected)
    check_rules(ladder(name).program, launch_of(name, 16384, 16384))
    check_rules(ladder(name).program, launch_of(name, 4095, 4097))


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_good_kernels_outside_of_the_ladder_pass(compiler, name):
    source, block, grid = OTHERS[name]
    values = np.arange(70 * 50, dtype=np.float32).reshape(70, 50).view(np.uint32)
    launch = plain(grid(70, 50), block, 70 * 50 * 4, 70 * 50 * 4, numbers=(70, 50))
    check(compiler(source, "90").program, launch, values, np.ascontiguousarray(values.T))
