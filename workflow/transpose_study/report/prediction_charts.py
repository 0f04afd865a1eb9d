"""Figures of the predictions: predicted against measured, and the banks of shared memory that one warp touches."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter

from transpose_study.report import style
from transpose_study.report.figures import Drawing
from transpose_study.report.palette import GRID, MUTED
from transpose_study.report.wording import number

BANKS = 32


def agreement(d: Drawing) -> Figure:
    """Predicted against measured: all pairs on a diagonal (left), and each quantity's differences in percent (right)."""
    results, names = d.results, d.options["quantities"]
    pairs: dict[str, list[tuple[float, float]]] = {q: [] for q in names}
    for row in results.table("predictions") if results.has_table("predictions") else ():
        if row["quantity"] in pairs and row["predicted"] and row["measured"]:
            pairs[row["quantity"]].append((float(row["predicted"]), float(row["measured"])))
    shown = {q: p for q, p in pairs.items() if p}
    if not shown:
        figure = plt.figure(figsize=(style.WIDTH, 1.6))
        style.empty(figure, d.words("no prediction has a measured counterpart in this run"))
        return figure
    figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH, 1.6 + 0.24 * len(shown)), width_ratios=(1, 1.15))
    for y, (_, points) in enumerate(shown.items()):
        above = sorted({(float(f"{a:.3g}"), float(f"{b:.3g}")) for a, b in points if a > 0 and b > 0})  # each place once
        if above:
            left.plot(*zip(*above, strict=True), linestyle="none", marker="o", markersize=2.6, color=style.COLOURS[0], markeredgewidth=0, alpha=0.5)
        apart = sorted({round(100 * (b / a - 1) if a else 0.0 if a == b else 100.0, 2) for a, b in points})
        right.plot(apart, [y] * len(apart), linestyle="none", marker="|", markersize=8, color=style.COLOURS[0], alpha=0.7)
        equal = sum(a == b for a, b in points)
        right.annotate(
            d.words("{n} of {m} equal", n=equal, m=len(points)), (1.02, y), xycoords=("axes fraction", "data"), va="center", fontsize=7, color=MUTED
        )
    ends = left.get_xlim()
    left.plot(ends, ends, color=MUTED, linewidth=0.8, zorder=0)
    for setting in (left.set_xscale, left.set_yscale):
        setting("log")
    left.set_xlabel(d.words("Predicted"))
    left.set_ylabel(d.words("Measured"))
    right.axvline(0, color=MUTED, linewidth=0.8, zorder=0)
    right.set_xscale("symlog", linthresh=1)
    if max(map(abs, right.get_xlim())) < 1:
        right.set_xlim(-1, 1)  # all but equal: no finer scale than one percent
    right.xaxis.set_major_formatter(FuncFormatter(lambda x, _: number(x)))
    right.set_xlabel(d.words("Measured beyond predicted (%)"))
    right.set_yticks(range(len(shown)), [d.words(names[q]) for q in shown])
    right.set_ylim(len(shown) - 0.5, -0.5)
    right.tick_params(axis="y", length=0)
    for axes, grid in ((left, "both"), (right, "x")):
        style.tidy(axes, grid)
    return figure


def banks(d: Drawing) -> Figure:
    """Rows of 32 banks, and in them the words that one warp's shared load and store touch; one panel a kernel."""
    results = d.results
    cells = {d.words(d.options.get("titles", {}).get(t, results.study.short_name(c))): c for t in d.options["cells"] if (c := results.cell(t))}
    words: dict[str, list[Mapping[str, str]]] = {n: [] for n in cells}
    for name, cell in cells.items():
        table = results.table("banks") if results.has_table("banks") else []
        own = {"variant": cell.variant.name} | {a: str(v) for a, v in cell.kernel_values.items()}
        words[name] = [row for row in table if all(row[c] == v for c, v in own.items())]
    shown = [n for n in words if words[n]]
    if not shown:
        figure = plt.figure(figsize=(style.WIDTH, 1.6))
        style.empty(figure, d.words("no prediction is part of this run"))
        return figure
    columns = d.options.get("columns", len(shown))
    rows = -(-len(shown) // columns)
    used = {n: max(int(r["bank_row"]) + 1 if d.options.get("crop") else int(r["rows_of_banks"]) for r in words[n]) for n in shown}
    tallest = [max(used[n] for n in shown[i : i + columns]) for i in range(0, len(shown), columns)]
    frame = 0.75 * rows + 2 * (style.WIDTH - 0.2) / columns / BANKS  # inches beside the fields: titles, labels, the key
    size = (style.WIDTH, frame + sum(tallest) * (style.WIDTH - 0.2) / columns / BANKS if "crop" in d.options else 2.75 * rows)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, height_ratios=tallest)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    for place, (axes, name) in enumerate(zip(grid.flat, shown, strict=False)):
        height = used[name]
        axes.add_patch(Rectangle((0, 0), BANKS, height, facecolor="none", edgecolor=GRID, linewidth=0.8))
        for access, colour in (("store", style.COLOURS[4]), ("load", style.COLOURS[0])):
            for row in (r for r in words[name] if r["access"] == access):
                axes.add_patch(Rectangle((int(row["bank"]), int(row["bank_row"])), 1, 1, facecolor=colour, edgecolor="white", linewidth=0.25))
        waves = int(next(r["wavefronts"] for r in words[name] if r["access"] == "load"))
        axes.set_title(name, fontsize=8)
        axes.set_xlabel(d.words("bank; load: {n} wavefront" if waves == 1 else "bank; load: {n} wavefronts", n=waves))
        axes.set_xlim(0, BANKS)
        axes.set_ylim(tallest[place // columns], 0)
        axes.set_aspect("equal")
        axes.set_xticks([0.5, 8.5, 16.5, 24.5, 31.5], ["0", "8", "16", "24", "31"])
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_visible(False)
        axes.tick_params(length=0)
    keys = [
        Patch(color=style.COLOURS[0], label=d.words("words of one warp's load")),
        Patch(color=style.COLOURS[4], label=d.words("words of one warp's store")),
    ]
    figure.legend(handles=keys, loc="outside upper center", ncols=2)
    return figure


KINDS: dict[str, Callable[[Drawing], Figure]] = {"agreement": agreement, "banks": banks}
