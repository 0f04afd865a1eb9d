"""What is measured, or rebuilt: the live device, or an archive of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transpose_study.config import Config, study_of
from transpose_study.container import Container
from transpose_study.device import choose, visible_devices
from transpose_study.errors import StudyError, nearest
from transpose_study.registry import Study

WHERE = "configuration"


def inside(root: Path, *parts: str) -> Path:
    """A folder of the project that must exist."""
    path = root.joinpath(*parts)
    if not path.is_dir():
        folders = [p.name for p in path.parent.glob("*") if p.is_dir()]
        raise StudyError(f"there is no folder {path}; {nearest(parts[-1], folders)}", where=WHERE)
    return path


def find_target(config: Config, root: Path) -> dict[str, Any]:
    """Decide between the live device and an archive: ``{"gpu": facts, "archive": name or None, "archive_sha256": ...}``."""
    wanted = config.device
    if isinstance(wanted, str) and (wanted == "archive" or wanted.startswith("archive:")):
        return _archived(config, root, wanted.partition(":")[2])
    devices = visible_devices()
    if devices:
        return {"gpu": choose(wanted, devices).as_dict(), "archive": None, "archive_sha256": None}
    if wanted != "auto":
        raise StudyError(f"device {wanted!r} is asked for, and no NVIDIA device is visible", where=f"{WHERE}, key device")
    return _archived(config, root, "")


def _archived(config: Config, root: Path, path: str) -> dict[str, Any]:
    name = path or config.replay
    if not name:
        raise StudyError(
            "no NVIDIA device is here, and no archive is named to be rebuilt", where=f"{WHERE}, key replay", hint="set replay: to an archive"
        )
    container = Container(root / name)
    environment = container.read_json("environment.json")
    if not isinstance(environment, dict) or not isinstance(environment.get("gpu"), dict):
        raise StudyError("environment.json names no GPU", where=str(name), hint="this is no archive of a measured run")
    study = container.manifest.get("study", config.study)
    if study != config.study:
        file = _configuration_file(root, study)
        raise StudyError(
            f"the archive {name} holds a run of the study {study}, and {config.study} is configured",
            where=f"{WHERE}, key study",
            hint=f"name an archive of {config.study} in the key replay, or run where a GPU is"
            + (f"; to rebuild this one, add --configfile {file}" if file else ""),
        )
    missing = [g for g in _configured_groups(config, root) if f"raw/timing/{g}.csv" not in container.names]
    if missing:
        held = sorted(n.split("/")[-1][:-4] for n in container.names if n.startswith("raw/timing/"))
        raise StudyError(
            f"the archive {name} has no measurement of {', '.join(missing)}; it has {', '.join(held)}",
            where=f"{WHERE}, key shapes",
            hint="configure shapes that the archive has, or run where a GPU is",
        )
    return {"gpu": environment["gpu"], "archive": str(name), "archive_sha256": container.sha256}


def _configuration_file(root: Path, study: object) -> str:
    """The configuration file of a study, relative to the project's folder; "" where there is none."""
    names = ("config.yaml", *(p.name for p in (root / "config").glob("*.yaml") if p.stem == study))
    return next((f"config/{n}" for n in names if (root / "config" / n).is_file() and study_of(root / "config" / n) == study), "")


def _configured_groups(config: Config, root: Path) -> list[str]:
    study = Study(inside(root, "kernels", config.study) / "variants.yaml")
    try:
        names = [study.group_name(g.values) for g in config.measured_shapes()]
    except KeyError:
        return []  # a shape lacks an axis; the validation that follows names it
    return [] if any(isinstance(size, int) and size < 0 for g in config.shapes for size in g.values.values()) else names  # named there too
