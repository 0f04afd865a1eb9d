"""Runs for the tests of figures and write-up: synthetic raw data, aggregated; each made once a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic import base_config, make_run
from transpose_study.analysis import aggregate
from transpose_study.experiment import Experiment
from transpose_study.report import write

REPLAYED = "results/archive/synthetic-gpu-2026-01-01.crate.zip"


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Experiment]:
    """Make and aggregate a run; keyword arguments are the synthetic model's and make_run's."""

    def make_aggregated(name: str = "run", **changes: Any) -> Experiment:
        config = changes.pop("config", None) or base_config()
        folder = tmp_path_factory.mktemp(name) / "transpose"
        experiment = make_run(folder, config, changes.pop("model", None), **changes)
        aggregate(experiment)
        return experiment

    return make_aggregated


@pytest.fixture(scope="session")
def plain(make: Callable[..., Experiment]) -> Experiment:
    """The run that others are compared with."""
    return make("plain")


def markdown(experiment: Experiment) -> str:
    """Write the Markdown report and read it."""
    write(experiment, ["md"])
    return Path(experiment.paths.report("transpose", "md")).read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def plain_text(plain: Experiment) -> str:
    """Its report."""
    return markdown(plain)


def sections(text: str) -> dict[str, str]:
    """The report's text by the number of its section."""
    parts: dict[str, str] = {"top": ""}
    current = "top"
    for line in text.splitlines():
        if line.startswith("#"):
            current = line.lstrip("# ").split(" ")[0]
            parts[current] = ""
        parts[current] += line + "\n"
    return parts


def table_row(text: str, first: str) -> str:
    """The first table row that begins with this field."""
    return next(line for line in text.splitlines() if line.startswith(f"| {first} |"))
