"""The comparison's report in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from transpose_study.comparison.figures import cell_name
from transpose_study.comparison.sides import Key
from transpose_study.comparison.tables import Comparison, Pair
from transpose_study.comparison.verdicts import FASTER, LAUNCH_US, OTHER_UNIT, SAME, SAME_UNIT, SLOWER, UNTOLD, WINDOW_US, Verdict
from transpose_study.report.wording import listing, number

DASH = "–"
LISTED = 20  # rows of a list of differences; the CSV has all
NOTABLE = 0.01  # counters that differ by less count as equal, as in the write-up


def page(comparison: Comparison, captions: Mapping[str, str]) -> str:
    """The whole report; ``captions`` are the figures' by name."""
    return "\n\n".join(_Page(comparison, captions).blocks()) + "\n"


class _Page:
    def __init__(self, comparison: Comparison, captions: Mapping[str, str]) -> None:
        self.c, self.captions = comparison, captions
        self.labels = [s.label for s in comparison.sides]
        self._tables = self._figures = 0

    def blocks(self) -> Iterator[str]:
        """Title, what is compared, verdicts, cells, counters, best values, claims, environments."""
        yield f"# {listing(self.labels)} side by side"
        yield "\n".join(f"- `{s.label}`: {s.what}, {self._gpu(s.label)}" for s in self.c.sides)
        yield "Common cells. " + "; ".join(self.c.common()) + ". Only cells that two sides or more have are compared."
        for label, reason in self.c.without_counters().items():
            yield f"`{label}` has no counters: {reason}."
        for number_, pair in enumerate(self.c.pairs, start=1):
            yield from self._verdicts(pair, f"ratio_{number_}")
        if not self.c.pairs:
            yield "No two of them were measured on the same model of GPU, so no verdict on changes of time is given."
        yield from self._cells()
        yield from self._counters()
        yield from self._best()
        yield from self._claims()
        yield from self._environments()

    def _gpu(self, label: str) -> str:
        gpu = self.c.environments[label]["gpu"]
        start = self.c.environments[label].get("start")
        return f"{gpu.get('name')}{f', measured {str(start)[:10]}' if start else ''}, nominal {_number(gpu.get('peak_gb_s'))} GB/s"

    # -- verdicts -------------------------------------------------------------------------------------------------------

    def _verdicts(self, pair: Pair, figure: str) -> Iterator[str]:
        told = {place: v for place, v in pair.verdicts.items() if v}
        counts = Counter(v.verdict for v in told.values())
        yield f"## {pair.second.label} against {pair.first.label}"
        unit = "the same unit" if pair.same_unit else "two units"
        share = SAME_UNIT if pair.same_unit else OTHER_UNIT
        total = len(told)
        share_same = f"{100 * counts[SAME] / total:.1f}" if total else DASH
        middle = _number(sorted(v.ratio for v in told.values())[total // 2]) if total else DASH
        words = {SAME: "are the same", FASTER: FASTER, SLOWER: SLOWER, UNTOLD: UNTOLD}
        said = listing([f"{number(counts[v])} {text}" for v, text in words.items()])
        yield f"Both ran on {unit} of one model. Of {number(total)} cells and cache modes {said}: {share_same} % the same. Median ratio: {middle}."
        yield (
            "A cell counts as the same where the 95 % interval of the ratio of medians lies within a tolerance: "
            f"{100 * share:g} %, {LAUNCH_US:g} µs a launch and {WINDOW_US:g} µs a sample (what a pair of events reads around nothing; a hot sample "
            "spreads it over its launches), or the sum of both runs' A/A noise floors where that is larger. "
            "It is faster or slower where the interval lies wholly beyond; where it crosses the tolerance, it cannot be told. "
            "The interval covers what varies within the runs, the tolerance what varies between units, days and allocations."
        )
        yield self._figure(figure)
        other = sorted(((p, v) for p, v in told.items() if v.verdict != SAME), key=lambda e: -abs(e[1].ratio - 1))
        if other:
            rows = [self._verdict_row(key, mode, v) for (key, mode), v in other[:LISTED]]
            more = f" The {LISTED} largest of {len(other)}; `tables/verdicts.csv` has all." if len(other) > LISTED else ""
            header = ["Cell", "At", "L2", "Ratio", "Interval", "Tolerance, %", "Verdict"]
            yield self._table(f"Cells that are not told to be the same.{more}", header, rows)

    def _verdict_row(self, key: Key, mode: str, v: Verdict) -> list[str]:
        interval = f"{_number(v.low)} to {_number(v.high)}"
        return [self._name(key), self._place(key), mode, _number(v.ratio), interval, _number(100 * v.tolerance), v.verdict]

    # -- cells ------------------------------------------------------------------------------------------------------------

    def _cells(self) -> Iterator[str]:
        yield "## Times"
        for name in ("bandwidth_gb_s", "percent_of_peak"):
            yield self._figure(name)
        groups: dict[str, list[Key]] = {}
        for key in self.c.order:
            groups.setdefault(self._place(key), []).append(key)
        verdicts = {p: v for pair in self.c.pairs[:1] for p, v in pair.verdicts.items()} if len(self.c.pairs) == 1 else {}
        ratio = self.c.ratios[0] if self.c.ratios else ""
        for place, keys in groups.items():
            for mode in self.c.modes:
                rows = [self._cell_row(k, mode, ratio, verdicts) for k in keys if any((k, mode) in self.c.timings[x] for x in self.labels)]
                if any(field not in (DASH, "") for row in rows for field in row[1:]):
                    header = ["Cell", *(f"GB/s, {x}" for x in self.labels), *(f"% of peak, {x}" for x in self.labels)]
                    header += [f"{ratio.replace('_', ' ')}, {x}" for x in self.labels] if ratio else []
                    header += ["Verdict"] if verdicts else []
                    yield self._table(f"Cells at {place}, L2 {mode}.", header, rows)

    def _cell_row(self, key: Key, mode: str, ratio: str, verdicts: Mapping[tuple[Key, str], Verdict | None]) -> list[str]:
        quantities = ["bandwidth_gb_s", "percent_of_peak", *([ratio] if ratio else [])]
        row = [self._name(key), *(_number(self.c.timed(x, key, mode, q)) for q in quantities for x in self.labels)]
        if verdicts:
            verdict = verdicts.get((key, mode))
            row.append(verdict.verdict if verdict else DASH)
        return row

    # -- counters -----------------------------------------------------------------------------------------------------------

    def _counters(self) -> Iterator[str]:
        yield "## Counters"
        by_quantity: dict[str, list[tuple[float, Key]]] = {}
        for (key, quantity), values in self.c.counters.items():
            by_quantity.setdefault(quantity, []).append((_spread(list(values.values())), key))
        if not by_quantity:
            yield "No counter is common to two sides."
            return
        rows = []
        for quantity, spreads in by_quantity.items():
            widest, key = max(spreads, key=lambda s: s[0])
            close = sum(s < NOTABLE for s, _ in spreads)
            at = f"{self._name(key)} at {self._place(key)}"
            values = [_number(self.c.counters[key, quantity].get(x)) for x in self.labels]
            rows.append([quantity.replace("_", " "), self.c.units.get(quantity, ""), f"{close} of {len(spreads)}", at if widest else DASH, *values])
        header = ["Quantity", "Unit", f"Cells within {number(100 * NOTABLE)} %", "Widest difference", *self.labels]
        caption = "Each counter over all common cells, with the cell where the sides differ most. `tables/counters.csv` has every cell."
        yield self._table(caption, header, rows)

    # -- best values, claims, environments ------------------------------------------------------------------------------------

    def _best(self) -> Iterator[str]:
        rows = list(self.c.best_rows())
        for axis in dict.fromkeys(r["axis"] for r in rows):
            own = [r for r in rows if r["axis"] == axis]
            columns = [c for c in own[0] if c not in ("axis", *self.labels)]
            kept = [c for c in columns if len({r[c] for r in own}) > 1 or c == self.c.columns[0]]
            agreeing = sum(len({r[x] for x in self.labels if r.get(x)}) == 1 for r in own)
            yield f"## Best {axis}"
            yield f"The sides agree in {number(agreeing)} of {number(len(own))} cases."
            fields = [[*(r[c] for c in kept), *(r.get(x) or DASH for x in self.labels)] for r in own]
            yield self._table(f"The {axis} with the shortest time.", [*kept, *self.labels], fields)

    def _claims(self) -> Iterator[str]:
        rows = list(self.c.claim_rows())
        if not rows:
            return
        yield "## Claims"
        judged = [x for x in self.labels if any(r.get(x) for r in rows)]
        alike = sum(len({r.get(x) for x in judged}) == 1 for r in rows)
        yield f"Judged on {listing([f'`{x}`' for x in judged])}: {number(alike)} of {number(len(rows))} claims with the same verdict."
        yield self._table("Verdicts of the claims.", ["Claim", *judged], [[r["says"] or r["id"], *(r.get(x) or DASH for x in judged)] for r in rows])

    def _environments(self) -> Iterator[str]:
        yield "## Environments"
        rows = [[r["fact"], *(r[x] for x in self.labels)] for r in self.c.environment_rows() if r["equal"] == "false"]
        yield self._table("What the sides differ in. `tables/environments.csv` has every fact.", ["Fact", *self.labels], rows)

    # -- pieces -----------------------------------------------------------------------------------------------------------

    def _name(self, key: Key) -> str:
        return f"`{cell_name(self.c, key)}`"

    def _place(self, key: Key) -> str:
        side = max(self.c.sides, key=lambda s: len(s.table("rounds")))
        return " x ".join(side.group(key)) if side.table("rounds") else " ".join(key[1:])

    def _figure(self, name: str) -> str:
        self._figures += 1
        caption = self.captions[name]
        return f"![{caption.partition('.')[0]}](../figures/{name}.svg)\n\n**Figure {self._figures}.** {caption}"

    def _table(self, caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        self._tables += 1
        right = [bool(rows) and all(_is_figure(r[i]) for r in rows) for i in range(len(header))]
        lines = [header, ["--:" if r else ":--" for r in right], *rows]
        text = "\n".join("| " + " | ".join(str(f).replace("|", "\\|").replace("\n", " ") for f in line) + " |" for line in lines)
        return f"**Table {self._tables}.** {caption}\n\n{text}"


def _number(value: object) -> str:
    return number(float(value)) if isinstance(value, int | float) else DASH


def _is_figure(text: str) -> bool:
    return text == DASH or text[:1].isdigit() or text[:1] == "−"


def _spread(values: Sequence[float]) -> float:
    """Largest difference as a share of the largest value, 0 where all are 0."""
    top = max(abs(v) for v in values)
    return (max(values) - min(values)) / top if top else 0.0
