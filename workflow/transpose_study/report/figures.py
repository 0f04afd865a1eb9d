"""Which figures a study has (``paper/<study>.figures.yaml``), and drawing them all from tidy tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transpose_study import parallel
from transpose_study.errors import StudyError, nearest
from transpose_study.experiment import Experiment
from transpose_study.progress import Log
from transpose_study.provenance import source_of
from transpose_study.records import read_text, read_yaml
from transpose_study.report import fonts
from transpose_study.report.texts import ENGLISH, Language, Part, Text

if TYPE_CHECKING:
    from transpose_study.report.values import Results


@dataclass(frozen=True)
class Drawing:
    """What a chart is drawn from: a run's figures, the language of its labels, and its options in the figures' file."""

    results: Results
    language: Language
    options: dict[str, Any]

    def words(self, template: str, **values: Part) -> str:
        """A label in the chart's language."""
        return self.language.render(Text(template, **values), traced=False)


def figure_file(study: str, root: Path = Path()) -> Path:
    """Where a study declares its figures."""
    return root / "paper" / f"{study}.figures.yaml"


def declared_figures(study: str, root: Path = Path()) -> dict[str, dict[str, Any]]:
    """The options of each figure by its name, in the order of the file."""
    path = figure_file(study, root)
    data = read_yaml(path)
    if not isinstance(data, dict) or not all(isinstance(v, dict) and "kind" in v for v in data.values()):
        raise StudyError("each figure must be a mapping that has a kind", where=str(path))
    return data


def figure_names(study: str, root: Path = Path()) -> list[str]:
    """Names of a study's figures, without suffix."""
    return list(declared_figures(study, root))


def figure_suffixes(languages: Sequence[str], kinds: Sequence[str] = ("svg", "png")) -> list[str]:
    """Suffixes of each figure's files: ``svg``, ``zh.svg``; always English, and the languages that a font can set."""
    return [f"{'' if c == ENGLISH else c + '.'}{k}" for c in _drawn(languages) if fonts.available(c) for k in kinds]


def _drawn(languages: Sequence[str]) -> list[str]:
    """English, which ``snakemake --report`` shows too, and the languages of the write-up."""
    return list(dict.fromkeys([ENGLISH, *languages]))


def caption_of(name: str, root: Path = Path()) -> str:
    """The caption of a figure: the text that ``snakemake --report`` shows too."""
    return " ".join(read_text(root / "workflow" / "report" / f"{name}.rst").split())


def draw(experiment: Experiment, log: Log | None = None) -> None:
    """Draw every figure of the study in every language into ``figures/*.svg`` and ``*.png``."""
    from transpose_study.report import charts, style  # matplotlib takes a second to load: only where something is drawn
    from transpose_study.report.values import Results

    study, root = experiment.study.name, experiment.root
    results = Results(experiment)
    source = source_of(results.table("timings"))
    path, declared = figure_file(study, root), declared_figures(study, root)
    wanted: list[tuple[str, str]] = []
    for code in _drawn(experiment.config.paper.language):
        if not fonts.available(code):
            if log:
                log.note(f"no figures in {code}: {fonts.MISSING} ({fonts.HINT})")
            continue
        wanted += [(name, code) for name in declared]
    for name, options in declared.items():
        if options["kind"] not in charts.KINDS:
            raise StudyError(f"unknown kind {options['kind']!r}; {nearest(str(options['kind']), charts.KINDS)}", where=f"{path}, {name}")
    languages = {code: Language.of(code, study, root) for code in dict.fromkeys(c for _, c in wanted)}

    def draw_one(figure: tuple[str, str]) -> None:
        name, code = figure
        style.use(code)
        options, language = declared[name], languages[code]
        svg, png = (experiment.paths.figure(name, f"{language.suffix}{k}") for k in ("svg", "png"))
        style.save(charts.KINDS[options["kind"]](Drawing(results, language, options)), svg, png, source)

    for (name, code), _ in zip(wanted, parallel.each(draw_one, wanted), strict=True):
        if log:
            log.note(f"drew {name}, {code}")
