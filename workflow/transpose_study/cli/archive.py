"""``archive``, ``verify``, ``rerun`` and ``status``: packing a run, checking and repeating an archive, checking a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from transpose_study.cli.common import add_log, add_run
from transpose_study.progress import Log


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the sub-commands."""
    archive = commands.add_parser(
        "archive",
        help="pack a finished run with its exact configuration",
        description="Packs a finished live run: reads the results folder and the project's sources, writes one archive into results/archive/.",
    )
    add_run(archive)
    name = "results/archive/<device>-<date>.crate.zip, with the study's name before the date where it is not transpose"
    archive.add_argument("--output", type=Path, help=f"archive to write; default: {name}")
    archive.add_argument("--with-ncu-reports", action="store_true", help="also pack the .ncu-rep files (large)")
    archive.set_defaults(run_command=run_archive)

    verify = commands.add_parser(
        "verify",
        help="check every byte of an archive, rebuild its tables, figures and report, recompile its kernels",
        description="Checks an archive: reads it alone, makes anew in a temporary folder what its raw data and sources give, prints what differs; "
        "writes nothing.",
        epilog="Exit status: 0 all agrees, 1 something differs, 2 no archive, 3 nothing differs but something could not be told.",
    )
    verify.add_argument("archive", type=Path, help="archive (.crate.zip) to check")
    verify.add_argument("--trust", action="store_true", help="run the program and the write-up inside the archive, not the installed ones")
    verify.add_argument(
        "--skip", nargs="+", default=[], choices=["contents", "predictions", "tables", "figures", "report", "kernels"], metavar="CHECK",
        help="checks not to make: contents, predictions, tables, figures, report, kernels (the last compiles)",
    )  # fmt: skip
    verify.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_log(verify)
    verify.set_defaults(run_command=run_verify)

    status = commands.add_parser(
        "status",
        help="tell whether a results folder's data, configuration, kernels, tables and figures belong together",
        description="Compares everything in a results folder, sources included, by digests, and prints what does not belong together; "
        "writes nothing.",
        epilog="Exit status: 0 they do, 1 they do not.",
    )
    add_run(status)
    status.set_defaults(run_command=run_status)

    rerun = commands.add_parser(
        "rerun",
        help="make an archive's experiment once more on this GPU, with the archive's kernels and program",
        description="Makes an archive's experiment again on this GPU: reads its configuration, kernels and program, writes a project with "
        "new results into results/rerun/.",
    )
    rerun.add_argument("archive", type=Path, help="archive (.crate.zip) whose experiment is repeated")
    rerun.add_argument("--configfile", type=Path, help="configuration in the place of the archive's own, such as config/quick.yaml")
    rerun.add_argument("--installed-program", action="store_true", help="measure with the installed program, not with the archive's own")
    add_log(rerun)
    rerun.set_defaults(run_command=run_rerun)

    compare = commands.add_parser(
        "compare",
        help="set archives, results folders and published studies side by side",
        description="Sets runs side by side, cell by cell: reads two or more sides, writes tables, figures and a report into results/compare/.",
    )
    compare.add_argument("sides", nargs="*", metavar="SIDE", help="an archive, a results folder, or a published study such as rtx5060-laptop")
    compare.add_argument("--output", type=Path, help="folder to write; default: results/compare/<sides>")
    add_log(compare)
    compare.set_defaults(run_command=run_compare)


def run_archive(args: argparse.Namespace, log: Log) -> None:
    """Write an archive."""
    from transpose_study.archive.pack import pack
    from transpose_study.experiment import Experiment

    path = pack(Experiment.from_run(args.run), args.output, with_ncu_reports=args.with_ncu_reports)
    log.say(f"archived in {path} ({path.stat().st_size / 1e6:.1f} MB)")


def run_verify(args: argparse.Namespace, log: Log) -> int:
    """Print what agrees, what differs and what could not be told."""
    from transpose_study.archive.findings import DIFFERS, UNTOLD, status_of
    from transpose_study.archive.verify import as_json, verify

    def say(text: str) -> None:
        if not args.json:
            print(text, flush=True)
        log.note(text)

    findings = verify(args.archive, trust=args.trust, skip=args.skip, say=say)
    for line in [line for f in findings for line in f.lines()]:
        say(line)
    wrong, untold = ([f.name for f in findings if f.outcome == o] for o in (DIFFERS, UNTOLD))
    verdict = "everything agrees"
    if wrong:
        verdict = f"DIFFERS: {', '.join(wrong)}"
    elif untold:
        verdict = f"nothing differs; not told: {', '.join(untold)}"
    say(verdict)
    if args.json:
        print(as_json(findings))
    return status_of(findings)


def run_status(args: argparse.Namespace, log: Log) -> int:
    """Print what does not belong together."""
    from transpose_study.experiment import Experiment
    from transpose_study.provenance import Provenance
    from transpose_study.status import mismatches, notes

    experiment = Experiment.from_run(args.run)
    provenance = Provenance(experiment)
    what = f"a replay of {experiment.target['archive']}" if experiment.replay else "a live run"
    print(f"{args.run}: {what}, {experiment.gpu['name']} {experiment.gpu['uuid']}")
    print(f"  run {provenance.run_id}, configuration {provenance.configuration_digest}")
    wrong = mismatches(experiment)
    for text in wrong:
        print(f"  {text}")
    for text in notes(experiment):
        print(f"  note: {text}")
    mend = "`snakemake --cores 1 all` makes anew what is needed (--forcerun build_VARIANT where a cubin is gone)"
    print(f"does not hold together; {mend}" if wrong else "holds together")
    return 1 if wrong else 0


def run_rerun(args: argparse.Namespace, log: Log) -> None:
    """Measure an archive's experiment on this machine."""
    from transpose_study.archive.rerun import rerun

    rerun(args.archive, log, configfile=args.configfile, installed=args.installed_program)


def run_compare(args: argparse.Namespace, log: Log) -> None:
    """Write a comparison."""
    from collections import Counter

    from transpose_study.comparison.compare import REPORT, compare

    folder, comparison = compare(args.sides, output=args.output)
    for text in comparison.common():
        log.say(text)
    for pair in comparison.pairs:
        counts = Counter(v.verdict for v in pair.verdicts.values() if v)
        told = ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common())
        log.say(f"{pair.second.label} against {pair.first.label}, {'one unit' if pair.same_unit else 'two units'}: {told}")
    log.say(f"compared in {folder / 'report' / REPORT}.html")
