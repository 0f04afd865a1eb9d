"""The four formats and the figures: whole, self-contained, the same bytes from the same tables wherever they are made."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from synthetic import ROOT, base_config
from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.progress import Log
from transpose_study.records import sha256_file
from transpose_study.report import draw, figure_names, figure_suffixes, notebook, report_suffixes, write
from transpose_study.report.convert import to_html

Make = Callable[..., Experiment]
SHOWN = [n for n in figure_names("transpose", ROOT) if n not in ("predicted_and_measured", "banks_of_the_tile")]  # no predictions here
BUILD = (
    "import sys; from pathlib import Path; from transpose_study.experiment import Experiment; from transpose_study.report import draw, write; "
    "e = Experiment.from_run(Path(sys.argv[1]), Path(sys.argv[2])); draw(e); write(e)"
)


@pytest.fixture(scope="module")
def built(plain: Experiment) -> Experiment:
    draw(plain)
    write(plain)
    return plain


def report_of(experiment: Experiment, suffix: str) -> Path:
    return experiment.paths.report("transpose", suffix)


def made(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): sha256_file(p) for d in ("figures", "report") for p in sorted((folder / d).iterdir())}


def test_every_format_and_figure_is_there(built: Experiment) -> None:
    names = set(made(built.paths.folder))
    assert names == {f"report/transpose.{s}" for s in ("html", "pdf", "md", "ipynb", "zh.html", "zh.pdf", "zh.md")} | {
        f"figures/{n}.{s}" for n in figure_names("transpose", ROOT) for s in ("svg", "png", "zh.svg", "zh.png")
    }
    assert names == {f"report/transpose.{s}" for s in report_suffixes(built.config.report.formats, built.config.paper.language)} | {
        f"figures/{n}.{s}" for n in figure_names("transpose", ROOT) for s in figure_suffixes(built.config.paper.language)
    }


def test_equal_tables_give_equal_bytes_elsewhere(built: Experiment, tmp_path: Path) -> None:
    """Another folder with spaces, another home, time zone, locale with a decimal comma, hash seed, working folder."""
    folder = tmp_path / "a run with spaces" / "transpose"
    folder.mkdir(parents=True)
    shutil.copytree(built.paths.folder / "tables", folder / "tables")
    for name in ("run_config.yaml", "environment.json"):
        shutil.copy(built.paths.folder / name, folder / name)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "HOME": str(tmp_path / "nobody"), "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}
    environment |= {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "MPLCONFIGDIR": str(tmp_path / "mpl"), "SOURCE_DATE_EPOCH": "99"}
    subprocess.run([sys.executable, "-c", BUILD, str(folder), str(ROOT)], check=True, env=environment, cwd=tmp_path, timeout=300)
    assert made(folder) == made(built.paths.folder)


@pytest.mark.parametrize("suffix", ["html", "zh.html"])
def test_html_is_self_contained_and_whole(built: Experiment, suffix: str) -> None:
    page = report_of(built, suffix).read_text(encoding="utf-8")
    assert len(page) < 4 * 2**20
    assert not re.search(r'(?:src|href)="(?!#)|url\((?!#)|@import', page)
    assert page.count("<svg ") == len(SHOWN)
    assert "<math" in page and "prefers-color-scheme: dark" in page and 'name="viewport"' in page
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))
    targets = re.findall(r'href="#([^"]+)"', page)
    assert targets and set(targets) <= set(names)
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(names)
    assert page.count('<div class="table"') == page.count("<table") > 10
    first = page.index("<h1>")
    assert ("Live run" if suffix == "html" else "实机运行") in page[first : first + 600]
    assert len(re.findall(r'<span class="v" title="tables/[^"]+">[^<]+</span>', page)) > 50  # figures tell where they come from
    assert not re.search("[\ue000-\uf8ff]", page)  # no mark is left over


@pytest.mark.parametrize("suffix", ["pdf", "zh.pdf"])
def test_pdf_has_pages_no_date_and_embedded_fonts(built: Experiment, suffix: str) -> None:
    data = report_of(built, suffix).read_bytes()
    assert data.startswith(b"%PDF-") and b"%%EOF" in data[-32:]
    assert b"/CreationDate" not in data and b"/ModDate" not in data
    assert str(built.paths.folder).encode() not in data


@pytest.mark.parametrize("suffix", ["md", "zh.md"])
def test_markdown_links_figures_beside_it(built: Experiment, suffix: str) -> None:
    text = report_of(built, suffix).read_text(encoding="utf-8")
    assert not re.search("[\ue000-\uf8ff]", text)
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) == len(SHOWN)
    assert all(link.endswith(".zh.svg") == (suffix == "zh.md") for link in links)
    assert all((report_of(built, "md").parent / link).resolve().is_file() for link in links)
    widths = {}
    for line in text.splitlines():
        if line.startswith("|"):
            widths.setdefault("run", set()).add(len(re.findall(r"(?<!\\)\|", line)))
        else:
            assert len(widths.pop("run", {0})) == 1  # every row of a table has as many fields as its head


def test_notebook_is_valid_and_names_no_place(built: Experiment) -> None:
    text = report_of(built, "ipynb").read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert [c.id for c in notebook.cells] == [f"cell-{i:03d}" for i in range(len(notebook.cells))]
    assert all(c.metadata == {} for c in notebook.cells)
    assert not re.search("[\ue000-\uf8ff]", text) and "实机运行" not in text
    assert str(built.paths.folder) not in text and str(ROOT) not in text and str(Path.home()) not in text
    assert json.loads(text)["metadata"]["language_info"].get("version") is None


def test_figures_carry_no_date_and_no_text_that_needs_a_font(built: Experiment) -> None:
    for name in figure_names("transpose", ROOT):
        svg = built.paths.figure(name).read_text(encoding="utf-8")
        assert "<dc:date>" not in svg and "<text" not in svg
        assert b"Software" not in built.paths.figure(name, "png").read_bytes()[:200]


def test_only_configured_formats_are_written(make: Make) -> None:
    experiment = make("one", config=base_config(report={"formats": ["md"]}))
    write(experiment)
    assert sorted(p.name for p in (experiment.paths.folder / "report").iterdir()) == ["transpose.md", "transpose.zh.md"]


def test_only_configured_languages_are_written(make: Make) -> None:
    experiment = make("chinese", config=base_config(paper={"language": ["zh"]}))
    write(experiment, ["md", "ipynb"])
    assert sorted(p.name for p in (experiment.paths.folder / "report").iterdir()) == ["transpose.zh.md"]


def test_without_a_chinese_font_its_pdf_and_figures_are_left_out_with_the_reason(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("transpose_study.report.fonts.chinese", lambda: None)
    experiment = make("fontless")
    draw(experiment, Log())
    write(experiment, ["md", "html", "pdf"], Log())
    names = {p.name for d in ("figures", "report") for p in (experiment.paths.folder / d).iterdir()}
    assert "transpose.pdf" in names and "transpose.zh.md" in names and "transpose.zh.html" in names
    assert "transpose.zh.pdf" not in names and not any(n.endswith((".zh.svg", ".zh.png")) for n in names)
    assert report_suffixes(["html", "pdf"], ["en", "zh"]) == ["html", "pdf", "zh.html"] and figure_suffixes(["en", "zh"]) == ["svg", "png"]
    text = report_of(experiment, "zh.md").read_text(encoding="utf-8")
    assert "本版没有 PDF：没有安装含中文字形的字体" in text and "../figures/bandwidth_ladder.svg" in text


@pytest.mark.parametrize(("module", "package", "suffix"), [("typst", "typst", "pdf"), ("pypandoc", "pypandoc_binary", "html")])
def test_a_missing_tool_is_named(built: Experiment, monkeypatch: pytest.MonkeyPatch, module: str, package: str, suffix: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(StudyError, match=f"pip install {package}"):
        write(built, [suffix])


def test_a_failing_cell_is_named(tmp_path: Path) -> None:
    source = tmp_path / "broken.py"
    source.write_text("# %%\nx = 1\n\n# %%\nx / 0\n", encoding="utf-8")
    with pytest.raises(StudyError, match=r"broken\.py, cell-001 \(x / 0\): a cell of the write-up fails: ZeroDivisionError"):
        notebook.execute(source, folder=tmp_path, environment={})


def test_an_unknown_kind_of_figure_names_the_nearest(plain: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transpose_study.report.figures.declared_figures", lambda *_: {"one": {"kind": "ladders"}})
    with pytest.raises(StudyError, match="did you mean 'ladder'"):
        draw(plain)


def test_figures_without_counters_give_the_reason(make: Make) -> None:
    experiment = make("denied_figures", no_value={"*": "no permission"})
    draw(experiment)
    assert all(experiment.paths.figure(n).is_file() for n in figure_names("transpose", ROOT))


@pytest.mark.parametrize("suffix", ["html", "zh.html"])
def test_title_and_abstract_come_before_the_contents(built: Experiment, suffix: str) -> None:
    page = report_of(built, suffix).read_text(encoding="utf-8")
    body = page[page.index("<body>") :]
    headings = [h for h in re.finditer(r"<h2[^>]*>(.*?)</h2>", body, re.DOTALL)]
    places = [body.index(x) for x in ("<h1>", "<blockquote>", headings[0][0], '<nav id="contents"', headings[1][0])]
    assert places == sorted(places) and body.count("<nav") == 1
    assert not headings[0][1].strip()[0].isdigit() and headings[1][1].strip().startswith("1 ")


def test_contents_of_a_page_without_numbered_sections(tmp_path: Path) -> None:
    page = to_html("# Title\n\nWhat is compared.\n\n## Times\n\nSome.\n\n## Counters\n\nMore.\n", figures=tmp_path)
    places = [page.index(x) for x in ("<h1>", "What is compared.", "<nav", "Some.", "More.")]
    assert places == sorted(places)
