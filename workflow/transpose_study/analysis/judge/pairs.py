"""Which pairs of cells claims and questions compare in time: those that ``aggregate`` must pair by round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from transpose_study.analysis.formulas import references
from transpose_study.analysis.judge.cells import Binding, Selector, bindings, places
from transpose_study.analysis.judge.claims import Declared
from transpose_study.analysis.judge.quantities import SPEEDUP
from transpose_study.experiment import Experiment
from transpose_study.registry import Cell

Pair = tuple[str, str, Cell, Cell]


def named_pairs(experiment: Experiment, declared: Declared) -> list[Pair]:
    """(group, cache mode, cell, other) of every ``speedup[cell, other]``, each once, in the order of the file."""
    found: dict[Pair, None] = {}
    for cells, formula, where in _formulas(declared):
        wanted = [aliases for quantity, aliases in references(formula, where=where) if quantity == SPEEDUP]
        for first, second in wanted:
            for binding in bound(experiment, cells, (first, second)):
                a, b = binding[first], binding[second]
                if (a.group, a.mode) == (b.group, b.mode):
                    found[a.group, a.mode, a.cell, b.cell] = None
    return list(found)


def bound(experiment: Experiment, cells: Mapping[str, tuple[Selector, ...]], aliases: tuple[str, ...]) -> list[Binding]:
    """Every combination of configured cells that ``aliases`` may stand for together."""
    return bindings({a: places(experiment, cells[a]) for a in aliases})


def _formulas(declared: Declared) -> Iterator[tuple[Mapping[str, tuple[Selector, ...]], str, str]]:
    for claim in declared.claims:
        for part in claim.parts:
            yield claim.cells, part.measure, claim.where
    for question in declared.questions:
        for answer in question.answers:
            yield question.cells, answer.formula.replace("{}", "ANY"), question.where
