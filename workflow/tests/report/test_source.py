"""The write-up's source holds no measurement, and its other editions translate all of it with the same places and digits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic import ROOT
from transpose_study.errors import StudyError
from transpose_study.report import figure_names
from transpose_study.report.figures import caption_of, declared_figures
from transpose_study.report.texts import GENERAL, read_catalogue

SOURCES = sorted((ROOT / "paper").glob("*.py"))
CATALOGUES = [GENERAL / "zh.yaml", *sorted((ROOT / "paper").glob("*.zh.yaml"))]

# Names that contain digits: kernels, array shapes, caches, types, the level of confidence of every interval.
NAMES = r"32x32|32x8|tile\[32\]\[3[23]\]|L1TEX|float4|(?<![A-Za-z])L[12](?!\d)|float32|sm_\{|95 %"
KEY = re.compile(r"[\w.%{}-]*")  # a column, a quantity, a kernel: no prose
# Literals of the code: powers and factors for units, lanes and bytes of a sector, thresholds of words, indices, headings.
LITERALS = {0, 1, 2, 3, 4, 6, 20, 32, 100, 0.01, 0.05, 0.2, 1e6}
WORDS = {
    "title", "label", "line_label", "slope", "proportional", "legend_title", "unit", "across_label", "down_label", "axis_label", "joined_label",
    "loose_label",
}  # fmt: skip
LABELLED = {"titles", "variants", "quantities"}  # keys of a figure under which every value, or every key, is a label
PLACES = r"\{(?:\w+(?::\w)?)?\}"
CODE = re.compile(r"`[^`]*`(?:, `[^`]*`)*|[A-Z0-9]+|YYYY-MM-DD|tables/\S+: .*|copy|has no|driver chose|a bound")  # names, origins, parts of notes


def prose(tree: ast.AST) -> Iterator[str]:
    """Strings that a reader will see, docstrings left out."""
    documented = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.FunctionDef | ast.ClassDef) and n.body]
    skipped = {id(n.body[0].value) for n in documented if isinstance(n.body[0], ast.Expr)}
    skipped |= {id(v) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for v in n.values}
    for n in ast.walk(tree):
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in skipped and not KEY.fullmatch(n.value):
            yield n.value


def paragraphs(path: Path) -> Iterator[str]:
    """Paragraphs of the Markdown cells, without the marks of headings."""
    lines: list[str] = []
    inside = False
    for line in [*path.read_text(encoding="utf-8").splitlines(), "# %%"]:
        if line.startswith("# %%"):
            yield from (b.lstrip("#").strip() for b in "\n".join(lines).split("\n\n") if b.strip())
            inside, lines = "[markdown]" in line, []
        elif inside:
            lines.append(line[1:].removeprefix(" "))


def even(text: str) -> str:
    return " ".join(text.split())


def pairs(path: Path) -> list[dict[str, str]]:
    return read_catalogue(path, "zh")


def translated(study: str) -> set[str]:
    """The texts of the general catalogue and of a study's own."""
    return {even(p["en"]) for path in (GENERAL / "zh.yaml", ROOT / "paper" / f"{study}.zh.yaml") for p in pairs(path)}


def labels(options: Any) -> Iterator[str]:
    """The words of a figure's options that a reader sees."""
    for key, value in options.items() if isinstance(options, dict) else ():
        if isinstance(value, str):
            yield from [value] if key in WORDS else []
        elif key in LABELLED and isinstance(value, dict):
            for label in value.values() if options.get("kind") != "waits" else value:
                yield from [label] if isinstance(label, str) else labels(label)
        elif isinstance(value, dict):
            yield from labels(value)
        elif isinstance(value, list):
            for entry in value:
                yield from labels(entry)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_prose_has_no_digits(path: Path) -> None:
    found = [*prose(ast.parse(path.read_text(encoding="utf-8"))), *paragraphs(path)]
    assert len(found) > 100
    bad = [t for t in found if re.search(r"\d", re.sub(f"{NAMES}|{PLACES}", "", re.sub(r"^[\d.]+ ", "", t)))]
    assert not bad


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_code_has_no_measured_literal(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    numbers = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, int | float) and not isinstance(n.value, bool)}
    assert numbers <= LITERALS


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda p: p.name)
def test_both_sides_of_a_translation_have_the_same_places_and_digits_in_order(path: Path) -> None:
    def sequence(text: str) -> list[str]:
        return [] if "frac" in text else re.findall(rf"{PLACES}|\d+(?:[.,]\d+)*", re.sub(r"(?<![A-Za-z])L[12]|32x32|32x8", "", text))

    assert [p for p in pairs(path) if sequence(p["en"]) != sequence(p["zh"])] == []


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda p: p.name)
def test_no_text_is_translated_twice(path: Path) -> None:
    texts = [p["en"] for p in pairs(path)]
    assert sorted(set(texts)) == sorted(texts)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_every_text_of_the_write_up_is_translated(path: Path) -> None:
    found = {even(t) for t in (*prose(ast.parse(path.read_text(encoding="utf-8"))), *paragraphs(path))}
    words = {t for t in found if re.search("[A-Za-z]{2}", re.sub(PLACES, "", t)) and not CODE.fullmatch(t)}
    assert {t for t in words - translated(path.stem) if " " in t or t[:1].isupper()} == set()


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_every_figure_has_a_caption_and_labels_which_are_translated(path: Path) -> None:
    text, known = path.read_text(encoding="utf-8"), translated(path.stem)
    for name, options in declared_figures(path.stem, ROOT).items():
        assert caption_of(name, ROOT) in known
        assert f'page.figure("{name}")' in text
        assert {t for t in labels(options) if re.search("[A-Za-z]{2}", re.sub(f"{PLACES}|BLOCK_ROWS", "", t))} - known == set()
    assert {p.stem for p in (ROOT / "workflow" / "report").glob("*.rst")} >= set(figure_names(path.stem, ROOT))


def test_a_catalogue_without_pairs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "zh.yaml"
    path.write_text("- {en: one, de: eins}\n", encoding="utf-8")
    with pytest.raises(StudyError, match="is no pair of texts in en and zh"):
        read_catalogue(path, "zh")
