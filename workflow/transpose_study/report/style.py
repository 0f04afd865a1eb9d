"""The one style of all figures: colours, markers, fonts, and saving with the same bytes on every machine."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transpose_study.records import write_bytes
from transpose_study.report import fonts
from transpose_study.report.palette import GRID, INK, MUTED

WIDTH = 7.4  # inches; the text width of the printed report
DPI = 160

# Okabe and Ito's colours, which colour-blind readers can tell apart, without yellow (too light on paper) and black (kept
# for the baselines). Markers and dashes differ as well, so that the series are told apart in grey.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7f5fa8")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
DASHES = ((None, None), (5, 1.6), (1.5, 1.5), (6, 1.5, 1.5, 1.5))
PUBLISHED, PREDICTED = "#a15c00", "#b0186e"


def use(language: str = "en") -> None:
    """Apply the style, with the glyphs of a language, to everything drawn from here on."""
    bundled = str(Path(matplotlib.get_data_path()))
    # A system's own DejaVu may differ in version; only the font files that matplotlib ships give equal outlines.
    font_manager.fontManager.ttflist = [f for f in font_manager.fontManager.ttflist if f.fname.startswith(bundled)]
    families = ["DejaVu Sans"]
    chinese = fonts.chinese() if language == "zh" else None
    if chinese:
        font_manager.fontManager.addfont(chinese.sans_file)
        families.append(font_manager.FontProperties(fname=chinese.sans_file).get_name())
    sns.set_theme(
        context="paper",
        style="ticks",
        font=families,  # glyphs that the first lacks come from the second
        palette=list(COLOURS),
        rc={
            "svg.hashsalt": "transpose-study",
            "svg.fonttype": "path",
            "axes.formatter.use_locale": False,
            "font.size": 8.5,
            "axes.labelsize": 8.5,
            "axes.titlesize": 9,
            "axes.titleweight": "normal" if chinese else "bold",  # the Chinese font has one weight
            "axes.titlelocation": "left",
            "xtick.labelsize": 8,
            "ytick.labelsize": 8,
            "legend.fontsize": 8,
            "legend.frameon": False,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.titlecolor": INK,
            "axes.edgecolor": MUTED,
            "xtick.color": MUTED,
            "ytick.color": MUTED,
            "xtick.labelcolor": INK,
            "ytick.labelcolor": INK,
            "grid.color": GRID,
            "grid.linewidth": 0.6,
            "axes.axisbelow": True,
            "lines.linewidth": 1.4,
            "lines.markersize": 5,
            "hatch.linewidth": 0.6,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "figure.constrained_layout.use": True,
        },
    )


def series(index: int, *, baseline: bool = False) -> dict[str, object]:
    """Colour, marker and dashes of a line; baselines are drawn in the ink's greys."""
    dash = DASHES[index % len(DASHES)] if baseline else DASHES[index // len(COLOURS) % len(DASHES)]
    colour = (INK, MUTED)[index % 2] if baseline else COLOURS[index % len(COLOURS)]
    style: dict[str, object] = {"color": colour, "marker": MARKERS[index % len(MARKERS)]}
    if dash[0] is not None:
        style["dashes"] = dash
    return style


# Fills of stacked segments: each neighbour lighter or darker, and hatched, so that they are told apart in grey.
_FILLS = (
    ("#0072b2", ""), ("#f0e442", ""), ("#d55e00", "//"), ("#9ad0f5", ""), ("#009e73", "\\\\"), ("#f3b6d3", ".."), ("#8c6d31", ""), ("#e3e6e9", ""),
)  # fmt: skip


def fills(count: int) -> list[dict[str, object]]:
    """Colour, hatch and edge of the segments of a stack; at most eight."""
    return [{"facecolor": colour, "hatch": hatch, "edgecolor": "white"} for colour, hatch in _FILLS[:count]]


def tidy(axes: Axes, grid: str = "y") -> None:
    """Remove the box, keep a light grid along one axis."""
    sns.despine(ax=axes)
    axes.grid(visible=True, axis=grid)  # type: ignore[arg-type]


def empty(figure: Figure, reason: str) -> None:
    """Fill a figure that has nothing to show with the reason."""
    axes = figure.subplots()
    axes.set_axis_off()
    axes.text(0.5, 0.5, reason, ha="center", va="center", wrap=True, color=MUTED, transform=axes.transAxes)


def save(figure: Figure, svg: Path, png: Path, source: str | None = None) -> None:
    """Write both files; no date, no version, ids from a fixed salt. The PNG has a white ground, the SVG none.

    ``source`` goes into the metadata: what the figure was drawn from.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Source": source})
    write_bytes(svg, buffer.getvalue())
    figure.set_layout_engine("none")  # the places just found are kept
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white", metadata={"Software": None} | ({"Source": source} if source else {}))
    write_bytes(png, buffer.getvalue())
    plt.close(figure)
