"""``predict``: counters, instructions and occupancy of every cell, before anything is measured and without a GPU."""

from __future__ import annotations

import argparse

from transpose_study.cli.common import add_run, add_settings, settings
from transpose_study.progress import Log


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the sub-command."""
    predict = commands.add_parser(
        "predict",
        help="predict counters, instructions and occupancy of every cell from its compiled code",
        description="Predicts counters, instructions and occupancy of every cell without a GPU: reads build/, writes predicted*.csv.",
    )
    add_run(predict)
    add_settings(predict)
    predict.set_defaults(run_command=run_predict)


def run_predict(args: argparse.Namespace, log: Log) -> None:
    """Write predicted.csv, predicted_banks.csv and predicted_check.csv."""
    from transpose_study.simt.predict import predict_run

    predict_run(settings(args), args.run, log)
