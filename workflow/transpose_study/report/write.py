"""The report: executes the write-up once on one run's tables and turns it into the configured languages and formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.progress import Log
from transpose_study.records import write_bytes, write_text
from transpose_study.report import fonts
from transpose_study.report.texts import ENGLISH, Language, Message, text
from transpose_study.report.values import LANGUAGES_VARIABLE, ROOT_VARIABLE, RUN_VARIABLE

PAGES = ("html", "pdf", "md")  # formats of every edition; the notebook is written in English only


def source_of(study: str, root: Path = Path()) -> Path:
    """The write-up's source."""
    return root / "paper" / f"{study}.py"


def sources_of(study: str, languages: Sequence[str], root: Path = Path()) -> list[Path]:
    """Everything a study's write-up is made from: its source and the catalogues of its languages."""
    return [source_of(study, root), *(root / "paper" / f"{study}.{c}.yaml" for c in languages if c != ENGLISH)]


def report_suffixes(formats: Sequence[str], languages: Sequence[str]) -> list[str]:
    """Suffixes of the files that :func:`write` makes: ``html``, ``zh.html``; what no font can set is left out."""
    suffixes = []
    for code in languages:
        own = "" if code == ENGLISH else f"{code}."
        suffixes += [f"{own}{f}" for f in formats if (f in PAGES or code == ENGLISH) and (f != "pdf" or fonts.available(code))]
    return suffixes


def write(experiment: Experiment, formats: Sequence[str] | None = None, log: Log | None = None) -> None:
    """Write ``report/<study>.*`` in ``formats`` (by default the configured ones) from ``tables/`` and ``figures/``.

    Other languages than English carry theirs in the name: ``report/<study>.zh.html``. Raises
    :class:`transpose_study.errors.StudyError` where a cell of the write-up fails, or a format's tool is missing.
    """
    from transpose_study.report import convert, notebook  # Jupyter takes a second to load: only where something is written

    formats = list(formats or experiment.config.report.formats)
    study, paths, codes = experiment.study.name, experiment.paths, list(experiment.config.paper.language)
    where = {
        RUN_VARIABLE: str(paths.folder.resolve()),
        ROOT_VARIABLE: str(experiment.root.resolve()),
        LANGUAGES_VARIABLE: ",".join(codes),
    }
    executed = notebook.execute(source_of(study, experiment.root), folder=experiment.root, environment=where)
    for code in codes:
        language = Language.of(code, study, experiment.root)
        try:
            markdown, linked = (notebook.as_markdown(executed, language, linked=x) for x in (False, True))
        except KeyError as error:
            raise StudyError(error.args[0], where=str(source_of(study, experiment.root))) from None
        unset = "pdf" in formats and not fonts.available(code)
        if unset:
            markdown, linked = (f"{m}\n*{language.render(_without_pdf())}*\n" for m in (markdown, linked))
        for kind in formats:
            target = paths.report(study, f"{language.suffix}{kind}")
            if kind == "ipynb":
                if code == ENGLISH:
                    write_text(target, notebook.as_text(executed))
            elif kind == "md":
                write_text(target, markdown)
            elif kind == "html":
                write_text(target, convert.to_html(linked, figures=paths.folder / "figures", language=language))
            elif unset:
                if log:
                    log.note(f"{target} is not written: {fonts.MISSING} ({fonts.HINT})")
                continue
            else:
                pdf = convert.to_pdf(linked, figures=paths.folder / "figures", language=language, running_head=str(experiment.gpu["name"]))
                write_bytes(target, pdf)
            if log and (kind != "ipynb" or code == ENGLISH):
                log.note(f"wrote {target}")


def _without_pdf() -> object:
    return text("This edition has no PDF: {why} ({hint}).", why=Message(fonts.MISSING), hint=fonts.HINT)
