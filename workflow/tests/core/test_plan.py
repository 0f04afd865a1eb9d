"""From settings to cells on one device: the right GPU, the right folder, and no cell that was found wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_device import TWO
from transpose_study.errors import StudyError
from transpose_study.gpu import plan
from transpose_study.paths import RunPaths


def test_device_is_found_by_its_uuid_whatever_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA_VISIBLE_DEVICES may have put another card first since the configuration was resolved."""
    monkeypatch.setattr(plan, "visible_devices", lambda: TWO[::-1])
    assert plan.find_device(TWO[0].uuid) is TWO[0]


def test_device_that_is_hidden_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "visible_devices", lambda: TWO[1:])
    with pytest.raises(StudyError) as caught:
        plan.find_device(TWO[0].uuid)
    said = str(caught.value)
    assert f"the GPU {TWO[0].uuid} is not visible; visible: NVIDIA H200 {TWO[1].uuid}" in said and "CUDA_VISIBLE_DEVICES" in said


def test_folder_belongs_to_the_first_gpu_that_claims_it(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "run")
    plan.claim(paths, TWO[0])
    plan.claim(paths, TWO[0])
    assert json.loads(paths.identity.read_text(encoding="utf-8"))["gpu_uuid"] == TWO[0].uuid
    with pytest.raises(StudyError, match="--config run=NAME"):
        plan.claim(paths, TWO[1])
