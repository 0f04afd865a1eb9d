"""Figures of swept axes: curves over an axis or a quantity, one panel each, whatever the study's axes are called.

What a panel shows is said in the figures' file; a key of a panel stands before the same key of the figure. ``x`` and ``y`` are
measures (:mod:`transpose_study.report.measures`) with a ``label``, and may have ``scale: log2``, ``from`` and ``to``, ``ticks``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from transpose_study.registry import Cell
from transpose_study.report import measures, style
from transpose_study.report.figures import Drawing
from transpose_study.report.palette import MUTED
from transpose_study.report.texts import text
from transpose_study.report.wording import number

DOTTED = (0, (1, 1.5))
SETTINGS = {"label", "scale", "from", "to", "ticks", "relative"}  # keys of an axis of a panel that are no part of its measure


Points = list[tuple[float, float | None, float | None]]


@dataclass(frozen=True)
class Curve:
    """One line of a panel: its label, its place among the lines, and its points (x, y, predicted y or None), ordered by x."""

    label: str
    place: int
    points: Points
    spans: list[tuple[float, float, float]]  # x and the ends of the interval of y


def curves(d: Drawing) -> Figure:
    """Measured points over a swept axis, the predicted ones as a line behind them; several panels with lines of the same looks."""
    panels = [{**{k: v for k, v in d.options.items() if k not in ("kind", "panels")}, **p} for p in d.options["panels"]]
    drawn = [(p, _relative(p, list(_curves(d, p)))) for p in panels]
    if not any(c.points for _, lines in drawn for c in lines):
        return _empty(d, panels)
    columns = d.options.get("columns", len(panels))
    rows = -(-len(panels) // columns)
    size = (style.WIDTH, rows * d.options.get("height", 2.3) + 0.5)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=d.options.get("share_y", False))
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    shared: dict[str, Line2D] = {}
    for i, (axes, (panel, lines)) in enumerate(zip(grid.flat, drawn, strict=False)):
        handles: dict[str, Line2D] = {}
        for line in lines:
            handles |= _draw(d, axes, panel, line)
        handles |= _proportional(d, axes, panel, lines)
        _frame(d, axes, panel, alone=not d.options.get("share_y") or i % columns == 0)
        if "legend" in panel:
            axes.legend(handles=list(handles.values()), loc=panel["legend"], fontsize=7.5)
        else:
            shared |= {k: v for k, v in handles.items() if k}
    if len(shared) > 1:
        title = {"title": d.words(d.options["legend_title"])} if "legend_title" in d.options else {}
        figure.legend(handles=list(shared.values()), loc="outside lower center", ncols=len(shared), handlelength=2.2, **title)
    return figure


def cells_of(d: Drawing, panel: Mapping[str, Any], variant: str) -> list[Cell]:
    """The configured cells of a variant that have the axis values of ``where``; a list names several values."""
    where = {a: v if isinstance(v, list) else [v] for a, v in panel.get("where", {}).items()}
    cells = d.results.cells_of(variant)
    return [c for c in cells if all(c.kernel_values.get(a) in v for a, v in where.items())]


def _curves(d: Drawing, shared: Mapping[str, Any]) -> Iterator[Curve]:
    """Lines of a panel: for each variant, each value of the axis ``lines``, and each cache mode of ``modes``.

    A variant has a label, or a mapping with a ``label`` and the keys that are its own, such as ``y``.
    """
    place = 0
    for variant, own in shared["variants"].items():
        words, panel = (own["label"], {**shared, **own}) if isinstance(own, Mapping) else (own, shared)
        cells = cells_of(d, panel, variant)
        values = sorted({c.kernel_values[panel["lines"]] for c in cells}) if "lines" in panel else [None]
        for value in values:
            mine = [c for c in cells if value is None or c.kernel_values[panel["lines"]] == value]
            for mode in panel.get("modes", [None]):
                template = panel.get("line_label", "{label}")
                label = d.words(template, label=text(words), value=value if value is not None else "", mode=mode or "")
                yield Curve(label, place, *_points(d, panel, mine, mode))
                place += 1


def _points(d: Drawing, panel: Mapping[str, Any], cells: list[Cell], mode: str | None) -> tuple[Points, list[tuple[float, float, float]]]:
    """Points and intervals of a line, as :class:`Curve` has them."""
    x_measure, y_measure = ({k: v for k, v in panel[a].items() if k not in SETTINGS} for a in "xy")
    if mode:
        y_measure["mode"] = mode
    for measure in (x_measure, y_measure):
        measures.known_keys(measure, f"figure {panel.get('title', '')!r}")
    found = []
    for cell in cells:
        x = measures.measured(d.results, cell, x_measure)
        x = x if x.known else measures.predicted(d.results, cell, x_measure)
        y, guess = measures.measured(d.results, cell, y_measure), measures.predicted(d.results, cell, y_measure)
        if x.known and (y.known or guess.known):
            found.append((x.number, y, guess))
    found.sort(key=lambda point: point[0])
    points = [(x, y.number if y.known else None, g.number if g.known else None) for x, y, g in found]
    spans = [(x, y.low, y.high) for x, y, _ in found if y.known and y.low is not None and y.high is not None]
    return points, spans


def _relative(panel: Mapping[str, Any], lines: list[Curve]) -> list[Curve]:
    """Where the panel asks for it: y as multiples of each line's ``first`` or largest (``best``), or of the ``panel``'s largest."""
    wanted = panel["y"].get("relative", "")
    known = [[y for _, y, _ in line.points if y is not None] for line in lines]
    best = max((y for mine in known for y in mine), default=1.0)
    scaled = []
    for line, mine in zip(lines, known, strict=True):
        unit = {"first": mine[0], "best": max(mine), "panel": best}.get(wanted, 1.0) if mine else 1.0
        points = [(x, None if y is None else y / unit, None if g is None else g / unit) for x, y, g in line.points]
        scaled.append(Curve(line.label, line.place, points, [(x, low / unit, high / unit) for x, low, high in line.spans]))
    return scaled


def _draw(d: Drawing, axes: Axes, panel: Mapping[str, Any], line: Curve) -> dict[str, Line2D]:
    handles: dict[str, Line2D] = {}
    guesses = [(x, g) for x, _, g in line.points if g is not None]
    if guesses:
        look = {"color": style.PREDICTED, "linewidth": 1.0, "zorder": 1}
        axes.plot(*zip(*guesses, strict=True), **look)
        handles[d.words("predicted")] = Line2D([], [], **look, label=d.words("predicted"))
    known = [(x, y) for x, y, _ in line.points if y is not None]
    if not known:
        return handles
    look = style.series(line.place)
    joined = panel.get("joined", not guesses)
    look |= {"markersize": 3.4 + 1.5 * (line.place % 2)} if guesses else {"markersize": 3.8}
    look |= {"markerfacecolor": "none", "markeredgewidth": 1.0} if line.place % 2 else {"markeredgewidth": 0}  # both show where they coincide
    if not joined:
        look["linestyle"] = "none"
    axes.plot(*zip(*known, strict=True), **look, zorder=3 - 0.01 * line.place)  # the first on top of the larger open marks
    for x, low, high in line.spans:
        axes.plot([x, x], [low, high], color=look["color"], linewidth=1.0, zorder=1)
    label = line.label
    if "slope" in panel and len(known) > 1:
        (x0, y0), (x1, y1) = known[0], known[-1]
        label = d.words(panel["slope"], label=line.label, n=number((y1 - y0) / (x1 - x0), digits=3)) if x1 > x0 else label
    handles[label] = Line2D([], [], **look, label=label)
    return handles


def _proportional(d: Drawing, axes: Axes, panel: Mapping[str, Any], lines: list[Curve]) -> dict[str, Line2D]:
    """Where ``proportional`` names it: what the first line would be if y grew as x does."""
    known = [(x, y) for x, y, _ in lines[0].points if y is not None] if lines and "proportional" in panel else []
    if len(known) < 2 or not known[0][0]:
        return {}
    (x0, y0), (x1, _) = known[0], known[-1]
    look = {"color": MUTED, "linewidth": 1.0, "linestyle": (0, (4, 2)), "zorder": 0}
    limits = axes.get_ylim()
    axes.plot([x0, x1], [y0, y0 * x1 / x0], **look)
    if "to" in panel["y"]:
        axes.set_ylim(limits)
    return {panel["proportional"]: Line2D([], [], **look, label=d.words(panel["proportional"]))}


def _frame(d: Drawing, axes: Axes, panel: Mapping[str, Any], *, alone: bool) -> None:
    """Title, labels, scales, limits and the lines of ``marks``, each a value of y and what it stands for."""
    for mark in panel.get("marks", ()):
        value = d.results.experiment.peak_gb_s if mark["y"] == "peak" else mark["y"]
        axes.axhline(value, color=MUTED, linewidth=0.9, linestyle=DOTTED, zorder=0)
        place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "ha": "right", "va": "bottom"}
        axes.annotate(d.words(mark["label"]), (1, value), (-2, 1), **place, fontsize=7, color=MUTED)
    for name, options in (("x", panel["x"]), ("y", panel["y"])):
        axis = axes.xaxis if name == "x" else axes.yaxis
        if options.get("scale") == "log2":
            (axes.set_xscale if name == "x" else axes.set_yscale)("log", base=2)
            axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda v, _: number(v) if abs(v) >= 10_000 else f"{v:g}"))
        limits = {"from": "left" if name == "x" else "bottom", "to": "right" if name == "x" else "top"}
        (axes.set_xlim if name == "x" else axes.set_ylim)(**{limits[k]: options[k] for k in limits if k in options})
        if "ticks" in options:
            axis.set_ticks(options["ticks"])
    axes.set_title(d.words(panel.get("title", "")))
    axes.set_xlabel(d.words(panel["x"]["label"]))
    if alone:
        axes.set_ylabel(d.words(panel["y"]["label"]))
    style.tidy(axes)


def _empty(d: Drawing, panels: list[dict[str, Any]]) -> Figure:
    """The reason why nothing can be drawn."""
    figure = plt.figure(figsize=(style.WIDTH, 1.6))
    cells = [(p, c) for p in panels for v in p["variants"] for c in cells_of(d, p, v)]
    reasons = {measures.measured(d.results, c, {k: v for k, v in p["y"].items() if k not in SETTINGS}).reason for p, c in cells}
    words = d.words("Not measured: {reason}", reason="; ".join(sorted(reasons))) if cells else d.words("none of this figure's cells is configured")
    style.empty(figure, words)
    return figure


KINDS: dict[str, Callable[[Drawing], Figure]] = {"curves": curves}
