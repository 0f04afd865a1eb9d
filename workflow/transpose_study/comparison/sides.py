"""What is compared: one side is an archive, a results folder or a published study, all read through the same few methods."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from transpose_study.container import Container
from transpose_study.errors import StudyError, nearest
from transpose_study.records import read_csv, read_json, read_yaml
from transpose_study.registry import Study

Key = tuple[str, ...]  # variant, then the axes in the study's order, as text
Row = Mapping[str, str]

REFERENCES = Path("config") / "reference"


class Side:
    """One thing to compare. ``label`` is its column in every table; ``study`` the study it belongs to."""

    label: str
    study: str
    what: str  # a live run, a replay, a published study
    source: str  # as it was named
    files: Sequence[Path]  # what it is read from
    axes: Mapping[str, Any]  # configured values of the axes that select code

    def __init__(self) -> None:
        self._cache: dict[str, list[dict[str, str]]] = {}

    def environment(self) -> dict[str, Any]:
        """Its environment.json, or what a publication says of GPU and software in the same form."""
        raise NotImplementedError

    def table(self, name: str) -> list[dict[str, str]]:
        """Rows of a tidy table, empty where the side has none."""
        if name not in self._cache:
            self._cache[name] = self._rows(f"tables/{name}.csv")
        return self._cache[name]

    def raw_timing(self, group: str) -> list[dict[str, str]]:
        """Raw timing rows of a group, empty where the side has none."""
        return self._rows(f"raw/timing/{group}.csv")

    def groups(self) -> list[str]:
        """Groups whose raw timings the side has."""
        return []

    def _rows(self, name: str) -> list[dict[str, str]]:
        """Rows of a CSV of the run, empty where there is none (as in a publication, whose tables are made when it is read)."""
        del name
        return []

    @cached_property
    def key_columns(self) -> list[str]:
        """Columns that identify a cell, from the table itself; empty where there is no table."""
        rows = self.table("timings")
        columns = list(rows[0]) if rows else []
        return columns[: columns.index("cache_mode")] if "cache_mode" in columns else []

    @cached_property
    def group_columns(self) -> list[str]:
        """Columns that identify a group, from the table of rounds; all of the cell's where there is none."""
        rows = self.table("rounds")
        columns = list(rows[0]) if rows else []
        return columns[: columns.index("cache_mode")] if "cache_mode" in columns else self.key_columns

    def group(self, key: Key) -> Key:
        """What of a cell's key is its group's."""
        return tuple(k for c, k in zip(self.key_columns, key, strict=True) if c in self.group_columns)

    def key(self, row: Row) -> Key:
        """A row's cell."""
        return tuple(row[c] for c in self.key_columns)


class Folder(Side):
    """A results folder."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.source = path, str(path)
        config = read_yaml(path / "run_config.yaml")
        if not isinstance(config, dict) or not isinstance(config.get("config"), dict):
            raise StudyError("is no resolved configuration", where=str(path / "run_config.yaml"))
        self.study, self.axes = config["config"]["study"], dict(config["config"]["axes"])
        archive = config["target"].get("archive")
        self.what = f"a replay of {Path(archive).name}" if archive else "a live run"
        self.label = path.parent.name if path.name == self.study else path.name
        self.files = [path / "run_config.yaml", path / "environment.json", *sorted((path / "tables").glob("*.csv"))]

    def environment(self) -> dict[str, Any]:
        return dict(read_json(self.path / "environment.json"))

    def groups(self) -> list[str]:
        return sorted(p.stem for p in (self.path / "raw" / "timing").glob("*.csv"))

    def _rows(self, name: str) -> list[dict[str, str]]:
        path = self.path / name
        return read_csv(path) if path.is_file() else []


class Archived(Side):
    """An archive; every member that is read is compared with its sha256."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.container, self.source, self.files = Container(path), str(path), [path]
        config = yaml.safe_load(self.container.read("run_config.yaml"))["config"]
        self.study, self.axes = config["study"], dict(config["axes"])
        self.what, self.label = "an archived run", path.name.removesuffix(".zip").removesuffix(".crate")

    def environment(self) -> dict[str, Any]:
        return dict(self.container.read_json("environment.json"))

    def groups(self) -> list[str]:
        return sorted(PurePosixPath(n).stem for n in self.container.names if n.startswith("raw/timing/"))

    def _rows(self, name: str) -> list[dict[str, str]]:
        if name not in self.container.names:
            return []
        return list(csv.DictReader(io.StringIO(self.container.read(name).decode("utf-8"))))


class Published(Side):
    """A published study, from its reference file: its figures as rows of the same tables."""

    MODE = "hot"  # back-to-back launches on the same buffers, as the study timed

    def __init__(self, path: Path, root: Path) -> None:
        super().__init__()
        self.source, self.label, self.what, self.files, self.axes = str(path), path.stem, "a published study", [path], {}
        self._data = read_yaml(path)
        self.study = str(self._data.get("belongs_to", "transpose"))
        self._registry = Study(root / "kernels" / self.study / "variants.yaml")
        self._kernels: dict[str, dict[str, str]] = {name: self._cell(str(v["cell"])) for name, v in self._data["kernels"].items()}
        self._cache = {"timings": list(self._timings()), "counters": list(self._counters())}
        self._cache |= {axis.removesuffix("_scan"): list(self._scan(axis)) for axis in self._data.get("scans", {})}

    def environment(self) -> dict[str, Any]:
        said = self._data.get("environment", {})
        facts = {"name": said.get("gpu"), "peak_gb_s": said.get("dram_peak_gb_s")}
        return {"gpu": {**said, **facts, "driver_cuda": said.get("cuda")}, "ncu": said.get("nsight_compute"), "machine": {"system": said.get("os")}}

    # -- reading --------------------------------------------------------------------------------------------------------

    def _cell(self, text: str) -> dict[str, str]:
        """The key columns of a cell written ``variant, axis value``, at the publication's own group."""
        name, *pairs = (p.strip() for p in text.split(","))
        axes = {a.name: str(a.value) if a.value is not None else "" for a in self._registry.axes.values()}
        axes |= {a: str(self._data["protocol"][a]) for a in self._registry.group_axes}
        return {"variant": self._registry.variant(name).name} | axes | dict(p.split(" ", 1) for p in pairs)

    def _figures(self) -> Iterator[tuple[str, str, float]]:
        """(kernel, quantity, value) of everything that the file gives for a kernel, in this project's quantities and units."""
        for section, content in self._data.items():
            if not isinstance(content, dict) or section in ("kernels", "formulas", "scans"):
                continue
            quantities = {section: content} if content and set(content) <= set(self._kernels) else content
            for quantity, values in quantities.items():
                if isinstance(values, dict):
                    name, scale = self._ours(str(quantity))
                    for kernel, value in values.items():
                        if kernel in self._kernels and isinstance(value, int | float):
                            yield kernel, name, value * scale

    def _ours(self, quantity: str) -> tuple[str, float]:
        """Our name of a published quantity, and the factor to our unit, from formulas such as ``dram_read_bytes / 1e6``."""
        formula = str(self._data.get("formulas", {}).get(quantity, quantity))
        name, divided, by = (p.strip() for p in formula.partition("/"))
        if not divided:
            return name, 1.0
        try:
            return name, float(by)
        except ValueError:
            return formula, 1.0

    def _timings(self) -> Iterator[dict[str, str]]:
        """Effective bandwidths, those of the scans for cells that have no other."""
        bandwidth = {k: v for k, q, v in self._figures() if q == "mean_bandwidth_gb_s"}
        found = {tuple(self._kernels[k].values()): (self._kernels[k], v) for k, v in bandwidth.items()}
        moved = self._registry.effective_bytes({a: int(self._data["protocol"][a]) for a in self._registry.group_axes}) / 1e6
        for scan in self._data.get("scans", {}):
            for row in self._scan(scan):
                cell = {c: row[c] for c in ("variant", *self._registry.axes)}
                found.setdefault(tuple(cell.values()), (cell, moved / float(row["mean_ms"])))
        peak = self._data.get("environment", {}).get("dram_peak_gb_s")
        baselines = {b: next((v for c, v in found.values() if c["variant"] == name), None) for b, name in self._registry.baselines.items()}
        for cell, value in found.values():
            ratios = {f"ratio_to_{b}": repr(value / v) for b, v in baselines.items() if v}
            share = {"percent_of_peak": repr(100 * value / peak)} if peak else {}
            median = {"median_us": repr(1e3 * moved / value)}
            yield cell | {"cache_mode": self.MODE, "status": "ok", "reason": "", "bandwidth_gb_s": repr(value)} | median | share | ratios

    def _counters(self) -> Iterator[dict[str, str]]:
        for kernel, quantity, value in self._figures():
            if quantity != "mean_bandwidth_gb_s":
                yield self._kernels[kernel] | {"quantity": quantity, "mean": repr(value), "unit": "", "reason": ""}

    def _scan(self, section: str) -> Iterator[dict[str, str]]:
        axis, variant = section.removesuffix("_scan"), self._data["scans"][section]
        entries = [e for e in self._data[section] if isinstance(e, dict)]
        best = min(entries, key=lambda e: e["mean_ms"])
        for entry in entries:
            cell = self._cell(f"{variant}, {axis} {entry[axis]}")
            yield cell | {"cache_mode": self.MODE, "mean_ms": repr(entry["mean_ms"]), "best": "true" if entry is best else "false"}


def open_sides(names: Sequence[str], root: Path = Path()) -> list[Side]:
    """Open everything named; what is no archive, no results folder and no published study is a :class:`StudyError`."""
    if len(names) < 2:
        raise StudyError(
            f"comparing takes two or more, and {len(names)} {'was' if len(names) == 1 else 'were'} named",
            where="configuration, key compare",
            hint="snakemake --cores 1 compare --config 'compare=[results/archive/A.crate.zip, results/B/transpose, rtx5060-laptop]'",
        )
    sides = [_open(name, root) for name in names]
    studies = dict.fromkeys(s.study for s in sides)
    if len(studies) > 1:
        told = ", ".join(f"{s.label} of {s.study}" for s in sides)
        raise StudyError(f"they are runs of different studies: {told}", where="configuration, key compare")
    _tell_apart(sides)
    return sides


def _tell_apart(sides: Sequence[Side]) -> None:
    """Sides of one name get that of their folder before it (``earlier-nvidia-h200-...``), and a number where that is the same too."""
    for label in {s.label for s in sides}:
        alike = [s for s in sides if s.label == label]
        folders = [Path(s.source).parent.name for s in alike]
        if len(alike) > 1 and len(set(folders)) > 1:
            usual = "archive"  # where archives lie: what is named by it needs no further word
            for side, folder in zip(alike, folders, strict=True):
                side.label = label if folder in ("", usual) else f"{folder}-{label}"
    labels: dict[str, int] = {}
    for side in sides:
        labels[side.label] = labels.get(side.label, 0) + 1
        if labels[side.label] > 1:
            side.label += f"-{labels[side.label]}"


def _open(name: str, root: Path) -> Side:
    path = root / name
    if path.is_dir():
        studies = [p.parent for p in sorted(path.glob("*/run_config.yaml"))]
        folder = path if (path / "run_config.yaml").is_file() else studies[0] if len(studies) == 1 else None
        if folder is None and studies:
            raise StudyError("holds runs of several studies", where=str(name), hint=f"name one: {', '.join(map(str, studies))}")
        if folder is None:
            hint = "name a folder such as results/nvidia-h200/transpose"
            raise StudyError("is no results folder: it has no run_config.yaml", where=str(name), hint=hint)
        return Folder(folder)
    if path.is_file():
        return Archived(path)
    reference = root / REFERENCES / f"{name}.yaml"
    if reference.is_file():
        return Published(reference, root)
    known = [p.stem for p in (root / REFERENCES).glob("*.yaml")] + [str(p) for p in Path("results").glob("archive/*.crate.zip")]
    raise StudyError(
        f"{name!r} is no archive, no results folder and no published study; {nearest(name, known)}", where="configuration, key compare"
    )
