"""Which limiter a cell's facts speak for, and how strongly.

In this order, since each excludes what stands behind it: a memory unit at its sustained peak; a launch too small or too short to
count; lanes that idle; issue slots or a pipe at the peak; the unit that leads without being at its peak; blocks that end before
others start; too few resident warps; and, where no unit is busy, what the warps wait for.
"""

from __future__ import annotations

from dataclasses import dataclass

from transpose_study.analysis.diagnose.facts import Fact, Facts, figure
from transpose_study.analysis.diagnose.limits import (
    DIVERGENCE,
    DRAM,
    ISSUE,
    L1,
    L2,
    LAUNCH,
    LEADING,
    LIMITS,
    OCCUPANCY,
    SATURATED,
    STALLS,
    TIE,
    Limit,
)

UNITS = {
    "dram_throughput_pct": DRAM, "l2_own_throughput_pct": L2, "l1tex_throughput_pct": L1, "issue_active_pct": ISSUE, "sm_throughput_pct": ISSUE,
}  # fmt: skip
MEMORY = (DRAM, L2, L1)


@dataclass(frozen=True)
class Evidence:
    """One row of the table: a limit, the fact, and whether it is reached (None where there is no value)."""

    limit: Limit
    fact: Fact

    @property
    def reached(self) -> bool | None:
        """Whether the fact speaks for the limiter."""
        return None if self.fact.value is None else self.limit.reached(self.fact.value)


@dataclass(frozen=True)
class Verdict:
    """The limiter ("" where nothing was measured that tells), why in a sentence, and all evidence in the order of the limiters.

    ``leads`` is True for a unit that is the busiest one without being at its peak.
    """

    limiter: str
    because: str
    leads: bool
    evidence: tuple[Evidence, ...]


def judge(facts: Facts) -> Verdict:
    """The verdict on a cell."""
    evidence = tuple(Evidence(limit, facts[limit.key]) for limit in LIMITS)
    busiest, value = _busiest(facts, (*MEMORY, ISSUE))
    limiter, because = _before_leading(facts, {e.limit.key: e for e in evidence})
    leads = not limiter and busiest is not None and value >= LEADING
    if leads:
        limiter = UNITS[str(busiest)]
        because = f"at {value:.1f} % ({busiest}) it is the busiest unit, though below the {SATURATED} % at which one has little left to give"
    elif not limiter:
        so_far = f"no unit is at {LEADING} % of its peak ({busiest} leads)" if busiest else "no unit's throughput is known"
        limiter, because = _without_busy_unit(facts, {e.limit.key: e for e in evidence}, so_far)
    return Verdict(limiter, because, leads, evidence)


def _before_leading(facts: Facts, evidence: dict[str, Evidence]) -> tuple[str, str]:
    """What limits whatever the busiest unit is; ("", "") where nothing of that kind is found."""
    busiest, value = _busiest(facts, MEMORY)
    if busiest and value >= SATURATED:
        return UNITS[busiest], f"{busiest} is {value:.1f} %, and from {SATURATED} % of its sustained peak on a unit has little left to give"
    for key, limiter, what in (
        ("waves", LAUNCH, "the grid is {} waves of blocks"),
        ("time_us", LAUNCH, "a launch takes {} us"),
        ("threads_per_instruction", DIVERGENCE, "an instruction works for {} of 32 lanes"),
    ):
        found = evidence[key]
        if found.reached and found.fact.value is not None:
            return limiter, f"{what.format(figure(found.fact.value))}, below {found.limit.threshold:g}, and no memory unit is at its peak"
    busiest, value = _busiest(facts, (ISSUE,))
    if busiest and value >= SATURATED:
        return ISSUE, f"{busiest} is {value:.1f} %, at least {SATURATED} %, and no memory unit is at its peak"
    return "", ""


def _without_busy_unit(facts: Facts, evidence: dict[str, Evidence], so_far: str) -> tuple[str, str]:
    if evidence["eligible_warps"].reached is not False:
        empty, starts = evidence["achieved_of_theoretical_pct"], evidence["cycles_per_block"]
        if empty.reached and starts.reached and starts.fact.value is not None:
            rate = float(facts.gpu["sm_count"]) * (facts.value("sm_clock_mhz") or 0.0) / starts.fact.value
            return LAUNCH, (
                f"{so_far}, and {empty.limit.key} is {empty.fact.value:.1f} %, since blocks end before others start: the device starts "
                f"{figure(rate)} a microsecond, an SM one in {figure(starts.fact.value)} cycles"
            )
        for key in ("achieved_of_theoretical_pct", "theoretical_occupancy_pct"):
            found = evidence[key]
            if found.reached:
                return OCCUPANCY, f"{so_far}, and {key} is {found.fact.value:.1f} %, below {found.limit.threshold:g} %"
    shares = {k: v for k in STALLS if (v := facts.value(k)) is not None}
    if not shares:
        unknown = [k for k in UNITS if facts.value(k) is None]
        return "", f"{so_far}, but what the warps wait for was not measured" + (f", nor {', '.join(unknown)}" if unknown else "")
    first, second, *_ = sorted(shares, key=lambda k: -shares[k])
    limiter, _, what = STALLS[first]
    return limiter, f"{so_far}; of the waiting warps {shares[first]:.0f} % wait for {what}, {shares[second]:.0f} % for {STALLS[second][2]}"


def _busiest(facts: Facts, limiters: tuple[str, ...]) -> tuple[str | None, float]:
    """The busiest unit's fact and value. Of those that tie the farthest from the cores: what it moves passes the nearer ones too."""
    known = {k: v for k, limiter in UNITS.items() if limiter in limiters and (v := facts.value(k)) is not None}
    if not known:
        return None, 0.0
    top = max(known.values())
    name = next(k for k, v in known.items() if v >= top - TIE)
    return name, known[name]
