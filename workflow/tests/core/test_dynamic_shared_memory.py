"""Dynamic shared memory of a kernel that serves several cells: the driver keeps one limit a function."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from transpose_study.registry import Cell, Study

pytest.importorskip("cupy", reason="the module under test imports it")

from transpose_study.gpu import session as under_test

ROOT = Path(__file__).parents[3]
PITCHES = (33, 1056, 40)
UNASKED = 48 * 1024  # bytes that a launch may take without asking (CUDA C++ Programming Guide, compute capabilities)


class Driver:
    """As much of the driver as a launch asks: the limit of a function is what was last set, and a launch above it fails."""

    def __init__(self) -> None:
        self.limits: dict[int, int] = {}

    def funcSetAttribute(self, function: int, attribute: int, value: int) -> None:
        assert attribute == under_test.MAX_DYNAMIC_SHARED_BYTES
        self.limits[function] = value

    def kernel(self, function: int) -> Any:
        def launch(grid: Any, block: Any, arguments: Any, shared: int, stream: Any) -> None:
            assert shared <= self.limits.get(function, UNASKED), "invalid argument: the function's limit is lower"

        launch.ptr = function  # type: ignore[attr-defined]
        return launch


@pytest.mark.parametrize("order", list(itertools.permutations(PITCHES)))
def test_launches_prepared_in_any_order_all_run(monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]) -> None:
    driver = Driver()
    monkeypatch.setattr(under_test, "cupy", SimpleNamespace(cuda=SimpleNamespace(driver=driver)))
    study = Study(ROOT / "kernels" / "micro" / "variants.yaml")
    session = object.__new__(under_test.Session)
    session.study, session.stream, session._allowed = study, None, {}
    monkeypatch.setattr(session, "_module", lambda name: SimpleNamespace(get_function=lambda _: driver.kernel(len(name))), raising=False)
    buffers: Any = SimpleNamespace(**{n: SimpleNamespace(pointer=0) for n in ("input", "output", "observed")})
    cells = [Cell(study.variant("bank_column"), {"bytes": 4, "pitch": p}, {"experiment": "banks"}) for p in order]
    assert max(study.dynamic_shared_bytes(c) for c in cells) > UNASKED
    for launch in [session.launcher(c, buffers) for c in cells]:
        launch()
