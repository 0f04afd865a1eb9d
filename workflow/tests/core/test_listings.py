"""Disassembly out of an archive: for the same bytes only; what is verified is disassembled anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from projects import ROOT
from transpose_study.container import Container
from transpose_study.errors import StudyError
from transpose_study.gpu import toolchain
from transpose_study.gpu.compile import build_kernels
from transpose_study.listings import archived, none
from transpose_study.paths import RunPaths
from transpose_study.progress import Log
from transpose_study.recompile import EQUAL, OTHER, recompile
from transpose_study.registry import Kernel, Study

ARCHIVE = ROOT / yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))["replay"]
KERNEL = "tiled_padded_b8"


@pytest.fixture
def without_disassembler() -> toolchain.Toolchain:
    return replace(toolchain.find(), nvdisasm=Path("/bin/false"))


STUDY = Study(ROOT / "kernels/transpose/variants.yaml")
KERNELS = [Kernel(STUDY.variant("tiled_padded"), {"block_rows": 8})]


def build(folder: Path, tools: toolchain.Toolchain, **options) -> bytes:
    paths = RunPaths(folder)
    build_kernels(STUDY, KERNELS, paths, "90", **{"flags": [], "toolchain": tools, "log": Log(), **options})
    return paths.kernel("90", KERNEL, "sass").read_bytes()


def test_equal_code_is_not_disassembled_again(tmp_path: Path, without_disassembler: toolchain.Toolchain) -> None:
    """It is the text that nvdisasm gives for it, to the byte."""
    known = build(tmp_path / "known", without_disassembler, listings=archived(ARCHIVE, "90"))
    assert known == Container(ARCHIVE).read(f"build/sm_90/{KERNEL}.sass") == build(tmp_path / "made", toolchain.find(), listings=none)


def test_other_code_is(tmp_path: Path, without_disassembler: toolchain.Toolchain) -> None:
    with pytest.raises(StudyError, match="nvdisasm cannot read the cubin"):
        build(tmp_path, without_disassembler, listings=archived(ARCHIVE, "90"), flags=["-DUNUSED=1", "-maxrregcount=24"])


def test_a_kernel_or_an_architecture_that_the_archive_lacks_is_not_known() -> None:
    cubin = Container(ARCHIVE).read(f"build/sm_90/{KERNEL}.cubin")
    assert archived(ARCHIVE, "90")(KERNEL, cubin)
    assert archived(ARCHIVE, "80")(KERNEL, cubin) is archived(ARCHIVE, "90")("mine", cubin) is archived(ARCHIVE, "90")(KERNEL, cubin + b"\0") is None


def test_text_that_is_not_the_cubin_s_own_is_told(tmp_path: Path) -> None:
    """A replay takes the text on the word of the cubin beside it, so a comparison must not."""
    build(tmp_path, toolchain.find())
    folder = RunPaths(tmp_path).build("90")
    assert [c.outcome for c in recompile(STUDY, KERNELS, folder)] == [EQUAL]
    path = folder / f"{KERNEL}.sass"
    path.write_bytes(path.read_bytes().replace(b"BAR.SYNC", b"NOP     "))
    (compared,) = recompile(STUDY, KERNELS, folder)
    assert (compared.outcome, compared.reason) == (OTHER, f"{KERNEL}.sass is not the disassembly of its cubin")
