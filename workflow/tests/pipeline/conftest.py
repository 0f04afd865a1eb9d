"""A finished live run of two shapes, made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_run import STANDIN, small_experiment
from projects import Project, copy_project


@pytest.fixture(scope="session")
def making(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """The finished run, and what Snakemake printed while it made it on four cores."""
    project = copy_project(tmp_path_factory.mktemp("live"))
    project.configure(**small_experiment())
    return project, project.snakemake("all", "--cores", "4", env=STANDIN)


@pytest.fixture(scope="session")
def live(making: tuple[Project, str]) -> Project:
    """The finished run. Tests that change it take a copy."""
    return making[0]


@pytest.fixture
def mine(live: Project, tmp_path: Path) -> Project:
    """A copy of the finished run for one test."""
    return live.copy(tmp_path)
