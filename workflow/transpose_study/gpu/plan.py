"""From a measuring rule's settings to the cells that can be measured, and the reasons of those that cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transpose_study.device import Device, visible_devices
from transpose_study.errors import StudyError
from transpose_study.gpu.compile import load_record
from transpose_study.paths import RunPaths
from transpose_study.provenance import DIGITS
from transpose_study.records import digest_of, read_csv, read_json, write_json
from transpose_study.registry import Cell, Study
from transpose_study.simt.limits import shared_refusal

# Memory of the device left alone: context, modules, the flush buffer, other programs' share.
MEMORY_SHARE = 0.9


@dataclass(frozen=True)
class Plan:
    """One group's cells on one device. ``refused`` maps a cell's index to (status, reason)."""

    study: Study
    device: Device
    paths: RunPaths
    architecture: str
    group: dict[str, int]
    cells: list[Cell]
    refused: dict[int, tuple[str, str]]
    cubins: dict[str, str]  # the beginning of each kernel's cubin's sha256

    def measured_with(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What a journal entry says of the measurement: digest of its settings, and the cubins."""
        return {"settings": digest_of(settings), "cubins": self.cubins}

    @property
    def name(self) -> str:
        """The group's file name."""
        return self.study.group_name(self.group)

    @property
    def build(self) -> str:
        """Folder of the cubins."""
        return str(self.paths.build(self.architecture))

    def job(self, settings: Mapping[str, Any], cells: list[Cell]) -> dict[str, Any]:
        """What a worker must know."""
        return {
            "registry": str(self.study.path),
            "build": self.build,
            "group": self.group,
            "gpu": self.device.uuid,
            "l2_bytes": self.device.l2_bytes,
            "input": settings.get("input"),  # the check brings a pattern of its own
            "cells": [describe(c) for c in cells],
        }


def describe(cell: Cell) -> dict[str, Any]:
    """A cell as a job names it."""
    return {"variant": cell.variant.name, "kernel_values": dict(cell.kernel_values), "group": dict(cell.group)}


def make_plan(settings: Mapping[str, Any], run: Path, root: Path = Path()) -> Plan:
    """Find the device, list the cells, and refuse those that preconditions, limits or the compiler rule out.

    Raises :class:`StudyError` if the GPU the settings name is not visible.
    """
    study = Study(root / "kernels" / settings["study"] / "variants.yaml")
    device = find_device(settings["gpu"])
    paths, architecture = RunPaths(run), settings["architecture"]
    claim(paths, device)
    cells = study.cells(settings["group"], settings["variants"], settings["axes"])
    refused: dict[int, tuple[str, str]] = {}
    cubins: dict[str, str] = {}
    for number, cell in enumerate(cells):
        refusal = study.cell_refusal(cell, int(device.memory_bytes * MEMORY_SHARE))
        if refusal:
            refused[number] = ("skipped", refusal)
        elif not cell.variant.no_kernel:
            record = load_record(paths, architecture, study.kernel_name(cell))
            if record["status"] != "ok":
                refused[number] = (record["status"], record["reason"])
            elif reason := shared_refusal(study, cell, int(record["shared_bytes"]), device.compute_capability):
                refused[number] = ("skipped", reason)
            else:
                cubins[study.kernel_name(cell)] = record["cubin_sha256"][:DIGITS]
    return Plan(study, device, paths, architecture, dict(settings["group"]), cells, refused, cubins)


def claim(paths: RunPaths, device: Device) -> None:
    """Mark the folder as this GPU's live run; a folder that holds anything else is a :class:`StudyError`."""
    mine = {"gpu_name": device.name, "gpu_uuid": device.uuid, "archive": None, "archive_sha256": None}
    if not paths.identity.exists():
        write_json(paths.identity, mine)
    elif read_json(paths.identity)["gpu_uuid"] != device.uuid or read_json(paths.identity)["archive"]:
        raise StudyError(
            "this folder holds a replay, or another GPU's run",
            where=str(paths.folder),
            hint="give this run a folder of its own with --config run=NAME",
        )


def find_device(uuid: str) -> Device:
    """The visible device with this UUID."""
    devices = visible_devices()
    for device in devices:
        if device.uuid == uuid:
            return device
    listing = ", ".join(f"{d.name} {d.uuid}" for d in devices) or "none"
    raise StudyError(f"the GPU {uuid} is not visible; visible: {listing}", hint="check CUDA_VISIBLE_DEVICES, then run snakemake again")


def refuse_unchecked(plan: Plan) -> dict[int, tuple[str, str]]:
    """The plan's refusals, with those cells added that ``check`` found wrong at this shape or at an edge shape."""
    rows = read_csv(plan.paths.check_part(plan.name), [*plan.study.key_columns, "status", "reason"])
    bad: dict[tuple[str, ...], tuple[str, str]] = {}
    axes = [a for a in plan.study.axes if a not in plan.study.group_axes]
    for row in rows:
        if row["status"] in ("wrong", "failed"):
            shape = plan.study.group_name({a: row[a] for a in plan.study.group_axes})
            bad.setdefault((row["variant"], *(row[a] for a in axes)), (row["status"], f"at {shape}: {row['reason']}"))
    refused = dict(plan.refused)
    for number, cell in enumerate(plan.cells):
        key = plan.study.key(cell)
        verdict = bad.get((cell.variant.name, *(str(key[a]) for a in axes)))
        if verdict and number not in refused:
            refused[number] = verdict
    return refused
