"""Which figures a study has (``paper/<study>.figures.yaml``), and drawing them all from tidy tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transpose_study.errors import StudyError, nearest
from transpose_study.experiment import Experiment
from transpose_study.progress import Log
from transpose_study.provenance import source_of
from transpose_study.records import read_text, read_yaml


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


def caption_of(name: str, root: Path = Path()) -> str:
    """The caption of a figure: the text that ``snakemake --report`` shows too."""
    return " ".join(read_text(root / "workflow" / "report" / f"{name}.rst").split())


def draw(experiment: Experiment, log: Log | None = None) -> None:
    """Draw every figure of the study into ``figures/*.svg`` and ``*.png``."""
    from transpose_study.report import charts, style  # matplotlib takes a second to load: only where something is drawn
    from transpose_study.report.values import Results

    style.use()
    results = Results(experiment)
    source = source_of(results.table("timings"))
    path = figure_file(experiment.study.name, experiment.root)
    for name, options in declared_figures(experiment.study.name, experiment.root).items():
        if options["kind"] not in charts.KINDS:
            raise StudyError(f"unknown kind {options['kind']!r}; {nearest(str(options['kind']), charts.KINDS)}", where=f"{path}, {name}")
        figure = charts.KINDS[options["kind"]](results, options)
        style.save(figure, experiment.paths.figure(name, "svg"), experiment.paths.figure(name, "png"), source)
        if log:
            log.note(f"drew {name}")
