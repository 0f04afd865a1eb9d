"""Limits of a streaming multiprocessor by compute capability, 7.5 to 12.1, with the source of each figure."""

from __future__ import annotations

from dataclasses import dataclass

from transpose_study.errors import StudyError
from transpose_study.registry import Cell, Study

KIB = 1024

# For all of these capabilities (CUDA Programming Guide, appendix "Compute Capabilities", technical specifications).
MAX_REGISTERS_PER_THREAD = 255

# A launch is given at least so many registers a thread, however few ptxas needs: ncu's launch__registers_per_thread reads 16
# for kernels of 8 to 14 registers, and its limit by registers follows (read on compute capability 9.0).
MIN_REGISTERS_PER_THREAD = 16


@dataclass(frozen=True)
class Limits:
    """What one multiprocessor holds.

    - ``blocks``, ``warps``: resident at once (CUDA Programming Guide, table of technical specifications; the same figures
      stand in libcu++'s ``cuda::arch_traits``).
    - ``registers``: 32-bit registers (same tables: 64 K for all of these capabilities). A warp is given registers in units of
      ``register_unit``, and warps come in groups of ``warp_unit``, one for each scheduler (Nsight Compute's occupancy
      calculator, columns "register allocation unit size" and "warp allocation granularity").
    - ``shared_bytes``: the largest share of the unified cache that can be shared memory; ``shared_bytes_per_block``: the most a
      block may ask for (same tables: 1 KiB less from 8.0 on).
    - ``shared_reserved``: bytes the system takes for each block (same guide: 1 KiB from 8.0 on; device attribute
      ``cudaDevAttrReservedSharedMemoryPerBlock``); ``shared_unit``: allocation granularity (occupancy calculator).
    """

    blocks: int
    warps: int
    shared_bytes: int
    registers: int = 64 * KIB
    register_unit: int = 256
    warp_unit: int = 4
    shared_reserved: int = KIB
    shared_unit: int = 128

    @property
    def shared_bytes_per_block(self) -> int:
        """The most shared memory that one block may ask for, in bytes."""
        return self.shared_bytes - self.shared_reserved


LIMITS: dict[str, Limits] = {
    "7.5": Limits(blocks=16, warps=32, shared_bytes=64 * KIB, shared_reserved=0, shared_unit=256),
    "8.0": Limits(blocks=32, warps=64, shared_bytes=164 * KIB),
    "8.6": Limits(blocks=16, warps=48, shared_bytes=100 * KIB),
    "8.7": Limits(blocks=16, warps=48, shared_bytes=164 * KIB),
    "8.8": Limits(blocks=16, warps=48, shared_bytes=100 * KIB),
    "8.9": Limits(blocks=24, warps=48, shared_bytes=100 * KIB),
    "9.0": Limits(blocks=32, warps=64, shared_bytes=228 * KIB),
    "10.0": Limits(blocks=32, warps=64, shared_bytes=228 * KIB),
    "10.3": Limits(blocks=32, warps=64, shared_bytes=228 * KIB),
    "11.0": Limits(blocks=24, warps=48, shared_bytes=228 * KIB),
    "12.0": Limits(blocks=24, warps=48, shared_bytes=100 * KIB),
    "12.1": Limits(blocks=24, warps=48, shared_bytes=100 * KIB),
}


def limits_of(compute_capability: str) -> Limits:
    """The limits of a compute capability, written ``9.0`` or as an architecture, ``90``."""
    key = _dotted(compute_capability)
    if key not in LIMITS:
        raise StudyError(f"the limits of compute capability {key} are not known; known: {', '.join(LIMITS)}")
    return LIMITS[key]


def shared_refusal(study: Study, cell: Cell, static_bytes: int, compute_capability: str) -> str:
    """Why a block cannot have its shared memory on such a GPU ("" if it can, and where the limit is not known)."""
    limits = LIMITS.get(_dotted(compute_capability))
    return study.shared_refusal(cell, static_bytes, limits.shared_bytes_per_block) if limits else ""


def _dotted(compute_capability: str) -> str:
    text = compute_capability
    return text if "." in text else f"{text[:-1]}.{text[-1:]}"
