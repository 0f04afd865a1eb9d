"""Occupancy against the published figures and against values that ncu read on an H200."""

import pytest
from transpose_study.errors import StudyError
from transpose_study.simt.limits import LIMITS, limits_of
from transpose_study.simt.occupancy import residency


@pytest.mark.parametrize(
    # capability, threads, registers, shared, configured shared; blocks, registers, shared memory, warps; occupancy
    ("capability", "threads", "registers", "shared", "config", "expected", "occupancy"),
    [
        ("12.0", 1024, 18, 4224, 8192, (24, 2, 1, 1), 200 / 3),  # the published 32x32 kernel
        ("12.0", 256, 26, 4224, 65536, (24, 8, 12, 6), 100),  # the published 32x8 loop
        ("9.0", 256, 30, 4224, 102400, (32, 8, 19, 8), 100),  # tiled_padded b8 as ncu reads it on an H200
        ("9.0", 1024, 8, 0, 8192, (32, 4, 8, 2), 100),  # copy_looped b32 there: 8 registers count as 16
        # 64 registers: 2048 a warp, 32 warps; 163 KiB of shared memory for one block
        ("8.0", 256, 64, 163 * 1024, 164 * 1024, (32, 4, 1, 8), 12.5),
        # 7.5 reserves nothing and allocates in units of 256 bytes: 4224 -> 4352, 65536 // 4352 = 15
        ("7.5", 128, 40, 4224, None, (16, 12, 15, 8), 100),
    ],
)
def test_limits_and_occupancy(capability, threads, registers, shared, config, expected, occupancy):
    found = residency(limits_of(capability), threads, registers, shared, config)
    assert (found.limit_blocks, found.limit_registers, found.limit_shared_memory, found.limit_warps) == expected
    assert found.resident_blocks == min(expected)
    assert found.theoretical_occupancy_pct == pytest.approx(occupancy)


def test_allocated_shared_memory_includes_the_systems_share():
    assert residency(limits_of("12.0"), 256, 26, 4224).shared_allocated_bytes_per_block == 5248  # as published: 4224 + 1024
    assert residency(limits_of("9.0"), 256, 26, 4225).shared_allocated_bytes_per_block == 5376  # rounded up to 128
    assert residency(limits_of("7.5"), 256, 26, 0).shared_allocated_bytes_per_block == 0


@pytest.mark.parametrize("name", LIMITS)
def test_every_capability_by_both_names(name):
    assert limits_of(name) is limits_of(name.replace(".", ""))
    assert limits_of(name).registers == 65536


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "message"),
    [
        (256, 26, 100 * 1024, "102400 bytes of shared memory a block are above the limit of 101376"),
        (256, 256, 0, "256 registers a thread are above the limit of 255"),
        (1024, 128, 0, "needs more than the 65536 of an SM"),
    ],
)
def test_a_kernel_that_does_not_fit_names_the_limit(threads, registers, shared, message):
    with pytest.raises(StudyError, match=message):
        residency(limits_of("12.0"), threads, registers, shared)


def test_unknown_capability():
    with pytest.raises(StudyError, match=r"compute capability 6.1 are not known; known: 7.5"):
        limits_of("6.1")
