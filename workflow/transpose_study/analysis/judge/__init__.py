"""From tidy tables to verdicts and answers: claims.csv, claim_parts.csv, analysis.csv. Reads no raw file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transpose_study.experiment import Experiment

TABLES = ("claims", "claim_parts", "analysis")


def judge(experiment: Experiment) -> None:
    """Write every table of :data:`TABLES` from the tables that ``aggregate`` made and the study's claims file."""
    from transpose_study.analysis.judge.answers import write_answers
    from transpose_study.analysis.judge.claims import load_claims
    from transpose_study.analysis.judge.tidy import Tidy
    from transpose_study.analysis.judge.verdicts import write_verdicts

    declared = load_claims(experiment)
    tidy = Tidy(experiment, declared.swizzles)
    write_verdicts(experiment, declared.claims, tidy)
    write_answers(experiment, declared.questions, tidy)
