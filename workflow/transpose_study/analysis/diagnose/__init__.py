"""What limits one kernel: facts out of a run's tidy tables, thresholds with their reasons, a verdict, one page."""

from transpose_study.analysis.diagnose.advice import unread
from transpose_study.analysis.diagnose.facts import Fact, Facts, facts_of, find_row
from transpose_study.analysis.diagnose.page import page
from transpose_study.analysis.diagnose.verdict import Verdict, judge

__all__ = ["Fact", "Facts", "Verdict", "facts_of", "find_row", "judge", "page", "unread"]
