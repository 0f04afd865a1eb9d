"""The quantities that claims and questions may name: columns of the tidy tables, counted quantities, facts, paired ratios."""

from __future__ import annotations

from transpose_study.analysis.counters import BY_OPCODE, DERIVED_QUANTITIES
from transpose_study.analysis.judge.swizzles import QUANTITIES as ARITHMETIC
from transpose_study.analysis.occupancy import BUILT, MEASURED
from transpose_study.analysis.timings import STATISTICS
from transpose_study.errors import StudyError, nearest
from transpose_study.experiment import Experiment

SPEEDUP = "speedup"  # speedup[a, b]: how many times faster a is than b, paired by round
OPCODE = "opcode_"  # opcode_IMAD[a]: instructions of that opcode a warp executes
CORRECT = "correct"  # correct[a]: 1 where every element of the output is what the registry says it must be, else 0
TIMED = ("footprint_to_l2", "sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w")
STUDY_FACTS = ("elements", "matrix_bytes", "effective_bytes", "itemsize")


class Known:
    """Names by what they need: a cell, two cells, or (facts of device and shape) none. ``axes`` are a cell's own values."""

    def __init__(self, experiment: Experiment) -> None:
        counted = [q.key for b in experiment.batches.values() for q in b.quantities if q.key != BY_OPCODE]
        ratios = [f"ratio_to_{b}" for b in experiment.study.baselines]
        self.timed = frozenset([*STATISTICS, *ratios, *TIMED])
        self.counted = frozenset([*counted, *(d.key for d in DERIVED_QUANTITIES)])
        self.of_kernel = frozenset([*BUILT, *MEASURED])
        gpu = [k for k, v in experiment.gpu.items() if isinstance(v, int | float) and not isinstance(v, bool)]
        self.device_facts = frozenset([*gpu, "peak_gb_s"])
        numbers = [a.name for a in experiment.study.axes.values() if not a.words and a.value is None]
        self.group_facts = frozenset([*STUDY_FACTS, *(a for a in experiment.study.group_axes if a in numbers)])
        self.axes = frozenset(numbers) - self.group_facts
        self.of_cell = self.timed | self.counted | self.of_kernel | self.axes | {CORRECT}

    def check(self, quantity: str, cells: int, where: str) -> None:
        """Raise :class:`StudyError` for an unknown quantity, or one that is written with another number of cells."""
        facts = self.device_facts | self.group_facts
        if quantity not in self.of_cell | facts | {SPEEDUP} and not quantity.startswith(OPCODE):
            names = [*self.of_cell, *facts, SPEEDUP]
            if quantity in ARITHMETIC:
                raise StudyError(f"{quantity} is a quantity of swizzles, not of cells", where=where)
            raise StudyError(f"unknown quantity {quantity!r}; {nearest(quantity, names)}", where=where)
        wanted = 2 if quantity == SPEEDUP else 0 if quantity in facts else 1
        if cells != wanted and not (quantity in self.group_facts and cells == 1):
            form = {2: f"{quantity}[cell, other]", 1: f"{quantity}[cell]", 0: quantity}[wanted]
            raise StudyError(f"{quantity} is written {form}", where=where)

    def exact(self, quantity: str) -> bool:
        """True for what is no measurement: facts of device and shape, and the values of a cell's axes."""
        return quantity in self.device_facts | self.group_facts | self.axes
