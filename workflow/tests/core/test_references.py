"""What outputs must equal: cells share a computed reference only where it is the same, and none can change it."""

from __future__ import annotations

import numpy as np
import pytest
from projects import ROOT
from transpose_study.encoding import encode
from transpose_study.expressions import evaluate, names_in
from transpose_study.references import expected_patterns
from transpose_study.registry import Study

STUDY = Study(ROOT / "kernels" / "micro" / "variants.yaml")
GROUP = {"experiment": "any"}
TWO = {"sharers": (2, 4), "tile": (8, 16), "offset": (1, 3), "row_pitch": (1024, 1025), "block_x": (5, 8), "block_y": (4, 7)}
USED = [(v.name, a) for v in STUDY.variants.values() if v.reference.index for a in v.takes if a in names_in(v.reference.index)]


def cell_of(variant, **values):
    (cell,) = STUDY.cells(GROUP, [variant], {n: [v] for n, v in values.items()})
    return cell


@pytest.mark.parametrize(("variant", "axis"), USED)
def test_cells_that_differ_in_a_name_of_the_index_do_not_share(variant, axis):
    others = {a: TWO[a][0] for a in STUDY.variants[variant].takes if a != axis}
    cells = [cell_of(variant, **others, **{axis: value}) for value in TWO[axis]]
    one, other = (expected_patterns(STUDY, c) for c in cells)
    assert one.shape != other.shape or not np.array_equal(one, other)
    for cell, patterns in zip(cells, (one, other), strict=True):  # the last element, which tells most of them apart
        names = STUDY.numbers(cell.values) | {"i": len(patterns) - 1}
        assert patterns[-1] == encode(np.array([evaluate(cell.variant.reference.index, names)]))[0]


def test_there_are_such_cells():
    assert {a for _, a in USED} == set(TWO)


def test_cells_that_differ_in_another_name_share():
    assert expected_patterns(STUDY, cell_of("bank_load", width=4, stride=1)) is expected_patterns(STUDY, cell_of("bank_load", width=4, stride=2))


@pytest.mark.parametrize("change", [lambda a: a.__setitem__(0, 7), lambda a: a.__iadd__(np.uint32(1)), lambda a: a.sort(), lambda a: a.fill(0)])
def test_what_is_shared_cannot_be_changed(change):
    cell = cell_of("bank_broadcast", sharers=2)
    patterns = expected_patterns(STUDY, cell)
    before = patterns.copy()
    with pytest.raises(ValueError, match="read-only"):
        change(patterns)
    assert np.array_equal(expected_patterns(STUDY, cell), before)
