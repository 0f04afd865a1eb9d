"""What a kernel's output must equal, element by element: for both checks, and for pictures of it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from transpose_study.array_expressions import evaluate_array
from transpose_study.cells import Cell
from transpose_study.encoding import encode
from transpose_study.entries import INDEX
from transpose_study.expressions import names_in
from transpose_study.registry import Study

Key = tuple[str, int, tuple[tuple[str, int], ...], str]


def source_indices(study: Study, cell: Cell) -> NDArray[np.int64]:
    """For each output element, the index of the input element that it must equal (shape n)."""
    if cell.variant.reference.index:
        return _indices(*_key(study, cell))
    i = np.arange(study.element_count(cell))
    period, step = study.stride_of(cell, cell.variant.reference)
    return i % period * step + i // period


def expected_patterns(study: Study, cell: Cell) -> NDArray[np.uint32]:
    """The bit patterns of the output (shape n) for an input of :func:`encode` patterns; not to be written to."""
    if cell.variant.reference.index:
        return _patterns(*_key(study, cell))
    return encode(source_indices(study, cell))


def _key(study: Study, cell: Cell) -> Key:
    """What decides an index expression's values: most cells of a sweep share them, since the swept axis is not among its names."""
    index = cell.variant.reference.index
    names = tuple(sorted((n, v) for n, v in study.numbers(cell.values).items() if n in names_in(index)))
    return index, study.element_count(cell), names, f"{study.path}, variant {cell.variant.name}, key computes"


def _indices(index: str, count: int, names: tuple[tuple[str, int], ...], where: str) -> NDArray[np.int64]:
    return evaluate_array(index, dict(names), {INDEX: np.arange(count)}, where=where)


@lru_cache(maxsize=2)
def _patterns(index: str, count: int, names: tuple[tuple[str, int], ...], where: str) -> NDArray[np.uint32]:
    patterns = encode(_indices(index, count, names, where))
    patterns.setflags(write=False)
    return patterns
