"""Figures and write-up, made from tidy tables alone."""

from transpose_study.report.figures import draw, figure_names, figure_suffixes
from transpose_study.report.write import report_suffixes, sources_of, write

__all__ = ["draw", "figure_names", "figure_suffixes", "report_suffixes", "sources_of", "write"]
