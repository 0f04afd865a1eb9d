"""The real compiler: the ladder's published shape, what it refuses, and what is said where it is not there."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from projects import ROOT
from transpose_study.cli import main
from transpose_study.errors import StudyError
from transpose_study.gpu import toolchain
from transpose_study.gpu.compile import build_kernels, compile_source, ptxas_facts
from transpose_study.gpu.toolchain import Toolchain, find
from transpose_study.paths import RunPaths
from transpose_study.progress import Log
from transpose_study.registry import Study

STUDY = Study(ROOT / "kernels" / "transpose" / "variants.yaml")
SETTINGS: dict[str, Any] = {
    "study": "transpose", "architecture": "90", "toolchain": "auto", "flags": [], "driver_cuda": None, "axes": {}, "code": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def tools() -> Toolchain:
    return find()


def compiled(tools: Toolchain, variant: str, architecture: str, **values: int) -> tuple[dict[str, bytes], dict[str, int]]:
    """A kernel's files and ptxas's facts."""
    (kernel,) = STUDY.kernels(STUDY.variant(variant), {axis: [value] for axis, value in values.items()})
    source = kernel.variant.source
    assert source is not None
    made, output = compile_source(source, tools, architecture, [f"-D{m}={v}" for m, v in STUDY.macros(kernel).items()])
    assert made is not None, output
    return made, ptxas_facts(output)


def executed_instructions(sass: bytes) -> int:
    """Warp instructions of a warp that leaves at the kernel's end: all lines up to the last EXIT (behind it lie only padding)."""
    lines = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?);", sass.decode(), re.M)
    return 1 + max(i for i, line in enumerate(lines) if re.search(r"\bEXIT\b", line))


@pytest.mark.parametrize(
    ("variant", "values", "instructions", "registers"),
    [
        ("copy", {}, 16, None),
        ("tiled_padded", {"block_rows": 32}, 47, 18),
        ("tiled_padded_unchecked", {"block_rows": 8}, 76, None),
        ("tiled_padded", {"block_rows": 8}, None, 26),  # its 122 instructions a warp are of the study's own compiler
    ],
)
def test_ladder_is_the_published_study_s(
    tools: Toolchain, variant: str, values: dict[str, int], instructions: int | None, registers: int | None
) -> None:
    """By these figures, published for compute capability 12.0, one recognises the study's kernels (16.0 M instructions of
    524,288 warps and so on; its occupancy table has the registers)."""
    made, facts = compiled(tools, variant, "120", **values)
    if instructions is not None:
        assert executed_instructions(made["sass"]) == instructions
    if registers is not None:
        assert facts["registers"] == registers


def test_tile_takes_its_padding(tools: Toolchain) -> None:
    assert compiled(tools, "tiled_padded", "90", block_rows=32)[1]["shared_bytes"] == 32 * 33 * 4
    assert compiled(tools, "tiled", "90", block_rows=32)[1]["shared_bytes"] == 32 * 32 * 4


def test_bytes_do_not_depend_on_the_folder(tools: Toolchain, tmp_path: Path) -> None:
    elsewhere = tmp_path / "some where" / "else.cu"
    elsewhere.parent.mkdir()
    shutil.copy(ROOT / "kernels" / "transpose" / "copy.cu", elsewhere)
    made, _ = compile_source(elsewhere, tools, "90", ["-DBLOCK_SIZE=256"])
    assert made is not None and made["cubin"] == compiled(tools, "copy", "90")[0]["cubin"]


def test_zig_in_the_place_of_gcc_gives_the_same_machine_code(
    tools: Toolchain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where neither g++ nor clang++ is installed, the clang of the package ziglang preprocesses; device code is the same."""
    if tools.origin != "pip":
        pytest.skip("the system's nvcc is used, which comes with a system's compiler")
    pytest.importorskip("ziglang")
    expected = compiled(tools, "tiled_padded", "90", block_rows=8)[0]["cubin"]
    which = shutil.which
    monkeypatch.setattr(toolchain.shutil, "which", lambda name, **more: None if name in ("g++", "clang++") else which(name, **more))
    assert "clang++" in " ".join(toolchain.host_compiler_flags(tmp_path))
    assert compiled(tools, "tiled_padded", "90", block_rows=8)[0]["cubin"] == expected


def test_no_preprocessor_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(toolchain.shutil, "which", lambda name, **more: None)
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(StudyError, match="nvcc needs a C\\+\\+ preprocessor"):
        toolchain.host_compiler_flags(tmp_path)


def test_missing_nvcc_ends_the_command_in_one_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain.os, "access", lambda path, mode: False)
    code = main(["build", "copy", "--run", str(tmp_path / "run"), "--settings", json.dumps(SETTINGS | {"toolchain": "path"})])
    said = capsys.readouterr().err
    assert code == 2 and said.startswith("transpose-study build: PATH: nvcc was not found") and "pip install" in said
    assert "Traceback" not in said and not (tmp_path / "run").exists()


def test_missing_pip_toolchain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_pip_root", lambda: None)
    with pytest.raises(StudyError, match="pip packages: nvcc was not found"):
        find("pip")


def test_driver_older_than_every_compiler(monkeypatch: pytest.MonkeyPatch, tools: Toolchain) -> None:
    monkeypatch.setattr(toolchain, "_path", lambda: None)
    monkeypatch.setattr(toolchain, "_pip", lambda: tools)
    older = f"{tools.toolkit[0] - 1}.8"
    with pytest.raises(StudyError, match=f"the driver supports CUDA {older}, older than nvcc {re.escape(tools.version)}"):
        find("auto", older)
    assert find("auto", f"{tools.toolkit[0]}.0") == tools  # any driver of the same major version loads its cubins
    assert find("auto", f"{tools.toolkit[0] + 1}.0") == tools


def test_older_compiler_on_path_serves_an_older_driver(monkeypatch: pytest.MonkeyPatch, tools: Toolchain) -> None:
    older = Toolchain(tools.nvcc, tools.nvdisasm, "path", f"{tools.toolkit[0] - 1}.8.93", tools.environment)
    monkeypatch.setattr(toolchain, "_pip", lambda: tools)
    monkeypatch.setattr(toolchain, "_path", lambda: older)
    assert find("auto", f"{tools.toolkit[0] - 1}.8") is older
    assert find("auto", None) is tools  # in a replay nothing is loaded


def test_architecture_the_compiler_does_not_know(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    code = main(["build", "copy", "--run", str(tmp_path / "run"), "--settings", json.dumps(SETTINGS | {"architecture": "91"})])
    said = capsys.readouterr().err
    assert code == 2 and "does not know the architecture sm_91; did you mean '90'?" in said and "build.architecture" in said
    assert not list(tmp_path.rglob("*.json"))


def registry_with(tmp_path: Path, code: str) -> Study:
    """A registry whose kernel has this code, beside one that compiles."""
    (tmp_path / "mine.cu").write_text(code, encoding="utf-8")
    (tmp_path / "fine.cu").write_text('extern "C" __global__ void fine(float* x) { x[threadIdx.x] = 0; }\n', encoding="utf-8")
    (tmp_path / "variants.yaml").write_text(
        """study: mine
axes: {rows: {}, cols: {}}
group: {axes: [rows, cols], name: "{rows}x{cols}"}
elements: rows * cols
bytes: rows * cols
variants:
  mine: {source: mine.cu, block: [32], grid: [1]}
  fine: {source: fine.cu, block: [32], grid: [1]}
""",
        encoding="utf-8",
    )
    return Study(tmp_path / "variants.yaml")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ('extern "C" __global__ void mine(float* x)\n{\n    x[0] = y;\n}\n', r'mine\.cu\(3\): error: identifier "y" is undefined'),
        ("__global__ void mine(float* x) { x[0] = 1; }\n", r'mine\.cu has no extern "C" __global__ function mine; it has: _Z4minePf'),
        ('extern "C" __global__ void main_(float* x) { x[0] = 1; }\n', r"has no extern .* mine; it has: main_"),
        ("", r"it has: none"),
        (
            'extern "C" __global__ void mine(float* x)\n{\n    __shared__ float a[100000];\n    a[threadIdx.x] = x[0];\n    __syncthreads();\n'
            "    x[threadIdx.x] = a[31 - threadIdx.x];\n}\n",
            r"uses too much shared data",
        ),
    ],
    ids=["syntax", "mangled", "other name", "empty", "ptxas"],
)
def test_kernel_that_does_not_compile_leaves_the_others_alone(
    tools: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, words: str
) -> None:
    study = registry_with(tmp_path, code)
    paths = RunPaths(tmp_path / "run")
    kernels = [k for v in study.variants.values() for k in study.kernels(v, {})]
    assert build_kernels(study, kernels, paths, "90", flags=[], toolchain=tools, log=Log()) == 1
    failed = json.loads(paths.kernel("90", "mine", "json").read_text(encoding="utf-8"))
    assert failed["status"] == "failed" and re.search(words, failed["reason"]) and failed["cubin_sha256"] is None
    assert re.search(words, capsys.readouterr().err)
    assert not paths.kernel("90", "mine", "cubin").exists()
    assert json.loads(paths.kernel("90", "fine", "json").read_text(encoding="utf-8"))["status"] == "ok"


@pytest.mark.parametrize("how", ["beside", "below", "above", "far above", "absolute"])
def test_includes_are_compiled_wherever_they_lie_and_nothing_is_written_outside(
    tools: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The copies for the compiler stay in their scratch folder, however far above its source an include lies."""
    home, scratch = tmp_path / "a" / "b" / "c", tmp_path / "scratch"
    place = {"beside": "x.cuh", "below": "d/x.cuh", "above": "../x.cuh", "far above": "../../../x.cuh", "absolute": str(tmp_path / "x.cuh")}[how]
    (home / "d").mkdir(parents=True)
    scratch.mkdir()
    (home / place).write_text("#define VALUE 3.0f\n", encoding="utf-8")
    (home / "k.cu").write_text(f'#include "{place}"\nextern "C" __global__ void k(float* x) {{ x[0] = VALUE; }}\n', encoding="utf-8")
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    before = sorted(tmp_path.rglob("*"))
    made, output = compile_source(home / "k.cu", tools, "90", [])
    assert made is not None, output
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "words",  # as nvcc 13.0 and g++ 12 print them
    [
        "<built-in>: fatal error: when writing output to kernel.cpp1.ii: No space left on device",
        "nvcc fatal   : Could not open output file '/nonexistent/tmpxft_0000293a_0000000a'",
        "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
        "g++: fatal error: Killed signal terminated program cc1plus",
    ],
)
def test_compiler_that_is_stopped_gives_no_verdict_on_the_kernel(tools: Toolchain, tmp_path: Path, words: str) -> None:
    """A full disk is no property of a kernel: nothing may be recorded that a later run would take for a result."""
    stopped = tmp_path / "nvcc"
    stopped.write_text(f'#!/bin/sh\ncase "$*" in *list-gpu-arch*) echo compute_90;; *) echo "{words}"; exit 1;; esac\n', encoding="utf-8")
    stopped.chmod(0o755)
    study = registry_with(tmp_path, "")
    paths = RunPaths(tmp_path / "run")
    kernels = [k for v in study.variants.values() for k in study.kernels(v, {})]
    with pytest.raises(StudyError, match="the compiler was stopped"):
        build_kernels(study, kernels, paths, "90", flags=[], toolchain=replace(tools, nvcc=stopped), log=Log())
    assert not list((tmp_path / "run").rglob("*.json"))


def test_flags_of_the_environment_have_no_part(monkeypatch: pytest.MonkeyPatch, tools: Toolchain) -> None:
    """NVCC_APPEND_FLAGS would change the code without any digest seeing it."""
    expected = compiled(tools, "copy", "90")[0]["cubin"]
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DBLOCK_SIZE=512 -O0")
    assert compiled(find(), "copy", "90")[0]["cubin"] == expected
