"""What the tests of live runs share: a stand-in of the recorded GPU (see standin/sitecustomize.py), and a small experiment."""

from __future__ import annotations

import os

from projects import QUICK, TESTS, quick_config

STANDIN = {"PYTHONPATH": os.pathsep.join([str(TESTS / "standin"), os.environ.get("PYTHONPATH", "")]), "TRANSPOSE_STUDY_STANDIN": str(QUICK)}
SMALL = ["copy", "copy_vectorized", "memcpy", "tiled", "tiled_padded"]  # of the first shape
FEWER = ["copy", "copy_vectorized", "memcpy", "tiled_padded"]  # of the second, which has no tiled


def measured_shape() -> dict[str, int]:
    """The shape that the quick run measured."""
    shape = quick_config()["shapes"][0]
    return {"rows": shape["rows"], "cols": shape["cols"]}


def other_shape(number: int = 1) -> dict[str, int]:
    """A shape that is not the measured one."""
    return {"rows": measured_shape()["rows"] // 2**number, "cols": measured_shape()["cols"] // 2**number}


def small_experiment() -> dict[str, object]:
    """Configuration of a live run of two shapes that takes little time."""
    return {
        "device": "auto",
        "shapes": [measured_shape(), other_shape() | {"variants": FEWER}],
        "variants": SMALL,
        "timing": {"min_samples": 3, "budget_s": 0.01, "warmup_budget_s": 0},
        "profile": {"launches": {"counters": 1, "duration": 1, "source": 1}},
    }
