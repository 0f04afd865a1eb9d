"""Resident blocks by each limit of a multiprocessor, and theoretical occupancy."""

from __future__ import annotations

from dataclasses import dataclass

from transpose_study.errors import StudyError
from transpose_study.simt.limits import MAX_REGISTERS_PER_THREAD, MIN_REGISTERS_PER_THREAD, Limits


@dataclass(frozen=True)
class Residency:
    """Resident blocks by each limit.

    ``registers_per_thread`` is what a launch is given, ``shared_config_bytes`` what an SM has as shared memory for it.
    """

    warps_per_block: int
    registers_per_thread: int
    limit_blocks: int
    limit_warps: int
    limit_registers: int
    limit_shared_memory: int
    shared_allocated_bytes_per_block: int
    shared_config_bytes: int
    warps_per_sm: int

    @property
    def resident_blocks(self) -> int:
        """Blocks of an SM: the least of the limits."""
        return min(self.limit_blocks, self.limit_warps, self.limit_registers, self.limit_shared_memory)

    @property
    def theoretical_occupancy_pct(self) -> float:
        """Resident warps as a share of the most an SM holds."""
        return 100 * self.resident_blocks * self.warps_per_block / self.warps_per_sm


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def residency(limits: Limits, threads: int, registers: int, shared_bytes: int, shared_config_bytes: int | None = None) -> Residency:
    """Resident blocks of a kernel with ``threads`` a block, ``registers`` a thread and ``shared_bytes`` a block.

    ``shared_config_bytes`` is the driver's choice for the launch; without it the largest configuration is taken. Raises
    :class:`StudyError` naming the limit if not even one block fits.
    """
    warps = -(-threads // 32)
    allocated = _up(shared_bytes + limits.shared_reserved, limits.shared_unit)
    config = limits.shared_bytes if shared_config_bytes is None else shared_config_bytes
    if registers > MAX_REGISTERS_PER_THREAD:
        raise StudyError(f"{registers} registers a thread are above the limit of {MAX_REGISTERS_PER_THREAD}")
    if shared_bytes > limits.shared_bytes_per_block:
        raise StudyError(f"{shared_bytes} bytes of shared memory a block are above the limit of {limits.shared_bytes_per_block}")
    given = max(registers, MIN_REGISTERS_PER_THREAD)
    per_warp = _up(given * 32, limits.register_unit)
    warps_by_registers = limits.registers // per_warp // limits.warp_unit * limits.warp_unit
    found = Residency(
        warps_per_block=warps,
        registers_per_thread=given,
        limit_blocks=limits.blocks,
        limit_warps=limits.warps // warps,
        limit_registers=warps_by_registers // warps,
        limit_shared_memory=config // allocated if allocated else limits.blocks,
        shared_allocated_bytes_per_block=allocated,
        shared_config_bytes=config,
        warps_per_sm=limits.warps,
    )
    if found.limit_registers == 0:
        what = f"a block of {threads} threads with {registers} registers each needs more than the {limits.registers} of an SM"
        raise StudyError(what)
    return found
