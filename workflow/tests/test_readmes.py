"""What the READMEs say holds: the example kernel works, the tables match the registries, the lock file covers the project."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml
from projects import QUICK
from transpose_study.analysis.judge import TABLES as JUDGED
from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.gpu import toolchain
from transpose_study.gpu.compile import build_kernels
from transpose_study.paths import RunPaths
from transpose_study.progress import Log
from transpose_study.records import read_json
from transpose_study.registry import Cell, Study
from transpose_study.simt import ptx
from transpose_study.simt.blocks import count_memory, run_grid
from transpose_study.simt.machine import Launch, Program
from transpose_study.simt.memory import place

ROOT = Path(__file__).parents[2]
TRANSPOSE = ROOT / "kernels" / "transpose"
STUDY = Study(TRANSPOSE / "variants.yaml")
LOCKS = {"cuda13": "requirements.lock", "cuda12": "requirements-cuda12.lock"}


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def blocks(path: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text(path), re.M | re.S)


def table(path: str, heading: str, after: str = "") -> list[list[str]]:
    """The rows of the first table below ``after`` whose header begins with ``heading``, as lists of cells."""
    lines = text(path).partition(after)[2].splitlines() if after else text(path).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def launch_of(study: Study, name: str, values: dict[str, int], rows: int, cols: int) -> Launch:
    geometry = study.geometry(Cell(study.variant(name), values, {"rows": rows, "cols": cols}))
    return Launch(geometry.grid, geometry.block, (*place([("in", rows * cols * 4), ("out", rows * cols * 4)]), rows, cols))


def program_of(study: Study, folder: Path, name: str, values: dict[str, int]) -> Program:
    """The kernel compiled by the real nvcc; ``name`` with ``values`` must be one that its preconditions allow."""
    kernels = [k for k in study.kernels(study.variant(name), {a: [v] for a, v in values.items()}) if dict(k.values) == values]
    paths = RunPaths(folder)
    assert build_kernels(study, kernels, paths, "90", flags=[], toolchain=toolchain.find(), log=Log()) == 0
    return Program(ptx.parse(paths.kernel("90", study.kernel_name(kernels[0]), "ptx").read_text())[name])


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """The registry with the example of kernels/README.md added as it says."""
    folder = tmp_path_factory.mktemp("study") / "transpose"
    shutil.copytree(TRANSPOSE, folder)
    (source,), (entry,) = blocks("kernels/README.md", "cuda"), blocks("kernels/README.md", "yaml")
    (folder / "tiled_wide.cu").write_text(source)
    with (folder / "variants.yaml").open("a") as registry:
        registry.write(entry)
    return Study(folder / "variants.yaml")


def test_the_example_kernel_transposes_without_conflicts(extended, tmp_path):
    values = {"block_rows": 8}
    program = program_of(extended, tmp_path, "tiled_wide", values)
    for rows, cols in [(1, 1), (1, 200), (200, 1), (31, 33), (100, 130)]:
        launch = launch_of(extended, "tiled_wide", values, rows, cols)
        matrix = np.arange(rows * cols, dtype=np.uint32).reshape(rows, cols)
        source, target = launch.arguments[:2]
        for buffer, data in ((source, matrix), (target, np.full(rows * cols, 0xA5A5A5A5, np.uint32))):
            raw = data.reshape(-1).view(np.uint8)
            buffer.data = np.concatenate([raw, np.zeros(-len(raw) % 16, np.uint8)])
        run_grid(program, launch, lambda batch: [], lambda *_: None, tracked=True)
        assert (target.data[: target.size].view(np.uint32) == matrix.T.reshape(-1)).all(), (rows, cols)
    totals = count_memory(program, launch_of(extended, "tiled_wide", values, 128, 128)).totals
    assert totals["global_load_sectors"] == totals["global_store_sectors"] == 128 * 128 * 4 // 32  # every byte once
    assert totals["shared_load_conflicts"] == totals["shared_store_conflicts"] == 0


def test_the_example_preconditions_skip_the_cell_they_name(extended, tmp_path):
    kernels = extended.kernels(extended.variant("tiled_wide"), {"block_rows": [16, 32]})
    paths = RunPaths(tmp_path)
    assert build_kernels(extended, kernels, paths, "90", flags=[], toolchain=toolchain.find(), log=Log()) == 0
    records = [read_json(paths.kernel("90", f"tiled_wide_b{b}", "json")) for b in (16, 32)]
    assert [r["status"] for r in records] == ["ok", "skipped"]
    assert records[1]["reason"] == "a block has at most 1024 threads"


@pytest.mark.parametrize(("place", "heading"), [((), "## Keys of a registry"), (("variants", "copy"), "## Keys of a variant")])
def test_every_key_is_explained_and_no_other(place, heading, tmp_path):
    """The reader of registries names all keys it knows when it refuses one that resembles none."""
    registry = yaml.safe_load((TRANSPOSE / "variants.yaml").read_text(encoding="utf-8"))
    entry = registry
    for key in place:
        entry = entry[key]
    entry["zzzz"] = 1
    (tmp_path / "variants.yaml").write_text(yaml.safe_dump(registry))
    shutil.copy(TRANSPOSE / "copy.cu", tmp_path)
    with pytest.raises(StudyError, match="known: ") as refusal:
        Study(tmp_path / "variants.yaml")
    known = set(str(refusal.value).split("known: ")[1].split("\n")[0].split(", "))
    explained = {name for row in table("kernels/README.md", "key", after=heading) for name in re.findall(r"`(\w+)`", row[0])}
    assert explained == known


def ladder() -> list[list[str]]:
    return table("kernels/transpose/README.md", "variant")


def test_the_ladder_table_has_every_variant_in_the_registry_order():
    assert [row[0].strip("`") for row in ladder()] == list(STUDY.variants)


@pytest.mark.parametrize("row", [r for r in ladder() if r[0] != "`memcpy`"], ids=lambda r: r[0].strip("`"))
def test_the_ladder_table_counts_follow_from_the_code(row, tmp_path):
    """Sectors and wavefronts a request of the compiled kernel, counted by the SIMT machine at 4096 x 4096."""
    name = row[0].strip("`")
    values = {"block_rows": 8} if STUDY.variant(name).takes else {}
    totals = count_memory(program_of(STUDY, tmp_path, name, values), launch_of(STUDY, name, values, 4096, 4096)).totals
    load, store = (totals[f"global_{w}_sectors"] / totals[f"global_{w}_requests"] for w in ("load", "store"))
    assert row[2] == f"{load:g} / {store:g}"
    if row[3] == "–":
        assert not totals.get("shared_load_instructions", 0)
    else:
        shared = {w: totals[f"shared_{w}_wavefronts"] / totals[f"shared_{w}_instructions"] for w in ("store", "load")}
        assert row[3] == f"{shared['store']:g} / {shared['load']:g}"


@pytest.mark.parametrize(("cuda", "lock"), LOCKS.items())
def test_the_lock_file_covers_the_project(cuda, lock):
    """Every requirement of pyproject.toml stands in the lock with an exact version and hashes, and no place to fetch it from."""
    project = tomllib.loads(text("pyproject.toml"))
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *extras["nvcc"], *extras[cuda], *extras["test"], *project["dependency-groups"]["build"]]
    locked = text(f"workflow/envs/{lock}")
    pinned = set(re.findall(r"^([a-z0-9-]+)==\S+", locked, re.M))
    for requirement in wanted:
        name = re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")
        assert name in pinned, requirement
        exact = re.search(r"==([\d.]+)$", requirement)
        assert not exact or f"\n{name}=={exact[1]} " in f"\n{locked}"
    entries = re.split(r"^(?=[a-z0-9])", locked, flags=re.M)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in locked
    assert len({"cupy-cuda13x", "cupy-cuda12x"} & pinned) == 1


def test_a_repeated_pin_is_told_apart_by_the_python_version():
    """pip refuses a file that pins one package twice for the same Python."""
    for lock in LOCKS.values():
        names = re.findall(r"^([a-z0-9-]+)==\S+( ; python_full_version)?", text(f"workflow/envs/{lock}"), re.M)
        repeated = {n for n, _ in names if [m for m, _ in names].count(n) > 1}
        assert all(marker for name, marker in names if name in repeated)


def test_every_table_of_a_run_is_described_and_no_other():
    config = yaml.safe_load(text("config/config.yaml")) | yaml.safe_load(text("config/quick.yaml"))
    experiment = Experiment.from_snakemake(config | {"device": f"archive:{QUICK.relative_to(ROOT)}", "run": "readme"}, ROOT)
    described = re.findall(r"`tables/(\w+)\.csv`", text("README.md"))
    assert sorted(described) == sorted([*experiment.tables(), *JUDGED])


@pytest.mark.parametrize("path", ["README.md", "kernels/README.md", "kernels/transpose/README.md"])
def test_every_link_leads_to_a_file_of_the_project(path):
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text(path)) if "://" not in link]
    assert [link for link in links if not (ROOT / path).parent.joinpath(link).exists()] == []


def test_ci_runs_the_test_command_of_the_readme(tmp_path):
    """In a folder where installing and Python only print how they were called, so that the tests do not run themselves."""
    for name in (".ci/run", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("workflow/envs/install.sh", ".venv/bin/python"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$*"\n')
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(["bash", ".ci/run"], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    (command,) = [line for block in blocks("README.md", "bash") for line in block.splitlines() if "pytest" in line]
    assert done.stdout.splitlines() == [f"+ {command}", "workflow/envs/install.sh ", ".venv/bin/python -m pytest -m not gpu"]
