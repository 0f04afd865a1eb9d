"""What a check of an archive found, and how it is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

AGREES, DIFFERS, UNTOLD = "agrees", "DIFFERS", "not told"
SHOWN = 6  # details of one check that are printed; one screen must hold all


@dataclass(frozen=True)
class Finding:
    """One check: its name, its outcome, and what was found, the first text on the check's own line."""

    name: str
    outcome: str
    said: Sequence[str] = ()

    def lines(self) -> list[str]:
        """The finding as lines of text."""
        shown = list(self.said[:SHOWN])
        if len(self.said) > SHOWN:
            shown.append(f"and {len(self.said) - SHOWN} more")
        head, *rest = shown or [""]
        return [f"  {self.outcome:<9} {self.name:<11} {head}", *(f"  {'':<21} {text}" for text in rest)]


def status_of(findings: Sequence[Finding]) -> int:
    """Exit status: 0 all agrees, 1 something differs, 3 nothing differs and something could not be told."""
    outcomes = {f.outcome for f in findings}
    return 1 if DIFFERS in outcomes else 3 if UNTOLD in outcomes else 0


def some(names: Sequence[str]) -> str:
    """The first names, and how many more."""
    shown = ", ".join(names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
