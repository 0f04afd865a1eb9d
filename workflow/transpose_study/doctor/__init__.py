"""``doctor``: what of this machine and this project keeps a study from being measured or rebuilt, and what mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from transpose_study.doctor.finding import BROKEN, LIMITS, OK, Finding
from transpose_study.errors import StudyError


def examine(root: Path = Path(), *, probe: bool = True) -> Iterator[Finding]:
    """All findings, in the order of the checks; ``probe`` compiles a small kernel, and lets ncu profile it where there is a GPU."""
    from transpose_study.doctor import machine, project

    checks: list[Callable[[], Iterator[Finding]]] = [
        lambda: machine.check(root, probe=probe),
        project.packages,
        lambda: project.snakemake(root),
        project.locks,
        lambda: project.files(root),
        lambda: project.archive(root),
    ]
    for check in checks:
        try:
            yield from check()
        except StudyError as error:  # one check that cannot be made leaves the others alone
            yield Finding(BROKEN, "doctor", str(error).splitlines()[0], error.hint)


def status_of(findings: list[Finding]) -> int:
    """Exit status: 0 ready to measure everything, 1 it works within limits, 2 something must be mended first."""
    levels = {f.level for f in findings}
    return 2 if BROKEN in levels else 1 if LIMITS in levels else 0


__all__ = ["BROKEN", "LIMITS", "OK", "Finding", "examine", "status_of"]
