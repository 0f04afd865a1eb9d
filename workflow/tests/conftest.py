"""Fixtures that several folders of tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from projects import Project, copy_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy of the project for one test; it replays the quick run and writes Markdown alone."""
    return copy_project(tmp_path)
