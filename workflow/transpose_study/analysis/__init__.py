"""From raw files to tidy tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transpose_study.experiment import Experiment


def aggregate(experiment: Experiment) -> None:
    """Write every tidy table of a results folder from its raw files and build records; see :mod:`.aggregation`."""
    from transpose_study.analysis.aggregation import write_tables

    write_tables(experiment)
