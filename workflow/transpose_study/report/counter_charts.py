"""The kinds of figures that show counters of chosen cells, beside the published ones where there are any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from transpose_study.registry import Cell
from transpose_study.report import style
from transpose_study.report.palette import GRID, MUTED
from transpose_study.report.values import Results
from transpose_study.report.wording import number

Options = Mapping[str, Any]


def chosen(results: Results, options: Options) -> list[Cell]:
    """The cells a figure names, or one for each variant: with the preferred axis values where those are configured."""
    if "cells" in options:
        wanted = [results.cell(text) for text in options["cells"]]
        return [c for c in wanted if c in results.cells()]
    cells: dict[str, Cell] = {}
    for cell in results.cells():
        prefer = options.get("prefer", {}) | options.get("prefer_for", {}).get(cell.variant.name, {})
        preferred = all(cell.kernel_values.get(a, v) == v for a, v in prefer.items())
        if not cell.variant.driver_copy and (cell.variant.name not in cells or preferred):
            cells[cell.variant.name] = cell
    return list(cells.values())


def bars(results: Results, options: Options) -> Figure:
    """Counters of chosen cells, one panel a quantity; the published figure of the same kernel as an open diamond."""
    cells, panels = chosen(results, options), options["panels"]
    reason = _reason(results, cells, [p["quantity"] for p in panels])
    figure, grid = plt.subplots(1, len(panels), figsize=(style.WIDTH, 1.35 + 0.3 * len(cells)), sharey=True, squeeze=False)
    published = {(r["cell"], r["quantity"]): float(r["published"]) for r in results.published_rows.values() if r["published"]}
    names = [results.study.kernel_name(c) for c in cells]
    any_published = False
    for axes, panel in zip(grid[0], panels, strict=True):
        for y, cell in enumerate(cells):
            amount = results.counter(cell, panel["quantity"])
            if amount.known:
                axes.barh(y, amount.number, height=0.62, color=style.COLOURS[0], edgecolor="none")
                axes.annotate(number(amount.number, digits=3), (amount.number, y), (3, 0), textcoords="offset points", va="center", fontsize=7)
            else:
                axes.annotate("not measured", (0, y), (3, 0), textcoords="offset points", va="center", fontsize=7, color=MUTED)
            theirs = published.get((_written(cell), panel.get("published", "")))
            if theirs is not None:
                any_published = True
                axes.plot(theirs, y - 0.41, marker="v", markersize=4.5, color=style.PUBLISHED, markerfacecolor="none", clip_on=False, zorder=3)
        axes.set_title(panel["title"])
        axes.set_xlabel(_capital(panel.get("unit", "")))
        if "limit" in options:
            axes.set_xlim(0, options["limit"] * 1.18)
            axes.axvline(options["limit"], color=MUTED, linewidth=0.8, linestyle=(0, (1, 1.5)))
        else:
            axes.set_xlim(0, max(axes.get_xlim()[1], 1) * 1.08)
        style.tidy(axes, "x")
        axes.tick_params(axis="y", length=0)
    grid[0][0].set_yticks(range(len(cells)), names)
    grid[0][0].set_ylim(len(cells) - 0.4, -0.75)
    if any_published:
        mark = Line2D([], [], linestyle="none", marker="v", markersize=4.5, color=style.PUBLISHED, markerfacecolor="none", label="published study")
        figure.legend(handles=[plt.Rectangle((0, 0), 1, 1, color=style.COLOURS[0], label="measured here"), mark], loc="outside lower center", ncols=2)
    if reason:
        figure.suptitle(reason, fontsize=8, color=MUTED, wrap=True)
    return figure


def grid(results: Results, options: Options) -> Figure:
    """Counters of chosen cells as a shaded grid with the figures written in: rows are cells, columns quantities."""
    cells, quantities = chosen(results, options), options["quantities"]
    reason = _reason(results, cells, list(quantities))
    if reason or not cells:
        figure = plt.figure(figsize=(style.WIDTH, 1.6))
        style.empty(figure, reason or "none of this figure's cells is configured")
        return figure
    values = pd.DataFrame(
        [[results.counter(c, q).value for q in quantities] for c in cells],
        index=[results.study.kernel_name(c) for c in cells],
        columns=list(quantities.values()),
        dtype=float,
    )
    texts = values.map(lambda v: "–" if np.isnan(v) else number(v, digits=3, places=2))
    figure, axes = plt.subplots(figsize=(style.WIDTH, 1.75 + 0.36 * len(cells)))
    shade = np.sqrt(values)  # the long waits would leave every other column white
    sns.heatmap(shade, annot=texts, fmt="", cmap="Blues", cbar=False, ax=axes, linewidths=1.2, linecolor=GRID, annot_kws={"fontsize": 7.5}, vmin=0)
    axes.set_xticklabels(axes.get_xticklabels(), rotation=35, ha="right", rotation_mode="anchor")
    axes.tick_params(length=0)
    axes.set_xlabel(_capital(options.get("unit", "")))
    return figure


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _written(cell: Cell) -> str:
    """A cell as the reference file writes it: ``variant, axis value``."""
    return ", ".join([cell.variant.name, *(f"{a} {v}" for a, v in cell.kernel_values.items())])


def _reason(results: Results, cells: Sequence[Cell], quantities: Sequence[str]) -> str:
    """The one reason why nothing at all is there, or ""."""
    amounts = [results.counter(c, q) for c in cells for q in quantities]
    reasons = {a.reason for a in amounts}
    return f"Not measured: {'; '.join(sorted(reasons))}" if amounts and not any(a.known for a in amounts) else ""
