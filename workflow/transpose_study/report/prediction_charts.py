"""Figures of the predictions: predicted against measured, and the banks of shared memory that one warp touches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter

from transpose_study.report import style
from transpose_study.report.palette import GRID, MUTED
from transpose_study.report.values import Results

Options = Mapping[str, Any]
BANKS = 32


def agreement(results: Results, options: Options) -> Figure:
    """How far each measured count lies from its prediction: one row a quantity, one point a cell, all shapes together."""
    labels: Mapping[str, str] = options["quantities"]
    points: dict[str, list[float]] = {q: [] for q in labels}
    for row in results.table("predictions"):
        if row["quantity"] in points and row["predicted"] and row["measured"]:
            predicted, measured = float(row["predicted"]), float(row["measured"])
            if predicted or not measured:
                points[row["quantity"]].append(100 * (measured - predicted) / predicted if predicted else 0.0)
    shown = [q for q in labels if points[q]]
    figure, axes = plt.subplots(figsize=(style.WIDTH, 0.9 + 0.27 * max(len(shown), 2)))
    if not shown:
        axes.axis("off")
        axes.annotate("nothing that was predicted was measured", (0.5, 0.5), xycoords="axes fraction", ha="center", color=MUTED)
        return figure
    for y, quantity in enumerate(shown):
        off = [p for p in points[quantity] if p]
        exact = len(points[quantity]) - len(off)
        axes.plot(off, [y] * len(off), linestyle="none", marker="o", markersize=3.5, color=style.COLOURS[1], markerfacecolor="none")
        if exact:
            axes.plot(0, y, linestyle="none", marker="s", markersize=5, color=style.COLOURS[0])
        text = f"{exact} of {len(points[quantity])} exact"
        axes.annotate(text, (1, y), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center", fontsize=7.5)
    reach = max((abs(p) for q in shown for p in points[q]), default=0)
    axes.set_xscale("symlog", linthresh=0.01)
    axes.set_xlim(-max(1.0, 1.6 * reach), max(1.0, 1.6 * reach))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_yticks(range(len(shown)), [labels[q] for q in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.axvline(0, color=MUTED, linewidth=0.8, zorder=0)
    axes.set_xlabel("Measured above predicted (%)")
    style.tidy(axes, "x")
    axes.tick_params(axis="y", length=0)
    return figure


def banks(results: Results, options: Options) -> Figure:
    """Rows of 32 banks, and in them the words that one warp's shared load and store touch; one panel a kernel."""
    wanted = [results.cell(text) for text in options["cells"]]
    names = [results.study.kernel_name(c) for c in wanted]
    words: dict[str, list[Mapping[str, str]]] = {n: [] for n in names}
    for row in results.table("banks"):
        name = row["variant"] + "".join(f"_{results.study.axes[a].tag}{row[a]}" for a in results.study.variants[row["variant"]].takes)
        if name in words:
            words[name].append(row)
    shown = [n for n in names if words[n]]
    figure, grid = plt.subplots(1, max(len(shown), 1), figsize=(style.WIDTH, 2.75), squeeze=False)
    if not shown:
        grid[0][0].axis("off")
        grid[0][0].annotate("no predictions in this run", (0.5, 0.5), xycoords="axes fraction", ha="center", color=MUTED)
        return figure
    tallest = max(int(r["rows_of_banks"]) for n in shown for r in words[n])
    for axes, name in zip(grid[0], shown, strict=True):
        height = int(words[name][0]["rows_of_banks"])
        axes.add_patch(Rectangle((0, 0), BANKS, height, facecolor="none", edgecolor=GRID, linewidth=0.8))
        for access, colour in (("store", style.COLOURS[4]), ("load", style.COLOURS[0])):
            for row in (r for r in words[name] if r["access"] == access):
                axes.add_patch(Rectangle((int(row["bank"]), int(row["bank_row"])), 1, 1, facecolor=colour, edgecolor="white", linewidth=0.25))
        waves = next(r["wavefronts"] for r in words[name] if r["access"] == "load")
        axes.set_title(name, fontsize=8)
        axes.set_xlabel(f"bank; load: {waves} wavefront{'s' * (waves != '1')}")
        axes.set_xlim(0, BANKS)
        axes.set_ylim(tallest, 0)
        axes.set_aspect("equal")
        axes.set_xticks([0.5, 8.5, 16.5, 24.5, 31.5], ["0", "8", "16", "24", "31"])
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_visible(False)
        axes.tick_params(length=0)
    keys = [Patch(color=style.COLOURS[0], label="words of one warp's load"), Patch(color=style.COLOURS[4], label="of one warp's store")]
    figure.legend(handles=keys, loc="upper center", ncol=2, bbox_to_anchor=(0.5, 1.0))
    return figure
