"""Claims files of a test's own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import synthetic
from transpose_study.records import write_yaml


@pytest.fixture
def project(tmp_path: Path) -> Callable[[Mapping[str, Any] | None], Path]:
    """``project(claims)`` is a copy of the project's kernels and configuration, with claims of the test's own where given."""

    def make(claims=None):
        root = tmp_path / "project"
        if not root.exists():
            for name in ("kernels", "config"):
                shutil.copytree(synthetic.ROOT / name, root / name)
        if claims is not None:
            write_yaml(root / "config" / "claims.yaml", claims)
        return root

    return make
