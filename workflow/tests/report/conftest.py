"""Runs for the tests of figures and write-up: synthetic raw data, aggregated and judged; each made once a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic import base_config, contrary, make_run, rtx5060
from transpose_study.analysis import aggregate
from transpose_study.analysis.judge import judge
from transpose_study.experiment import Experiment
from transpose_study.report import write

REPLAYED = "results/archive/synthetic-gpu-2026-01-01.crate.zip"
EDITIONS = ("md", "zh.md")


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Experiment]:
    """Make, aggregate and judge a run; keyword arguments are the synthetic model's and make_run's."""

    def make_judged(name: str = "run", **changes: Any) -> Experiment:
        config = changes.pop("config", None) or base_config()
        folder = tmp_path_factory.mktemp(name) / "transpose"
        experiment = make_run(folder, config, changes.pop("model", None), **changes)
        aggregate(experiment)
        judge(experiment)
        return experiment

    return make_judged


@pytest.fixture(scope="session")
def plain(make: Callable[..., Experiment]) -> Experiment:
    """The run that others are compared with."""
    return make("plain")


def editions(experiment: Experiment) -> list[str]:
    """Write the Markdown report in both languages and read them: English, Chinese."""
    write(experiment, ["md"])
    return [Path(experiment.paths.report("transpose", s)).read_text(encoding="utf-8") for s in EDITIONS]


def markdown(experiment: Experiment) -> str:
    """The English edition."""
    return editions(experiment)[0]


@pytest.fixture(scope="session")
def plain_texts(plain: Experiment) -> list[str]:
    """Its report, in both languages."""
    return editions(plain)


@pytest.fixture(scope="session")
def plain_text(plain_texts: list[str]) -> str:
    """Its report in English."""
    return plain_texts[0]


@pytest.fixture(scope="session")
def like(make: Callable[..., Experiment]) -> list[str]:
    """Both editions about a device on which the study's conclusions hold."""
    return editions(make("like", model=rtx5060()))


@pytest.fixture(scope="session")
def unlike(make: Callable[..., Experiment]) -> list[str]:
    """Both editions about a device on which they do not."""
    return editions(make("unlike", model=contrary()))


def sections(text: str) -> dict[str, str]:
    """The report's text by the first word of its heading."""
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
