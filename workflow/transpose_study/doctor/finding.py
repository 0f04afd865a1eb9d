"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass

OK, LIMITS, BROKEN = "ok", "limits", "BROKEN"


@dataclass(frozen=True)
class Finding:
    """``level`` says whether the study runs, runs without something, or does not; ``mend`` is the command that mends it."""

    level: str
    what: str
    text: str
    mend: str = ""

    def lines(self) -> list[str]:
        """The finding as lines of text."""
        told = f"{self.level:<7} {self.what:<12} {self.text}"
        return [told, f"{'':<20} mend: {self.mend}"] if self.mend else [told]
