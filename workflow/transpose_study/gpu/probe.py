"""Launches probe.cu's kernel once: ``python -m transpose_study.gpu.probe CUBIN``, for the doctor to profile."""

from __future__ import annotations

import sys

import cupy

THREADS = 32


def main(cubin: str) -> int:
    """Load the cubin, launch it and wait; 0 where it wrote what it should."""
    out = cupy.zeros(THREADS, dtype=cupy.float32)
    cupy.RawModule(path=cubin).get_function("probe")((1,), (THREADS,), (out,))
    return 0 if out.get().tolist() == list(range(THREADS)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
