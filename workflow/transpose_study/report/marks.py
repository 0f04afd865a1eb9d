"""Marks in the report's Markdown that no reader sees: where a figure comes from, and references to tables and figures.

They are private-use characters, which every tool on the way passes on unchanged. A trace is kept for the HTML page, where
it becomes what a pointer shows over the figure; a reference becomes the number of the table or figure it means.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

TRACE, TRACED, TRACE_END = "\ue000", "\ue001", "\ue002"  # origin in hexadecimal between the first two, the figure after
LABEL, REFERENCE, NAME_END = "\ue010", "\ue011", "\ue012"
KINDS = {"table": "Table", "figure": "Figure"}

_TRACE = re.compile(f"{TRACE}([0-9a-f]*){TRACED}(.*?){TRACE_END}", re.DOTALL)
_LABEL = re.compile(f"{LABEL}(\\w+:\\w+)=(\\d+){NAME_END}")
_REFERENCE = re.compile(f"{REFERENCE}(\\w+):(\\w+){NAME_END}")


def trace(figure: str, origin: str) -> str:
    """The figure with its origin."""
    return f"{TRACE}{origin.encode().hex()}{TRACED}{figure}{TRACE_END}"


def untraced(markdown: str) -> str:
    """Without traces."""
    return _TRACE.sub(r"\2", markdown)


def titled(page: str) -> str:
    """An HTML page whose traces are what a pointer shows over the figures."""

    def span(found: re.Match[str]) -> str:
        return f'<span class="v" title="{html.escape(bytes.fromhex(found[1]).decode())}">{found[2]}</span>'

    return _TRACE.sub(span, page)


def label(kind: str, name: str, number: int) -> str:
    """Marks where the table or figure of a name stands."""
    return f"{LABEL}{kind}:{name}={number}{NAME_END}" if name else ""


def reference(kind: str, name: str) -> str:
    """Means the table or figure of a name."""
    return f"{REFERENCE}{kind}:{name}{NAME_END}"


def labels(markdown: str) -> dict[str, str]:
    """Numbers of all tables and figures that have a name, by ``kind:name``."""
    return dict(_LABEL.findall(markdown))


def resolved(markdown: str, numbers: Mapping[str, str], words: Mapping[str, str], *, linked: bool = False) -> str:
    """Without labels, and with "Table 3" (a link, if wanted) for each reference; ``words`` translate the kinds."""

    def put(found: re.Match[str]) -> str:
        number = numbers.get(f"{found[1]}:{found[2]}")
        if number is None:
            raise KeyError(f"the write-up refers to a {found[1]} {found[2]!r} that it does not have")
        shown = f"{words[found[1]]}\u00a0{number}"
        return f"[{shown}](#{found[1]}-{number})" if linked else shown

    return _REFERENCE.sub(put, _LABEL.sub("", markdown))
