"""Archives of another study than transpose: other axis names, an archive that names the study, the same commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from archive_run import members_of
from projects import QUICK, ROOT, Project, copy_project
from transpose_study.archive import contents
from transpose_study.archive.verify import verify
from transpose_study.comparison.compare import compare
from transpose_study.config import parse
from transpose_study.container import Container
from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.provenance import Provenance
from transpose_study.records import read_csv, read_yaml
from transpose_study.registry import Study
from transpose_study.target import find_target

OTHER, RUN = "other", "results/nvidia-h200/other"
RENAMED = {"rows": "height", "cols": "width"}
PAPER = """# %%
from transpose_study.report import sections
from transpose_study.report.page import Page

page = Page.open()
page.heading(1, page.results.study.title)
sections.hot_and_cold(page)
page.figure("bandwidth_ladder")
"""


def renamed(text: str) -> str:
    return re.sub(r"\b(rows|cols)\b", lambda m: RENAMED[m[0]], text)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The recorded run as if it were one of a study with axes of other names: everything after its raw data is made anew."""
    project = copy_project(tmp_path_factory.mktemp("other"))
    kernels = project.path("kernels/transpose").rename(project.path(f"kernels/{OTHER}"))
    registry = kernels / "variants.yaml"
    registry.write_text(renamed(registry.read_text(encoding="utf-8")).replace("study: transpose", f"study: {OTHER}"), encoding="utf-8")
    for path in project.path("paper").iterdir():
        path.unlink()
    project.path(f"paper/{OTHER}.py").write_text(PAPER, encoding="utf-8")
    project.path(f"paper/{OTHER}.figures.yaml").write_text("bandwidth_ladder: {kind: ladder}\n", encoding="utf-8")
    for name, data in members_of(QUICK).items():
        path = project.path(RUN) / name
        if not name.startswith(("run_config", "environment", "raw/", "build/", "logs/journal")):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        head, end, rest = data.partition(b"\n")
        path.write_bytes(renamed(head.decode()).encode() + end + rest if name.endswith(".csv") else data)
    path = project.path(RUN) / "run_config.yaml"
    data = yaml.safe_load(renamed(path.read_text(encoding="utf-8")))
    data["config"] |= {"study": OTHER, "paper": {"language": ["en"]}}
    data["config"]["report"] |= {"formats": ["html", "md"], "published": None}
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    settings = Experiment.from_run(project.path(RUN), project.root).predict_settings()
    for stage in (["predict", "--settings", settings], ["aggregate"], ["judge"], ["draw"], ["write"]):
        done = project.command(stage[0], "--run", RUN, *stage[1:])
        assert done.returncode == 0, done.stdout
    return project


@pytest.fixture(scope="module")
def archive(other: Project) -> Path:
    """Its archive, by the command and under the name that the command gives it."""
    done = other.command("archive", "--run", RUN)
    assert done.returncode == 0, done.stdout
    (path,) = (p for p in other.path("results/archive").glob("*.crate.zip") if p.name != QUICK.name)
    return path


def test_the_file_s_name_tells_the_study(other: Project) -> None:
    assert contents.default_name("NVIDIA H200", "transpose", "2026-01-02") == "nvidia-h200-2026-01-02.crate.zip"
    assert contents.default_name("NVIDIA H200", "micro", "2026-01-02") == "nvidia-h200-micro-2026-01-02.crate.zip"


def test_packed_verified_and_held_together(other: Project, archive: Path) -> None:
    container = Container(archive)
    assert container.manifest["study"] == OTHER
    assert archive.name == f"nvidia-h200-{OTHER}-{container.manifest['measured'][:10]}.crate.zip"
    assert {f"report/{OTHER}.html", f"sources/kernels/{OTHER}/variants.yaml", f"sources/paper/{OTHER}.py"} <= set(container.names)
    assert {"height", "width"} <= set(read_csv(other.path(RUN) / "tables" / "timings.csv")[0])
    found = {f.name: (f.outcome, f.said) for f in verify(archive, trust=True, skip=["kernels"])}
    assert {n: o for n, (o, _) in found.items() if o != "agrees"} == {}, found
    status = other.command("status", "--run", RUN)
    assert status.returncode == 0, status.stdout


def test_compared_with_itself(other: Project, archive: Path) -> None:
    folder, comparison = compare([str(archive), RUN], root=other.root)
    assert comparison.columns == ["variant", "height", "width", "dtype", "block_rows"]
    assert {r["verdict"] for r in read_csv(folder / "tables" / "verdicts.csv")} == {"same"}
    assert "Cells at 4096 x 4096" in (folder / "report" / "comparison.md").read_text(encoding="utf-8")


def test_runs_of_different_studies_are_told_apart(other: Project, archive: Path) -> None:
    with pytest.raises(StudyError, match=r"they are runs of different studies: .* of other, .* of transpose"):
        compare([str(archive), str(QUICK)], root=other.root)
    folder = other.path("results/several")
    for name in ("one", "two"):
        (folder / name).mkdir(parents=True)
        (folder / name / "run_config.yaml").write_text("")
    with pytest.raises(StudyError, match=r"holds runs of several studies\n  hint: name one: .*several/one, .*several/two"):
        compare([str(archive), "results/several"], root=other.root)


def test_a_replay_of_the_wrong_study_says_so(other: Project, archive: Path) -> None:
    other.configure(study=OTHER, shapes=[{"height": 4096, "width": 4096}], replay=f"results/archive/{QUICK.name}", report=None, run="wrong")
    said = other.snakemake("all", "-n", ok=False)
    assert f"{QUICK.name} holds a run of the study transpose, and {OTHER} is configured" in said
    assert "key study" in said and f"name an archive of {OTHER} in the key replay" in said
    assert "--configfile" not in said  # no file here is about the transpose


@pytest.mark.parametrize(("configured", "file"), [("config.yaml", "micro.yaml"), ("micro.yaml", "config.yaml")])
def test_a_replay_of_another_study_names_its_configuration(configured: str, file: str) -> None:
    archive = read_yaml(ROOT / "config" / file)["replay"]
    config = parse(read_yaml(ROOT / "config" / configured) | {"device": f"archive:{archive}"})
    with pytest.raises(StudyError, match=f"to rebuild this one, add --configfile config/{file}$"):
        find_target(config, ROOT)


def test_rerun_without_a_gpu_names_the_study_s_configuration(other: Project, archive: Path) -> None:
    done = other.command("rerun", str(archive))
    assert done.returncode == 2 and f"all --configfile config/{OTHER}.yaml --config device=archive:{archive}" in done.stdout


def test_a_run_time_axis_does_not_hide_the_cubin() -> None:
    """A row's cubin is that of its kernel, which the axes that select no code do not name."""
    study = Study(Path(__file__).resolve().parents[3] / "kernels" / "micro" / "variants.yaml")
    provenance = Provenance.__new__(Provenance)
    provenance._study, provenance._cubins = study, {"bank_load_w4": "0123456789abcdef"}
    provenance.run_id = provenance.configuration_digest = "x"
    assert provenance.stamp({"variant": "bank_load", "width": "4", "stride": "3"})["cubin_digest"] == "0123456789ab"
    assert provenance.stamp({"cell": "bank_load, width 4, stride 3; bank_load, width 8, stride 3"})["cubin_digest"] == "0123456789ab"
