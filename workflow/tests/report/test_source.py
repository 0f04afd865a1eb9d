"""The write-up's source holds no measurement: only structure, names, and figures of the hardware model it explains."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from synthetic import ROOT
from transpose_study.report import figure_names

SOURCES = sorted((ROOT / "paper").glob("*.py"))

# Names that contain digits: kernels, array shapes, caches, types, axis values of the study's own kernels in a key.
NAMES = r"32x32|32x8|tile\[32\]\[3[23]\]|L1TEX|\bL[12]\b|float32|sm_\{"
KEY = re.compile(r"[\w.%{}-]*")  # a column, a quantity, a kernel: no prose
# Literals of the code: powers and factors for units, lanes and bytes of a sector, thresholds of words, indices.
LITERALS = {0, 1, 2, 10, 20, 32, 80, 100, 0.01, 0.2, 1e6}


def prose(tree: ast.AST) -> list[str]:
    return [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and not KEY.fullmatch(n.value)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_prose_has_no_digits(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bad = [t for t in prose(tree) if re.search(r"\d", re.sub(NAMES, "", re.sub(r"^#+ [\d.]+ ", "", t)))]
    assert not bad


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_markdown_cells_have_no_digits(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    cells, inside = [], False
    for line in lines:
        if line.startswith("# %%"):
            inside = "[markdown]" in line
        elif inside and line.startswith("#"):
            cells.append(line[1:].strip())
    assert cells
    bad = [t for t in cells if re.search(r"\d", re.sub(NAMES, "", re.sub(r"^#+ [\d.]+ ", "", t)))]
    assert not bad


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_code_has_no_measured_literal(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    numbers = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, int | float) and not isinstance(n.value, bool)}
    assert numbers <= LITERALS


def test_every_figure_has_a_caption_and_every_caption_a_figure() -> None:
    captions = {p.stem for p in (ROOT / "workflow" / "report").glob("*.rst")}
    assert set(figure_names("transpose", ROOT)) <= captions
    text = (ROOT / "paper" / "transpose.py").read_text(encoding="utf-8")
    assert all(f'page.figure("{n}")' in text for n in figure_names("transpose", ROOT))
