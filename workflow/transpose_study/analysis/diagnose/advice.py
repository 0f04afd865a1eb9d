"""What to try against a limiter, from the facts that go with it."""

from __future__ import annotations

from collections.abc import Callable

from transpose_study.analysis.diagnose.facts import Facts
from transpose_study.analysis.diagnose.limits import DIVERGENCE, DRAM, ISSUE, L1, L2, LATENCY, LAUNCH, OCCUPANCY
from transpose_study.analysis.diagnose.verdict import Verdict

ROOM = 1.15  # DRAM bytes for each byte needed above which moving less is worth a try
COALESCED = 4  # sectors a request of 32 lanes of 4 bytes touches at best


def advice(verdict: Verdict, facts: Facts) -> list[str]:
    """Sentences, the most promising first."""
    if not verdict.limiter:
        return [
            "Have the counters read that were not: allow them (README, Counters), or put them into a metric batch of the study "
            "(config/metrics.yaml shows how), then measure with --measure."
        ]
    lines = _BY_LIMITER[verdict.limiter](facts)
    return [*lines, "Since no unit is at its peak, more in flight may help too: independent loads, more resident warps."] if verdict.leads else lines


def _strided(facts: Facts) -> list[str]:
    lines = []
    for way in ("load", "store"):
        sectors = facts.value(f"global_{way}_sectors_per_request")
        if sectors is not None and sectors > 4 * COALESCED:  # above what lanes of 16 bytes need
            lines.append(f"Coalesce the global {way}s: a request touches {sectors:.3g} sectors, {COALESCED} would do for 32 lanes of 4 bytes.")
    return lines


def _dram(facts: Facts) -> list[str]:
    more = facts.value("dram_of_needed")
    lines = [] if more is None or more < ROOM else [f"Move less: DRAM moves {more:.2f} bytes for each one needed; find what is fetched twice."]
    return [*lines, "Only fewer bytes help: fuse it with its neighbours, use a smaller type, keep the data in L2 between kernels."]


def _l2(facts: Facts) -> list[str]:
    return [*_strided(facts), "Send fewer sectors to L2: whole sectors at a time, reuse in registers or shared memory."]


def _l1(facts: Facts) -> list[str]:
    ways = facts.value("shared_conflict_ways")
    conflicts = ways is not None and ways >= 2
    lines = [f"Remove the bank conflicts ({ways:.3g} wavefronts for each needed): pad or swizzle; see transpose-study swizzle."] if conflicts else []
    return [*lines, *_strided(facts), "Use wider accesses, or keep values in registers, so that fewer wavefronts pass."]


def _issue(facts: Facts) -> list[str]:
    return ["Execute fewer instructions: wider accesses, cheaper index arithmetic, fewer bounds checks, more elements a thread."]


def _latency(facts: Facts) -> list[str]:
    lines = ["Have more in flight: several independent loads a thread before the first is used, or wider loads."]
    barrier, drain = facts.value("stall_barrier_pct"), facts.value("stall_drain_pct")
    if barrier is not None and barrier >= 20:
        lines.append(f"{barrier:.0f} % of the waiting warps stand at a barrier: smaller blocks, more of them on an SM.")
    if drain is not None and drain >= 20:
        lines.append(f"{drain:.0f} % of the waiting warps drain stores at their end: more elements a thread.")
    return lines


def _occupancy(facts: Facts) -> list[str]:
    limits = {n: facts.value(f"limit_{n}") for n in ("blocks", "registers", "shared_memory", "warps")}
    known = {n: v for n, v in limits.items() if v is not None}
    theoretical = facts.value("theoretical_occupancy_pct")
    if known and theoretical is not None and theoretical < 50:
        least = min(known, key=lambda n: known[n])
        return [f"Raise the limit of resident blocks that binds: {least.replace('_', ' ')} ({known[least]:g} blocks of an SM)."]
    return ["Use smaller blocks, so that a new one starts as soon as few warps end; give each block more work, so that starts count less."]


def _divergence(facts: Facts) -> list[str]:
    return ["Let whole warps take one path: sort the work by path, or branch on the warp instead of the lane; fill the last warp of a block."]


def _launch(facts: Facts) -> list[str]:
    waves = facts.value("waves")
    lines = ["Give the device more blocks at once: smaller blocks, or fewer elements a thread."] if waves is not None and waves < 1 else []
    return [*lines, "Do more in a launch: batch several problems, fuse kernels, or submit launches as a CUDA graph."]


_BY_LIMITER: dict[str, Callable[[Facts], list[str]]] = {
    DRAM: _dram, L2: _l2, L1: _l1, ISSUE: _issue, LATENCY: _latency, OCCUPANCY: _occupancy, DIVERGENCE: _divergence, LAUNCH: _launch,
}  # fmt: skip
