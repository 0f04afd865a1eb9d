"""``check``, ``time`` and ``profile``: what needs the GPU."""

from __future__ import annotations

import argparse
from pathlib import Path

from transpose_study.cli.common import add_run, add_settings, settings
from transpose_study.progress import Log


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the sub-commands."""
    for name, run, text, description in (
        (
            "check", run_check, "compare every kernel's output bit for bit",
            "Runs every kernel of one shape on the GPU and compares its output bit for bit: reads build/, writes raw/check/.",
        ),
        (
            "time", run_time, "sample every checked kernel, warm caches and cold",
            "Times every checked kernel of one shape on the GPU, warm and cold: reads build/ and raw/check/, writes raw/timing/.",
        ),
        (
            "profile", run_profile, "read one batch of hardware counters with ncu",
            "Reads one batch of hardware counters of one shape with ncu: reads build/ and raw/check/, writes raw/counters/parts/ and the .ncu-rep.",
        ),
    ):  # fmt: skip
        command = commands.add_parser(name, help=text, description=description)
        add_run(command)
        add_settings(command)
        if name == "check":
            command.add_argument("--emulate", action="store_true", help="execute the kernels on the CPU; nothing is written, a fault is status 1")
        command.set_defaults(run_command=run)
    for name, run, text, description in (
        (
            "merge-checks", run_merge_checks, "join the shapes' verdicts into raw/check.csv",
            "Joins the verdicts of the shapes: reads raw/check/*.csv, writes raw/check.csv.",
        ),
        (
            "merge-counters", run_merge_counters, "join the metric batches of one shape",
            "Joins the metric batches of one shape: reads raw/counters/parts/, writes raw/counters/<shape>.csv.",
        ),
    ):  # fmt: skip
        command = commands.add_parser(name, help=text, description=description)
        add_run(command)
        command.add_argument("--study", required=True, help="study whose registry names the axes")
        command.add_argument("--groups", nargs="+", required=True, metavar="SHAPE", help="shapes to join, such as 4096x4096")
        command.add_argument("--batches", nargs="*", default=[], metavar="BATCH", help="metric batches to join")
        command.set_defaults(run_command=run)


def run_check(args: argparse.Namespace, log: Log) -> int:
    """Check one group on the GPU, or on the CPU without one."""
    if args.emulate:
        from transpose_study.simt.predict import check_group as emulate_group

        return emulate_group(settings(args), args.run, log)
    from transpose_study.gpu.check import check_group

    check_group(settings(args), args.run, log)
    return 0


def run_time(args: argparse.Namespace, log: Log) -> None:
    """Time one group on the GPU."""
    from transpose_study.gpu.timing import time_group

    time_group(settings(args), args.run, log)


def run_profile(args: argparse.Namespace, log: Log) -> None:
    """Profile one batch of one group on the GPU."""
    from transpose_study.gpu.profiling import profile_group

    profile_group(settings(args), args.run, log)


def run_merge_checks(args: argparse.Namespace, log: Log) -> None:
    """Join the verdicts of the groups."""
    from transpose_study.gpu.check import merge_checks

    merge_checks(_study(args), args.run, args.groups)


def run_merge_counters(args: argparse.Namespace, log: Log) -> None:
    """Join the batches of one group."""
    from transpose_study.gpu.profiling import join_batches
    from transpose_study.paths import RunPaths

    paths = RunPaths(args.run)
    for group in args.groups:
        join_batches(_study(args), [paths.counters_part(group, b) for b in args.batches], paths.counters(group))


def _study(args: argparse.Namespace):  # noqa: ANN202 - Study is imported late
    from transpose_study.registry import Study

    return Study(Path("kernels") / args.study / "variants.yaml")
