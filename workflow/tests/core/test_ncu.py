"""Why ncu gave nothing, told from what the real tool printed (material/ncu/README.md names where each text comes from)."""

from __future__ import annotations

from pathlib import Path

import pytest
from transpose_study.gpu import ncu

MATERIAL = Path(__file__).resolve().parents[1] / "material" / "ncu"


def said(name: str) -> str:
    return (MATERIAL / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["denied", "denied_in_container"])
def test_denied_names_the_driver_option_that_mends_it(name: str) -> None:
    reason = ncu.explain(said(name), 1)
    for needed in ("ERR_NVGPUCTRPERM", "NVreg_RestrictProfilingToAdminUsers=0", "/etc/modprobe.d", "SYS_ADMIN", "WSL2"):
        assert needed in reason


def test_profile_without_a_kernel() -> None:
    assert ncu.explain(said("no_kernel"), 0) == "ncu saw no launch of the study's kernels"


def test_error_that_also_profiles_nothing_is_told_as_the_error() -> None:
    """ncu adds "No kernels were profiled" to every failure; the line before it is the cause."""
    text = said("unknown_error")
    assert "No kernels were profiled" in text
    reason = ncu.explain(text, 9)
    assert "Unknown Error on device 0." in reason and "no launch" not in reason


def test_unusable_temporary_directory() -> None:
    assert "TMPDIR" in ncu.explain(said("temporary_directory"), 1)


def test_gpu_that_dcgm_holds() -> None:
    assert "another profiler uses the GPU" in ncu.explain(said("held_by_dcgm"), 9)


def test_unknown_failures_are_told_in_the_tool_s_words() -> None:
    assert "Cuda driver is not compatible with Nsight Compute." in ncu.explain(said("driver_mismatch"), 1)
    assert ncu.explain("", 139) == "ncu profiled nothing: it ended with status 139 and said nothing of it"


def test_unknown_metric_is_no_failure() -> None:
    """The real ncu goes on without the metric it does not know, and profiles the others."""
    text = said("unknown_metric")
    assert "n/a" in text and "==ERROR==" not in text


def test_missing_ncu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(ncu.glob, "glob", lambda pattern: [])
    monkeypatch.setattr(ncu.os, "access", lambda path, mode: False)
    assert ncu.find_ncu() is None


def test_ncu_on_path_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "ncu"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ncu.find_ncu() == program
