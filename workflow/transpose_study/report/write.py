"""The report: executes the write-up on one run's tables and turns it into the configured formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transpose_study.experiment import Experiment
from transpose_study.progress import Log
from transpose_study.records import write_bytes, write_text
from transpose_study.report.values import ROOT_VARIABLE, RUN_VARIABLE


def source_of(study: str, root: Path = Path()) -> Path:
    """The write-up's source."""
    return root / "paper" / f"{study}.py"


def write(experiment: Experiment, formats: Sequence[str] | None = None, log: Log | None = None) -> None:
    """Write ``report/<study>.*`` in ``formats`` (by default the configured ones) from ``tables/`` and ``figures/``.

    Raises :class:`transpose_study.errors.StudyError` where a cell of the write-up fails, or a format's tool is missing.
    """
    from transpose_study.report import convert, notebook  # Jupyter takes a second to load: only where something is written

    formats = list(formats or experiment.config.report.formats)
    study, paths = experiment.study.name, experiment.paths
    where = {RUN_VARIABLE: str(paths.folder.resolve()), ROOT_VARIABLE: str(experiment.root.resolve())}
    executed = notebook.execute(source_of(study, experiment.root), folder=experiment.root, environment=where)
    markdown = notebook.as_markdown(executed)
    figures = paths.folder / "figures"
    for kind in formats:
        target = paths.report(study, kind)
        if kind == "ipynb":
            write_text(target, notebook.as_text(executed))
        elif kind == "md":
            write_text(target, markdown)
        elif kind == "html":
            write_text(target, convert.to_html(markdown, figures=figures))
        else:
            write_bytes(target, convert.to_pdf(markdown, figures=figures, running_head=str(experiment.gpu["name"])))
        if log:
            log.note(f"wrote {target}")
