"""The building blocks of a write-up, as Markdown outputs of its cells: paragraphs, numbered tables and figures.

Nothing here is particular to a study. A figure that is missing shows as a dash with a mark; the mark's reason stands below
the table, and in running text where it first comes up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from transpose_study.report.figures import caption_of
from transpose_study.report.values import Results
from transpose_study.report.wording import Amount, Sentence, listing

Field = str | Amount
DASH = "–"
UNITS = {"%", "bytes", "MB", "GB/s", "µs", "ms", "ns"}


def _display(text: str) -> None:
    from IPython.display import Markdown, display

    display(Markdown(text))


class Page:
    """Emits the blocks of one document in order and numbers its tables, figures and reasons."""

    def __init__(self, results: Results, emit: Callable[[str], None] = _display) -> None:
        self.results, self._emit = results, emit
        self._tables = self._figures = 0
        self._reasons: dict[str, str] = {}
        self._explained: set[str] = set()

    @classmethod
    def open(cls) -> Page:
        """A page about the run that the environment names."""
        return cls(Results.open())

    # -- text ---------------------------------------------------------------------------------------------------------

    def say(self, *parts: str | Sentence) -> None:
        """One paragraph. Sentences that lack a figure are replaced by one that says which and why, at the paragraph's end."""
        texts = [p if isinstance(p, str) else p.text for p in parts]
        lacking = [a for p in parts if isinstance(p, Sentence) for a in p.lacking]
        self._emit(" ".join(t for t in (*texts, self._lacking(lacking)) if t))

    def raw(self, text: str) -> None:
        """Markdown as it is."""
        self._emit(text)

    def items(self, *items: str | Sentence) -> None:
        """A bulleted list; what lacks is said in the item's place."""
        texts = [i if isinstance(i, str) else i.text or self._lacking(i.lacking) for i in items]
        self._emit("\n".join(f"- {t}" for t in texts if t))

    def _mark(self, reason: str) -> str:
        return self._reasons.setdefault(reason, f"R{len(self._reasons) + 1}")

    def _lacking(self, amounts: Iterable[Amount]) -> str:
        names: dict[str, list[str]] = {}
        for amount in amounts:
            known = names.setdefault(amount.reason or "no reason was recorded", [])
            if amount.name not in known:
                known.append(amount.name)
        parts = []
        for reason, what in names.items():
            mark = self._mark(reason)
            explanation = mark if mark in self._explained else f"{mark}: {reason}"
            self._explained.add(mark)
            parts.append(f"the {listing(what)} ({explanation})")
        return f"*Not measured here:* {'; '.join(parts)}." if parts else ""

    # -- tables and figures ---------------------------------------------------------------------------------------------

    def table(
        self, caption: str, header: Sequence[str], rows: Sequence[Sequence[Field]], *, source: str, notes: Sequence[str] = (), align: str = ""
    ) -> None:
        """A numbered table; published figures are in italics.

        Columns that hold figures are set to the right, unless ``align`` gives a letter (l or r) for each column.
        """
        self._tables += 1
        figures = [any(isinstance(r[i], Amount) for r in rows) for i in range(len(header))]
        if align:
            figures = [letter == "r" for letter in align]
        marks: dict[str, str] = {}
        lines = [self._line(header), self._line(["--:" if f else ":--" for f in figures])]
        lines += [self._line([self._field(f, marks) for f in row]) for row in rows]
        remarks = [*notes, *(f"{mark}: {reason}." for reason, mark in marks.items()), f"From {source}."]
        title = f"**Table {self._tables}.** {caption}"
        self._emit("\n".join([title, "", *lines, "", "*Notes.* " + " ".join(remarks)]))

    def published_table(self, caption: str, section: str, quantities: Mapping[str, str], kernels: Mapping[str, str]) -> None:
        """A table of the published study: two lines a quantity, the published figures above this device's."""
        rows: list[list[Field]] = []
        for quantity, label in quantities.items():
            theirs = [self.results.published(section, quantity, k) for k in kernels]
            ours = [self.results.measured(section, quantity, k) for k in kernels]
            unit = next((a.unit for a in (*theirs, *ours) if a.unit in UNITS), "")  # counted things are named by their label
            rows.append([f"{label}, {unit}" if unit else label, "*published*", *(a if a.known else DASH for a in theirs)])
            rows.append(["", "measured", *ours])
        note = "Italics: published; below: measured on this device."
        self.table(caption, ["Quantity", "", *kernels.values()], rows, source="`tables/published.csv`", notes=[note])

    def figure(self, name: str) -> None:
        """A numbered figure of the run, with the caption it has everywhere."""
        self._figures += 1
        caption = caption_of(name, self.results.experiment.root)
        first = caption.partition(". ")[0].replace("[", "(").replace("]", ")").replace('"', "'")
        self._emit(f"![{first}](../figures/{name}.svg)\n\n**Figure {self._figures}.** {caption}")

    def _field(self, field: Field, marks: dict[str, str]) -> str:
        if isinstance(field, str):
            return field
        if not field.known:
            reason = field.reason or "no reason was recorded"
            marks[reason] = self._mark(reason)
            return f"{DASH} {marks[reason]}"
        return f"{field:n}"

    @staticmethod
    def _line(fields: Sequence[str]) -> str:
        return "| " + " | ".join(f.replace("|", "\\|").replace("\n", " ") for f in fields) + " |"
