"""Reading of a study's claims file: claims and questions with their cells and conditions, every mistake named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from transpose_study.analysis.formulas import comparisons, references
from transpose_study.analysis.judge.cells import Selector, parse_selectors
from transpose_study.analysis.judge.quantities import Known
from transpose_study.analysis.judge.swizzles import QUANTITIES as ARITHMETIC
from transpose_study.analysis.judge.swizzles import NamedSwizzle, parse_swizzles
from transpose_study.errors import StudyError, nearest
from transpose_study.experiment import Experiment
from transpose_study.metrics import study_file

KINDS = ("equal", "near", "at_least", "at_most", "order", "range")
OVER = ("every", "some")
_CONDITION = {"measure", "shows", "kind", "value", "tolerance", "over"}
_SAID = ("says", "says_zh", "note", "note_zh", "changed", "changed_zh")
_CLAIM = {"id", "source", "cells", "parts", *_SAID, *_CONDITION}
_PART = {"says", "says_zh", *_CONDITION}
_QUESTION = {"id", "says", "says_zh", "cells", "quantities", "note"}
_QUANTITY = {"name", "is", "unit", "each", "note"}
OPCODES = "opcodes"  # each: opcodes stands for every opcode that the cells execute


@dataclass(frozen=True)
class Part:
    """One condition: ``measure`` (in words: ``shows``) against ``value`` as ``kind`` says, for ``every`` or ``some`` combination of its cells.

    A ``value`` may be a formula of facts and of the cells' axes; ``tolerance`` is in the measure's unit, or in per cent of the value.
    """

    number: int
    says: str
    says_zh: str
    measure: str
    shows: str
    kind: str
    value: Any
    tolerance: float
    percent: bool
    over: str
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """One statement; it holds where all its parts hold."""

    id: str
    sources: tuple[str, ...]
    says: str
    says_zh: str
    kind: str
    cells: Mapping[str, tuple[Selector, ...]]
    parts: tuple[Part, ...]
    note: str
    note_zh: str
    changed: str
    changed_zh: str
    where: str


@dataclass(frozen=True)
class Answer:
    """One quantity of a question, computed for each combination of cells; ``each`` fills the braces of name and formula."""

    name: str
    formula: str
    unit: str
    note: str
    each: tuple[str, ...] | str
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """What a publication left open, and the quantities that answer it."""

    id: str
    says: str
    cells: Mapping[str, tuple[Selector, ...]]
    answers: tuple[Answer, ...]
    where: str


@dataclass(frozen=True)
class Declared:
    """Everything in the claims file for this experiment's study."""

    claims: tuple[Claim, ...] = ()
    questions: tuple[Question, ...] = ()
    swizzles: Mapping[str, NamedSwizzle] = field(default_factory=dict)


def load_claims(experiment: Experiment) -> Declared:
    """Read the claims and questions about the experiment's study; none where the file is of another study or not there."""
    data = experiment.claims
    if data is None:
        return Declared()
    file = f"config/{study_file(experiment.root, 'claims', experiment.study.name).name}"
    _known(data, {"study", "sources", "swizzles", "claims", "questions"}, file)
    if data.get("study") != experiment.study.name:
        return Declared()
    swizzles = parse_swizzles(data.get("swizzles") or {}, file)
    reader = _Reader(experiment, data.get("sources") or {}, swizzles)
    claims = [reader.claim(c, f"{file}, claim {_name(c, n)}") for n, c in enumerate(_entries(data, "claims", file), 1)]
    questions = [reader.question(q, f"{file}, question {_name(q, n)}") for n, q in enumerate(_entries(data, "questions", file), 1)]
    for ids in ([c.id for c in claims], [q.id for q in questions]):
        twice = next((i for i in ids if ids.count(i) > 1), None)
        if twice:
            raise StudyError(f"{twice} is there twice", where=file)
    return Declared(tuple(claims), tuple(questions), swizzles)


def _entries(data: Mapping[str, Any], key: str, where: str) -> list[Any]:
    entries = data.get(key) or []
    if not isinstance(entries, list):
        raise StudyError(f"{key} is no list", where=where)
    return entries


def _name(entry: Any, number: int) -> str:
    return str(entry.get("id", f"number {number}")) if isinstance(entry, dict) else f"number {number}"


def _known(entry: Any, known: Iterable[str], where: str, required: Iterable[str] = ()) -> None:
    if not isinstance(entry, dict):
        raise StudyError("is no mapping", where=where)
    for key in entry:
        if key not in known:
            raise StudyError(f"unknown key {key!r}; {nearest(str(key), known)}", where=where)
    missing = [k for k in required if entry.get(k) in (None, "")]
    if missing:
        raise StudyError(f"lacks {', '.join(missing)}", where=where)


class _Reader:
    """Checks entries against the study's cells and the quantities that the tables hold."""

    def __init__(self, experiment: Experiment, sources: Mapping[str, Any], swizzles: Mapping[str, NamedSwizzle]) -> None:
        self.experiment, self.sources, self.swizzles, self.quantities = experiment, sources, swizzles, Known(experiment)

    def claim(self, entry: Any, where: str) -> Claim:
        """A claim from its entry; a claim of one part may hold that part's keys itself."""
        _known(entry, _CLAIM, where, ["id", "source", "says", "kind"])
        sources = entry["source"] if isinstance(entry["source"], list) else [entry["source"]]
        for source in sources:
            if source not in self.sources:
                raise StudyError(f"unknown source {source!r}; {nearest(str(source), self.sources)}", where=where)
        if ("parts" in entry) == ("measure" in entry):
            raise StudyError("has either measure or parts", where=where)
        self._kind(entry["kind"], where)
        cells = self._cells(entry.get("cells", {}), where)
        given = entry["parts"] if "parts" in entry else [{k: v for k, v in entry.items() if k in _CONDITION}]
        if not isinstance(given, list) or not given:
            raise StudyError("parts is no list of conditions", where=where)
        inherited = {k: entry[k] for k in ("kind", "value", "tolerance", "over") if k in entry}
        parts = [self._part(n, p, inherited, cells, f"{where}, part {n}" if len(given) > 1 else where) for n, p in enumerate(given, 1)]
        self._all_used(cells, (a for p in parts for a in p.aliases), where)
        said = {k: " ".join(str(entry.get(k, "")).split()) for k in _SAID}
        return Claim(id=str(entry["id"]), sources=tuple(map(str, sources)), kind=entry["kind"], cells=cells, parts=tuple(parts), where=where, **said)

    def _part(self, number: int, given: Any, inherited: Mapping[str, Any], cells: Mapping[str, Any], where: str) -> Part:
        _known(given, _PART, where, ["measure"])
        entry = {**inherited, **given}
        kind = self._kind(entry["kind"], where)
        if "kind" in given and given["kind"] != inherited["kind"]:  # value and tolerance belong to the claim's own kind
            entry = {**given, "over": entry.get("over")}
        value, over = entry.get("value"), entry.get("over") or "every"
        tolerance, percent = _tolerance(entry.get("tolerance", 0))
        if over not in OVER:
            raise StudyError(f"over {over!r}; {nearest(str(over), OVER)}", where=where)
        compares = comparisons(str(entry["measure"]), where=where)
        if (kind == "order") != bool(compares):
            raise StudyError("a measure compares two things where its kind is order, and only there", where=where)
        pair = isinstance(value, list) and len(value) == 2 and value[0] <= value[1]
        if kind == "range" and not pair:
            raise StudyError(f"value {value!r} is no range", where=where, hint="write value: [LOW, HIGH]")
        if kind not in ("range", "order") and not isinstance(value, int | float | str):
            raise StudyError(f"kind {kind} needs a value", where=where)
        if not isinstance(tolerance, int | float) or tolerance < 0 or (kind == "near" and not tolerance):
            raise StudyError(f"tolerance {tolerance!r} is no number above 0", where=where)
        aliases = dict.fromkeys(self._names(str(entry["measure"]), cells, where, needed=True))
        if isinstance(value, str):
            aliases |= dict.fromkeys(self._names(value, cells, where, exact=True))
        says, says_zh, measure = str(entry.get("says", "")), str(entry.get("says_zh", "")), str(entry["measure"])
        shows = str(entry.get("shows") or says or measure)
        return Part(number, says, says_zh, measure, shows, kind, value, float(tolerance), percent, over, tuple(aliases))

    def question(self, entry: Any, where: str) -> Question:
        """A question from its entry."""
        _known(entry, _QUESTION, where, ["id", "says", "quantities"])
        cells = self._cells(entry.get("cells", {}), where)
        answers = [self._answer(a, cells, where) for a in _entries(entry, "quantities", where)]
        self._all_used(cells, (a for x in answers for a in x.aliases), where)
        return Question(str(entry["id"]), " ".join(str(entry["says"]).split()), cells, tuple(answers), where)

    def _answer(self, entry: Any, cells: Mapping[str, Any], where: str) -> Answer:
        _known(entry, _QUANTITY, where, ["name", "is"])
        each = entry.get("each", ())
        if each != OPCODES and not (isinstance(each, list | tuple) and all(isinstance(e, str) for e in each)):
            raise StudyError(f"each {each!r} is neither a list of quantities nor {OPCODES}", where=where)
        names = each if isinstance(each, list) else ["ANY"]
        aliases: tuple[str, ...] = ()
        for name in names:
            aliases = self._names(str(entry["is"]).replace("{}", name), cells, f"{where}, {entry['name']}", needed=True)
        each = each if isinstance(each, str) else tuple(each)
        return Answer(str(entry["name"]), str(entry["is"]), str(entry.get("unit", "")), str(entry.get("note", "")), each, aliases)

    def _kind(self, kind: Any, where: str) -> str:
        if kind not in KINDS:
            raise StudyError(f"unknown kind {kind!r}; {nearest(str(kind), KINDS)}", where=where)
        return str(kind)

    def _cells(self, given: Any, where: str) -> dict[str, tuple[Selector, ...]]:
        if not isinstance(given, dict):
            raise StudyError("cells is no mapping from a name of your choice to the cells it means", where=where)
        for name in given:
            if not str(name).isidentifier():
                raise StudyError(f"{name!r} in cells is no plain name", where=where)
            if name in self.swizzles:
                raise StudyError(f"{name} in cells is the name of a swizzle", where=where)
        return {str(name): parse_selectors(self.experiment, cells, f"{where}, cells {name}") for name, cells in given.items()}

    def _names(self, text: str, cells: Mapping[str, Any], where: str, *, needed: bool = False, exact: bool = False) -> tuple[str, ...]:
        """The aliases of cells that a formula uses, in order; unknown quantities and aliases are errors, and so is a formula that
        speaks of nothing (``needed``) or that holds a measured quantity (``exact``).
        """
        used: dict[str, None] = {}
        about = False
        for quantity, aliases in references(text, where=where):
            swizzles = [a for a in aliases if a in self.swizzles]
            if swizzles:
                about = True
                if quantity not in ARITHMETIC or len(aliases) != 1:
                    raise StudyError(f"{quantity!r} is no quantity of the swizzle {swizzles[0]}; {nearest(quantity, ARITHMETIC)}", where=where)
                continue
            for alias in aliases:
                if alias not in cells:
                    raise StudyError(f"unknown cell {alias!r} in {text!r}; {nearest(alias, [*cells, *self.swizzles])}", where=where)
            self.quantities.check(quantity, len(aliases), where)
            if exact and not self.quantities.exact(quantity):
                what = f"the value {text!r} holds {quantity}, which is measured"
                raise StudyError(what, where=where, hint="compare two measured quantities by kind: order, or by their ratio")
            used |= dict.fromkeys(aliases)
        if needed and not used and not about:
            raise StudyError(f"the measure {text!r} speaks of no cell", where=where)
        return tuple(used)

    @staticmethod
    def _all_used(cells: Mapping[str, Any], used: Iterable[str], where: str) -> None:
        unused = sorted(set(cells) - set(used))
        if unused:
            raise StudyError(f"{', '.join(unused)} in cells is used by no condition", where=where)


def _tolerance(given: Any) -> tuple[Any, bool]:
    """A tolerance, and whether it is one in per cent (``10 %``)."""
    number = str(given).removesuffix("%").strip()
    if str(given).endswith("%") and number.replace(".", "", 1).isdigit():
        return float(number), True
    return given, False
