"""The kernels of the study ``micro``: counts against formulas, results against the registry, and what the compiler makes of branches."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from launches import ROOT, contents, fill
from transpose_study.array_expressions import evaluate_array
from transpose_study.cells import Cell
from transpose_study.records import read_yaml
from transpose_study.registry import Kernel, Study
from transpose_study.simt import cells
from transpose_study.simt.blocks import count_memory, run_grid
from transpose_study.simt.checker import Races, check_rules
from transpose_study.simt.limits import limits_of
from transpose_study.simt.machine import Launch
from transpose_study.simt.memory import Buffer
from transpose_study.simt.occupancy import residency

MICRO = Study(ROOT / "kernels" / "micro" / "variants.yaml")
CONFIG = read_yaml(ROOT / "config" / "micro.yaml")
GROUPS = {v: {"experiment": g["experiment"]} for g in CONFIG["shapes"] for v in g["variants"]}


def cell_of(name: str, **values: int) -> Cell:
    variant = MICRO.variants[name]
    assert set(values) == set(variant.takes)
    return Cell(variant, values, GROUPS[name])


@pytest.fixture(scope="module")
def compiled(compiler):
    """``compiled(cell)``: the cell's kernel for compute capability 9.0, and its launch."""

    def build(cell: Cell):
        macros = MICRO.macros(Kernel(cell.variant, {a: cell.kernel_values[a] for a in cell.variant.code_axes}))
        assert cell.variant.source is not None
        kernel = compiler(cell.variant.source, "90", tuple(f"-D{m}={v}" for m, v in macros.items()), cell.variant.name)
        return kernel, cells.launch_of(MICRO, cell, kernel.program)

    return build


@pytest.fixture(scope="module")
def counted(compiled):
    """``counted(name, **axes)``: memory counters, and issued instructions, of a cell."""

    def run(name: str, **values: int):
        kernel, launch = compiled(cell_of(name, **values))
        return count_memory(kernel.program, launch).totals, kernel.instructions(launch)

    return run


def wavefronts(addresses, width: int) -> int:
    """The rule once more, in plain Python: phases of lanes, and in each the most different words of one bank."""
    lanes = 32 * 4 // max(4, width)
    total = 0
    for first in range(0, 32, lanes):
        words = {a // 4 + n for a in addresses[first : first + lanes] for n in range(max(1, width // 4))}
        total += max(Counter(w % 32 for w in words).values())
    return total


# The lanes of a phase (32, 16, 8) conflict gcd(stride, phase) ways, and there are 1, 2, 4 phases.
def strided(width: int, stride: int) -> int:
    return {4: math.gcd(stride, 32), 8: 2 * math.gcd(stride, 16), 16: 4 * math.gcd(stride, 8)}[width]


@pytest.mark.parametrize("stride", [1, 2, 5, 12, 16, 32, 33])
@pytest.mark.parametrize("width", [4, 8, 16])
def test_strides_conflict_by_common_divisors(counted, width, stride):
    totals, issued = counted("bank_load", width=width, stride=stride)
    assert totals["shared_load_instructions"] == issued.by_opcode["LDS"] == 4096 * 8 * 64
    assert totals["shared_load_wavefronts"] == 4096 * 8 * 64 * strided(width, stride)
    assert totals["shared_store_wavefronts"] == 4096 * strided(width, stride)  # one warp fills the array


@pytest.mark.parametrize("stride", [1, 8, 33])
def test_stores_conflict_as_loads_do_and_are_all_kept(counted, stride):
    totals, issued = counted("bank_store", width=16, stride=stride)
    assert totals["shared_store_instructions"] == issued.by_opcode["STS"] == 4096 * 8 * 64
    assert totals["shared_store_wavefronts"] == 4096 * 8 * 64 * strided(16, stride)


def test_a_bit_field_made_of_the_block_s_number_stays_affine(compiled):
    """``blockIdx.x * 32 + lane`` is a ``bfi`` in the PTX: all 4096 blocks are one class, executed once."""
    kernel, launch = compiled(cell_of("bank_store", width=16, stride=1))
    assert any(i.opcode == "bfi" for i in kernel.program.kernel.instructions)
    assert [box.blocks for box in count_memory(kernel.program, launch).classes] == [4096]


@pytest.mark.parametrize("stride", [1, 6, 32])
def test_the_chain_of_loads_is_one_warp_s(counted, stride):
    totals, issued = counted("bank_latency", width=4, stride=stride)
    assert totals["shared_load_instructions"] == issued.by_opcode["LDS"] == 2 * 64
    assert totals["shared_load_wavefronts"] == 2 * 64 * math.gcd(stride, 32)
    assert issued.by_opcode["CS2R"] == 2 * 2  # the clock, before and after each pass
    assert issued.warps == 1


@pytest.mark.parametrize("sharers", [1, 2, 8, 32])
def test_sharing_a_word_is_free_and_sharing_a_bank_is_not(counted, sharers):
    requests = 4096 * 8 * 64
    assert counted("bank_broadcast", sharers=sharers)[0]["shared_load_wavefronts"] == requests
    assert counted("bank_multicast", sharers=sharers)[0]["shared_load_wavefronts"] == requests * 32 // sharers


@pytest.mark.parametrize(("size", "pitches"), [(1, [32, 33, 36, 1056]), (8, [32, 33, 40, 66])])
def test_columns_conflict_by_pitch_and_element(counted, size, pitches):
    for pitch in pitches:
        totals, _ = counted("bank_column", bytes=size, pitch=pitch)
        assert totals["shared_load_wavefronts"] == 4096 * 8 * 64 * wavefronts([i * pitch * size for i in range(32)], size)


def test_a_column_that_no_block_has_room_for_is_skipped():
    asked = MICRO.shared_refusal(cell_of("bank_column", bytes=8, pitch=1056), 0, limits_of("9.0").shared_bytes_per_block)
    assert asked == "a block needs 270336 bytes of shared memory, the device gives at most 232448"


PLACES = {
    "swizzle_none": lambda r, c, t: r * t + c,
    "swizzle_padded": lambda r, c, t: r * (t + 1) + c,
    "swizzle_xor": lambda r, c, t: r * t + (c ^ r),
    "swizzle_xor_masked": lambda r, c, t: r * t + (c ^ (r & (t - 1))),
    "swizzle_rotated": lambda r, c, t: r * t + (c + r) % t,
    "swizzle_padded_xor": lambda r, c, t: r * (t + 1) + (c ^ (r & (t - 1))),
}


@pytest.mark.parametrize("name", PLACES)
def test_swizzles(counted, name):
    for tile in (8, 16, 24, 32):
        place = [[4 * PLACES[name](r, c, tile) for c in range(tile)] for r in range(32)]
        pitch = 4 * (tile + ("padded" in name))
        fits = all(sorted(row) == list(range(r * pitch, r * pitch + 4 * tile, 4)) for r, row in enumerate(place))
        assert bool(MICRO.cell_refusal(cell_of(name, tile=tile))) != fits
        if not fits:
            continue
        blocks, words = 65536 // tile, [a for row in place for a in row]
        totals, _ = counted(name, tile=tile)
        rows = sum(wavefronts(words[i : i + 32], 4) for i in range(0, len(words), 32))
        columns = sum(wavefronts([row[c] for row in place], 4) for c in range(tile))
        assert totals["shared_store_wavefronts"] == blocks * rows
        assert totals["shared_load_wavefronts"] == blocks * 16 * columns


@pytest.mark.parametrize(
    ("name", "loads", "taken", "stored"),
    [
        ("vector_none", 1, 32, 4),  # 8 lanes of a phase in the same four banks
        ("vector_xor", 1, 4, 4),
        ("vector_scalar_xor", 4, 4, 4),  # four accesses of 4 bytes; 8 vectors of 4 rows have 32 places for their words
    ],
)
def test_vector_tiles(counted, name, loads, taken, stored):
    totals, _ = counted(name)
    warps = 2048 * 8
    assert totals["shared_load_instructions"] == warps * 16 * loads
    assert totals["shared_load_wavefronts"] == warps * 16 * taken
    assert totals["shared_store_wavefronts"] == warps * stored


@pytest.mark.parametrize("name", ["branch_short", "branch_ternary"])
def test_short_branches_are_predicated(compiled, counted, name):
    kernel, _ = compiled(cell_of(name, lanes=0))
    before_exit = [i.opcode for i in kernel.code.instructions]
    assert "BRA" not in before_exit[: before_exit.index("EXIT")]
    found = [counted(name, lanes=lanes)[1] for lanes in (0, 1, 16, 32)]
    assert len({i.total for i in found}) == 1
    assert all(i.threads == 32 * i.total and i.by_opcode["MUFU"] == 64 * i.warps for i in found)


def test_if_and_the_conditional_operator_are_the_same_code(compiled):
    one, other = (compiled(cell_of(n, lanes=0))[0].code.instructions for n in ("branch_short", "branch_ternary"))
    assert [i.text for i in one] == [i.text for i in other]


def test_long_branches_cost_both_sides_however_few_lanes_take_one(counted):
    """4 rounds of 16 roots (MUFU) or 16 sines (FMUL and MUFU); lanes of each side add up to the warp's 32."""
    found = {lanes: counted("branch_long", lanes=lanes)[1] for lanes in (0, 1, 16, 31, 32)}
    for lanes, issued in found.items():
        assert issued.by_opcode["MUFU"] == issued.warps * 64 * ((lanes > 0) + (lanes < 32))
        assert issued.by_opcode["FMUL"] == issued.warps * 64 * (lanes < 32)
    assert found[1].total == found[16].total == found[31].total
    assert found[32].total < found[0].total < found[1].total
    assert found[0].threads == 32 * found[0].total
    # a lane that changes sides issues, in each of 4 rounds, 16 roots instead of 32 instructions of sines and the BRA behind them
    assert found[1].threads - found[16].threads == found[1].warps * 15 * 4 * (32 + 1 - 16)


def test_every_path_is_issued(counted):
    """16 additions and roots a path; one MUFU more is the reciprocal in lane % paths."""
    for paths in (1, 3, 32):
        issued = counted("branch_paths", paths=paths)[1]
        assert issued.by_opcode["FADD"] == issued.warps * 16 * paths
        assert issued.by_opcode["MUFU"] == issued.warps * (16 * paths + 1)


@pytest.mark.parametrize("offset", [0, 1, 8, 12, 31, 32])
def test_offsets_touch_one_sector_and_one_line_more(counted, offset):
    totals, _ = counted("copy_offset", offset=offset)
    warps = 2**22 // 32
    assert totals["global_load_requests"] == warps
    assert totals["global_load_sectors"] == warps * (4 if offset % 8 == 0 else 5)
    assert totals["global_load_lines"] == warps * (1 if offset % 32 == 0 else 2)
    assert totals["global_store_sectors"] == 4 * warps
    assert totals["global_store_lines"] == warps


@pytest.mark.parametrize("pitch", [1024, 1025, 1026, 1028, 1032, 1040])
def test_pitches_misalign_some_rows(counted, pitch):
    totals, _ = counted("copy_pitch", row_pitch=pitch)
    starts = [row * pitch for row in range(4096)]
    assert totals["global_load_sectors"] == 32 * sum(4 + (s % 8 != 0) for s in starts)
    assert totals["global_load_lines"] == 32 * sum(1 + (s % 32 != 0) for s in starts)


def test_copies_that_differ_in_residency_move_the_same(counted):
    totals, _ = counted("occupancy_memory", ilp=4, shared_kib=200)
    assert totals["global_load_sectors"] == totals["global_store_sectors"] == 2**24 * 4 // 32
    assert totals["warps"] == 2**24 // 4 // 32


@pytest.mark.parametrize("ilp", [1, 2, 4, 8])
@pytest.mark.parametrize("threads", [96, 256])
def test_copies_by_size_of_the_block_move_the_same(counted, ilp, threads):
    totals, issued = counted("block_memory", ilp=ilp, threads=threads)
    assert totals["global_load_sectors"] == totals["global_store_sectors"] == 2**24 * 4 // 32
    assert totals["global_load_requests"] == totals["global_store_requests"] == 2**24 // 32
    assert totals["warps"] == issued.warps == -(-(2**24) // (threads * ilp)) * threads // 32


def test_loads_of_a_thread_are_under_way_together(compiled):
    """All loads come before the first store; otherwise more elements a thread would be no more bytes under way."""
    for ilp in (1, 2, 4, 8):
        kernel, _ = compiled(cell_of("block_memory", ilp=ilp, threads=256))
        order = [i.opcode.split(".")[0] for i in kernel.code.instructions]
        accesses = [o for o in order if o in ("LDG", "STG")]
        assert accesses == ["LDG"] * ilp + ["STG"] * ilp


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("occupancy_compute", {"ilp": 2, "shared_kib": 0}),
        *(("block_compute", {"ilp": n, "threads": 384}) for n in (1, 2, 4, 8)),
        ("registers_compute", {"live": 24}),
        ("registers_compute", {"live": 120}),
    ],
)
def test_the_arithmetic_is_kept(counted, name, values):
    issued = counted(name, **values)[1]
    threads = 2**20 // 32
    assert issued.by_opcode["FFMA"] == 512 * threads  # of warps with an element; the last block's others skip the chain


@pytest.mark.parametrize("live", CONFIG["axes"]["live"])
@pytest.mark.parametrize("name", ["occupancy_registers", "registers_compute"])
def test_registers_are_those_of_the_path_that_is_not_taken(compiled, counted, name, live):
    kernel, _ = compiled(cell_of(name, live=live))
    assert kernel.facts["registers"] == live + 8 and kernel.facts["spill_store_bytes"] == 0
    issued = counted(name, live=live)[1]
    assert issued.by_opcode["LDG"] == issued.by_opcode["STG"] == issued.warps
    assert issued.total == counted(name, live=CONFIG["axes"]["live"][0])[1].total


@pytest.mark.parametrize(
    ("registers", "warps"),
    # 65,536 registers in warps of 32 times the registers, warps in groups of 4 (a block is one): floor(65536 / (32 r) / 4) * 4
    [(32, 64), (40, 48), (48, 40), (56, 36), (64, 32), (72, 28), (96, 20), (104, 16), (128, 16)],
)
def test_occupancy_falls_in_steps_that_are_not_32_registers(registers, warps):
    assert residency(limits_of("9.0"), 128, registers, 0).resident_blocks * 4 == warps


def test_threads_of_partial_warps_are_counted(counted):
    totals, issued = counted("warp_lanes", block_x=5, block_y=7)
    assert totals["warps"] == issued.warps == 2
    assert issued.threads / issued.total == 35 / 2  # 32 lanes in one warp, 3 in the other, both issue the same


def test_dependent_loads_have_known_addresses(counted):
    for touch in (1, 2):
        totals, issued = counted("global_latency", touch=touch)
        assert totals["global_load_requests"] == issued.by_opcode["LDG"] == 64 * (touch + 1)
        assert totals["global_load_sectors"] == 4 * 64 * (touch + 1)
        assert totals["global_load_lines"] == 64 * (touch + 1)


PER_THREAD = {"occupancy_memory": 4, "block_memory": 4, "warp_lanes": 2} | {n: 4 for n in MICRO.variants if n.startswith(("swizzle", "vector"))}
CELLS = [
    ("bank_latency", {"width": 4, "stride": 32}),
    ("bank_load", {"width": 8, "stride": 7}),
    ("bank_store", {"width": 16, "stride": 33}),
    ("bank_broadcast", {"sharers": 4}),
    ("bank_multicast", {"sharers": 8}),
    ("bank_column", {"bytes": 1, "pitch": 33}),
    *((name, {"tile": 32}) for name in PLACES),
    *((name, {}) for name in ("vector_none", "vector_xor", "vector_scalar_xor")),
    *((name, {"lanes": 5}) for name in ("branch_short", "branch_ternary", "branch_long")),
    ("branch_paths", {"paths": 7}),
    ("copy_offset", {"offset": 3}),
    ("copy_pitch", {"row_pitch": 1025}),
    ("occupancy_memory", {"ilp": 4, "shared_kib": 8}),
    ("occupancy_compute", {"ilp": 2, "shared_kib": 16}),
    ("block_memory", {"ilp": 4, "threads": 96}),
    ("block_compute", {"ilp": 8, "threads": 384}),
    ("occupancy_registers", {"live": 32}),
    ("registers_compute", {"live": 32}),
    ("warp_lanes", {"block_x": 16, "block_y": 4}),
    ("global_latency", {"touch": 2}),
]


def test_every_kernel_is_compared():
    assert {name for name, _ in CELLS} == {v.name for v in MICRO.variants.values() if not v.no_kernel} == GROUPS.keys() - {"allocation"}


@pytest.mark.parametrize(("name", "values"), CELLS)
def test_the_output_is_what_the_registry_says(compiled, name, values):
    """The first blocks along x, with data: each element that they write equals the input's at the registry's index, and no other is."""
    cell = cell_of(name, **values)
    kernel, launch = compiled(cell)
    check_rules(kernel.program, launch)
    few = Launch((min(2, launch.grid[0]), min(2, launch.grid[1]), 1), launch.block, launch.arguments, launch.dynamic_shared)
    buffers = {a.name: a for a in launch.arguments if isinstance(a, Buffer)}
    data = np.random.default_rng(6).integers(0, 2**32 - 1, MICRO.input_count(cell), dtype=np.uint32)
    nothing = np.uint32(2**32 - 1)
    for buffer in buffers.values():
        fill(buffer, data if buffer.name == "the input" else np.full(buffer.size // 4, nothing))
    run_grid(kernel.program, few, lambda batch: [Races(batch, kernel.program, few)], tracked=True)
    found = contents(buffers["the output"], np.uint32)
    written = np.flatnonzero(found != nothing)
    reference = cell.variant.reference
    source = evaluate_array(reference.index, values, {"i": written}) if reference.index else written  # every other one is a copy
    assert (found[written] == data[source]).all()
    assert len(written) == math.prod(few.grid) * math.prod(few.block) * PER_THREAD.get(name, 1)
