"""The kinds of figures, and those of times: functions that draw tidy tables, whatever the study's axes are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from transpose_study import expressions
from transpose_study.report import counter_charts, grid_charts, prediction_charts, style, sweep_charts
from transpose_study.report.figures import Drawing
from transpose_study.report.palette import INK, MUTED
from transpose_study.report.wording import number

MIB = 2**20
DOTTED = (0, (1, 1.5))


def _modes(d: Drawing) -> list[str]:
    return list(d.results.experiment.config.timing.cache_modes)


def _mode_title(d: Drawing, mode: str) -> str:
    return d.words("{mode} L2", mode=mode)


def _limit(axes: Axes, value: float, text: str, *, along: str) -> None:
    """A dotted line for a limit, labelled at its end."""
    line = {"color": MUTED, "linewidth": 0.9, "linestyle": DOTTED, "zorder": 1}
    label = {"textcoords": "offset points", "fontsize": 7.5, "color": MUTED}
    if along == "x":
        axes.axhline(value, **line)
        axes.annotate(text, (1, value), (-2, 2), xycoords=("axes fraction", "data"), ha="right", va="bottom", **label)
    else:
        axes.axvline(value, **line)
        axes.annotate(text, (value, 1), (3, -1), xycoords=("data", "axes fraction"), ha="left", va="top", **label)


def sweep(d: Drawing) -> Figure:
    """Effective bandwidth over the footprint (both matrices), the fastest cell of each variant, one panel a cache mode."""
    results, options, study, experiment = d.results, d.options, d.results.study, d.results.experiment
    modes = _modes(d)
    figure, grid = plt.subplots(1, len(modes), figsize=(style.WIDTH, 4.1), sharey=True, squeeze=False)
    groups = sorted(experiment.groups, key=lambda g: study.matrix_bytes(experiment.groups[g].values))
    joined = {
        g: "joined" not in options or bool(expressions.evaluate(options["joined"], study.numbers(experiment.groups[g].values), where="figures"))
        for g in groups
    }
    baselines = set(study.baselines.values())
    counts = {True: 0, False: 0}
    handles: list[Line2D] = []
    loose = False
    for variant in experiment.variants():
        is_baseline = variant.name in baselines
        look = style.series(counts[is_baseline], baseline=is_baseline)
        counts[is_baseline] += 1
        for axes, mode in zip(grid[0], modes, strict=True):
            points: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
            for group in groups:
                best = results.best([c for c in results.cells(group) if c.variant.name == variant.name], mode)
                if best is not None:
                    footprint = 2 * study.matrix_bytes(best.group) / MIB
                    points[joined[group]].append((footprint, results.timing(best, "bandwidth_gb_s", mode).number))
            if points[True]:
                axes.plot(*zip(*points[True], strict=True), **look, markeredgewidth=0)
            if points[False]:
                loose = True
                axes.plot(*zip(*points[False], strict=True), linestyle="none", marker=look["marker"], color=look["color"], markerfacecolor="none")
        handles.append(Line2D([], [], **look, markeredgewidth=0, label=variant.name))
    for axes, mode in zip(grid[0], modes, strict=True):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda y, _: number(y) if f"{y:e}"[0] in "25" else ""))
        axes.tick_params(axis="y", which="minor", labelsize=7)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(_mode_title(d, mode))
        axes.set_xlabel(d.words("Footprint of both matrices (MiB)"))
        style.tidy(axes)
        _limit(axes, experiment.gpu["l2_bytes"] / MIB, d.words("footprint = L2"), along="y")
        _limit(axes, experiment.peak_gb_s, d.words("nominal peak"), along="x")
    grid[0][0].set_ylabel(d.words("Effective bandwidth (GB/s)"))
    if loose:
        words = [d.words(options.get("joined_label", "joined")), d.words(options.get("loose_label", "others"))]
        handles += [
            Line2D([], [], color=MUTED, marker="o", markeredgewidth=0, label=words[0]),
            Line2D([], [], color=MUTED, marker="o", markerfacecolor="none", linestyle="none", label=words[1]),
        ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, handlelength=3.2)
    return figure


def ladder(d: Drawing) -> Figure:
    """Effective bandwidth of every cell of the main group with intervals, hot filled, cold open; copies and peak as lines."""
    results, modes = d.results, _modes(d)
    cells = results.cells()
    figure, axes = plt.subplots(figsize=(style.WIDTH, 1.3 + 0.165 * len(cells)))
    positions: list[float] = []
    place = 0.0
    for i, cell in enumerate(cells):
        place += 1.45 if i and cell.variant.name != cells[i - 1].variant.name else 1.0
        positions.append(place)
    looks = {mode: {"marker": m, "filled": f, "color": c} for mode, m, f, c in zip(modes, "os", (True, False), style.COLOURS, strict=False)}
    for mode, look in looks.items():
        for cell, y in zip(cells, positions, strict=True):
            amount = results.timing(cell, "bandwidth_gb_s", mode)
            if not amount.known:
                continue
            if amount.low is not None and amount.high is not None:
                axes.plot([amount.low, amount.high], [y, y], color=look["color"], linewidth=2.2, solid_capstyle="butt", alpha=0.6)
            axes.plot(amount.number, y, **_marker(look))
    for cell, y in zip(cells, positions, strict=True):
        state, _ = results.status(cell, modes[0])
        if state != "ok":
            axes.annotate(d.words(state), (0.004, y), xycoords=("axes fraction", "data"), va="center", fontsize=7, color=MUTED)
    lines: list[Line2D] = []
    dashes = ((0, (6, 2)), (0, (3, 1.5)), (0, (6, 1.5, 1.5, 1.5)))
    for (name, variant), dash in zip(results.study.baselines.items(), dashes, strict=False):
        baseline = next((c for c in cells if c.variant.name == variant), None)
        amount = results.timing(baseline, "bandwidth_gb_s", modes[0]) if baseline else None
        if amount is not None and amount.known:
            label = d.words("{name}, {mode}", name=name, mode=modes[0])
            lines.append(axes.axvline(amount.number, color=MUTED, linewidth=0.8, linestyle=dash, zorder=0, label=label))
    lines.append(axes.axvline(results.experiment.peak_gb_s, color=INK, linewidth=1.2, linestyle=DOTTED, zorder=0, label=d.words("nominal peak")))
    axes.set_yticks(positions, [results.study.short_name(c) for c in cells])
    axes.set_ylim(positions[-1] + 0.9, positions[0] - 0.9)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: number(x)))
    axes.set_xlabel(d.words("Effective bandwidth (GB/s)"))
    style.tidy(axes, "x")
    axes.tick_params(axis="y", length=0, labelsize=7.5)
    handles = [Line2D([], [], linestyle="none", **_marker(k), label=d.words("{mode} L2, median and interval", mode=m)) for m, k in looks.items()]
    figure.legend(handles=[*handles, *lines], loc="outside lower center", ncols=3, handlelength=3)
    return figure


def _marker(look: Mapping[str, Any]) -> dict[str, Any]:
    return {"marker": look["marker"], "color": look["color"], "markerfacecolor": look["color"] if look["filled"] else "none"}


def scan(d: Drawing) -> Figure:
    """Bandwidth along one axis for every variant that takes it, and the published scan beside this device's."""
    results, options, mode = d.results, d.options, _modes(d)[0]
    axis, label = options["axis"], options.get("axis_label", options["axis"])
    places = {v: i for i, v in enumerate(sorted(results.experiment.config.axes[axis]))}
    figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH, 3.7), width_ratios=(1.25, 1))
    variants = [v for v in results.experiment.variants() if axis in v.takes]
    for i, variant in enumerate(variants):
        cells = [c for c in results.cells() if c.variant is variant]
        points = [(places[int(c.values[axis])], a) for c in cells if (a := results.timing(c, "bandwidth_gb_s", mode)).known]
        if points:
            look = style.series(i)
            left.plot([x for x, _ in points], [a.number for _, a in points], **look, markeredgewidth=0, label=variant.name)
    left.set_title(d.words("Measured here"))
    left.set_ylabel(d.words("Effective bandwidth, {mode} L2 (GB/s)", mode=mode))
    left.set_ylim(bottom=0)
    left.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))
    ours, theirs = _relative(d, axis, options["cell"], places)
    for points, colour, marker, text in ((ours, style.COLOURS[0], "o", "measured here"), (theirs, style.PUBLISHED, "v", "published study")):
        if points:
            face = {"markerfacecolor": "none"} if marker == "v" else {"markeredgewidth": 0}
            line = "--" if marker == "v" else "-"
            right.plot(list(points), list(points.values()), color=colour, marker=marker, label=d.words(text), linestyle=line, **face)
    right.axhline(1, color=MUTED, linewidth=0.8)
    right.set_title(options["cell"])
    right.set_ylabel(d.words("Mean time / shortest published one's" if theirs else "Mean time / shortest"))
    right.yaxis.set_major_locator(MaxNLocator(6))
    if ours or theirs:
        right.legend(loc="best")
    for axes in (left, right):
        axes.set_xticks(list(places.values()), [str(v) for v in places])
        axes.set_xlim(-0.3, len(places) - 0.7)
        axes.set_xlabel(label)
        style.tidy(axes)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, handlelength=2.6)
    return figure


def _relative(d: Drawing, axis: str, variant: str, places: Mapping[int, int]) -> tuple[dict[int, float], dict[int, float]]:
    """Mean times of a variant along an axis as multiples of the one at the value that the published scan finds best."""
    results = d.results
    published = {int(p[axis]): float(p["mean_ms"]) for p in (results.experiment.published or {}).get(f"{axis}_scan", ())}
    cells = [c for c in results.cells() if c.variant.name == variant]
    measured = {int(c.values[axis]): a.number for c in cells if (a := results.timing(c, "mean_us", _modes(d)[0])).known}
    best = min(published or measured, key=lambda v: (published or measured)[v], default=None)
    ours = {places[v]: t / measured[best] for v, t in sorted(measured.items())} if best in measured else {}
    theirs = {places[v]: t / published[best] for v, t in sorted(published.items()) if v in places} if published else {}
    return ours, theirs


def drift(d: Drawing) -> Figure:
    """Each round's times relative to the cells' medians, and the SM clock, over all rounds of the main group."""
    results = d.results
    group = {a: str(v) for a, v in results.experiment.groups[results.experiment.main_group].values.items()}
    rows = [r for r in results.table("rounds") if all(r[a] == v for a, v in group.items())] if results.has_table("rounds") else []
    modes = [m for m in _modes(d) if any(r["cache_mode"] == m for r in rows)]
    if not modes:
        figure = plt.figure(figsize=(style.WIDTH, 1.6))
        style.empty(figure, d.words("no round was timed"))
        return figure
    figure, panels = plt.subplots(2, len(modes), figsize=(style.WIDTH, 3.9), sharey="row", sharex="col", squeeze=False, height_ratios=(2.2, 1))
    for column, mode in enumerate(modes):
        mine = sorted((r for r in rows if r["cache_mode"] == mode), key=lambda r: (int(r["process"]), int(r["round"])))
        _rounds(panels[0][column], panels[1][column], mine)
        panels[0][column].set_title(_mode_title(d, mode))
        panels[1][column].set_xlabel(d.words("Round, processes set apart"))
    panels[0][0].set_ylabel(d.words("Time against the cell's median (%)"))
    panels[1][0].set_ylabel(d.words("SM clock (MHz)"))
    panels[1][0].yaxis.set_major_locator(MaxNLocator(3))
    panels[1][0].yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))
    figure.align_ylabels()
    return figure


def _rounds(times: Axes, clocks: Axes, rows: Sequence[Mapping[str, str]]) -> None:
    before = ""
    for x, row in enumerate(rows):
        low, middle, high = (100 * (float(row[c]) - 1) for c in ("relative_time_q25", "relative_time", "relative_time_q75"))
        look = int(row["process"]) % len(style.COLOURS)
        times.plot([x, x], [low, high], color=style.COLOURS[look], linewidth=1.2, alpha=0.6)
        point = {"marker": style.MARKERS[look], "markersize": 3.2, "color": style.COLOURS[look], "markeredgewidth": 0}
        times.plot(x, middle, **point)
        if row["sm_clock_mhz"]:
            clocks.plot(x, float(row["sm_clock_mhz"]), **point)
        if row["process"] != before and before:
            for axes in (times, clocks):
                axes.axvline(x - 0.5, color=MUTED, linewidth=0.8, linestyle=DOTTED)
        before = row["process"]
    times.axhline(0, color=MUTED, linewidth=0.8)
    for axes in (times, clocks):
        style.tidy(axes)


KINDS: dict[str, Callable[[Drawing], Figure]] = {
    "sweep": sweep, "ladder": ladder, "scan": scan, "drift": drift,
    **counter_charts.KINDS, **prediction_charts.KINDS, **sweep_charts.KINDS, **grid_charts.KINDS,
}  # fmt: skip
