"""The doctor's look at packages, Snakemake's notes, lock files, disk, permissions and the archive to replay."""

from __future__ import annotations

import base64
import binascii
import getpass
import importlib.metadata
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from packaging.markers import InvalidMarker, Marker

from transpose_study.config import parse
from transpose_study.container import Container
from transpose_study.doctor.finding import BROKEN, LIMITS, OK, Finding
from transpose_study.errors import StudyError
from transpose_study.records import read_text, read_yaml

ROOM, LITTLE_ROOM = 500 * 2**20, 50 * 2**20  # bytes: a run with its archive, and what is too little for anything
INSTALL = "sh workflow/envs/install.sh"
SHOWN = 5
LOCK = Path("workflow") / "envs" / "requirements.lock"
_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\]+?))?\s*\\?$")


def pinned(text: str) -> dict[str, str]:
    """Name and version of every package that a lock file wants on this machine."""
    found = {}
    for line in text.splitlines():
        match = _PINNED.match(line)
        if match and _applies(match["marker"]):
            found[match["name"]] = match["version"]
    return found


def _applies(marker: str | None) -> bool:
    try:
        return marker is None or Marker(marker).evaluate()
    except InvalidMarker:
        return False


def packages() -> Iterator[Finding]:
    """Installed versions against the lock file."""
    path = LOCK.with_name("requirements-cuda12.lock") if _version("cupy-cuda12x") else LOCK
    if not path.is_file():
        yield Finding(LIMITS, "packages", f"{path} is not there: nothing to compare with", "run in the project's folder")
        return
    wanted = pinned(read_text(path))
    here = {name: _version(name) for name in wanted}
    missing = sorted(n for n, v in here.items() if v is None)
    other = sorted(f"{n} {v} (locked: {wanted[n]})" for n, v in here.items() if v not in (None, wanted[n]))
    said = []
    if missing:
        said.append(f"{len(missing)} of {len(wanted)} locked packages are missing: {_some(missing)}")
    if other:
        said.append(f"{len(other)} have another version: {_some(other)}")
    if said:
        yield Finding(LIMITS, "packages", "; ".join(said), INSTALL)
    else:
        yield Finding(OK, "packages", f"Python {platform.python_version()}, all {len(wanted)} packages as {path.name} has them")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def snakemake(root: Path) -> Iterator[Finding]:
    """Locks and unfinished files that an interrupted Snakemake left."""
    notes = root / ".snakemake"
    running = _running(root)
    if any((notes / "locks").glob("*")):
        if running:
            text = f"process {running} works in this folder and holds its lock"
            yield Finding(LIMITS, "Snakemake", text, f"tail --pid={running} -f /dev/null (waits for it)")
        else:
            yield Finding(BROKEN, "Snakemake", "an interrupted run left its lock on this folder", "snakemake --unlock")
    unfinished = sorted(_decoded(p.name) for p in (notes / "incomplete").glob("*"))
    if unfinished and not running:
        text = f"an interrupted run left {len(unfinished)} unfinished files: {_some(unfinished)}"
        yield Finding(BROKEN, "Snakemake", text, "snakemake --cores 1 all --rerun-incomplete")
    if not unfinished and not any((notes / "locks").glob("*")):
        yield Finding(OK, "Snakemake", "no lock, nothing unfinished")


def _running(root: Path) -> str:
    """Process number of a Snakemake that works in the folder, "" if there is none."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
            if "snakemake" in command and (entry / "cwd").resolve() == root.resolve() and entry.name != str(os.getpid()):
                return entry.name
        except OSError:
            continue
    return ""


def _decoded(name: str) -> str:
    """The file that one of Snakemake's notes is about."""
    try:
        return base64.urlsafe_b64decode(name.encode()).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return name


def locks() -> Iterator[Finding]:
    """Lock files of ncu and of this program that another user owns, or that a dead process left."""
    folder = Path(tempfile.gettempdir())
    me = os.getuid()
    found = []
    for path in [folder / "nsight-compute-lock", *folder.glob("transpose-study-GPU-*.lock")]:
        if path.exists() and path.stat().st_uid != me and not os.access(path, os.W_OK):
            found.append((f"{path} belongs to {path.owner()} and {getpass.getuser()} cannot write to it", f"sudo rm {path}"))
    for path in folder.glob("transpose-study-GPU-*.holder"):
        match = re.match(r"process (\d+)", path.read_text(encoding="utf-8", errors="replace"))
        if match and not Path(f"/proc/{match[1]}").exists():
            found.append((f"{path} names process {match[1]}, which is gone", f"rm {path}"))
    for text, mend in found:
        yield Finding(LIMITS, "lock files", text, mend)
    if not found:
        yield Finding(OK, "lock files", "none stale")


def files(root: Path) -> Iterator[Finding]:
    """Room on the disks, write permission, and temporary files that a killed command left."""
    results = root / "results"
    place = results if results.is_dir() else root
    if not os.access(place, os.W_OK):
        yield Finding(BROKEN, "results", f"{place.resolve()} is not writable", f"sudo chown -R {getpass.getuser()} '{place.resolve()}'")
    for what, folder in (("disk", place), ("temporary", Path(tempfile.gettempdir()))):
        free = shutil.disk_usage(folder).free
        level = BROKEN if free < LITTLE_ROOM else LIMITS if free < ROOM else OK
        mend = f"df -h '{folder.resolve()}', then make room" if level != OK else ""
        yield Finding(level, what, f"{free / 2**30:.1f} GiB free in {folder.resolve()}", mend)
    leftovers = sorted(str(p) for p in results.rglob(".*.part")) if results.is_dir() and not _running(root) else []
    if leftovers:
        yield Finding(LIMITS, "leftovers", f"a killed command left {len(leftovers)} temporary files", "find results -name '.*.part' -delete")


def archive(root: Path) -> Iterator[Finding]:
    """The archives that are rebuilt where there is no GPU: the default configuration's, and those of the further studies it names."""
    main = parse(read_yaml(root / "config" / "config.yaml"), where="config/config.yaml")
    names = {main.replay: None}
    for path in main.also:
        try:
            data = read_yaml(root / path)
        except StudyError as error:
            yield Finding(BROKEN, "archive", str(error).splitlines()[0], "mend the key also in config/config.yaml")
            continue
        if isinstance(data, dict) and isinstance(data.get("replay"), str):
            names[data["replay"]] = None
    for name in names:
        if not name:
            yield Finding(LIMITS, "archive", "config/config.yaml names no archive to rebuild without a GPU", "set replay: in config/config.yaml")
            continue
        try:
            container = Container(root / name)
        except StudyError as error:
            yield Finding(BROKEN, "archive", str(error).splitlines()[0], f"git checkout -- {name}")
            continue
        yield Finding(OK, "archive", f"{name}, {container.manifest.get('device')}, schema version {container.schema_version}")


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
