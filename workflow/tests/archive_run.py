"""What the tests of archives share: where the finished run lies, and the members of an archive."""

from __future__ import annotations

import zipfile
from pathlib import Path

from projects import Project
from transpose_study.experiment import Experiment

RUN = "results/nvidia-h200/transpose"
Members = dict[str, bytes]


def experiment_of(project: Project) -> Experiment:
    """The finished run of a project."""
    return Experiment.from_run(project.path(RUN), project.root)


def members_of(archive: Path) -> Members:
    """All members of an archive."""
    with zipfile.ZipFile(archive) as container:
        return {name: container.read(name) for name in container.namelist()}
