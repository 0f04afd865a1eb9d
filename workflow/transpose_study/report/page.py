"""The building blocks of a write-up, as Markdown outputs of its cells: paragraphs, numbered tables and figures.

Every block is rendered in all languages of the report at once, from the same figures. Nothing here is particular to a
study. A figure that is missing shows as a dash with a mark; the mark's reason stands below the table, and in running text
where it first comes up.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from transpose_study.report.figures import caption_of
from transpose_study.report.marks import label, reference
from transpose_study.report.texts import EMPTY, ENGLISH, Language, Listing, Message, Part, Text
from transpose_study.report.values import LANGUAGES_VARIABLE, Results
from transpose_study.report.wording import PREDICTED, PUBLISHED, Amount

DASH = "–"
UNITS = {"%", "bytes", "MB", "GB/s", "µs", "ms", "ns", "MiB", "MHz", "W", "°C"}


def mime_type(code: str) -> str:
    """The type of a notebook's output that holds an edition."""
    return "text/markdown" if code == ENGLISH else f"text/x-markdown.{code}"


def _display(editions: Mapping[str, str]) -> None:
    from IPython.display import display

    display({mime_type(code): text for code, text in editions.items()}, raw=True)


class Page:
    """Emits the blocks of one document in order and numbers its tables, figures and reasons."""

    def __init__(self, results: Results, languages: Sequence[Language] | None = None, emit: Callable[[Mapping[str, str]], None] = _display) -> None:
        self.results, self._emit = results, emit
        self.languages = list(languages or [Language(ENGLISH)])
        self._tables = self._figures = 0
        self._reasons: dict[str, str] = {}
        self._explained: set[str] = set()

    @classmethod
    def open(cls) -> Page:
        """A page about the run and in the languages that the environment names."""
        results = Results.open()
        codes = os.environ.get(LANGUAGES_VARIABLE, ENGLISH).split(",")
        return cls(results, [Language.of(c, results.study.name, results.experiment.root) for c in codes])

    # -- text ---------------------------------------------------------------------------------------------------------

    def raw(self, part: Part, prefix: str = "") -> None:
        """One block, as it is rendered; ``prefix`` is Markdown before it."""
        self._emit({x.code: prefix + x.render(_as_text(part)) for x in self.languages})

    def heading(self, level: int, part: Part) -> None:
        """A heading."""
        self.raw(part, "#" * level + " ")

    def say(self, *parts: Part) -> None:
        """One paragraph. Sentences that lack a figure are replaced by one that says which and why, at the paragraph's end."""
        sentences = [_as_text(p) for p in parts]
        lacking = self._lacking([a for s in sentences for a in s.lacking()])
        if any(not s.lacking() and s for s in sentences) or lacking:
            self._emit({x.code: x.sentences(x.render(s) for s in (*sentences, lacking)) for x in self.languages})

    def items(self, *items: Part) -> None:
        """A bulleted list; what lacks is said in the item's place."""
        shown = [self._lacking(i.lacking()) or i for i in map(_as_text, items)]
        self._emit({x.code: "\n".join(f"- {t}" for i in shown if (t := x.render(i))) for x in self.languages})

    def quote(self, *parts: Part) -> None:
        """A banner of paragraphs."""
        self._emit({x.code: "\n>\n".join(f"> {x.render(_as_text(p))}" for p in parts) for x in self.languages})

    def _mark(self, reason: str) -> str:
        return self._reasons.setdefault(reason, f"R{len(self._reasons) + 1}")

    def _lacking(self, amounts: Iterable[Amount]) -> Text:
        names: dict[str, list[Part]] = {}
        for amount in amounts:
            known = names.setdefault(amount.reason or "no reason was recorded", [])
            if not any(str(amount.name) == str(k) for k in known):
                known.append(amount.name)
        parts = []
        for reason, what in names.items():
            mark = self._mark(reason)
            why: Part = mark if mark in self._explained else Text("{mark}: {reason}", mark=mark, reason=Message(reason))
            self._explained.add(mark)
            parts.append(Text("the {what} ({why})", what=Listing(what), why=why))
        return Text("*Not measured here:* {parts}.", parts=Listing(parts)) if parts else EMPTY

    # -- tables and figures ---------------------------------------------------------------------------------------------

    def table(
        self, caption: Part, header: Sequence[Part], rows: Sequence[Sequence[Part]], *, source: str, notes: Sequence[Part] = (),
        align: str = "", name: str = "",
    ) -> None:  # fmt: skip
        """A numbered table; published figures are in italics, predicted ones in bold type.

        Columns that hold figures are set to the right, unless ``align`` gives a letter (l or r) for each column. ``source``
        names the files the table was made from, ``name`` is what :meth:`table_ref` calls it.
        """
        self._tables += 1
        figures = [any(isinstance(r[i], Amount) for r in rows) for i in range(len(header))]
        if align:
            figures = [letter == "r" for letter in align]
        marks: dict[str, str] = {}
        for row in rows:
            for field in row:
                if isinstance(field, Amount) and not field.known:
                    reason = field.reason or "no reason was recorded"
                    marks[reason] = self._mark(reason)
        # what stands below a table is explained there; the running text need not say it again
        reasons = [Text("{mark}: {reason}.", mark=m, reason=Message(r)) for r, m in marks.items()]
        remarks = [*map(_as_text, notes), *reasons, Text("From {source}.", source=Listing(source.split(", ")))]
        editions = {}
        for x in self.languages:
            lines = [_line([x.render(_as_text(h), traced=False) for h in header]), _line(["--:" if f else ":--" for f in figures])]
            lines += [_line([self._field(x, f, marks) for f in row]) for row in rows]
            title = f"**{x.template('Table')} {self._tables}.** {x.render(_as_text(caption), traced=False)}{label('table', name, self._tables)}"
            below = f"*{x.template('Notes.')}* " + x.sentences(x.render(r, traced=False) for r in remarks)
            editions[x.code] = "\n".join([title, "", *lines, "", below])
        self._emit(editions)

    def published_table(
        self, caption: Part, section: str, quantities: Mapping[str, str], kernels: Mapping[str, Part], *,
        predicted: Mapping[str, Callable[[str], Amount]] | None = None, notes: Sequence[Part] = (),
    ) -> None:  # fmt: skip
        """A table of the published study: for each quantity the published figures above this device's.

        ``predicted`` gives, for a quantity, the function that predicts it for a kernel; its figures stand between the two.
        """
        rows: list[list[Part]] = []
        for quantity, words in quantities.items():
            theirs = [self.results.published(section, quantity, k) for k in kernels]
            ours = [self.results.measured(section, quantity, k) for k in kernels]
            guess = [predicted[quantity](k) for k in kernels] if predicted and quantity in predicted else []
            unit = next((a.unit for a in (*theirs, *ours) if a.unit in UNITS), "")  # counted things are named by their label
            first: Part = Text("{label}, {unit}", label=words, unit=unit) if unit else words
            rows.append([first, f"*{PUBLISHED}*", *(a if a.known else DASH for a in theirs)])
            if any(a.known for a in guess):
                rows.append(["", f"**{PREDICTED}**", *(a if a.known else DASH for a in guess)])
            rows.append(["", "measured", *ours])
        source = "`tables/published.csv`" + (", `tables/predictions.csv`" if predicted else "")
        self.table(caption, ["Quantity", "", *kernels.values()], rows, source=source, notes=notes, name=section)

    def figure(self, name: str) -> None:
        """A numbered figure of the run, with the caption it has everywhere."""
        self._figures += 1
        caption = caption_of(name, self.results.experiment.root)
        editions = {}
        for x in self.languages:
            words = x.template(caption)
            first = words.partition(". ")[0].partition("。")[0].replace("[", "(").replace("]", ")").replace('"', "'")
            own = f"{name}.{x.suffix}svg"
            shown = own if (self.results.experiment.paths.folder / "figures" / own).is_file() else f"{name}.svg"
            title = f"**{x.template('Figure')} {self._figures}.** {words}{label('figure', name, self._figures)}"
            made = x.render(Text("Drawn as `figures/{file}` by `transpose-study draw`.", file=shown))
            editions[x.code] = f"![{first}](../figures/{shown})\n\n{x.sentences([title, made])}"
        self._emit(editions)

    def table_ref(self, name: str) -> str:
        """What stands for "Table 3" in a text."""
        return reference("table", name)

    def figure_ref(self, name: str) -> str:
        """What stands for "Figure 3" in a text."""
        return reference("figure", name)

    def _field(self, language: Language, field: Part, marks: Mapping[str, str]) -> str:
        if isinstance(field, Amount):
            if not field.known:
                return f"{DASH} {marks[field.reason or 'no reason was recorded']}"
            return language.amount(field, "n", traced=False)
        return language.render(field, traced=False)


def _as_text(part: Part) -> Text:
    return part if isinstance(part, Text) else Text(part) if isinstance(part, str) else Text("{part}", part=part)


def _line(fields: Sequence[str]) -> str:
    return "| " + " | ".join(f.replace("|", "\\|").replace("\n", " ") for f in fields) + " |"
