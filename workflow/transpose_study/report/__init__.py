"""Figures and write-up, made from tidy tables alone."""

from transpose_study.report.figures import draw, figure_names
from transpose_study.report.write import write

__all__ = ["draw", "figure_names", "write"]
