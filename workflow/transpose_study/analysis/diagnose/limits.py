"""The limiters of a kernel, their counters, and the threshold of each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

DRAM, L2, L1, ISSUE, LATENCY, OCCUPANCY, DIVERGENCE, LAUNCH = "DRAM", "L2", "L1/shared", "issue", "latency", "occupancy", "divergence", "launch"
LIMITERS = (DRAM, L2, L1, ISSUE, LATENCY, OCCUPANCY, DIVERGENCE, LAUNCH)

SATURATED = 80  # % of a unit's sustained peak; above it Nsight Compute too calls a unit highly utilised
LEADING = 60  # % below which Nsight Compute's guide sees neither memory nor compute at work, but latency
TIE = 1.0  # percentage points within which two units count as equally busy; the one farther from the cores is named


@dataclass(frozen=True)
class Limit:
    """One row of evidence: the fact ``key`` speaks for ``limiter`` where it is at least (or below) ``threshold``."""

    limiter: str
    key: str
    unit: str
    threshold: float
    reason: str
    below: bool = False

    def reached(self, value: float) -> bool:
        """Whether a value speaks for the limiter."""
        return value < self.threshold if self.below else value >= self.threshold

    @property
    def sign(self) -> str:
        """How the threshold is written."""
        return "<" if self.below else ">="


PEAK = "work queues up before a unit that is busy four fifths of the time"
OWN = (
    "it is l2_throughput_pct, but no more than memory_throughput_pct, the figure of the memory's busiest component: "
    "what L2 reports beyond that, Nsight Compute does not count as its load"
)
STARTS = (
    "an SM starts a block in 160 cycles at best, whatever the block holds: measured on an H200 with blocks of 32 to 128 threads that copy "
    "(block_memory of the study micro), an assumption elsewhere; below one and a half times that, blocks end about as soon as others can start"
)
LIMITS = (
    Limit(DRAM, "dram_throughput_pct", "%", SATURATED, f"{PEAK}; refresh and turns from reading to writing take a tenth of DRAM's peak besides"),
    Limit(L2, "l2_own_throughput_pct", "%", SATURATED, f"as for DRAM; {OWN}"),
    Limit(L1, "l1tex_throughput_pct", "%", SATURATED, "as for DRAM; this unit serves shared memory's wavefronts as well as global sectors"),
    Limit(L1, "shared_conflict_ways", "x", 2, "wavefronts for each that would be needed: from two on shared memory delivers half or less"),
    Limit(L1, "stall_l1_pct", "%", 30, "three in ten waiting warps wait for shared memory, special functions or L1's queues: too many to be hidden"),
    Limit(ISSUE, "issue_active_pct", "%", SATURATED, "a scheduler issues one instruction a cycle at most; gaps between dependent ones take the rest"),
    Limit(ISSUE, "sm_throughput_pct", "%", SATURATED, "as for DRAM; this is the busiest pipe of the SM, math pipes among them"),
    Limit(LATENCY, "stall_long_scoreboard_pct", "%", 50, "every second waiting warp waits for global memory, however idle its units are"),
    Limit(LATENCY, "eligible_warps", "warps", 1, "with less than one warp ready on average a scheduler often has nothing to issue", below=True),
    Limit(OCCUPANCY, "achieved_of_theoretical_pct", "%", 60, "blocks that start, end or differ leave two in five places for warps empty", below=True),
    Limit(OCCUPANCY, "theoretical_occupancy_pct", "%", 50, "half of the warps that could hide latency cannot be resident", below=True),
    Limit(DIVERGENCE, "threads_per_instruction", "lanes", 24, "a quarter of the 32 lanes idle in the average instruction", below=True),
    Limit(LAUNCH, "waves", "waves", 1, "with fewer blocks than the device holds at once, SMs or places for warps stay empty", below=True),
    Limit(LAUNCH, "cycles_per_block", "cycles", 240, STARTS, below=True),
    Limit(LAUNCH, "time_us", "us", 5, "an assumption: an empty kernel takes some 2 us to start and end, two fifths of this", below=True),
)

# Groups of stall reasons (see config/metrics.yaml): the share of each, the limiter it speaks for, and what its warps wait for.
STALLS = {
    "stall_long_scoreboard_pct": (LATENCY, ("long_scoreboard",), "global memory (long scoreboard)"),
    "stall_l1_pct": (
        L1,
        ("short_scoreboard", "mio_throttle", "lg_throttle"),
        "shared memory, special functions and L1's queues (short scoreboard, throttles)",
    ),
    "stall_barrier_pct": (LATENCY, ("barrier",), "barriers"),
    "stall_drain_pct": (LATENCY, ("drain",), "their stores to leave (drain)"),
    "stall_fixed_pct": (LATENCY, ("wait", "no_instruction"), "the instruction before, or the next one's code (wait, no instruction)"),
    "stall_issue_pct": (ISSUE, ("not_selected", "math_pipe_throttle"), "their turn (not selected, math pipe)"),
}

PCIE_GB_S = 63.0
PCIE_ASSUMED = "PCIe 5.0 x16, an assumption: 32 GT/s x 16 lanes x 128/130 / 8 bits, without packet headers"
