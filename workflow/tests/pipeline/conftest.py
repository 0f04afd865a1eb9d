"""A finished live run of two shapes, made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_run import STANDIN, small_experiment
from projects import Project, copy_project


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The finished run. Tests that change it take a copy."""
    project = copy_project(tmp_path_factory.mktemp("live"))
    project.configure(**small_experiment())
    project.snakemake("all", env=STANDIN)
    return project


@pytest.fixture
def mine(live: Project, tmp_path: Path) -> Project:
    """A copy of the finished run for one test."""
    return live.copy(tmp_path)
