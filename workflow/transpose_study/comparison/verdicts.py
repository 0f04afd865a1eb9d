"""Whether a cell of two runs on the same model of GPU takes the same time: same, faster, slower, or it cannot be told.

The rule. The ratio of the second run's median to the first's gets a 95 % interval: both medians are resampled by processes
and rounds, each run for itself (see :mod:`transpose_study.stats`), since the runs share no rounds. The interval knows
nothing of what differs between runs and not within them: the unit, where its memory lies, clocks, temperature. A tolerance
stands for that, and a difference within it is none:

    tolerance = the larger of  SHARE + (LAUNCH_US + WINDOW_US / launches of a sample) / median   and   both A/A noise floors together

same: the interval lies within 1 / (1 + tolerance) .. 1 + tolerance; slower or faster: it lies wholly beyond one of these;
cannot be told: it crosses one of them.

SHARE: four H200 of different machines measured the same kernels within 3.2 % of each other at 4096 x 4096, hot (strided kernels
differ most: units differ in where the parts of their L2 lie) and within 0.5 % at 16384 x 16384. LAUNCH_US: at 1024 x 1024, 3 us a
launch, they differed by up to 0.15 us. WINDOW_US: what a pair of events reads around nothing; a cold sample is one launch and
holds all of it, and one of the four read some 2 us more in every cold cell than the others while its hot cells agreed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from transpose_study.stats import LEVEL, resampled_medians, seed_of

OTHER_UNIT, SAME_UNIT = 0.04, 0.02  # SHARE between two units of one model, and between two runs on one unit
LAUNCH_US = 0.2
WINDOW_US = 1.3
SAME, FASTER, SLOWER, UNTOLD = "same", "faster", "slower", "cannot be told"
MEASURED = "a"  # the replicate that is the cell's own measurement


@dataclass(frozen=True)
class Verdict:
    """Ratio of the second run's median to the first's with its interval and tolerance (as a share), and what follows."""

    ratio: float
    low: float
    high: float
    tolerance: float
    verdict: str


@dataclass(frozen=True)
class Samples:
    """Samples of one cell in microseconds with the process of each (shape n), and the launches that a sample spans."""

    values: np.ndarray
    processes: np.ndarray
    launches: float

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, str]]) -> Samples:
        """From raw timing rows of one cell and cache mode, sorted by process and value, so that their order does not matter."""
        own = [(int(r["process"]), float(r["sample_us"]), int(r["launches"])) for r in rows if r["replicate"] == MEASURED]
        table = np.array(sorted(own), dtype=float).reshape(-1, 3)
        return cls(table[:, 1], table[:, 0].astype(np.int64), float(np.median(table[:, 2])) if own else math.nan)


def judge(first: Samples, second: Samples, *, floors: float, same_unit: bool, seed: str) -> Verdict | None:
    """Compare two runs' samples of one cell; ``floors`` is the sum of both noise floors as a share. None without samples."""
    if first.values.size < 2 or second.values.size < 2:
        return None
    medians = [resampled_medians(s.values, s.processes, seed=seed_of(seed, i)) for i, s in enumerate((first, second))]
    low, high = np.quantile(medians[1] / medians[0], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    median = float(np.median(first.values))
    constant = LAUNCH_US + WINDOW_US / min(first.launches, second.launches)
    tolerance = max((SAME_UNIT if same_unit else OTHER_UNIT) + constant / median, floors)
    return Verdict(float(np.median(second.values)) / median, float(low), float(high), tolerance, told(float(low), float(high), tolerance))


def told(low: float, high: float, tolerance: float) -> str:
    """The verdict that an interval of the ratio gives."""
    if low > 1 + tolerance:
        return SLOWER
    if high < 1 / (1 + tolerance):
        return FASTER
    return SAME if low >= 1 / (1 + tolerance) and high <= 1 + tolerance else UNTOLD
