"""What later programs must still find in every archive that was ever shipped."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from projects import QUICK, ROOT
from transpose_study.container import Container
from transpose_study.experiment import Experiment
from transpose_study.provenance import configuration_digest

ARCHIVES = [QUICK, *sorted((ROOT / "results" / "archive").rglob("*.crate.zip"))]


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_a_new_key_of_the_configuration_leaves_old_digests_alone(path: Path, tmp_path: Path) -> None:
    """Each row of a table carries the digest of the configuration; a key with its default must not make old tables look foreign."""
    container = Container(path)
    (tmp_path / "run_config.yaml").write_bytes(container.read("run_config.yaml"))
    row = next(csv.DictReader(io.StringIO(container.read("tables/noise.csv").decode())))
    if "configuration_digest" in row:  # version 1 had none
        assert configuration_digest(Experiment.from_run(tmp_path, ROOT)) == row["configuration_digest"]
