"""The one error a user may see: what is wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import partial
from typing import Any


class StudyError(Exception):
    """A mistake or a missing thing that the user can mend.

    ``what`` is one sentence, ``where`` names the file, key or cell, ``hint`` says what to do.
    The command line prints these three and exits with ``exit_code``; there is no stack trace.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), where=self.where, hint=self.hint), (self.what,)

    def __str__(self) -> str:
        text = self.what
        if self.where:
            text = f"{self.where}: {text}"
        if self.hint:
            text = f"{text}\n  hint: {self.hint}"
        return text


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean ...`` for a misspelt name, or the list of known names."""
    names = sorted(str(k) for k in known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known: " + ", ".join(names)
