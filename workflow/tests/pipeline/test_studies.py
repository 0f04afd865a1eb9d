"""Several studies in one workflow: all of them, one by its name, another's configuration by itself, and mistakes in naming them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from live_run import STANDIN
from projects import ROOT, Project, copy_project
from transpose_study.registry import Study

CONFIG = yaml.safe_load((ROOT / "config/micro.yaml").read_text(encoding="utf-8"))
MICRO = CONFIG["replay"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project of both studies; the second one's archive is the shipped one."""
    made = copy_project(tmp_path)
    os.link(ROOT / MICRO, made.path(MICRO))
    made.configure(also=["config/micro.yaml"], device="auto")
    return made


NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


def test_all_makes_every_study_and_a_study_s_name_that_one(project: Project) -> None:
    everything = {job[0] for job in project.plan(env=NO_GPU)}
    assert {"aggregate", "aggregate_micro", "write", "write_micro", "build_tiled", "build_bank_load_micro"} <= everything
    only = project.snakemake("micro", "-n", env=NO_GPU)
    assert "aggregate_micro" in only and "build_tiled" not in only and "results/mine/micro" in only


def test_a_file_of_another_study_stands_by_itself(project: Project) -> None:
    """Snakemake would merge the axes of both, and neither study knows the other's."""
    jobs = project.plan("--configfile", "config/micro.yaml", env=NO_GPU)
    assert ("aggregate",) in jobs and ("build_bank_load",) in jobs and not any("tiled" in job[0] for job in jobs)


def test_what_kernels_observe_is_read_where_one_of_them_observes(project: Project) -> None:
    """Elsewhere a job would take two seconds to write nothing."""
    jobs = project.plan("--configfile", "config/micro.yaml", env=STANDIN | {"TRANSPOSE_STUDY_STANDIN": str(ROOT / MICRO)})
    study = Study(ROOT / "kernels/micro/variants.yaml")
    observing = {g["experiment"] for g in CONFIG["shapes"] if any(study.variant(v).observes for v in g["variants"])}
    assert {j[1] for j in jobs if j[0] == "profile_group" and j[2] == "kernel"} == observing
    assert {j[1] for j in jobs if j[0] == "profile_group" and j[2] == "brief"} == {g["experiment"] for g in CONFIG["shapes"]} > observing


def test_a_named_archive_is_rebuilt_alone(project: Project) -> None:
    """It holds one study, and says nothing of the device of another."""
    project.configure(device=f"archive:{yaml.safe_load(project.path('config/config.yaml').read_text())['replay']}")
    assert not any("micro" in word for job in project.plan() for word in job)


@pytest.mark.parametrize(
    ("also", "words"),
    [
        (["config/macro.yaml"], "config/macro.yaml: cannot read this file"),
        (["config/config.yaml"], "config/config.yaml: is an experiment of the study transpose, which is run already"),
        (["config/claims.yaml"], "unknown key 'claims'"),
    ],
)
def test_mistakes_in_naming_a_study(project: Project, also: list[str], words: str) -> None:
    project.configure(also=also)
    said = project.snakemake("-n", "all", env=NO_GPU, ok=False)
    assert words in said and "Traceback" not in said
