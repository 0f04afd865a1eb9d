"""The comparison's figures: bandwidth and fraction of peak of each side, and the ratios between runs on one model of GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from transpose_study.comparison.sides import Key
from transpose_study.comparison.tables import Comparison, Pair
from transpose_study.comparison.verdicts import FASTER, SAME, SLOWER, UNTOLD
from transpose_study.report import style
from transpose_study.report.palette import MUTED

COLOURS = {SAME: style.COLOURS[2], FASTER: style.COLOURS[0], SLOWER: style.COLOURS[1], UNTOLD: MUTED}
MARKERS = {SAME: "o", FASTER: "v", SLOWER: "^", UNTOLD: "x"}


def draw(comparison: Comparison, folder: Path) -> dict[str, str]:
    """Draw all figures into ``folder`` and return their captions by name."""
    style.use()
    captions: dict[str, str] = {}
    place = fullest_group(comparison)
    for quantity, label, words in (
        ("bandwidth_gb_s", "Effective bandwidth (GB/s)", "Effective bandwidth"),
        ("percent_of_peak", "Share of the nominal peak (%)", "Share of each device's nominal bandwidth"),
    ):
        figure = _dots(comparison, place, quantity, label)
        style.save(figure, folder / f"{quantity}.svg", folder / f"{quantity}.png")
        captions[quantity] = f"{words} of every common cell at {' x '.join(place)}, caches {comparison.modes[0]}."
    for number, pair in enumerate(comparison.pairs, start=1):
        name = f"ratio_{number}"
        style.save(_ratios(comparison, pair), folder / f"{name}.svg", folder / f"{name}.png")
        captions[name] = (
            f"Time in {pair.second.label} over that in {pair.first.label}, with 95 % intervals, by the time of a launch: "
            "between the grey lines nothing can be told from a difference between runs of the same code."
        )
    return captions


def fullest_group(comparison: Comparison) -> Key:
    """The group in which the most cells are common."""
    side = max(comparison.sides, key=lambda s: len(s.table("rounds")))
    counts: dict[Key, int] = {}
    for key in comparison.order:
        counts[side.group(key)] = counts.get(side.group(key), 0) + sum(key in h for h in comparison.held.values())
    return max(counts, key=lambda g: counts[g])


def cell_name(comparison: Comparison, key: Key) -> str:
    """A cell without its group's values and without axes that do not vary: ``VARIANT AXIS=8``."""
    side = max(comparison.sides, key=lambda s: len(s.table("rounds")))
    varying = [c for i, c in enumerate(comparison.columns) if i and c not in side.group_columns and len({k[i] for k in comparison.order}) > 1]
    values = dict(zip(comparison.columns, key, strict=True))
    return " ".join([key[0], *(f"{c}={values[c]}" for c in varying if values[c])])


def _dots(comparison: Comparison, place: Key, quantity: str, label: str) -> plt.Figure:
    side = max(comparison.sides, key=lambda s: len(s.table("rounds")))
    keys = [k for k in comparison.order if side.group(k) == place]
    figure, axes = plt.subplots(figsize=(style.WIDTH, 1.4 + 0.17 * len(keys)))
    for number, other in enumerate(comparison.sides):
        found = [(comparison.timed(other.label, k, comparison.modes[0], quantity), y) for y, k in enumerate(keys)]
        points = [(value, y) for value, y in found if value is not None]
        look: Mapping[str, object] = {"color": style.COLOURS[number % len(style.COLOURS)], "marker": style.MARKERS[number % len(style.MARKERS)]}
        if points:
            axes.plot(*zip(*points, strict=True), linestyle="none", markerfacecolor="none" if number else look["color"], label=other.label, **look)
    axes.set_yticks(range(len(keys)), [cell_name(comparison, k) for k in keys])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel(label)
    axes.tick_params(axis="y", length=0, labelsize=7.5)
    style.tidy(axes, "x")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _ratios(comparison: Comparison, pair: Pair) -> plt.Figure:
    figure, grid = plt.subplots(1, len(comparison.modes), figsize=(style.WIDTH, 3.6), sharey=True, squeeze=False)
    for axes, mode in zip(grid[0], comparison.modes, strict=True):
        _ratio_panel(axes, comparison, pair, mode)
    grid[0][0].set_ylabel("Ratio of times")
    handles = [Line2D([], [], linestyle="none", color=COLOURS[v], marker=MARKERS[v], label=v) for v in COLOURS]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _ratio_panel(axes: Axes, comparison: Comparison, pair: Pair, mode: str) -> None:
    places = []
    for (key, cell_mode), verdict in pair.verdicts.items():
        time = comparison.timed(pair.first.label, key, cell_mode, "median_us")
        if cell_mode == mode and verdict and time:
            colour = COLOURS[verdict.verdict]
            axes.plot([time, time], [verdict.low, verdict.high], color=colour, linewidth=1, alpha=0.6)
            axes.plot(time, verdict.ratio, color=colour, marker=MARKERS[verdict.verdict], markersize=3.5)
            places.append((time, verdict.tolerance))
    places.sort()
    for sign in (1, -1) if places else ():
        line = [(1 + t) ** sign for _, t in places]
        axes.plot([x for x, _ in places], line, color=MUTED, linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=0)
    axes.axhline(1, color=MUTED, linewidth=0.8, zorder=0)
    axes.set_xscale("log")
    for formatter in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        formatter(FuncFormatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in "125" else ""))
    axes.set_xlabel("Median time of a launch (us)")
    axes.set_title(f"{mode.capitalize()} L2" if mode in ("hot", "cold") else mode)
    style.tidy(axes)
