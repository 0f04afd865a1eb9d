"""``resolve``, ``describe`` and ``restore``: the configuration, the environment, and raw data out of an archive."""

from __future__ import annotations

import argparse
from pathlib import Path

from transpose_study.cli.common import add_run, add_settings, json_object, settings
from transpose_study.progress import Log


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the sub-commands."""
    resolve = commands.add_parser(
        "resolve",
        help="write the resolved configuration, defaults included",
        description="Checks the configuration given as JSON, fills in every default, and writes run_config.yaml.",
    )
    resolve.add_argument("--config", required=True, help="the configuration, as JSON")
    add_run(resolve)
    resolve.set_defaults(run_command=run_resolve)

    describe = commands.add_parser(
        "describe",
        help="record GPU, driver, compiler, ncu, packages, commit",
        description="Records GPU, driver, compiler, ncu, packages and commit (in a replay the archive's): reads build/ and the journal, "
        "writes environment.json.",
    )
    add_run(describe)
    add_settings(describe)
    describe.set_defaults(run_command=run_describe)

    restore = commands.add_parser(
        "restore",
        help="take the raw data of a run out of an archive",
        description="Takes the raw data out of an archive, each file compared with its sha256, and writes raw/.",
    )
    restore.add_argument("--archive", type=Path, required=True, help="archive (.crate.zip) to read")
    add_run(restore)
    restore.set_defaults(run_command=run_restore)


def run_resolve(args: argparse.Namespace, log: Log) -> None:
    """Validate the configuration once more and write it."""
    from transpose_study.experiment import Experiment
    from transpose_study.records import write_yaml

    experiment = Experiment.from_snakemake(json_object(args.config, "--config"))
    write_yaml(args.run / "run_config.yaml", experiment.resolved())
    log.note(f"{len(experiment.groups)} shapes, {sum(len(experiment.cells(g)) for g in experiment.groups)} cells")


def run_describe(args: argparse.Namespace, log: Log) -> None:
    """Write environment.json."""
    from transpose_study.environment import describe

    describe(settings(args), args.run, log)


def run_restore(args: argparse.Namespace, log: Log) -> None:
    """Restore raw/ from an archive."""
    from transpose_study.archive.restore import restore
    from transpose_study.experiment import Experiment

    restore(Experiment.from_run(args.run), args.archive, log)
