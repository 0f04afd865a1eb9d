"""``doctor``: what keeps a study from running here, and the commands that mend it."""

from __future__ import annotations

import argparse

from transpose_study.cli.common import add_log
from transpose_study.progress import Log


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the sub-command."""
    doctor = commands.add_parser(
        "doctor",
        help="tell what keeps a study from running here, and the command that mends it",
        description="Looks at GPU, driver, compiler, ncu, packages, locks, disk and archive, and prints what is wrong and the command that mends it; "
        "changes nothing.",
        epilog="Exit status: 0 ready to measure everything, 1 it works within limits, 2 something must be mended first.",
    )
    doctor.add_argument("--no-probe", action="store_true", help="compile and profile nothing")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_log(doctor)
    doctor.set_defaults(run_command=run_doctor)


def run_doctor(args: argparse.Namespace, log: Log) -> int:
    """Print every finding."""
    import json
    from dataclasses import asdict

    from transpose_study.doctor import BROKEN, LIMITS, examine, status_of

    findings = []
    for finding in examine(probe=not args.no_probe):
        findings.append(finding)
        if not args.json:
            print("\n".join(finding.lines()), flush=True)
    if args.json:
        print(json.dumps([asdict(f) for f in findings], indent=2))
        return status_of(findings)
    broken, limits = (list(dict.fromkeys(f.what for f in findings if f.level == level)) for level in (BROKEN, LIMITS))
    if broken:
        print(f"mend first: {', '.join(broken)}")
    if limits:
        print(f"works within limits: {', '.join(limits)}")
    if not broken and not limits:
        print("ready to measure")
    return status_of(findings)
