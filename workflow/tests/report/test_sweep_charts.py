"""The charts of swept axes show the figures of the tables, each at its place, and say what they cannot show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure
from report import micro_tables
from synthetic import ROOT
from transpose_study.errors import StudyError
from transpose_study.report import charts, style
from transpose_study.report.figures import Drawing, declared_figures
from transpose_study.report.texts import ENGLISH, Language
from transpose_study.report.values import Results

DENIED = "no permission for counters"
STRIDES = micro_tables.FEW["stride"]
WAYS = {"quantity": "shared_load_wavefronts", "per": "shared_load_instructions"}
BANKS: dict[str, Any] = {
    "kind": "curves", "variants": {"bank_load": "loads"}, "x": {"axis": "stride", "label": "Stride"},
    "panels": [{"where": {"width": 8}, "y": WAYS | {"label": "Wavefronts"}}],
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    style.use()
    return Results(micro_tables.make(tmp_path_factory.mktemp("plain") / "micro", 1))


@pytest.fixture(scope="module")
def denied(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return Results(micro_tables.make(tmp_path_factory.mktemp("denied") / "micro", 1, denied=DENIED))


@pytest.fixture
def draw() -> Iterator[Callable[[Results, dict[str, Any]], Figure]]:
    yield lambda results, options: charts.KINDS[options["kind"]](Drawing(results, Language(ENGLISH), options))
    plt.close("all")


def points(figure: Figure, panel: int, marker: str) -> list[tuple[float, float]]:
    """The points of the lines of a panel that have a marker ("None": no marker)."""
    found = [line.get_xydata().tolist() for line in figure.axes[panel].lines if line.get_marker() == marker]
    return [tuple(p) for line in found for p in line]


def ways(results: Results, stride: int) -> float:
    cell = results.cell("bank_load", width=8, stride=stride)
    return results.counter(cell, "shared_load_wavefronts").number / results.counter(cell, "shared_load_instructions").number


def test_a_curve_holds_measured_points_and_the_predicted_line(results: Results, draw: Callable[..., Figure]) -> None:
    figure = draw(results, BANKS)
    expected = [(s, pytest.approx(ways(results, s))) for s in STRIDES]
    assert points(figure, 0, "o") == expected
    assert points(figure, 0, "None") == expected  # predictions equal the measurements in these tables


def test_without_counters_the_predicted_line_stays_and_no_point_is_made_up(results: Results, denied: Results, draw: Callable[..., Figure]) -> None:
    figure = draw(denied, BANKS)
    assert points(figure, 0, "o") == []
    assert points(figure, 0, "None") == [(s, pytest.approx(ways(results, s))) for s in STRIDES]


@pytest.mark.parametrize("relative", ["first", "best", "panel"])
def test_relative_times_are_multiples_of_what_is_named(results: Results, draw: Callable[..., Figure], relative: str) -> None:
    panel = {
        "where": {"width": 8},
        "y": {"timing": "median_us", "label": "Time", "relative": relative},
        "variants": {"bank_load": "loads", "bank_store": "stores"},
    }
    figure = draw(results, BANKS | {"panels": [panel]})
    times = {v: [results.timing(results.cell(v, width=8, stride=s)).number for s in STRIDES] for v in panel["variants"]}
    for name, marker in (("bank_load", "o"), ("bank_store", "s")):
        unit = {"first": times[name][0], "best": max(times[name]), "panel": max(max(t) for t in times.values())}[relative]
        assert [y for _, y in points(figure, 0, marker)] == pytest.approx([t / unit for t in times[name]])


def test_a_line_for_each_value_of_an_axis_and_each_cache_mode(results: Results, draw: Callable[..., Figure]) -> None:
    panel = {
        "variants": {"bank_load": ""},
        "lines": "width",
        "modes": ["hot", "cold"],
        "line_label": "{value} {mode}",
        "y": {"timing": "median_us", "label": "Time"},
    }
    figure = draw(results, BANKS | {"panels": [panel]})
    assert [t.get_text() for t in figure.legends[0].get_texts()] == [f"{w} {m}" for w in (4, 8, 16) for m in ("hot", "cold")]


def test_a_slope_is_what_a_further_step_adds(results: Results, draw: Callable[..., Figure]) -> None:
    panel = {
        "where": {"width": 8},
        "y": {"quantity": "cycles_per_access", "label": "Cycles"},
        "slope": "{label} {n}",
        "variants": {"bank_latency": "a load"},
        "legend": "best",
    }
    figure = draw(results, BANKS | {"panels": [panel]})
    first, last = (results.counter(results.cell("bank_latency", width=8, stride=s), "cycles_per_access").number for s in (STRIDES[0], STRIDES[-1]))
    (label,) = [t.get_text() for t in figure.axes[0].get_legend().get_texts()]
    assert float(label.removeprefix("a load ").replace("\u2212", "-")) == pytest.approx((last - first) / (STRIDES[-1] - STRIDES[0]), rel=0.01)


def test_a_measure_with_an_unknown_key_names_the_nearest(results: Results, draw: Callable[..., Figure]) -> None:
    with pytest.raises(StudyError, match="did you mean 'quantity'"):
        draw(results, BANKS | {"panels": [{"y": {"quantiti": "x", "label": ""}}]})


def test_fields_show_figures_and_dashes_where_a_cell_cannot_run(results: Results, denied: Results, draw: Callable[..., Figure]) -> None:
    options = declared_figures("micro", ROOT)["swizzle_ways"]
    for run in (results, denied):  # without counters the predicted figures
        figure = draw(run, options)
        shown = [t.get_text() for t in figure.axes[0].texts]
        cells = [c for v in options["rows"]["variants"] for c in run.cells_of(v)]
        assert len(shown) == len(cells) == 24
        assert shown.count("–") == sum(run.status(c)[0] == "skipped" for c in cells) == 5


def test_each_thread_is_a_field_in_the_colour_of_its_warp(results: Results, draw: Callable[..., Figure]) -> None:
    options = declared_figures("micro", ROOT)["warp_lanes"]
    figure = draw(results, options)
    for axes, (wide, tall) in zip(figure.axes, options["blocks"], strict=True):
        fields = [p.get_facecolor() for p in axes.patches]
        assert len(fields) == wide * tall
        assert [f == fields[0] for f in fields[:64]] == [
            t < 32 for t in range(min(64, wide * tall))
        ]  # 32 threads a warp, the next has another colour
        left = {i: wide - 32 * i % wide for i in range(-(-wide * tall // 32))}  # threads of the row from the warp's first one on
        assert [t.get_text() for t in axes.texts] == [f"warp {i}" if n > 3 else str(i) for i, n in left.items()]  # three are too narrow


def test_bars_are_as_long_as_the_figures_they_name(results: Results, denied: Results, draw: Callable[..., Figure]) -> None:
    options = {"kind": "compared", "panels": [{"title": "", "unit": "", "bars": [
        {"label": "a", "cell": "copy_offset, offset 0", "quantity": "global_load_sectors_per_request"},
        {"label": "b", "cell": "copy_offset, offset 0", "timing": "median_us", "mode": "cold"}]}]}  # fmt: skip
    cell = results.cell("copy_offset", offset=0)
    assert [p.get_width() for p in draw(results, options).axes[0].patches] == [
        results.counter(cell, "global_load_sectors_per_request").number, results.timing(cell, "median_us", "cold").number,
    ]  # fmt: skip
    figure = draw(denied, options)
    assert len(figure.axes[0].patches) == 1 and "not measured" in [t.get_text() for t in figure.axes[0].texts]


@pytest.mark.parametrize(
    "name", [n for n, o in declared_figures("micro", ROOT).items() if o["kind"] in {"curves", "grid", "compared", "threads", "banks"}]
)
def test_every_figure_is_drawn_where_nothing_of_it_is_configured(tmp_path: Path, draw: Callable[..., Figure], name: str) -> None:
    shapes = [{"experiment": "empty", "variants": ["swizzle_xor"]}]
    results = Results(micro_tables.make(tmp_path / "micro", 1, shapes=shapes, variants=["swizzle_xor"], axes={"tile": [8]}))
    figure = draw(results, declared_figures("micro", ROOT)[name])
    assert figure.axes
