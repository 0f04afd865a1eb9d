"""Figures that are read field by field: a quantity over two axes, the warps of a block's threads, a few chosen cells beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log2
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from transpose_study.references import source_indices
from transpose_study.registry import Cell
from transpose_study.report import measures, style
from transpose_study.report.figures import Drawing
from transpose_study.report.palette import INK, MUTED
from transpose_study.report.wording import Amount, number

LIGHT, DARK = "#eef4fa", "#08396b"
SHADES = LinearSegmentedColormap.from_list("shades", [LIGHT, "#7fb2dd", DARK])  # light is little; its lightness is even in grey
PAPER, INK_ON_LIGHT = "#ffffff", "#1a1c1d"  # fixed colours: the fields' own ground does not follow the page's scheme
LEAST, GAP, BETWEEN, ROOM = 7, 5.2, 7.0, 84.0  # threads that a narrow block is given, between blocks, between lines, and in a line
LABEL = 4  # threads that the words of a warp's label cover; where fewer are left in the row, its number stands alone
WARPS = ("#0072b2", "#f0e442", "#9ad0f5", "#d55e00")  # neighbours differ in lightness


def grid(d: Drawing) -> Figure:
    """A quantity of every cell as a shaded field with its figure; rows are variants or an axis, columns an axis; panels side by side.

    ``rows`` and ``columns`` are ``{axis: name, label: text}``, or ``{variants: {name: label}, label: text}``. A field that was not
    measured shows what was predicted, in the colour of predictions; a cell that cannot run is a dash.
    """
    options, panels = d.options, d.options["panels"]
    tables = [_fields(d, options, p) for p in panels]
    rows, columns = _heads(d, options["rows"]), _heads(d, options["columns"])
    if not any(a.known or g.known for t in tables for a, g in t.values()):
        figure = plt.figure(figsize=(style.WIDTH, 1.6))
        reasons = "; ".join(sorted({a.reason for t in tables for a, _ in t.values()}))
        style.empty(figure, d.words("Not measured: {reason}", reason=reasons) if reasons else d.words("none of this figure's cells is configured"))
        return figure
    size = (style.WIDTH, 0.95 + options.get("row_height", 0.27) * len(rows) * -(-len(panels) // options.get("panel_columns", len(panels))))
    across = options.get("panel_columns", len(panels))
    figure, places = plt.subplots(-(-len(panels) // across), across, figsize=size, squeeze=False, sharey=True)
    for i, (axes, panel, table) in enumerate(zip(places.flat, panels, tables, strict=True)):
        known = [a.number for a, g in table.values() if a.known] + [g.number for a, g in table.values() if not a.known and g.known]
        low, high = panel.get("shades", (min(known), max(known)) if known else (1.0, 1.0))
        for (y, x), (amount, guess) in table.items():
            shown = amount if amount.known else guess
            depth = min(1.0, log2(max(shown.number, low) / low) / log2(high / low)) if shown.known and high > low > 0 else 0.0
            _field(axes, (x, y), shown, depth, measured=amount.known)
        axes.set_xlim(0, len(columns))
        axes.set_ylim(len(rows), 0)
        axes.set_xticks([x + 0.5 for x in range(len(columns))], [d.words(str(c)) for c in columns.values()])
        axes.set_yticks([y + 0.5 for y in range(len(rows))], [d.words(str(r)) for r in rows.values()])
        axes.set_title(d.words(panel["title"]))
        axes.set_xlabel(d.words(options["columns"]["label"]))
        if i % across == 0 and "label" in options["rows"]:
            axes.set_ylabel(d.words(options["rows"]["label"]))
        _bare(axes)
    return figure


def _heads(d: Drawing, side: Mapping[str, Any]) -> dict[Any, Any]:
    """Keys and labels of one side: variants, or the configured values of an axis."""
    if "variants" in side:
        return dict(side["variants"])
    return {v: v for v in sorted(d.results.experiment.config.axes.get(side["axis"], []))}


def _fields(d: Drawing, options: Mapping[str, Any], panel: Mapping[str, Any]) -> dict[tuple[int, int], tuple[Amount, Amount]]:
    """Measured and predicted figure by row and column."""
    rows, columns = list(_heads(d, options["rows"])), list(_heads(d, options["columns"]))
    measure = {k: v for k, v in panel.items() if k in measures.KEYS}
    found = {}
    for variant in options["rows"].get("variants", options.get("variants", {})):
        for cell in d.results.cells_of(variant):
            row = variant if "variants" in options["rows"] else cell.kernel_values[options["rows"]["axis"]]
            place = (rows.index(row), columns.index(cell.kernel_values[options["columns"]["axis"]]))
            found[place] = (measures.measured(d.results, cell, measure), measures.predicted(d.results, cell, measure))
    return found


def _field(axes: Axes, place: tuple[int, int], shown: Amount, depth: float, *, measured: bool) -> None:
    """One field with its figure; ``depth`` is its shade from 0 to 1."""
    middle = (place[0] + 0.5, place[1] + 0.5)
    if not shown.known:
        axes.annotate("–", middle, ha="center", va="center", fontsize=8, color=MUTED)
        return
    axes.add_patch(Rectangle(place, 1, 1, facecolor=SHADES(depth), edgecolor=PAPER, linewidth=1.2))
    colour = PAPER if depth > 0.55 else INK_ON_LIGHT if measured else style.PREDICTED
    axes.annotate(_short(round(shown.number, 1)), middle, ha="center", va="center", fontsize=7.5, color=colour)


def threads(d: Drawing) -> Figure:
    """Blocks of threads, one panel a shape: each field is a thread, its colour and figure the warp that holds it.

    ``variant`` computes for thread ``t`` the number of its warp's first thread (out[t], t < all threads); a block whose check failed,
    or that did not run, is drawn empty. ``across`` and ``down`` are its axes, ``blocks`` the shown values of the two.
    """
    options, results = d.options, d.results
    cells = {tuple(c.kernel_values[options[a]] for a in ("across", "down")): c for c in results.cells_of(options["variant"])}
    shown = [tuple(b) for b in options["blocks"] if tuple(b) in cells]
    if not shown:
        figure = plt.figure(figsize=(style.WIDTH, 1.6))
        style.empty(figure, d.words("none of this figure's cells is configured"))
        return figure
    lines, across = [[]], 0.0  # blocks from left to right, as many as a line of the page holds
    for block in shown:
        across += max(block[0], LEAST) + GAP
        if lines[-1] and across > ROOM:
            lines.append([])
            across = max(block[0], LEAST) + GAP
        lines[-1].append(block)
    unit = style.WIDTH / (ROOM + GAP)
    heights = [max(b[1] for b in line) + BETWEEN for line in lines]
    figure = plt.figure(figsize=(style.WIDTH, unit * sum(heights)), layout="none")
    top = 0.0
    for line, height in zip(lines, heights, strict=True):
        left = GAP * 0.6
        for wide, tall in line:
            at = (left / (ROOM + GAP), 1 - (top + 2.5 + tall) / sum(heights), wide / (ROOM + GAP), tall / sum(heights))
            _block(d, figure.add_axes(at), cells[wide, tall], wide, tall)
            left += max(wide, LEAST) + GAP
        top += height
    return figure


def _block(d: Drawing, axes: Axes, cell: Cell, wide: int, tall: int) -> None:
    first = [int(v) for v in source_indices(d.results.study, cell)[: wide * tall]]
    warps = {t: i for i, t in enumerate(dict.fromkeys(first))}
    ran = d.results.status(cell)[0] == "ok"
    for t, head in enumerate(first):
        look = {"facecolor": WARPS[warps[head] % len(WARPS)] if ran else "none", "edgecolor": PAPER if ran else MUTED}
        axes.add_patch(Rectangle((t % wide, t // wide), 1, 1, linewidth=0.5, **look))
        if t == head:
            where = (t % wide + 0.15, t // wide + 0.55)
            box = {"boxstyle": "square,pad=0.05", "facecolor": look["facecolor"], "edgecolor": "none"}
            words = d.words("warp {n}", n=warps[head]) if wide - t % wide >= LABEL else str(warps[head])
            axes.annotate(words, where, va="center", fontsize=5.2, color=_on(look["facecolor"]), zorder=3, bbox=box)
    axes.set_title(f"({wide}, {tall})" if ran else d.words("{block}: not measured", block=f"({wide}, {tall})"), fontsize=8, pad=3)
    axes.set_xlim(0, wide)
    axes.set_ylim(tall, 0)
    axes.set_xticks([0.5, wide - 0.5], ["0", str(wide - 1)])
    axes.set_yticks([0.5, tall - 0.5] if tall > 1 else [0.5], ["0", str(tall - 1)] if tall > 1 else ["0"])
    axes.tick_params(labelsize=7, pad=1)
    axes.set_xlabel(d.words(d.options["across_label"]), fontsize=7, labelpad=1)
    if tall > 1:
        axes.set_ylabel(d.words(d.options["down_label"]), fontsize=7, labelpad=1)
    _bare(axes)


def _on(colour: Any) -> str:
    return PAPER if colour in ("#0072b2", "#d55e00") else INK_ON_LIGHT


def compared(d: Drawing) -> Figure:
    """A few chosen figures as bars, one panel a unit; each bar has its own cell and measure.

    ``panels`` are lists of ``bars``: ``{label: text, cell: name, quantity or timing: ...}``.
    """
    panels: Sequence[Mapping[str, Any]] = d.options["panels"]
    tallest = max(len(p["bars"]) for p in panels)
    figure, places = plt.subplots(1, len(panels), figsize=(style.WIDTH, 0.8 + 0.3 * tallest), squeeze=False)
    for axes, panel in zip(places[0], panels, strict=True):
        for y, bar in enumerate(panel["bars"]):
            cell: Cell = d.results.cell(bar["cell"])
            amount = measures.measured(d.results, cell, {k: v for k, v in bar.items() if k in measures.KEYS})
            if amount.known:
                axes.barh(y, amount.number, height=0.62, color=style.COLOURS[0], edgecolor="none")
            words = _short(amount.number) if amount.known else d.words("not measured")
            place = {"textcoords": "offset points", "va": "center", "fontsize": 7}
            axes.annotate(words, (amount.number if amount.known else 0, y), (3, 0), **place, color=INK if amount.known else MUTED)
        axes.set_title(d.words(panel["title"]))
        axes.set_xlabel(d.words(panel["unit"]))
        axes.set_yticks(range(len(panel["bars"])), [d.words(b["label"]) for b in panel["bars"]])
        axes.set_ylim(len(panel["bars"]) - 0.5, -0.5)
        axes.set_xlim(0, max(axes.get_xlim()[1], 1) * 1.12)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: number(v)))
        style.tidy(axes, "x")
        axes.tick_params(axis="y", length=0)
    return figure


def _short(value: float) -> str:
    """Three significant digits at most, no zero behind the point."""
    return number(float(f"{value:.3g}")) if abs(value) >= 1000 else f"{value:.3g}"


def _bare(axes: Axes) -> None:
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0)


KINDS: dict[str, Callable[[Drawing], Figure]] = {"grid": grid, "threads": threads, "compared": compared}
