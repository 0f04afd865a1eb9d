"""A finished run and its archive of the present schema, made once from the run that was recorded on an NVIDIA H200."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from archive_run import RUN, Members, experiment_of, members_of
from projects import QUICK, Project, copy_project
from transpose_study.archive.pack import manifest_bytes, order, pack
from transpose_study.archive.writer import from_bytes, write_container
from transpose_study.container import MANIFEST, Container
from transpose_study.experiment import Experiment
from transpose_study.records import sha256_bytes

RAW = ("run_config.yaml", "environment.json", "raw/", "build/", "logs/journal.jsonl")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that holds the recorded run, everything after its raw data made by the present program."""
    project = copy_project(tmp_path_factory.mktemp("finished"))
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        source = Path(__file__).resolve().parents[3] / name
        if source.is_file():
            shutil.copy(source, project.path(name))
    container = Container(QUICK)
    for name in container.names:
        if name.startswith(RAW):
            container.extract(name, project.path(RUN) / name)
    path = project.path(RUN) / "run_config.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["config"]["report"]["formats"] = ["html", "md"]
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    settings = Experiment.from_run(project.path(RUN), project.root).predict_settings()
    for stage in (["predict", "--settings", settings], ["aggregate"], ["judge"], ["draw"], ["write"]):
        done = project.command(stage[0], "--run", RUN, *stage[1:])
        assert done.returncode == 0, done.stdout
    return project


@pytest.fixture
def mine(finished: Project, tmp_path: Path) -> Project:
    """A copy of the finished run for one test."""
    return finished.copy(tmp_path)


@pytest.fixture(scope="session")
def archive(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its archive."""
    return pack(experiment_of(finished), tmp_path_factory.mktemp("archive") / "a.crate.zip")


@pytest.fixture
def forged(archive: Path, tmp_path: Path) -> Callable[[Callable[[Members], None]], Path]:
    """``forged(change)``: the archive with members changed by someone who mends every hash and writes the container anew."""

    def forged(change: Callable[[Members], None]) -> Path:
        members = members_of(archive)
        change(members)
        manifest = json.loads(members.pop(MANIFEST))
        graph = json.loads(members["ro-crate-metadata.json"])
        for entity in graph["@graph"]:
            if entity["@id"] in members and "sha256" in entity:
                entity |= {"sha256": sha256_bytes(members[entity["@id"]]), "contentSize": str(len(members[entity["@id"]]))}
        members["ro-crate-metadata.json"] = (json.dumps(graph, indent=1, ensure_ascii=False) + "\n").encode()
        manifest["files"] = {name: sha256_bytes(data) for name, data in sorted(members.items())}
        members[MANIFEST] = manifest_bytes(manifest)
        path = tmp_path / "forged.crate.zip"
        write_container(path, [(n, len(members[n]), from_bytes(members[n])) for n in order(manifest["files"])])
        return path

    return forged
