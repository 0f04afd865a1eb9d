"""Makes every tidy table of a results folder, in the order in which they need each other."""

from __future__ import annotations

from transpose_study.analysis.counters import write_counters, write_opcodes
from transpose_study.analysis.measured import Tables
from transpose_study.analysis.occupancy import write_occupancy
from transpose_study.analysis.predictions import write_predictions
from transpose_study.analysis.published import write_published
from transpose_study.analysis.ratios import write_ratios
from transpose_study.analysis.run import Run
from transpose_study.analysis.scan import write_scans
from transpose_study.analysis.timings import write_noise, write_rounds, write_timings
from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.status import measured_with_others


def write_tables(experiment: Experiment) -> None:
    """Read raw files and build records of ``experiment`` and write tables/*.csv.

    Raises :class:`transpose_study.errors.StudyError` that names file, line and column for raw input that is missing or damaged,
    and for raw data that were measured with other cubins than the build records tell of.
    """
    mixed = measured_with_others(experiment)
    if mixed:
        raise StudyError("; ".join(mixed), where=str(experiment.paths.folder), hint="snakemake --cores 1 all measures anew what is needed")
    run = Run(experiment)
    timings = write_timings(run)
    write_noise(run)
    write_rounds(run)
    write_ratios(run)
    counters = write_counters(run)
    opcodes = write_opcodes(run)
    occupancy = write_occupancy(run, counters)
    write_predictions(run, counters, opcodes)
    scans = write_scans(run, timings)
    write_published(run, Tables(timings, counters, occupancy, scans))
