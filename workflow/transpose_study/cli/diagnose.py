"""``diagnose``: what limits a kernel, on one page, from a run's tables, an archive's, or measured on the spot."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transpose_study.cli.common import AXIS, STUDY, Command, add_axis, add_log, study_asked_for, study_named, variant_named
from transpose_study.errors import StudyError
from transpose_study.progress import Log

if TYPE_CHECKING:
    from transpose_study.registry import Study, Variant


def add(commands: argparse._SubParsersAction[Command]) -> None:
    """Register the sub-command."""
    command = commands.add_parser(
        "diagnose",
        help="what limits a kernel, each limiter with its counter, threshold and reason",
        description="Prints what limits a kernel and why: reads a results folder's or archive's tables; with --measure it measures, into "
        "results/diagnose/.",
    )
    command.add_argument("variant", help="a variant of the registry")
    command.add_argument("--study", default=STUDY, help=f"default: {STUDY}")
    command.add_argument("--run", type=Path, metavar="FOLDER", help="results folder or archive; default: the newest in results/, else the archive")
    command.add_argument("--shape", metavar="GROUP", help="shape, such as 4096x4096; default: the one at which the kernel takes longest")
    command.add_argument("--measure", action="store_true", help="measure this kernel now, on the GPU that is here, into results/diagnose/")
    command.add_argument("--transfer-gb-s", type=float, metavar="F", help="rate of the link to the host, 10^9 bytes a second; default: PCIe 5.0 x16")
    add_log(command)
    command.set_defaults(run_command=run_diagnose)
    command.late = _add_axes


def _add_axes(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """One option for each axis that a variant takes; a registry that cannot be read is reported when the command runs."""
    study = study_asked_for(arguments)
    if study is None:
        return
    for name in dict.fromkeys(axis for variant in study.variants.values() for axis in variant.takes):
        add_axis(parser, name, study.axes[name].meaning)


def run_diagnose(args: argparse.Namespace, log: Log) -> None:
    """Print the page."""
    from transpose_study.analysis.diagnose import facts_of, find_row, judge, page, unread
    from transpose_study.cli.diagnose_tables import measured, recorded
    from transpose_study.metrics import study_file, study_metrics

    study = study_named(args.study)
    variant = variant_named(study, args.variant)
    if variant.source is None:
        raise StudyError(f"{variant.name} has no kernel to diagnose", where=str(study.path))
    rate = args.transfer_gb_s
    if rate is not None and not (math.isfinite(rate) and rate > 0):
        raise StudyError(f"is {rate:g}; a rate is above 0", where="--transfer-gb-s")
    if args.measure and args.run:
        raise StudyError("and --measure exclude each other: what is measured has a folder of its own", where="--run")
    axes = _axes(study, variant, args)
    tables = measured(study, variant, args.shape, _fixed(axes), log) if args.measure else recorded(study, variant, args.run)
    with tables as (folder, origin):
        key, choice = find_row(folder, study, variant.name, args.shape, axes)
        facts = facts_of(folder, key)
    verdict = judge(facts)
    hints = [] if verdict.limiter else unread(facts, study_metrics(Path(), study), study_file(Path(), "metrics", study.name))
    place = study.group_name({a: key[a] for a in study.group_axes})
    values = "".join(f", {a} {key[a]}" for a in variant.takes if key[a])
    others = f"; the slowest of {choice} that were measured, options name another" if choice > 1 else ""
    head = [f"{variant.name}{values} at {place}: {variant.title}", f"{facts.gpu['name']}, {origin}{others}"]
    print("\n".join([*head, "", *page(verdict, facts, rate, hints)]))


def _axes(study: Study, variant: Variant, args: argparse.Namespace) -> dict[str, tuple[str, bool]]:
    """Values of the axes: the user's, else the noise-floor cell's. An axis that has neither is left out."""
    axes = {}
    for name in variant.takes:
        value, usual = getattr(args, AXIS + name), study.usual_value(name, variant)
        if value is not None or usual is not None:
            axes[name] = (str(usual) if value is None else value, value is not None)
    given = [n.removeprefix(AXIS) for n, v in vars(args).items() if n.startswith(AXIS) and v is not None]
    foreign = [n for n in given if n not in variant.takes]
    if foreign:
        raise StudyError(f"{variant.name} does not take the axis {foreign[0]}", where=f"--{foreign[0].replace('_', '-')}")
    return axes


def _fixed(axes: Mapping[str, tuple[str, bool]]) -> dict[str, str]:
    return {name: value for name, (value, _) in axes.items()}
