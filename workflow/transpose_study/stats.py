"""Bootstrap intervals of medians for samples that come in rounds of several processes. numpy only.

The resampling is hierarchical, since the placement of allocations differs between processes: processes are drawn with
replacement, then the rounds within each drawn process (Davison and Hinkley, Bootstrap Methods and their Application,
section 3.8). Intervals are percentile intervals of the resampled medians. Everything is seeded, so the same samples
give the same interval whatever the order they are given in.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 1000
LEVEL = 0.95
_CHUNK = 1 << 21  # ranks resampled at a time; bounds the memory for very long runs


@dataclass(frozen=True)
class Interval:
    """A median with the ends of its interval and the number of samples behind it; ends are NaN for fewer than two."""

    median: float
    low: float
    high: float
    n: int

    @property
    def width(self) -> float:
        """Width of the interval as a share of the median (NaN where there is no interval)."""
        return (self.high - self.low) / self.median if self.median else math.nan


def seed_of(*parts: object) -> int:
    """A 64-bit seed from the text of ``parts``; equal in every process and on every machine, unlike ``hash``."""
    text = "\x1f".join(str(p) for p in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def resampled_medians(samples: ArrayLike, processes: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES) -> NDArray[np.float64]:
    """Medians of ``resamples`` hierarchical resamples of ``samples`` (shape n), whose processes are ``processes`` (shape n)."""
    values = np.asarray(samples, dtype=float)
    labels = np.asarray(processes)
    if values.ndim != 1 or values.shape != labels.shape or not values.size:
        raise ValueError("samples and processes must be two lists of one length, not empty")
    order = np.lexsort((values, labels))  # by process, then by value: the given order must not matter
    ranked = np.sort(values)
    # Sorting small integers is several times faster than sorting floats, and the median of ranks is the rank of the median.
    ranks = np.searchsorted(ranked, values[order]).astype(np.uint16 if values.size < 2**16 - 1 else np.uint32)
    _, starts, sizes = np.unique(labels[order], return_index=True, return_counts=True)
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // values.size)
    parts = [_medians(rng, ranks, starts, sizes, min(step, resamples - done)) for done in range(0, resamples, step)]
    low, high = np.concatenate(parts, axis=1)
    return (ranked[low] + ranked[high]) / 2


def _medians(
    rng: np.random.Generator, ranks: NDArray[np.unsignedinteger], starts: NDArray[np.int64], sizes: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Ranks of the two middle elements (shape 2 x count) of ``count`` resamples."""
    chosen = rng.integers(0, sizes.size, (count, sizes.size))
    size = sizes[chosen]
    longest = int(sizes.max())
    draw = (rng.random((count, sizes.size, longest), dtype=np.float32) * size[..., None].astype(np.float32)).astype(np.int32)
    np.minimum(draw, size[..., None] - 1, out=draw)  # float32 may round up to the size itself
    drawn = ranks[starts[chosen][..., None] + draw]
    if longest != sizes.min():  # a shorter process gives fewer draws: the rest sorts behind every real rank
        drawn[np.arange(longest) >= size[..., None]] = np.iinfo(ranks.dtype).max
    drawn = np.sort(drawn.reshape(count, -1), axis=1)
    total = size.sum(axis=1)
    rows = np.arange(count)
    return np.stack([drawn[rows, (total - 1) // 2], drawn[rows, total // 2]]).astype(np.int64)


def median_interval(samples: ArrayLike, processes: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES, level: float = LEVEL) -> Interval:
    """Median of ``samples`` with its bootstrap interval; ``processes`` gives the process of each sample (both shape n)."""
    values = np.asarray(samples, dtype=float)
    median = float(np.median(values))
    if values.size < 2:
        return Interval(median, math.nan, math.nan, values.size)
    medians = resampled_medians(values, processes, seed=seed, resamples=resamples)
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return Interval(median, float(low), float(high), values.size)


@dataclass(frozen=True)
class Series:
    """Samples of one cell in one cache mode, each with its process and round (all shape n)."""

    samples: NDArray[np.float64]
    processes: NDArray[np.int64]
    rounds: NDArray[np.int64]

    @property
    def places(self) -> list[tuple[int, int]]:
        """(process, round) of each sample."""
        return list(zip(self.processes.tolist(), self.rounds.tolist(), strict=True))


def paired_ratio(numerator: Series, denominator: Series, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval | None:
    """Median over pairs of ``numerator / denominator``, paired by process and round; None where no pair exists."""
    where = {place: i for i, place in enumerate(denominator.places)}
    pairs = [(i, where[place]) for i, place in enumerate(numerator.places) if place in where]
    if not pairs:
        return None
    top, bottom = np.array(pairs).T
    ratios = numerator.samples[top] / denominator.samples[bottom]
    return median_interval(ratios, numerator.processes[top], seed=seed, resamples=resamples)


def mean_shift(samples: Sequence[float] | NDArray[np.float64]) -> float:
    """How far the mean lies from the median, as a share of the median: a heavy tail shows here."""
    median = float(np.median(samples))
    return float(np.mean(samples)) / median - 1 if median else math.nan
