"""Judged claims in a write-up: verdicts and the figures behind them, sentences chosen by them, and the tables that list them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from transpose_study.report.page import DASH, Page
from transpose_study.report.texts import EMPTY, Listing, Message, Part, Text, text
from transpose_study.report.values import Row
from transpose_study.report.wording import Amount, missing, number, why

HOLDS, DOES_NOT_HOLD, CANNOT_BE_TOLD, NOT_MEASURED = "holds", "does not hold", "cannot be told", "not measured"
VERDICTS = (HOLDS, DOES_NOT_HOLD, CANNOT_BE_TOLD, NOT_MEASURED)
INTERVALS = "In square brackets 95 % intervals. Of many comparisons the lowest and the highest figure stand here, or the one nearest to failing."
_CONDITION = re.compile(r" (?:[<>]?=|[<>]|within) ")  # what stands between a measure and its limit
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_KERNELS = re.compile(r"\[[^\]]*\]")
SIGNS = {HOLDS: "✓", DOES_NOT_HOLD: "✗", CANNOT_BE_TOLD: "?", NOT_MEASURED: "–"}  # told apart without colour


class Verdicts:
    """The tables claims.csv and claim_parts.csv of a page's run."""

    def __init__(self, page: Page) -> None:
        self.page, results = page, page.results
        self.judged = results.has_table("claims")
        self.claims: dict[str, Row] = {r["id"]: r for r in results.table("claims")} if self.judged else {}
        self.parts: dict[str, list[Row]] = {}
        for row in results.table("claim_parts") if self.judged else ():
            self.parts.setdefault(row["id"], []).append(row)

    def of(self, claim: str) -> str:
        """A claim's verdict; that it was not measured where nobody judged it."""
        return self.claims[claim]["verdict"] if claim in self.claims else NOT_MEASURED

    def holds(self, claim: str) -> bool:
        """Whether it holds."""
        return self.of(claim) == HOLDS

    def with_verdict(self, verdict: str) -> list[str]:
        """The claims of a verdict, in the order of their file."""
        return [i for i, row in self.claims.items() if row["verdict"] == verdict]

    def statement(self, claim: str) -> Text:
        """What the claim says, in each language."""
        row = self.claims[claim]
        return Statement(row["says"], row.get("says_zh") or row["says"])  # a statement has no other translation

    def figure(self, claim: str, part: int = 1, index: int = 0) -> Amount:
        """The figure that decided a comparison of a claim, with its interval."""
        rows = [r for r in self.parts.get(claim, ()) if r["part"] == str(part)]
        name = text("figure of the claim {claim}", claim=f"`{claim}`")
        if index >= len(rows) or rows[index]["measured"] == "":
            return missing(name, (rows[index]["reason"] if index < len(rows) else "") or self._why(claim))
        row = rows[index]
        ends = [float(row[e]) if row[e] else None for e in ("low", "high")]
        return Amount(float(row["measured"]), "", name, *ends, origin=f"tables/claim_parts.csv: {claim}, part {part}: {row['condition']}")

    def choose(self, claim: str, *, holds: Part, fails: Part, unclear: Part | None = None) -> Text:
        """The sentence that goes with the claim's verdict; where it was not measured, what the page then says is lacking."""
        verdict = self.of(claim)
        if verdict == NOT_MEASURED:
            name = text("verdict on the claim {claim}", claim=f"`{claim}`")
            return text("{x}", x=missing(name, self._why(claim)))
        if verdict == CANNOT_BE_TOLD and unclear is None:
            unclear = text("Whether {statement} cannot be told here.", statement=self.statement(claim))
        chosen = {HOLDS: holds, DOES_NOT_HOLD: fails, CANNOT_BE_TOLD: unclear}[verdict]
        return chosen if isinstance(chosen, Text) else text(str(chosen))

    def _why(self, claim: str) -> str:
        if claim not in self.claims:
            return "the claims were not judged" if not self.judged else "no such claim was judged"
        return self.claims[claim]["reason"] or "no reason was recorded"

    # -- blocks -----------------------------------------------------------------------------------------------------

    def line(self, *claims: str) -> None:
        """One line: the claims of a section with their verdicts."""
        known = [c for c in claims if c in self.claims]
        if known:
            shown = [text("{claim} {verdict}", claim=f"`{c}`", verdict=f"{SIGNS[self.of(c)]} {self.of(c)}") for c in known]
            self.page.say(text("*Judged here:* {claims}; the figures are in {table}.", claims=Listing(shown), table=self.page.table_ref("claims")))

    def counts(self, topics: Sequence[tuple[Part, Sequence[str]]], caption: Part) -> None:
        """A small table: how many claims of each topic got each verdict."""
        rows: list[list[Part]] = []
        for topic, claims in [*topics, ("All", [*self.claims])]:
            verdicts = [self.of(c) for c in claims if c in self.claims]
            if verdicts:
                rows.append([topic, *(str(verdicts.count(v)) if verdicts.count(v) else DASH for v in VERDICTS)])
        header = ["Claims about", *(f"{SIGNS[v]} {v}" for v in VERDICTS)]
        self.page.table(caption, header, rows, source="`tables/claims.csv`", align="lrrrr", name="verdicts")

    def named(self, verdict: str) -> Listing:
        """The names of all claims of a verdict."""
        return Listing([f"`{c}`" for c in self.with_verdict(verdict)])

    def chosen(self, claims: Sequence[str], caption: Part, name: str) -> None:
        """A short table of some claims: statement and verdict, then a line for each part: what was compared, the figure, what it must be."""
        rows: list[list[Part]] = []
        for claim in (c for c in claims if c in self.claims):
            first: list[Part] = [self.statement(claim), f"{SIGNS[self.of(claim)]} {self.of(claim)}"]
            named = len({r["part"] for r in self.parts.get(claim, ())}) > 1
            for comparisons in self._measured(claim).values():
                ends = _ends(comparisons)
                limit: Part = _limit(ends[0], bare=True)
                if ends[0].get("over") == "some" and len(comparisons) > 1:
                    limit = text("{limit} for one", limit=limit)
                rows.append([*first, _compared(ends[0], named=named), Listing([_figure(r) for r in ends], last="to"), limit])
                first = ["", ""]
            if first[0]:
                rows.append([*first, DASH, DASH, DASH])
        notes = [INTERVALS, "Quantities are named as in the tables; `_pct` stands for percent."]
        if any("speedup" in str(r["condition"]) for c in claims for r in self.parts.get(c, ())):
            notes.append("`speedup` says how many times as fast the first kernel of a statement is as the other.")
        header = ["Statement", "Verdict", "Quantity", "Measured", "Asked for"]
        source = "`tables/claims.csv`, `tables/claim_parts.csv`"
        self.page.table(caption, header, rows, source=source, align="lllrl", notes=notes, name=name)

    def table(self, topics: Sequence[tuple[Part, Sequence[str]]], caption: Part) -> None:
        """All claims with sources, verdicts, the figures and intervals that decided, and why."""
        rows: list[list[Part]] = []
        known = {c for _, claims in topics for c in claims}
        for topic, claims in [*topics, ("Further claims", [c for c in self.claims if c not in known])]:
            mine = [c for c in claims if c in self.claims]
            if mine:
                rows.append([text("▸ {topic}", topic=topic), "", "", ""])
            for claim in mine:
                row = self.claims[claim]
                statement = text(
                    "{statement} ({claim}; {source})", statement=self.statement(claim), claim=f"`{claim}`", source=row["source"].replace("; ", ", ")
                )
                rows.append([statement, f"{SIGNS[row['verdict']]} {row['verdict']}", self.evidence(claim), self.remark(claim)])
        notes = [
            INTERVALS,
            "A timing counts by its interval widened by the noise floor: inside holds, outside does not, across cannot be told.",
        ]
        self.page.table(
            caption,
            ["Claim", "Verdict", "Figures", "Why, and remarks"],
            rows,
            source="`tables/claims.csv`, `tables/claim_parts.csv`",
            align="llll",
            notes=notes,
            name="claims",
        )

    def evidence(self, claim: str) -> Part:
        """The figures of a claim: for each of its parts the extremes of its comparisons, and what is allowed."""
        named = len({r["part"] for r in self.parts.get(claim, ())}) > 1
        shown = [_evidence(rows, named=named) for rows in self._measured(claim).values()]
        return Listing(shown, last=";") if shown else DASH

    def _measured(self, claim: str) -> dict[str, list[Row]]:
        """The comparisons of a claim that have a figure, by part."""
        parts: dict[str, list[Row]] = {}
        for row in self.parts.get(claim, ()):
            if row["measured"] != "":
                parts.setdefault(row["part"], []).append(row)
        return parts

    def remark(self, claim: str) -> Part:
        """Why a claim was not decided, or how many comparisons failed, and its notes."""
        row, rows = self.claims[claim], self.parts.get(claim, ())
        said: list[Part] = []
        if row["verdict"] in (CANNOT_BE_TOLD, NOT_MEASURED):
            reasons = dict.fromkeys(r["reason"] for r in rows if r["verdict"] == row["verdict"] and r["reason"])
            said += [Message(why(r)) for r in list(reasons)[:2] or [row["reason"]] if r]
        elif row["verdict"] == DOES_NOT_HOLD and len(rows) > 1:
            said.append(text("{n} of {m} comparisons fail", n=sum(r["verdict"] == DOES_NOT_HOLD for r in rows), m=len(rows)))
        said += [_said(row, k) for k in ("note", "changed") if row.get(k)]
        return Listing(said, last=";") if said else ""


def _ends(rows: Sequence[Row]) -> list[Row]:
    """Of one part's comparisons the lowest and the highest, one where they are equal; where each has its own limit, the one nearest to failing."""
    ordered = sorted(rows, key=lambda r: float(r["measured"]))
    if len({r["threshold"] for r in rows}) > 1:
        return [min(ordered, key=_margin)]
    return [ordered[0]] if ordered[0]["measured"] == ordered[-1]["measured"] else [ordered[0], ordered[-1]]


def _compared(row: Row, *, named: bool) -> Part:
    """The quantity that a comparison measures, without its kernels; with the part's own words where a claim has several.

    A formula of several quantities is left to the words, where there are any.
    """
    clauses = row["condition"].split(" and ")
    clause = next((c for c in clauses if c.endswith(row["threshold"])), clauses[0])  # the one that decided
    quantity = _KERNELS.sub("", _CONDITION.split(clause, maxsplit=1)[0])
    measure = f"`{quantity}`"
    if not named:
        return measure
    return text("{what}: {measure}", what=_said(row, "says"), measure=measure) if quantity.isidentifier() else text("{what}", what=_said(row, "says"))


def _evidence(rows: Sequence[Row], *, named: bool) -> Text:
    """One part of a claim: the figures of :func:`_ends`, the kernels they belong to, and what is allowed."""
    ends = _ends(rows)
    values = [text("{figure}{where}", figure=_figure(r), where=_where(r) if len(rows) > 1 else EMPTY) for r in ends]
    met = sum(r["verdict"] == HOLDS for r in rows)
    count = ", met by {n} of {m}, one suffices" if rows[0].get("over") == "some" else ", met by {n} of {m}"
    return text(
        "{what}{values}{count} (allowed: {limit})",
        what=text("{x}: ", x=_said(rows[0], "says")) if named else EMPTY, values=Listing(values, last="to"),
        count=EMPTY if len(rows) == 1 else text(count, n=met, m=len(rows)), limit=_limit(ends[0]),
    )  # fmt: skip


def _limit(row: Row, *, bare: bool = False) -> Message:
    """What a comparison must be, its numbers set like the measured ones; ``bare`` leaves out the sign of equality."""
    limit = _THOUSANDS.sub(lambda m: number(float(m[0].replace(",", ""))), row["threshold"])
    return Message(limit.removeprefix("= ") if bare else limit)


def _margin(row: Row) -> float:
    """How far a figure lies inside its limit, as a share of the limit; negative outside."""
    bounds = [float(row[e]) for e in ("threshold_low", "threshold_high") if row[e]]
    edge, value = bounds[0] if bounds else 0.0, float(row["measured"])
    inside = value - edge if row["threshold"].startswith(">") else edge - value
    return inside / abs(edge) if edge else inside


class Statement(Text):
    """A statement that its file gives in each language itself."""

    def __init__(self, english: str, chinese: str) -> None:
        super().__init__(english)
        self.given = {"zh": chinese}


def _said(row: Row, column: str) -> Part:
    """What a file says in a column: in Chinese as the file has it, else as the catalogue translates it."""
    chinese = row.get(f"{column}_zh")
    return Statement(row[column], chinese) if chinese else Message(row[column])


def _figure(row: Row) -> Text:
    low, high = (float(row[e]) if row[e] else None for e in ("low", "high"))
    amount = Amount(float(row["measured"]), "", row["says"])
    if low is None or high is None or not low < high or number(low) == number(high):
        return text("{x:n}", x=amount)
    return text("{x:n} [{low}, {high}]", x=amount, low=number(low), high=number(high))


def _where(row: Row) -> Text:
    """The kernels of a comparison, as its condition names them."""
    inside = row["condition"].partition("[")[2].partition("]")[0]
    return text(" ({cells})", cells=f"`{inside}`") if inside else EMPTY


def topics_of(page: Page, named: Iterable[tuple[Part, Sequence[str]]]) -> list[tuple[Part, Sequence[str]]]:
    """The topics that have a judged claim."""
    known = {r["id"] for r in page.results.table("claims")} if page.results.has_table("claims") else set()
    return [(t, c) for t, c in named if known & set(c)]
