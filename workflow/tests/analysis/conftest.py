"""Fixtures of the table tests: aggregated run folders made from the stated model, one for each test module."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import synthetic
from analysis.diagnosing import stated_run
from transpose_study.analysis import aggregate
from transpose_study.experiment import Experiment


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``made(config, model)`` is an aggregated run folder, made once for each configuration and model."""
    folders: dict[str, Path] = {}

    def made(config, model):
        key = repr((config, model))
        if key not in folders:
            folders[key] = tmp_path_factory.mktemp("made") / "run"
            aggregate(synthetic.make_run(folders[key], config, model))
        return folders[key]

    return made


@pytest.fixture
def make(tmp_path: Path, made: Callable[..., Path]) -> Callable[..., Experiment]:
    """``make(config, model)`` is an aggregated run in a folder of the test's own."""

    def make(config=None, model=None):
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        shutil.copytree(made(config or synthetic.small_config(), model or synthetic.Model()), folder)
        return Experiment.from_run(folder, synthetic.ROOT)

    return make


@pytest.fixture
def table() -> Callable[[Experiment, str], pd.DataFrame]:
    """``table(experiment, name)`` reads a table as text-and-number columns, empty fields as NaN."""
    return lambda experiment, name: pd.read_csv(experiment.paths.table(name), dtype={"reason": str, "flags": str})


@pytest.fixture
def one() -> Callable[..., pd.Series]:
    """``one(frame, column=value, ...)`` is the only row with those values."""

    def one(frame, **wanted):
        for column, value in wanted.items():
            frame = frame[frame[column] == value]
        assert len(frame) == 1, f"{len(frame)} rows for {wanted}"
        return frame.iloc[0]

    return one


@pytest.fixture
def stated(tmp_path: Path) -> Callable[..., Path]:
    """``stated(counter=value, ..., time_us=...)``: a run folder whose only cell has a quiet kernel's counters but these; None takes one away."""
    return partial(stated_run, tmp_path)
