"""Texts with figures in them, in several languages: English templates with named places, and catalogues that translate them.

A text is kept as its template and what goes into its places until a language renders it, so that the editions of a
write-up differ in words alone: every figure and every choice between sentences is made once. A catalogue is a YAML list of
pairs ``en:``, ``zh:``; both sides of a pair have the same places and digits in the same order. ``message: true`` marks the
template of what another stage says with its figures already inside, such as the reason why a cell was skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from string import Formatter
from typing import Any

from transpose_study.errors import StudyError
from transpose_study.records import read_yaml
from transpose_study.report.marks import trace
from transpose_study.report.wording import PREDICTED, PUBLISHED, Amount, number, with_unit

ENGLISH = "en"
_WIDE = "，。；：、（）“”"
GENERAL = Path(__file__).parent  # holds <language>.yaml: texts of the parts that every study shares


class Text:
    """A template and what goes into its places: figures, numbers, names, other texts, or lists of those."""

    given: Mapping[str, str] = {}  # wordings that need no catalogue, by language

    def __init__(self, template: str, **values: Any) -> None:
        self.template, self.values = template, values

    def lacking(self) -> tuple[Amount, ...]:
        """The figures that the text needs and that are not there."""
        return tuple(a for v in self.values.values() for a in _lacking(v))

    def __bool__(self) -> bool:
        return bool(self.template)


class Optional(Text):
    """A text that is left out, rather than complained about, where a figure it needs is missing."""

    def lacking(self) -> tuple[Amount, ...]:
        """Nothing: what lacks only leaves the text out."""
        return ()


SENTENCES = "."  # the "last" of a list of whole sentences


class Listing:
    """``a, b and c`` of texts and names; or whole sentences one after the other."""

    def __init__(self, items: Iterable[Any], last: str = "and") -> None:
        self.items, self.last = list(items), last


class Message(str):
    """What another stage said, a figure or a name inside: translated by the template it was made from."""

    __slots__ = ()


def _lacking(value: Any) -> tuple[Amount, ...]:
    if isinstance(value, Amount):
        return () if value.known else (value,)
    if isinstance(value, Text):
        return value.lacking()
    if isinstance(value, Listing):
        return tuple(a for i in value.items for a in _lacking(i))
    return ()


Part = str | Text | Listing | Amount | int | float
EMPTY = Text("")


def text(template: str, **values: Any) -> Text:
    """A text, to be rendered in each language."""
    return Text(template, **values)


def optional(template: str, **values: Any) -> Text:
    """A text that appears only where all its figures are there."""
    return Optional(template, **values)


def plural(count: int, one: str, many: str) -> Text:
    """``one`` or ``many``, templates with the place ``n``."""
    return Text(one if count == 1 else many, n=count)


class Language:
    """One language: its catalogue, and how texts and figures are set in it."""

    def __init__(self, code: str, catalogues: Sequence[Path] = ()) -> None:
        self.code = code
        self.untranslated: set[str] = set()
        self._texts: dict[str, str] = {}
        self._messages: list[tuple[re.Pattern[str], str]] = []
        for path in catalogues if code != ENGLISH else ():
            for pair in read_catalogue(path, code):
                self._texts[_even(pair[ENGLISH])] = pair[code]
                if pair.get("message"):
                    self._messages.append((_pattern(pair[ENGLISH]), pair[code]))

    @classmethod
    def of(cls, code: str, study: str, root: Path) -> Language:
        """The language with the general texts and those of a study's write-up, ``paper/<study>.<language>.yaml``."""
        return cls(code, [GENERAL / f"{code}.yaml", root / "paper" / f"{study}.{code}.yaml"])

    @property
    def suffix(self) -> str:
        """What a file's name has before its suffix: nothing in English, else ``zh.``."""
        return "" if self.code == ENGLISH else f"{self.code}."

    def template(self, english: str) -> str:
        """The translated template; the English one where there is none."""
        if self.code == ENGLISH:
            return english
        key = _even(english)
        if key in self._texts:
            return self._texts[key]
        if re.search(r"[A-Za-z]", re.sub(r"{\w+(:\w)?}|`[^`]*`|\b\w*\d\w*\b", "", key)):  # names and places need no translation
            self.untranslated.add(key)
        return english

    def word(self, text: str) -> str:
        """A name or a message that may be translated: as it is where the catalogue does not know it."""
        if self.code == ENGLISH:
            return text
        found = self._texts.get(_even(text))
        return found if found is not None and "{" not in found else text

    def message(self, text: str) -> str:
        """A message of another stage, with figures inside: by the first template of the catalogue that matches it."""
        if self.code == ENGLISH or _even(text) in self._texts:
            return self.word(text)
        for pattern, template in self._messages:
            if found := pattern.fullmatch(text):
                return template.format(**{k: self.message(v) for k, v in found.groupdict().items()})
        return text

    @cached_property
    def space(self) -> str:
        """What stands between two sentences."""
        return self.template("{a} {b}").replace("{a}", "").replace("{b}", "")

    def render(self, part: Part, *, traced: bool = True) -> str:
        """The part in this language, as Markdown; ``traced`` marks each figure with its origin."""
        if isinstance(part, Text):
            if not part.template or _missing_inside(part):
                return ""
            places = {k: _Place(self, v, traced) for k, v in part.values.items()}
            if given := part.given.get(self.code):
                return given
            return self._tight(self.template(part.template).format(**places) if places else self.template(part.template))
        if isinstance(part, Listing):
            return self.listing(part, traced=traced)
        if isinstance(part, Amount):
            return self.amount(part, "", traced=traced)
        if isinstance(part, Message):
            return self.message(part)
        if isinstance(part, str):
            return self.word(part)
        return number(part)

    def _tight(self, text: str) -> str:
        """Without spaces beside full-width punctuation, which brings its own."""
        return text if self.code == ENGLISH else re.sub(f" +(?=[{_WIDE}])|(?<=[{_WIDE}]) +", "", text)

    def listing(self, listing: Listing, *, traced: bool = True) -> str:
        """``a, b and c``, or the word for an empty list."""
        words = [w for i in listing.items if (w := self.render(i, traced=traced))]
        if listing.last == SENTENCES:
            return self.sentences(words)
        if len(words) < 2:
            return words[0] if words else self.template("none")
        last = f"{{a}}{'' if listing.last == ';' else ' '}{listing.last} {{b}}"
        between = self.template(last if listing.last == ";" else "{a}, {b}").replace("{a}", "").replace("{b}", "")
        return self.template(last).format(a=between.join(words[:-1]), b=words[-1])

    def sentences(self, texts: Iterable[str]) -> str:
        """Sentences as one paragraph."""
        return self.space.join(t for t in texts if t)

    def amount(self, amount: Amount, form: str, *, traced: bool = True) -> str:
        """A figure: with unit (form ""), alone ("n"), with its interval ("i"), or its sign always shown ("s").

        Published figures are set in italics, predicted ones in bold type.
        """
        if not amount.known:
            return self.template("not measured")
        digits = amount.text()
        if traced and amount.origin:
            digits = trace(digits, amount.origin)
        if form == "s" and amount.number > 0:
            digits = f"+{digits}"
        plain = digits if form == "n" else with_unit(digits, self.word(amount.unit))
        plain = {PUBLISHED: f"*{plain}*", PREDICTED: f"**{plain}**"}.get(amount.kind, plain)
        if form == "i" and amount.has_interval:
            low, high = number(amount.low or 0.0), number(amount.high or 0.0)
            return f"{plain} [{low}, {high}]"
        return plain


class _Place:
    """A value in a template, which renders itself when it is formatted."""

    def __init__(self, language: Language, value: Any, traced: bool) -> None:
        self.language, self.value, self.traced = language, value, traced

    def __format__(self, form: str) -> str:
        if isinstance(self.value, Amount):
            return self.language.amount(self.value, form, traced=self.traced)
        return self.language.render(self.value, traced=self.traced)


def _missing_inside(part: Text) -> bool:
    """Whether a figure of the text itself is missing (an optional text inside is left out, no more)."""
    return any(a for v in part.values.values() for a in _lacking(v))


def _even(text: str) -> str:
    return " ".join(text.split())


def _pattern(template: str) -> re.Pattern[str]:
    parts = []
    for literal, place, _, _ in Formatter().parse(template):
        parts.append(re.escape(literal))
        if place is not None:
            parts.append(f"(?P<{place}>.+?)")
    return re.compile("".join(parts))


def read_catalogue(path: Path, code: str) -> list[dict[str, Any]]:
    """The pairs of a catalogue.

    Raises :class:`StudyError` where an entry is no pair of texts.
    """
    pairs = read_yaml(path) or []
    for pair in pairs:
        known = isinstance(pair, Mapping) and {ENGLISH, code} <= set(pair) <= {ENGLISH, code, "message"}
        if not known or not (isinstance(pair[ENGLISH], str) and isinstance(pair[code], str)):
            raise StudyError(f"{pair!r} is no pair of texts in {ENGLISH} and {code}", where=str(path))
    return [dict(p) for p in pairs]


def places(template: str) -> list[str]:
    """Names of a template's places, in their order."""
    return [p for _, p, _, _ in Formatter().parse(template) if p is not None]
