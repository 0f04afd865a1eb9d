"""A copy of the project for tests that measure on a real GPU; each takes a small configuration of its own."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from transpose_study.device import Device, visible_devices
from transpose_study.errors import StudyError

ROOT = Path(__file__).parents[3]
PARTS = ("Snakefile", "workflow/rules", "workflow/report", "kernels", "config", "paper", "profiles")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs a GPU."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def devices() -> list[Device]:
    """The visible GPUs; without one the tests are skipped."""
    try:
        found = visible_devices()
    except StudyError as error:
        pytest.skip(str(error))
    if not found:
        pytest.skip("no NVIDIA device is here")
    return found


class LiveProject:
    """A copy of the project in a folder with a space, and its results."""

    def __init__(self, folder: Path, config: dict, study: str) -> None:
        self.folder = folder
        for part in PARTS:
            source, target = ROOT / part, folder / part
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copyfile(source, target)
        (folder / "test.yaml").write_text(yaml.safe_dump({"run": "test"} | config), encoding="utf-8")
        self.run_folder = folder / "results" / "test" / study

    def command(self, *arguments: str) -> list[str]:
        """The snakemake command line; targets go before the options that take several values."""
        return [sys.executable, "-m", "snakemake", "--cores", "1", *arguments, "--configfile", "test.yaml"]

    def snakemake(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run snakemake to its end."""
        return subprocess.run(
            self.command(*arguments), cwd=self.folder, env={**os.environ, **(env or {})}, text=True, capture_output=True, check=False
        )

    def must_run(self, *arguments: str, env: dict[str, str] | None = None) -> str:
        """Run snakemake; it must succeed."""
        done = self.snakemake(*arguments, env=env)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
        return done.stdout + done.stderr

    def hashes(self, pattern: str) -> dict[str, str]:
        """sha256 of the finished raw files that match."""
        raw = self.run_folder / "raw"
        return {str(p.relative_to(raw)): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(raw.glob(pattern))}


@pytest.fixture
def live_project(tmp_path: Path, devices: list[Device]):
    """Make a project with a configuration."""
    return lambda config, study="transpose": LiveProject(tmp_path / "a project", config, study)
