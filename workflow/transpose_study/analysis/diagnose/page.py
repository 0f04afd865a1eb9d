"""The page that ``diagnose`` prints: the verdict, its evidence, what to try, and the share of a round trip to the host."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from transpose_study.analysis.diagnose.advice import advice
from transpose_study.analysis.diagnose.facts import COLD, ESTIMATED, HOT, NOTHING, PREDICTED, Facts, figure
from transpose_study.analysis.diagnose.limits import PCIE_ASSUMED, PCIE_GB_S
from transpose_study.analysis.diagnose.verdict import Evidence, Verdict

WIDTH = 110
FROM_L2 = 1.1  # cold time over hot time above which the L2 plainly helps
REPEATED = 2  # bytes counted for each of input and output from which on at least half of them cannot have come from DRAM


def page(verdict: Verdict, facts: Facts, transfer_gb_s: float | None = None, unread: Sequence[str] = ()) -> list[str]:
    """Lines of text. ``transfer_gb_s`` is the host link's rate in 10^9 bytes a second, None for the stated assumption.

    ``unread`` is what to try where nothing tells of a limiter (see :func:`unread`).
    """
    lines = _wrapped(f"Limiter: {verdict.limiter or 'cannot be told'}; {verdict.because}.")
    lines += ["", *_times(facts), "", f"  {'limiter':11}{'counter':30}{'value':>13}  threshold"]
    before = ""
    for row in verdict.evidence:
        lines += _evidence(row, "" if row.limit.limiter == before else row.limit.limiter)
        before = row.limit.limiter
    lines += ["", "What to try:", *(part for line in advice(verdict, facts, unread) for part in _wrapped(line, "  - ", "    "))]
    return [*lines, "", *_wrapped(transfer(facts, transfer_gb_s))]


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False)


def _times(facts: Facts) -> list[str]:
    lines = []
    for mode, what in ((HOT, "launch after launch"), (COLD, "L2 displaced before")):
        time, bandwidth = facts.value(f"time_{mode}_us"), facts.value(f"bandwidth_{mode}_gb_s")
        if time is not None and bandwidth is not None:
            lines += _wrapped(f"Time {mode} ({what}): {figure(time)} us, {figure(bandwidth)} GB/s, {_beside_dram(bandwidth, facts)}.")
    hot, cold = facts.value(f"time_{HOT}_us"), facts.value(f"time_{COLD}_us")
    if hot is not None and cold is not None and cold > FROM_L2 * hot:
        lines.append("The counters tell of the cold launch (ncu cleans the L2); launch after launch L2 holds part of the data.")
    return lines


def _beside_dram(gb_s: float, facts: Facts) -> str:
    """A bandwidth beside the DRAM peak, where its bytes can have come from there; a kernel may count those of shared memory."""
    counted = facts.value("counted_of_footprint")
    if counted is not None and counted >= REPEATED:
        return f"not a rate of DRAM: {figure(counted)} bytes are counted for each of input and output"
    share = 100 * gb_s / float(facts.gpu["peak_gb_s"])
    return "above the nominal DRAM peak: some of it came from caches" if share > 100 else f"{figure(share)} % of the nominal DRAM peak"


def _evidence(row: Evidence, limiter: str) -> list[str]:
    limit, fact = row.limit, row.fact
    threshold = f"{limit.sign} {limit.threshold:g} {limit.unit}"
    no_value = "none" if fact.source == NOTHING else "not measured"
    shown = no_value if fact.value is None else f"{figure(fact.value)} {limit.unit}"
    remarks = [r for r in ("reached" if row.reached else "", fact.source if fact.source in (PREDICTED, ESTIMATED) else "") if r]
    line = f"{'>' if row.reached else ' '} {limiter:11}{limit.key:30}{shown:>13}  {threshold:13}{', '.join(remarks)}"
    lines = [line.rstrip(), *_wrapped(limit.reason, " " * 13 + "why: ", " " * 18)]
    return lines + (_wrapped(fact.reason, " " * 13 + f"{no_value}: ", " " * 18) if fact.value is None else [])


def transfer(facts: Facts, rate_gb_s: float | None) -> str:
    """How much of a round trip to the host the kernel is: input to the device, kernel, output back, one after the other."""
    moved, time = facts.value("host_bytes"), facts.value("time_us")
    if moved is None or time is None:
        return "The share of a transfer from and to the host cannot be told: the run does not say how much data the kernel has."
    rate = PCIE_GB_S if rate_gb_s is None else rate_gb_s
    link = moved / rate / 1e3
    source = PCIE_ASSUMED if rate_gb_s is None else "as given"
    return (
        f"Host: where input and output ({figure(moved / 1e6)} MB together) cross to the device and back, that takes {figure(link)} us "
        f"at {figure(rate)} GB/s ({source}); the kernel's {figure(time)} us are {figure(100 * time / (time + link))} % of the round trip."
    )
