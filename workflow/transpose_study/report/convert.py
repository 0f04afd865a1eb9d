"""From the report's Markdown to HTML and PDF with pandoc and Typst; nothing is fetched, nothing depends on the machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from transpose_study.errors import StudyError
from transpose_study.records import read_text
from transpose_study.report import fonts, marks
from transpose_study.report.palette import GRID, INK, MUTED
from transpose_study.report.texts import ENGLISH, Language

TEMPLATES = Path(__file__).parent / "templates"
TAGS = {"en": "en", "zh": "zh-CN"}  # a browser chooses its font by the tag

# GitHub's Markdown, the dialect of the report; captions come from a filter, since it has no syntax for them. The wide
# line length keeps pandoc from giving long pipe tables a fixed width.
_PANDOC = ("--from=gfm+tex_math_dollars", "--columns=100000", "--wrap=none")


def to_html(markdown: str, *, figures: Path, language: Language = Language(ENGLISH)) -> str:  # noqa: B008 - never changed
    """One self-contained page: style, MathML and the SVG figures of the folder ``figures`` inside.

    The contents stand behind title and abstract, which is what comes before the first numbered section (before the first
    section where none is numbered).
    """
    variables = {"style": read_text(TEMPLATES / "page.css"), "lang": TAGS[language.code], "contents-title": language.template("Contents")}
    page = _pandoc(markdown, "html5", "page.html", variables, "--mathml", "--toc", "--toc-depth=4")
    page = _contents_after_abstract(page)
    picture = r'<img src="\.\./figures/([\w.-]+)\.svg" alt="([^"]*)" ?/>'
    page = re.sub(picture, lambda m: _inline_svg(figures, m[1], m[2]), page)
    page = re.sub(r'<table id="([^"]*)">\s*<caption>(.*?)</caption>(.*?)</table>', _scrolling_table, page, flags=re.DOTALL)
    return marks.titled(page)


def _contents_after_abstract(page: str) -> str:
    before, contents, after = re.split(r"(<nav id=.*?</nav>\n)", page, maxsplit=1, flags=re.DOTALL)
    start = re.search(r"<h2[^>]*>\s*\d", before) or re.search(r"<h2[ >]", before)
    place = start.start() if start else len(before)
    return before[:place] + contents + before[place:] + after


def _scrolling_table(found: re.Match[str]) -> str:
    """A table that scrolls by itself where the window is narrower, under a caption that does not."""
    name, caption, rows = found.groups()
    rows = re.sub(r"<td( [^>]*)?>(.*?)</td>", _sized_cell, rows, flags=re.DOTALL)
    head = f'<figure class="tabular" id="{name}">\n<figcaption>{caption}</figcaption>'
    return f'{head}\n<div class="table" tabindex="0"><table>{rows}</table></div>\n</figure>'


def _sized_cell(found: re.Match[str]) -> str:
    """A field that is kept on one line where it is short, and given room where it is long; a Chinese character counts twice."""
    plain = re.sub(r"<[^>]*>", "", found[2])
    width = sum(2 if ord(c) > 0x2E7F else 1 for c in plain)
    size = ' class="short"' if width <= 22 else ' class="long"' if width > 60 else ""
    return f"<td{size}{found[1] or ''}>{found[2]}</td>"


def to_pdf(markdown: str, *, figures: Path, language: Language, running_head: str = "") -> bytes:
    """The typeset report. Fonts are the ones inside Typst, and for Chinese the ones found; the document carries no date."""
    typst = _import_typst()
    own = fonts.chinese() if language.code == "zh" else None
    variables = {"lang": language.code, "runninghead": running_head, "contents-title": language.template("Contents")}
    if own:
        variables |= {"serif": own.serif, "sans": own.sans}
    document = _pandoc(marks.untraced(markdown), "typst", "paper.typ", variables, "--shift-heading-level-by=-1")
    with tempfile.TemporaryDirectory(prefix="transpose-study-") as scratch:
        root = Path(scratch)
        (root / "report").mkdir()
        (root / "figures").mkdir()
        for name in sorted(set(re.findall(r'image\("\.\./figures/([\w.-]+)"', document))):
            shutil.copyfile(figures / name, root / "figures" / name)
        source = root / "report" / "report.typ"
        source.write_text(document, encoding="utf-8", newline="\n")
        try:
            return typst.compile(
                str(source),
                root=str(root),
                format="pdf",
                ignore_system_fonts=True,
                font_paths=[str(f) for f in own.folders] if own else [],
                timestamp=0,
            )
        except typst.TypstError as error:
            raise StudyError(f"Typst refuses the report: {error.message}", where=_typst_place(error, document)) from None


def _pandoc(markdown: str, to: str, template: str, variables: Mapping[str, str], *options: str) -> str:
    try:
        import pypandoc

        program = pypandoc.get_pandoc_path()
    except (ImportError, OSError):
        raise _missing("pandoc", "pypandoc_binary") from None
    title, _, body = markdown.partition("\n")  # the first line is the document's title
    values = {"pagetitle": title.removeprefix("# "), "title": title.removeprefix("# "), **variables}
    arguments = [program, *_PANDOC, f"--to={to}", f"--template={TEMPLATES / template}", f"--lua-filter={TEMPLATES / 'captions.lua'}"]
    arguments += [f"--variable={k}={v}" for k, v in values.items()]
    done = subprocess.run([*arguments, *options], input=body.encode(), capture_output=True, check=False)
    if done.returncode:
        raise StudyError(f"pandoc refuses the report: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode()


def _import_typst():  # noqa: ANN202 - a module
    try:
        import typst
    except ImportError:
        raise _missing("Typst", "typst") from None
    return typst


def _missing(program: str, package: str) -> StudyError:
    return StudyError(
        f"{program} is not installed, and a configured format of the report needs it",
        where="configuration, key report.formats",
        hint=f"pip install {package}, or leave that format out of report.formats",
    )


def _typst_place(error: Exception, document: str) -> str:
    found = re.search(r"report\.typ:(\d+)", str(getattr(error, "diagnostic", "")))
    return document.splitlines()[int(found[1]) - 1].strip()[:120] if found else ""


def _inline_svg(figures: Path, name: str, alternative: str) -> str:
    """The figure as an element of the page: ids made unique, the style's greys as variables that follow the colour scheme."""
    svg = read_text(figures / f"{name}.svg")
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'((?:xlink:)?href="#|url\(#)', rf"\g<1>{name}-", svg)
    for colour, variable in ((INK, "--ink"), (MUTED, "--muted"), (GRID, "--rule")):
        svg = svg.replace(colour, f"var({variable})")
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", svg, count=1)
    svg = re.sub(r'<svg ([^>]*?)height="[^"]*"', r"<svg \1", svg, count=1)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{alternative}" ', 1)
    return f'<div class="plot" tabindex="0">{svg}</div>'
