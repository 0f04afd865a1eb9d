"""Where ``diagnose`` finds the tables of a kernel: a results folder, an archive, or a measurement made now."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transpose_study import config as configuration
from transpose_study.analysis.diagnose.facts import TABLES
from transpose_study.cli.groups import configuration_of, group_named
from transpose_study.config import Config
from transpose_study.container import Container
from transpose_study.errors import StudyError
from transpose_study.measured_code import other_code
from transpose_study.metrics import study_metrics
from transpose_study.paths import RunPaths
from transpose_study.progress import Log
from transpose_study.records import read_csv, read_json, read_yaml, write_yaml
from transpose_study.registry import Study, Variant

EDITED = "; the kernel or its launch was edited since, --measure measures what it is now"
Tables = tuple[Path, str]  # a folder that holds run_config.yaml and the tables, and where they are from in words


def recorded(study: Study, variant: Variant, run: Path | None) -> contextlib.AbstractContextManager[Tables]:
    """The tables of the run that is named; else of the newest run of the study that holds the variant, else of the replay archive."""
    if run is not None:
        return _archived(study, variant, run) if run.is_file() else _folder(study, variant, run)
    found = [p.parent.parent for p in sorted(Path("results").glob(f"*/{study.name}/tables/timings.csv")) if _complete(p.parent.parent)]
    held = [f for f in found if any(r["variant"] == variant.name for r in read_csv(RunPaths(f).table("timings"), ["variant"]))]
    if held:
        return _folder(study, variant, max(held, key=_end))
    archive = _replay(study)
    if archive is None:
        raise StudyError(f"no run of the study {study.name} holds {variant.name}, and no archive is configured for it", hint=_command(study))
    return _archived(study, variant, archive)


def _complete(folder: Path) -> bool:
    paths = RunPaths(folder)
    return paths.run_config.is_file() and all(paths.table(t).is_file() for t in TABLES)


def _end(folder: Path) -> tuple[str, str]:
    """When the run ended, as its environment says."""
    environment = RunPaths(folder).environment
    data = read_json(environment) if environment.is_file() else {}
    return str(data.get("end", "") if isinstance(data, dict) else ""), str(folder)


def _replay(study: Study) -> Path | None:
    name = configuration_of(study)[1].get("replay")
    return Path(name) if isinstance(name, str) else None


def _command(study: Study) -> str:
    path, _ = configuration_of(study)
    main = Path("config") / "config.yaml"
    also = read_yaml(main).get("also") or () if main.is_file() else ()
    file = f" --configfile {path}" if path and path != main and str(path) not in also else ""
    return f"snakemake --cores 1 {study.name}{file} makes a run; --measure measures one kernel, on a GPU"


@contextlib.contextmanager
def _folder(study: Study, variant: Variant, folder: Path) -> Iterator[Tables]:
    paths = RunPaths(folder)
    missing = [p for p in (paths.run_config, *(paths.table(t) for t in TABLES)) if not p.is_file()]
    if missing:
        raise StudyError(f"has no {missing[0].relative_to(folder)}", where=str(folder), hint=_command(study))
    _same_study(study, folder, str(folder))
    records = [read_json(p) for p in folder.glob(f"build/sm_*/{variant.name}*.json")]
    own = [r.get("code_digest") for r in records if isinstance(r, dict) and r.get("variant") == variant.name]
    yield folder, str(folder) + EDITED * any(digest != study.code_digest(variant) for digest in own)


@contextlib.contextmanager
def _archived(study: Study, variant: Variant, archive: Path) -> Iterator[Tables]:
    container = Container(archive)
    with tempfile.TemporaryDirectory(prefix="transpose-study-") as scratch:
        folder = Path(scratch)
        for name in ("run_config.yaml", *(f"tables/{t}.csv" for t in TABLES)):
            if name not in container.names:
                raise StudyError(f"has no {name}", where=str(archive), hint=_command(study))
            container.extract(name, folder / name)
        try:
            _same_study(study, folder, str(archive))
            yield folder, str(archive) + EDITED * (variant.name in other_code(study, container))
        except StudyError as error:  # the unpacked copy is gone by the time its name is read
            what, where, hint = (part.replace(f"{folder}{os.sep}", f"{archive}, ") for part in (error.what, error.where, error.hint))
            raise StudyError(what, where=where, hint=hint) from None


def _same_study(study: Study, folder: Path, where: str) -> None:
    data = read_yaml(RunPaths(folder).run_config)
    if not isinstance(data, dict) or not isinstance(data.get("config"), dict) or not isinstance(data.get("target"), dict):
        raise StudyError("has no resolved configuration", where=where, hint=_command(study))
    held = data["config"].get("study", "transpose")
    if held != study.name:
        raise StudyError(f"is a run of the study {held}, not of {study.name}", where=where, hint=f"add --study {held}, or name another run")


@contextlib.contextmanager
def measured(study: Study, variant: Variant, shape: str | None, values: Mapping[str, str], log: Log) -> Iterator[Tables]:
    """Measure one cell now, by the commands that the rules use, in a folder of its own below results/diagnose/; an older one is replaced."""
    from transpose_study.device import slug, visible_devices
    from transpose_study.experiment import Experiment
    from transpose_study.target import find_target

    group = group_named(study, variant, shape)
    for axis in variant.takes:
        if axis not in values:
            raise StudyError(f"{variant.name} takes the axis {axis}, which has no value", hint=f"give --{axis.replace('_', '-')} N")
        if not values[axis].isascii() or not values[axis].isdigit() or len(values[axis]) > 20:
            raise StudyError(f"is {values[axis]!r}, which is no whole number", where=f"--{axis.replace('_', '-')}")
    if not visible_devices():
        raise StudyError("no NVIDIA GPU is here, so nothing can be measured", where="--measure", hint="without --measure a recorded run is read")
    config = one_cell(study, variant, group, values)
    target = find_target(config, Path())
    name = "-".join([slug(str(target["gpu"]["name"])), variant.name, *(f"{a}{values[a]}" for a in variant.takes), study.group_name(group)])
    experiment = Experiment(config, Path(), target, Path("results") / "diagnose" / name / study.name)
    (cell,) = experiment.cells(study.group_name(group))
    refusal = study.cell_refusal(cell, int(target["gpu"]["memory_bytes"]))
    if refusal:
        raise StudyError(refusal, where=study.cell_name(cell))
    if experiment.paths.run_config.is_file():
        shutil.rmtree(experiment.paths.folder)
    write_yaml(experiment.paths.run_config, experiment.resolved())
    _stages(experiment, variant, log)
    yield experiment.paths.folder, f"measured now into {experiment.paths.folder}"


def one_cell(study: Study, variant: Variant, group: Mapping[str, Any], values: Mapping[str, str]) -> Config:
    """The experiment of one cell, with every metric batch of the study, also those that its runs leave out."""
    return configuration.parse(
        {
            "study": study.name,
            "shapes": [group],
            "axes": {a: [int(values[a])] for a in variant.takes},
            "variants": [variant.name],
            "timing": {"budget_s": 5},
            "profile": {"batches": list(study_metrics(Path(), study)), "launches": {}},
            "report": {"published": None},
        }
    )


def _stages(experiment: Any, variant: Variant, log: Log) -> None:
    """Every step from the compiler to the tables, each through its own command."""
    run, (group,), study = str(experiment.paths.folder), experiment.groups, experiment.study.name
    batches = experiment.batch_names(group)
    steps = [
        ["build", variant.name, "--settings", experiment.build_settings(variant)],
        ["build", "harness", "--settings", experiment.harness_settings()],
        ["predict", "--settings", experiment.predict_settings()],
        ["check", "--settings", experiment.check_settings(group)],
        ["merge-checks", "--study", study, "--groups", group],
        ["time", "--settings", experiment.time_settings(group)],
        *(["profile", "--settings", experiment.profile_settings(group, b)] for b in batches),
        ["merge-counters", "--study", study, "--groups", group, "--batches", *batches],
        ["describe", "--settings", experiment.environment_settings()],
        ["aggregate"],
    ]
    for name, *rest in steps:
        _step([name, *rest, "--run", run], log)


def _step(argv: list[str], log: Log) -> None:
    from transpose_study.cli import parser

    log.note(" ".join(argv))
    args = parser().parse_args(argv)
    if args.run_command(args, log):
        raise StudyError(f"the step {argv[0]} did not end well", where=" ".join(argv[:2]))
