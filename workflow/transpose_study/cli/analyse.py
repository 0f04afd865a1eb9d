"""``aggregate``, ``judge``, ``draw`` and ``write``: everything after the raw data."""

from __future__ import annotations

import argparse

from transpose_study.cli.common import add_run
from transpose_study.progress import Log


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the sub-commands."""
    aggregate = commands.add_parser(
        "aggregate",
        help="make the tidy tables of a run from its raw data",
        description="Makes the tidy tables of a run: reads raw/, build/ and predicted.csv of the results folder, writes tables/*.csv.",
    )
    add_run(aggregate)
    aggregate.set_defaults(run_command=run_aggregate)
    judge = commands.add_parser(
        "judge",
        help="judge the claims and answer the open questions from the tidy tables",
        description="Judges the study's claims: reads tables/ and config/claims*.yaml, writes tables/claims.csv, claim_parts.csv and analysis.csv.",
    )
    add_run(judge)
    judge.set_defaults(run_command=run_judge)
    draw = commands.add_parser(
        "draw",
        help="draw the figures from the tidy tables",
        description="Draws the figures that paper/<study>.figures.yaml declares: reads tables/, writes figures/*.svg and *.png.",
    )
    add_run(draw)
    draw.set_defaults(run_command=run_draw)
    write = commands.add_parser(
        "write",
        help="write the report from tables and figures",
        description="Writes the report: executes paper/<study>.py on tables/ and figures/, writes report/ in every language and format.",
    )
    add_run(write)
    write.add_argument("--formats", nargs="+", choices=["html", "pdf", "md", "ipynb"], help="default: those of the configuration")
    write.set_defaults(run_command=run_write)


def run_aggregate(args: argparse.Namespace, log: Log) -> None:
    """Write tables/*.csv."""
    from transpose_study.analysis import aggregate
    from transpose_study.experiment import Experiment

    aggregate(Experiment.from_run(args.run))


def run_judge(args: argparse.Namespace, log: Log) -> None:
    """Write tables/claims.csv, claim_parts.csv and analysis.csv."""
    from transpose_study.analysis.judge import judge
    from transpose_study.experiment import Experiment

    judge(Experiment.from_run(args.run))


def run_draw(args: argparse.Namespace, log: Log) -> None:
    """Write figures/."""
    from transpose_study.experiment import Experiment
    from transpose_study.report import draw

    draw(Experiment.from_run(args.run))


def run_write(args: argparse.Namespace, log: Log) -> None:
    """Write report/."""
    from transpose_study.experiment import Experiment
    from transpose_study.report import write

    experiment = Experiment.from_run(args.run)
    formats = args.formats or experiment.config.report.formats
    write(experiment, formats)
    log.say(f"the report: {experiment.paths.report(experiment.study.name, formats[0])}")
