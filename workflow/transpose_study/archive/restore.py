"""Raw data out of an archive into a results folder, for a replay."""

from __future__ import annotations

from pathlib import Path

from transpose_study.container import Container
from transpose_study.experiment import Experiment
from transpose_study.progress import Log
from transpose_study.records import write_bytes, write_json


def restore(experiment: Experiment, archive: Path, log: Log) -> None:
    """Write the raw files of the configured groups; every member is compared with the manifest before it is written."""
    experiment.guard_folder()
    container = Container(archive)
    paths = experiment.paths
    wanted = ["raw/check.csv"]
    for group in experiment.groups:
        wanted.append(f"raw/timing/{group}.csv")
        if experiment.batch_names():
            wanted.append(f"raw/counters/{group}.csv")
    members = {name: container.read(name) for name in wanted}
    write_json(paths.identity, experiment.identity())
    for name, data in members.items():
        write_bytes(paths.folder / name, data)
    log.say(f"restored {len(members)} raw files from {archive}")
