"""The kinds of figures that show counters of chosen cells, beside the published and the predicted ones where there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from transpose_study.registry import Cell
from transpose_study.report import style
from transpose_study.report.figures import Drawing
from transpose_study.report.palette import INK, MUTED
from transpose_study.report.wording import number

DOTTED = (0, (1, 1.5))
MIB = 2**20
SMALL = 0.07  # share of an axis below which a segment's figure would not fit into it


def chosen(d: Drawing) -> list[Cell]:
    """The cells a figure names, or one for each variant: with the preferred axis values where those are configured."""
    results, options = d.results, d.options
    if "cells" in options:
        wanted = [results.cell(text) for text in options["cells"]]
        return [c for c in wanted if c in results.cells()]
    cells: dict[str, Cell] = {}
    for cell in results.cells():
        prefer = options.get("prefer", {}) | options.get("prefer_for", {}).get(cell.variant.name, {})
        preferred = all(cell.kernel_values.get(a, v) == v for a, v in prefer.items())
        if not cell.variant.no_kernel and (cell.variant.name not in cells or preferred):
            cells[cell.variant.name] = cell
    return list(cells.values())


def _nothing(d: Drawing, cells: Sequence[Cell], quantities: Sequence[str]) -> Figure | None:
    """A figure that gives the reason, where not one of the quantities was measured for any of the cells."""
    amounts = [d.results.counter(c, q) for c in cells for q in quantities]
    if any(a.known for a in amounts):
        return None
    figure = plt.figure(figsize=(style.WIDTH, 1.6))
    reasons = "; ".join(sorted({a.reason for a in amounts}))
    style.empty(figure, d.words("Not measured: {reason}", reason=reasons) if cells else d.words("none of this figure's cells is configured"))
    return figure


def bars(d: Drawing) -> Figure:
    """Counters of chosen cells, one panel a quantity; the published figure of the same kernel as an open triangle."""
    results, options = d.results, d.options
    cells, panels = chosen(d), options["panels"]
    if nothing := _nothing(d, cells, [p["quantity"] for p in panels]):
        return nothing
    figure, grid = plt.subplots(1, len(panels), figsize=(style.WIDTH, 1.35 + 0.3 * len(cells)), sharey=True, squeeze=False)
    published = {(r["cell"], r["quantity"]): float(r["published"]) for r in results.published_rows.values() if r["published"]}
    any_published = any_predicted = False
    for axes, panel in zip(grid[0], panels, strict=True):
        for y, cell in enumerate(cells):
            amount, guess = results.counter(cell, panel["quantity"]), results.predicted(cell, panel["quantity"])
            if amount.known:
                axes.barh(y, amount.number, height=0.62, color=style.COLOURS[0], edgecolor="none")
                axes.annotate(number(amount.number, digits=3), (amount.number, y), (6, 0), textcoords="offset points", va="center", fontsize=7)
            else:
                axes.annotate(d.words("not measured"), (0, y), (3, 0), textcoords="offset points", va="center", fontsize=7, color=MUTED)
            if guess.known:
                any_predicted = True
                axes.plot([guess.number] * 2, [y - 0.4, y + 0.4], color=style.PREDICTED, linewidth=1.8, zorder=3)
            theirs = published.get((_written(cell), panel.get("published", "")))
            if theirs is not None:
                any_published = True
                axes.plot(theirs, y - 0.44, marker="v", markersize=4.5, color=style.PUBLISHED, markerfacecolor="none", clip_on=False, zorder=4)
        axes.set_title(d.words(panel["title"]))
        axes.set_xlabel(d.words(panel.get("unit", "")))
        if "limit" in options:
            axes.set_xlim(0, options["limit"] * 1.18)
            axes.axvline(options["limit"], color=MUTED, linewidth=0.8, linestyle=DOTTED)
        else:
            axes.set_xlim(0, max(axes.get_xlim()[1], 1) * 1.08)
        style.tidy(axes, "x")
        axes.tick_params(axis="y", length=0)
    grid[0][0].set_yticks(range(len(cells)), [results.study.short_name(c) for c in cells])
    grid[0][0].set_ylim(len(cells) - 0.4, -0.8)
    handles: list[Patch | Line2D] = [Patch(color=style.COLOURS[0], label=d.words("measured here"))]
    if any_predicted:
        handles.append(
            Line2D([], [], linestyle="none", marker="|", markersize=9, markeredgewidth=1.8, color=style.PREDICTED, label=d.words("predicted"))
        )
    if any_published:
        mark = {"marker": "v", "markersize": 4.5, "color": style.PUBLISHED, "markerfacecolor": "none"}
        handles.append(Line2D([], [], linestyle="none", **mark, label=d.words("published study")))
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def waits(d: Drawing) -> Figure:
    """Where warps wait: for each instruction issued (left), and as warps of a scheduler at any time (right).

    The right side is the left one times the share of cycles in which the scheduler issues (``options["issue"]``, a percentage).
    """
    results, options = d.results, d.options
    cells, states = chosen(d), options["quantities"]
    if nothing := _nothing(d, cells, [q for s in states.values() for q in s]):
        return nothing
    figure, grid = plt.subplots(1, 2, figsize=(style.WIDTH, 1.7 + 0.34 * len(cells)), sharey=True)
    looks = dict(zip(states, style.fills(len(states)), strict=True))
    for axes, per_time in zip(grid, (False, True), strict=True):
        for y, cell in enumerate(cells):
            issue = results.counter(cell, options["issue"])
            _stack(d, axes, y, cell, scale=1.0 if not per_time else issue.number / 100 if issue.known else None, looks=looks)
        axes.set_xlim(left=0)
        _figures_inside(axes)
        style.tidy(axes, "x")
        axes.tick_params(axis="y", length=0)
    grid[0].set_title(d.words("For each instruction issued"))
    grid[0].set_xlabel(d.words("Warps waiting per instruction issued"))
    grid[1].set_title(d.words("At any time"))
    grid[1].set_xlabel(d.words("Warps of a scheduler waiting"))
    grid[0].set_yticks(range(len(cells)), [results.study.short_name(c) for c in cells])
    grid[0].set_ylim(len(cells) - 0.5, -0.5)
    handles = [Patch(label=d.words(s), **looks[s]) for s in states]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _stack(d: Drawing, axes: Axes, y: int, cell: Cell, *, scale: float | None, looks: Mapping[str, Mapping[str, object]]) -> None:
    """One bar: for each state the sum of its quantities, times ``scale``."""
    start = 0.0
    for state, quantities in d.options["quantities"].items():
        amounts = [d.results.counter(cell, q) for q in quantities]
        if scale is None or not all(a.known for a in amounts):
            axes.annotate(d.words("not measured"), (0, y), (3, 0), textcoords="offset points", va="center", fontsize=7, color=MUTED)
            return
        width = scale * sum(a.number for a in amounts)
        axes.barh(y, width, left=start, height=0.68, linewidth=0.5, **looks[state])
        start += width


def _figures_inside(axes: Axes) -> None:
    """Write each segment's figure into it, where it fits."""
    room = axes.get_xlim()[1] or 1.0
    for container in axes.patches:
        if container.get_width() >= SMALL * room:
            middle = (container.get_x() + container.get_width() / 2, container.get_y() + container.get_height() / 2)
            box = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
            axes.annotate(
                number(container.get_width(), digits=3, places=2), middle, ha="center", va="center", fontsize=6.8, bbox=box, color="#1a1c1d"
            )


def limits(d: Drawing) -> Figure:
    """Resident warps of an SM: what each limit alone would allow, what is allowed and what is achieved; per chosen cell."""
    results, options = d.results, d.options
    cells, names = chosen(d), options["quantities"]
    if nothing := _nothing(d, cells, list(names)):
        return nothing
    held = results.experiment.gpu["threads_per_sm"] // 32
    edge = 2.0 * held
    figure, axes = plt.subplots(figsize=(style.WIDTH, 1.5 + 0.33 * len(cells)))
    for y, cell in enumerate(cells):
        warps = -(-results.study.geometry(cell).threads // 32)
        values = {q: results.counter(cell, q) for q in names}
        known = [a.number * warps for a in values.values() if a.known]
        if not known:
            axes.annotate(d.words("not measured"), (0, y), (3, 0), textcoords="offset points", va="center", fontsize=7, color=MUTED)
            continue
        axes.barh(y, min(known), height=0.6, color=style.COLOURS[5], edgecolor="none", alpha=0.55)
        achieved = results.counter(cell, options["achieved"])
        if achieved.known:
            axes.plot([achieved.number / 100 * held] * 2, [y - 0.3, y + 0.3], color=INK, linewidth=1.8)
        for i, amount in enumerate(values.values()):
            if amount.known:
                at = amount.number * warps
                look = {"marker": style.MARKERS[i], "color": style.COLOURS[i], "markerfacecolor": "none", "markeredgewidth": 1.3, "markersize": 6}
                axes.plot(min(at, edge), y + 0.09 * (i - 1.5), **look, clip_on=False, zorder=3)
    axes.axvline(held, color=MUTED, linewidth=0.9, linestyle=DOTTED)
    axes.annotate(
        d.words("an SM holds {n}", n=held),
        (held, 1),
        (3, 2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        fontsize=7.5,
        color=MUTED,
    )
    axes.set_xlim(0, edge * 1.02)
    axes.set_yticks(range(len(cells)), [results.study.short_name(c) for c in cells])
    axes.set_ylim(len(cells) - 0.4, -0.6)
    axes.set_xlabel(d.words("Resident warps of an SM"))
    style.tidy(axes, "x")
    axes.tick_params(axis="y", length=0)
    marks = [
        Line2D(
            [], [], linestyle="none", marker=style.MARKERS[i], color=style.COLOURS[i], markerfacecolor="none", markeredgewidth=1.3, label=d.words(w)
        )
        for i, w in enumerate(names.values())
    ]
    bar = Patch(color=style.COLOURS[5], alpha=0.55, label=d.words("allowed by all limits"))
    line = Line2D([], [], linestyle="none", marker="|", markersize=9, markeredgewidth=1.8, color=INK, label=d.words("achieved"))
    figure.legend(handles=[*marks, bar, line], loc="outside lower center", ncols=3)
    return figure


def deficit(d: Drawing) -> Figure:
    """Bytes written to DRAM over the footprint: as a share of the output matrix (left), and what lacks, against the L2 (right)."""
    results, study, quantity = d.results, d.results.study, d.options["quantity"]
    cells, groups = chosen(d), results.experiment.groups
    if nothing := _nothing(d, [results.at(c, g) for c in cells for g in groups], [quantity]):
        return nothing
    figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH, 3.1))
    for i, cell in enumerate(cells):
        here = sorted((results.at(cell, g) for g in groups), key=lambda c: study.matrix_bytes(c.group))
        known = [
            (2 * size / MIB, size, a.number) for c in here if (a := results.counter(c, quantity)).known and (size := study.matrix_bytes(c.group))
        ]
        look = {**style.series(i), "linestyle": "none", "markerfacecolor": "none"}
        left.plot([x for x, _, _ in known], [100 * w / size for _, size, w in known], **look, label=study.short_name(cell))
        right.plot([x for x, _, _ in known], [(size - w) / MIB for _, size, w in known], **look)
    l2 = results.experiment.gpu["l2_bytes"] / MIB
    left.axhline(100, color=MUTED, linewidth=0.8, linestyle=DOTTED)
    right.axhline(l2, color=MUTED, linewidth=0.8, linestyle=DOTTED)
    right.annotate("L2", (1, l2), (-2, 2), xycoords=("axes fraction", "data"), textcoords="offset points", ha="right", fontsize=7.5, color=MUTED)
    left.set_ylim(0, 112)
    left.set_ylabel(d.words("Written (% of the output matrix)"))
    right.set_ylabel(d.words("Not written (MiB)"))
    right.set_ylim(bottom=min(0.0, right.get_ylim()[0]))
    for axes in (left, right):
        axes.axvline(l2, color=MUTED, linewidth=0.9, linestyle=DOTTED)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.yaxis.set_major_locator(MaxNLocator(6))
        axes.set_xlabel(d.words("Footprint of both matrices (MiB)"))
        style.tidy(axes)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _written(cell: Cell) -> str:
    """A cell as the reference file writes it: ``variant, axis value``."""
    return ", ".join([cell.variant.name, *(f"{a} {v}" for a, v in cell.kernel_values.items())])


KINDS: dict[str, Callable[[Drawing], Figure]] = {"bars": bars, "waits": waits, "limits": limits, "deficit": deficit}
