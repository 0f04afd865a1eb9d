"""What to try against a limiter, from the facts that go with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from transpose_study.analysis.diagnose.facts import Facts, figure
from transpose_study.analysis.diagnose.limits import DIVERGENCE, DRAM, ISSUE, L1, L2, LATENCY, LAUNCH, LIMITS, OCCUPANCY, STALLS
from transpose_study.analysis.diagnose.verdict import Verdict
from transpose_study.metrics import Batch

ROOM = 1.15  # DRAM bytes for each byte needed above which moving less is worth a try
IN_FLIGHT = "Have more in flight a thread: several independent loads or operations before the first result is used, or wider loads."
COALESCED = 4  # sectors a request of 32 lanes of 4 bytes touches at best
TELLING = (  # counted quantities without which a limiter cannot be told
    *(f"{unit}_throughput_pct" for unit in ("dram", "l2", "l1tex", "sm")), "issue_active_pct",
    *(f"stall_{reason}" for _, reasons, _ in STALLS.values() for reason in reasons),
)  # fmt: skip


def unread(facts: Facts, batches: Mapping[str, Batch], file: Path) -> list[str]:
    """How to have the counters read that tell of a limiter: ``batches`` are the study's, ``file`` is where they stand."""
    absent = [q for q in TELLING if q not in facts]
    named = [b.name for b in batches.values() if any(q.key in absent for q in b.quantities)]
    nowhere = [q for q in absent if not any(q == k.key for b in batches.values() for k in b.quantities)]
    lines = []
    if named:
        which = f"batch{'es' * (len(named) > 1)} {', '.join(named)} of {file}"
        lines.append(f"Run this again with --measure, which also reads what this run left out: the {which}.")
    if nowhere:
        lines.append(f"Put {', '.join(nowhere)} into a metric batch of the study ({file} shows how), then measure with --measure.")
    if any(q in facts and facts.value(q) is None for q in TELLING):
        lines.append("Have the counters read that were refused: allow them (README, Counters), then measure with --measure.")
    return lines


def advice(verdict: Verdict, facts: Facts, unread: Sequence[str] = ()) -> list[str]:
    """Sentences, the most promising first; ``unread`` where there is no limiter."""
    if not verdict.limiter:
        return list(unread)
    lines = _BY_LIMITER[verdict.limiter](facts)
    return [*lines, "Since no unit is at its peak, more in flight may help too: independent loads, more resident warps."] if verdict.leads else lines


def _strided(facts: Facts) -> list[str]:
    lines = []
    for way in ("load", "store"):
        sectors = facts.value(f"global_{way}_sectors_per_request")
        if sectors is not None and sectors > 4 * COALESCED:  # above what lanes of 16 bytes need
            lines.append(f"Coalesce the global {way}s: a request touches {figure(sectors)} sectors, {COALESCED} would do for 32 lanes of 4 bytes.")
    return lines


def _dram(facts: Facts) -> list[str]:
    more = facts.value("dram_of_needed")
    lines = [] if more is None or more < ROOM else [f"Move less: DRAM moves {figure(more)} bytes for each one needed; find what is fetched twice."]
    return [*lines, "Only fewer bytes help: fuse it with its neighbours, use a smaller type, keep the data in L2 between kernels."]


def _l2(facts: Facts) -> list[str]:
    return [*_strided(facts), "Send fewer sectors to L2: whole sectors at a time, reuse in registers or shared memory."]


def _l1(facts: Facts) -> list[str]:
    lines, ways = [], facts.value("shared_conflict_ways")
    if ways is not None and ways >= 2:
        lines.append(f"Remove the bank conflicts ({figure(ways)} wavefronts for each needed): pad or swizzle; see transpose-study swizzle.")
    lines += [*_strided(facts), "Use wider accesses, or keep values in registers, so that fewer wavefronts pass."]
    if _reached("stall_l1_pct", facts.value("stall_l1_pct")):
        lines.append("Where special functions (such as a sine, a square root or a division) are what the warps wait for: fewer or cheaper ones.")
    return lines


def _issue(facts: Facts) -> list[str]:
    return ["Execute fewer instructions: wider accesses, cheaper index arithmetic, fewer bounds checks, more elements a thread."]


def _latency(facts: Facts) -> list[str]:
    lines = [IN_FLIGHT]
    barrier, drain = facts.value("stall_barrier_pct"), facts.value("stall_drain_pct")
    if barrier is not None and barrier >= 20:
        lines.append(f"{barrier:.0f} % of the waiting warps stand at a barrier: smaller blocks, more of them on an SM.")
    if drain is not None and drain >= 20:
        lines.append(f"{drain:.0f} % of the waiting warps drain stores at their end: more elements a thread.")
    return lines


def _occupancy(facts: Facts) -> list[str]:
    theoretical, achieved = facts.value("theoretical_occupancy_pct"), facts["achieved_of_theoretical_pct"].value
    lines = []
    if _reached("theoretical_occupancy_pct", theoretical):
        lines = [_residency(facts), IN_FLIGHT]
    if _reached("achieved_of_theoretical_pct", achieved):
        lines.append("Use smaller blocks, so that a new one starts as soon as few warps end; give each block more work, so that starts count less.")
    return lines


def _residency(facts: Facts) -> str:
    limits = {n: facts.value(f"limit_{n}") for n in ("blocks", "registers", "shared_memory", "warps")}
    known = {n: v for n, v in limits.items() if v is not None}
    if not known:
        return "Have more warps resident: raise the limit of resident blocks that binds (blocks, registers, shared memory or warps of an SM)."
    least = min(known, key=lambda n: known[n])
    blocks = f"{figure(known[least])} block{'s' * (known[least] != 1)} an SM"
    return f"Have more warps resident: raise the limit of resident blocks that binds, {least.replace('_', ' ')} ({blocks})."


def _divergence(facts: Facts) -> list[str]:
    return ["Let whole warps take one path: sort the work by path, or branch on the warp instead of the lane; fill the last warp of a block."]


def _launch(facts: Facts) -> list[str]:
    if _reached("waves", facts.value("waves")):
        lines = ["Give the device more blocks at once: smaller blocks, or fewer elements a thread."]
    elif _reached("cycles_per_block", facts.value("cycles_per_block")):
        lines = ["Have fewer blocks start: larger blocks, or more work a block, such as several elements a thread or a loop over the grid."]
        if not _reached("time_us", facts.value("time_us")):
            return lines
    else:
        lines = []
    return [*lines, "Do more in a launch: batch several problems, fuse kernels, or submit launches as a CUDA graph."]


def _reached(key: str, value: float | None) -> bool:
    return value is not None and next(limit for limit in LIMITS if limit.key == key).reached(value)


_BY_LIMITER: dict[str, Callable[[Facts], list[str]]] = {
    DRAM: _dram, L2: _l2, L1: _l1, ISSUE: _issue, LATENCY: _latency, OCCUPANCY: _occupancy, DIVERGENCE: _divergence, LAUNCH: _launch,
}  # fmt: skip
