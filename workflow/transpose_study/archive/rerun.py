"""``rerun``: the experiment of an archive once more, with its configuration and kernels, on the GPU of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

import transpose_study
from transpose_study import config as configuration
from transpose_study.archive import contents
from transpose_study.container import Container
from transpose_study.device import Device, choose, slug, visible_devices
from transpose_study.differences import differences
from transpose_study.environment import REPEATS, facts_here
from transpose_study.errors import StudyError
from transpose_study.progress import Log
from transpose_study.records import read_json, read_yaml, write_json, write_yaml

FOLDER = Path("results") / "rerun"
OWN = ("Snakefile", "workflow/rules", "workflow/report", "profiles", "paper")  # what belongs to the program rather than to the experiment


def rerun(path: Path, log: Log, *, configfile: Path | None = None, installed: bool = False) -> Path:
    """Measure an archive's experiment here and return the new results folder, which names the archive it repeats.

    The work folder ``results/rerun/<archive>/`` becomes a project of its own, made of the archive's sources; the same
    command goes on where an interrupted one stopped. ``configfile`` replaces the archive's configuration, ``installed`` its
    program. Raises :class:`StudyError` without a GPU, and where the work folder holds something else.
    """
    container = Container(path)
    devices = visible_devices()
    if not devices:
        raise StudyError(
            "no NVIDIA device is here, and rerun measures",
            where=str(path),
            hint=f"rebuild its report with snakemake --cores 1 all {_own_file(container)}--config device=archive:{path}, "
            f"or check it with transpose-study verify {path}",
        )
    settings = _configuration(container, configfile)
    device = choose(settings["device"], devices)
    work = FOLDER / path.name.removesuffix(".zip").removesuffix(".crate")
    _lay_out(container, work, installed=installed)
    write_yaml(work / "config" / "config.yaml", settings)
    for line in _told(container.read_json("environment.json"), device, settings):
        log.say(line)
    log.say(f"measuring in {work}; the same command goes on after an interruption")
    own = (work / contents.PROGRAM).is_dir()
    search = str((work / contents.PROGRAM).parent.resolve() if own else Path(transpose_study.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in (search, os.environ.get("PYTHONPATH", "")) if p)}
    done = subprocess.run([sys.executable, "-m", "snakemake", "--cores", "1", "all", "--rerun-incomplete"], cwd=work, env=environment, check=False)
    run = work / "results" / (settings["run"] or slug(device.name)) / settings["study"]
    if done.returncode:
        raise StudyError(
            f"the rerun stopped with status {done.returncode}", where=str(work), hint="mend what is said above, then run the same command again"
        )
    made = read_json(run / "environment.json")
    for line in _listed("measured with other things than the archive:", differences([container.read_json("environment.json"), made])):
        log.say(line)
    log.say(f"the new results: {run}")
    log.say(f"side by side: snakemake --cores 1 compare --config 'compare=[{path}, {run}]'")
    return run


def _own_file(container: Container) -> str:
    """The option that names the configuration of the archive's study, "" for the first study's, which is the default."""
    study = container.manifest.get("study", contents.FIRST_STUDY)
    return "" if study == contents.FIRST_STUDY else f"--configfile config/{study}.yaml "


def _configuration(container: Container, configfile: Path | None) -> dict[str, Any]:
    """The archive's resolved configuration, or that of ``configfile``, for the device that is here."""
    if configfile:
        data, where = read_yaml(configfile), str(configfile)
        if not isinstance(data, dict):
            raise StudyError("holds no keys", where=where)
        data = data.get("config", data) if "target" in data else data  # a run_config.yaml holds the configuration under a key
        data = {"device": "auto", **data}
    else:
        data, where = dict(yaml.safe_load(container.read("run_config.yaml"))["config"]), f"{container.path}, run_config.yaml"
        data |= {"device": "auto", "run": None}
    return configuration.parse(data | {"replay": None, "compare": None}, where=where).model_dump(mode="json")


def _lay_out(container: Container, work: Path, *, installed: bool) -> None:
    """Make the work folder a project of the archive's sources; one of another archive is left alone."""
    marker = work / REPEATS
    if work.exists() and (not marker.is_file() or read_json(marker).get("sha256") != container.sha256):
        away = f"move it away: mv {work} {work}.old"
        raise StudyError("this folder holds something else than a rerun of this archive", where=str(work), hint=away)
    write_json(marker, {"archive": container.path.name, "sha256": container.sha256, "measured": container.manifest.get("measured")})
    prefix = f"{contents.SOURCES}/"
    inside = any(n.startswith(f"{prefix}{contents.PROGRAM}/") for n in container.names) and not installed
    for name in container.names:
        target = name.removeprefix(prefix)
        if not name.startswith(prefix) or (not inside and target.startswith((contents.PROGRAM + "/", *OWN))):
            continue
        container.extract(name, work / target)
    if not inside:
        own = Path(transpose_study.__file__).parents[2]
        for name in OWN:
            source, target = own / name, work / name
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copyfile(source, target)
        for source in (p for p in (own / "config").rglob("*") if p.is_file()):  # what an older archive did not have yet
            target = work / source.relative_to(own)
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)


def _told(archived: dict[str, Any], device: Device, settings: dict[str, Any]) -> list[str]:
    here = facts_here(device, settings["build"])
    return _listed("this machine differs from the archive's:", differences([archived, here]))


def _listed(title: str, found: dict[str, list[str]]) -> list[str]:
    return [title, *(f"  {name}: {old} there, {new} here" for name, (old, new) in found.items())] if found else []
