"""Guard bands of the check on the GPU, with host memory in place of the device's and Python functions in place of kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from transpose_study.cells import Observation
from transpose_study.encoding import encode
from transpose_study.registry import Cell, Study

pytest.importorskip("cupy", reason="the module under test imports it")

from transpose_study.gpu import session as under_test
from transpose_study.gpu.checking import check_cell

ROOT = Path(__file__).parents[3]
ROWS, COLS = 3, 5
BYTES = 4 * ROWS * COLS
Kernel = Callable[[int, int], None]  # takes the addresses of input and output


class HostMemory:
    """What cudaMalloc would give, from the host's memory."""

    def __init__(self, size: int) -> None:
        self.bytes = np.zeros(size, np.uint8)
        self.ptr = self.bytes.ctypes.data


class HostSession:
    """The session's harness in Python: fills, launches and compares as harness.cu does."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.stream = SimpleNamespace(ptr=0, synchronize=lambda: None)

    def fill_index(self, buffer: Any) -> None:
        words(buffer.pointer)[:] = encode(np.arange(ROWS * COLS))

    def launcher(self, cell: Cell, buffers: Any) -> Callable[[], None]:
        return lambda: self.kernel(buffers.input.pointer, buffers.output.pointer)

    def compare(self, target: Any, period: int, step: int) -> tuple[int, int]:
        i = np.arange(target.size // 4)
        wrong = np.flatnonzero(words(target.pointer) != encode(i % period * step + i // period))
        return len(wrong), int(wrong[0]) if len(wrong) else -1

    def observed(self, buffers: Any) -> int:
        return self.element(buffers.observed, 0)

    def element(self, buffer: Any, index: int) -> int:
        return int(words(buffer.pointer)[index])


def words(address: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint32 * (ROWS * COLS)).from_address(address))


def right(source: int, target: int) -> None:
    ctypes.memmove(target, source, BYTES)


def writes_at(byte: int, of: str = "output") -> Kernel:
    def kernel(source: int, target: int) -> None:
        right(source, target)
        ctypes.memset((target if of == "output" else source) + byte, 0, 4)

    return kernel


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Callable[[Kernel], dict[str, Any]]:
    """Check kernels one after the other on the same pair of buffers, as the worker does within a shape."""
    monkeypatch.setattr(under_test.cuda_memory, "Memory", HostMemory)
    host = SimpleNamespace(
        memsetAsync=lambda pointer, byte, size, stream: ctypes.memset(pointer, byte, size),
        memcpy=lambda to, come_from, size, kind: ctypes.memmove(to, come_from, size),
        memcpyDeviceToHost=2,
    )
    monkeypatch.setattr(under_test, "runtime", host)
    study = Study(ROOT / "kernels" / "transpose" / "variants.yaml")
    stream = HostSession(right).stream
    buffers = under_test.Buffers(*(under_test.Buffer(BYTES, stream) for _ in range(3)))

    def run(kernel: Kernel, observes: tuple[Observation, ...] = ()) -> dict[str, Any]:
        cell = Cell(replace(study.variant("copy"), observes=observes), {}, {"rows": ROWS, "cols": COLS})
        return check_cell(HostSession(kernel), study, cell, buffers)

    return run


@pytest.mark.parametrize(
    ("byte", "reason"),
    [
        (-4, "wrote before the buffer, 1 bytes ahead of it"),  # the element just before the first: the commonest slip
        (-under_test.GUARD_BYTES, f"wrote before the buffer, {under_test.GUARD_BYTES - 3} bytes ahead of it"),
        (BYTES, "wrote after the buffer, 0 bytes past its end"),
        (BYTES + under_test.GUARD_BYTES - 4, f"wrote after the buffer, {under_test.GUARD_BYTES - 4} bytes past its end"),
    ],
)
def test_both_bands_are_watched_from_their_first_byte_to_their_last(check, byte: int, reason: str) -> None:
    assert check(writes_at(byte)) == {"status": "wrong", "reason": reason}
    assert "the input was changed: " + reason == check(writes_at(byte, "input"))["reason"]


@pytest.mark.parametrize("of", ["output", "input"])
@pytest.mark.parametrize("byte", [-4, BYTES])
def test_an_overrun_is_laid_at_the_door_of_its_own_kernel_only(check, byte: int, of: str) -> None:
    assert check(right)["status"] == "ok"
    assert check(writes_at(byte, of))["status"] == "wrong"
    assert check(right) == {"status": "ok", "reason": ""}


def test_a_kernel_that_never_writes_what_it_observes_is_wrong(check) -> None:
    """Else the number of whatever ran before it would be read as its own."""
    assert check(right)["status"] == "ok"
    assert check(right, (Observation("cycles", "cycles"),)) == {"status": "wrong", "reason": "observes cycles, but never wrote observed[0]"}
