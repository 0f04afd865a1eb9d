"""One experiment: the configuration brought together with the study's registry, the metrics and the device.

The Snakefile makes one from its ``config``; every command after the measurements makes one from ``run_config.yaml``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from transpose_study import config as configuration
from transpose_study.config import Config, Group
from transpose_study.device import slug
from transpose_study.errors import StudyError, nearest
from transpose_study.metrics import Batch, study_file, study_metrics
from transpose_study.paths import RunPaths
from transpose_study.records import digest_of, read_json, read_yaml
from transpose_study.registry import Cell, Kernel, Study, Value, Variant
from transpose_study.sources import HARNESS, normalised_source
from transpose_study.target import WHERE, find_target, inside
from transpose_study.validation import validate


class Experiment:
    """A validated experiment. ``root`` is the project's folder; nothing is written here."""

    def __init__(self, config: Config, root: Path, target: Mapping[str, Any], folder: Path) -> None:
        self.config, self.root, self.target = config, root, dict(target)
        self.given: dict[str, Any] = {}  # the configuration as it was given, for the command that resolves it once more
        self.study = Study(inside(root, "kernels", config.study) / "variants.yaml")
        self.batches = study_metrics(root, self.study)
        self.paths = RunPaths(folder)
        validate(self)

    # -- making one -------------------------------------------------------------------------------------------------

    @classmethod
    def from_snakemake(cls, data: Mapping[str, Any], root: Path = Path()) -> Experiment:
        """Validate Snakemake's ``config``, find the device (or the archive) and the results folder."""
        config = configuration.parse(data)
        target = find_target(config, root)
        name = config.run or slug(str(target["gpu"]["name"]))
        experiment = cls(config, root, target, Path("results") / name / config.study)
        experiment.given = dict(data)
        experiment.guard_folder()
        return experiment

    @classmethod
    def all_from_snakemake(cls, data: Mapping[str, Any], root: Path = Path()) -> list[Experiment]:
        """The experiment of Snakemake's ``config``, then those of the files that its key ``also`` names.

        A further experiment is measured on the same device, or replays the archive that its own file names; it shares the main
        one's device, results folder, languages and formats where its file says nothing else. An archive that is named to be
        rebuilt (``device: archive:PATH``) holds one study, so it is rebuilt alone.
        """
        main = cls.from_snakemake(data, root)
        if str(main.config.device).startswith("archive:"):
            return [main]
        found = [main]
        for path in main.config.also:
            further = read_yaml(root / path)
            if not isinstance(further, dict):
                raise StudyError("holds no keys", where=path)
            report = further.get("report", {})
            if isinstance(report, dict):
                further = further | {"report": {"formats": list(main.config.report.formats), **report}}
            shared = {k: data[k] for k in ("run", "device", "paper", "build") if k in data}
            try:
                experiment = cls.from_snakemake({**shared, **further}, root)
            except StudyError as error:
                raise type(error)(error.what, where=f"{path}, {error.where}" if error.where else path, hint=error.hint) from None
            if experiment.paths.folder in [e.paths.folder for e in found]:
                raise StudyError(f"is an experiment of the study {experiment.config.study}, which is run already", where=path)
            if further.get("also"):
                raise StudyError("is named by the key also, so it cannot name further files itself", where=path, hint="name them all in one file")
            if experiment.replay != main.replay:
                one, other = ("replays an archive", "is measured") if experiment.replay else ("is measured", "replays an archive")
                raise StudyError(f"{one}, where the main experiment {other}", where=path, hint="take out its key device, or run it by itself")
            found.append(experiment)
        return found

    @classmethod
    def from_run(cls, folder: Path, root: Path = Path()) -> Experiment:
        """Read ``run_config.yaml`` of a results folder."""
        path = RunPaths(folder).run_config
        if not path.is_file():
            raise StudyError("is no results folder: it has no run_config.yaml", where=str(folder), hint="name one such as results/NAME/transpose")
        data = read_yaml(path)
        if not isinstance(data, dict) or not {"config", "target"} <= set(data):
            raise StudyError("is no resolved configuration", where=str(path), hint="run snakemake to write it anew")
        return cls(configuration.parse(data["config"], where=str(path)), root, data["target"], folder)

    def resolved(self) -> dict[str, Any]:
        """What ``run_config.yaml`` holds: the configuration with all defaults, and what was measured."""
        return {"config": self.config.model_dump(mode="json", exclude={"compare", "also"}), "target": self.target}

    # -- what is measured ---------------------------------------------------------------------------------------------

    @property
    def replay(self) -> bool:
        """True where raw data come out of an archive."""
        return self.target["archive"] is not None

    @property
    def gpu(self) -> dict[str, Any]:
        """Facts of the measured GPU (see :class:`transpose_study.device.Device`)."""
        return dict(self.target["gpu"])

    @property
    def architecture(self) -> str:
        """Architecture kernels are compiled for, such as ``90``."""
        return self.config.build.architecture or str(self.gpu["compute_capability"]).replace(".", "")

    @property
    def peak_gb_s(self) -> float:
        """Nominal memory bandwidth in 10^9 bytes a second."""
        return self.config.report.peak_gb_s or float(self.gpu["peak_gb_s"])

    @cached_property
    def groups(self) -> dict[str, Group]:
        """The configured groups by their file name, without those of which ``variants`` leaves none."""
        found = {self.study.group_name(g.values): g for g in self.config.measured_shapes()}
        if not found:
            raise StudyError("no shape has one of these variants", where=f"{WHERE}, key variants", hint="name variants that the key shapes names too")
        return found

    @property
    def main_group(self) -> str:
        """The group the write-up argues about."""
        if self.config.report.group:
            return self.config.report.group
        if self.published:
            protocol = self.published["protocol"]
            name = self.study.group_name({a: protocol[a] for a in self.study.group_axes})
            if name in self.groups:
                return name
        return next(iter(self.groups))

    @cached_property
    def published(self) -> dict[str, Any] | None:
        """The published figures that the report shows beside this device's."""
        name, folder = self.config.report.published, inside(self.root, "config", "reference")
        if not name:
            return None
        if not (folder / f"{name}.yaml").is_file():
            known = [p.stem for p in folder.glob("*.yaml")]
            raise StudyError(f"there is no {folder / name}.yaml; {nearest(name, known)}", where=f"{WHERE}, key report.published")
        return read_yaml(folder / f"{name}.yaml")

    @cached_property
    def claims(self) -> dict[str, Any] | None:
        """The study's claims, None where there is no such file; see :mod:`transpose_study.analysis.judge.claims`."""
        path = study_file(self.root, "claims", self.study.name)
        data = read_yaml(path) if path.is_file() else None
        if data is not None and not isinstance(data, dict):
            raise StudyError("is no mapping", where=str(path))
        return data

    def variants(self, group: str | None = None) -> list[Variant]:
        """The configured variants, in the registry's order; with ``group``, those configured there."""
        names = list(self.study.variants) if self.config.variants == "all" else self.config.variants
        only = self.groups[group].variants if group else None
        return [v for v in self.study.variants.values() if v.name in names and (only is None or v.name in only)]

    def kernels(self, variant: Variant) -> list[Kernel]:
        """The kernels of a variant for the configured axis values."""
        return self.study.kernels(variant, self.config.axes)

    def cells(self, group: str) -> list[Cell]:
        """The cells of a group, in the registry's order."""
        return self.study.cells(self.groups[group].values, [v.name for v in self.variants(group)], self.config.axes)

    def batch_names(self, group: str | None = None) -> list[str]:
        """The metric batches to read; of a group, without what kernels observe where none of it observes anything."""
        if not self.config.profile.enabled:
            return []
        chosen = self.config.profile.batches
        names = [n for n, b in self.batches.items() if not b.optional] if chosen is None else chosen
        silent = group is not None and not any(v.observes for v in self.variants(group))
        return [n for n in names if not (silent and self.batches[n].observed)]

    @property
    def metrics_file(self) -> str:
        """Name of the file of the study's metrics."""
        return study_file(self.root, "metrics", self.config.study).relative_to(self.root).as_posix()

    def batch(self, name: str) -> Batch:
        """A metric batch by name."""
        return self.batches[name]

    def kernel_records(self, group: str | None = None) -> list[Path]:
        """The build records (JSON) of all compiled kernels, or of those a group contains."""
        return [
            self.paths.kernel(self.architecture, self.study.kernel_name(k), "json")
            for v in self.variants(group)
            if not v.no_kernel
            for k in self.kernels(v)
        ]

    def raw_files(self) -> list[Path]:
        """Every raw file that the analysis reads."""
        files = [self.paths.check]
        files += [self.paths.timing(g) for g in self.groups]
        return files + ([self.paths.counters(g) for g in self.groups] if self.batch_names() else [])

    def tables(self) -> list[str]:
        """Names of the tidy tables: the common ones, and one scan for each axis that selects code."""
        common = ["timings", "noise", "rounds", "counters", "opcodes", "occupancy", "predictions", "instructions", "banks", "published", "ratios"]
        return [*common, *self.scan_axes()]

    def scan_axes(self) -> list[str]:
        """The axes that select code and that a configured variant takes."""
        taken = {a for v in self.variants() for a in v.code_axes}
        return [a for a in self.study.axes if a in taken]

    # -- slices for the rules ---------------------------------------------------------------------------------

    def measurement(self, group: str) -> dict[str, Any]:
        """The slice of the configuration that every step on the GPU depends on for a group, and nothing else."""
        return {
            "study": self.config.study,
            "group": self.groups[group].values,
            "axes": {a: v for a, v in self.config.axes.items() if any(a in x.takes for x in self.variants(group))},
            "variants": {v.name: self.study.launch_digest(v) for v in self.variants(group)},
            "architecture": self.architecture,
            "gpu": self.gpu["uuid"],
        }

    def check_settings(self, group: str) -> str:
        """Slice for ``check``, as JSON."""
        return _compact(self.measurement(group) | {"edge_groups": list(self.study.edge_groups)})

    def noise_pair(self, group: str) -> dict[str, Value]:
        """The cell that a group times twice in every round (variant and axis values)."""
        return self.study.noise_pair(v.name for v in self.variants(group))

    def time_settings(self, group: str) -> str:
        """Slice for ``time``, as JSON."""
        extra = {"input": self.config.input.model_dump(), "timing": self.config.timing.model_dump(), "noise_floor": self.noise_pair(group)}
        return _compact(self.measurement(group) | extra)

    def profile_settings(self, group: str, batch: str) -> str:
        """Slice for ``profile``, as JSON."""
        launches = {**self.config.profile.launches, **self.groups[group].launches}.get(batch, 1)
        extra = {
            "input": self.config.input.model_dump(),
            "batch": batch,
            "batch_digest": self.batches[batch].digest,
            "launches": launches,
            "timeout_s": self.config.profile.timeout_s,
        }
        return _compact(self.measurement(group) | extra)

    def predict_settings(self) -> str:
        """Slice for ``predict``, as JSON."""
        groups = [{"values": g.values, "variants": [v.name for v in self.variants(n)]} for n, g in self.groups.items()]
        slice_ = {
            "study": self.config.study,
            "groups": groups,
            "edge_groups": list(self.study.edge_groups),
            "elements": self.study.elements,
            "axes": self.config.axes,
            "variants": {v.name: self.study.launch_digest(v) for v in self.variants()},
            "architecture": self.architecture,
            "compute_capability": self.gpu["compute_capability"],
            "peak_gb_s": self.peak_gb_s,
        }
        return _compact(slice_)

    def build_settings(self, variant: Variant) -> str:
        """Slice for ``build`` of one variant, as JSON."""
        own = {"axes": {a: self.config.axes[a] for a in variant.code_axes}, "code": self.study.code_digest(variant)}
        return _compact(self._compilation() | own | ({"archive": self.target["archive"]} if self.replay else {}))

    def harness_settings(self) -> str:
        """Slice for ``build harness``, as JSON."""
        return _compact(self._compilation() | {"axes": {}, "code": digest_of(normalised_source(HARNESS))})

    def environment_settings(self) -> str:
        """Slice for ``describe``, as JSON."""
        return _compact({"target": self.target, "kernels": [str(p) for p in self.kernel_records()]})

    def analysis_settings(self) -> str:
        """Digest of what the tables, figures and the write-up take from the registry, the metrics, the published figures and the claims."""
        batches = {n: [b.meaning, b.digest, [[q.key, q.meaning] for q in b.quantities]] for n, b in self.batches.items()}
        return digest_of([self.study.digest, batches, self.published, self.claims])

    def _compilation(self) -> dict[str, Any]:
        return {
            "study": self.config.study,
            "architecture": self.architecture,
            "toolchain": self.config.build.toolchain,
            "flags": self.config.build.flags,
            "driver_cuda": None if self.replay else self.gpu["driver_cuda"],
        }

    # -- the folder ------------------------------------------------------------------------------------------------------

    def guard_folder(self) -> None:
        """Stop if the results folder cannot be written, holds another GPU's run, or a live run that a replay would overwrite."""
        there = next(p for p in (self.paths.folder, *self.paths.folder.parents) if os.path.lexists(p))  # a link to nowhere too
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            what = "is no folder" if not there.is_dir() else "cannot be written"
            raise StudyError(f"{what}, so no results can go there", where=str(there), hint="make it writable, or use --config run=NAME")
        identity = self.paths.identity
        if not identity.exists():
            return
        held, mine = read_json(identity), self.identity()
        if held["archive"] and mine["archive"]:
            return  # a replay writes all raw files anew, whichever archive they came from
        if not held["archive"] and not mine["archive"] and held["gpu_uuid"] == mine["gpu_uuid"]:
            return

        def name(who: Mapping[str, Any]) -> str:
            if who["archive"]:
                return f"a replay of {who['archive']}"
            return f"a live run on {who['gpu_name']} ({who['gpu_uuid']})"

        raise StudyError(
            f"this folder holds {name(held)}; {name(mine)} would overwrite it",
            where=str(self.paths.folder),
            hint="give this run a folder of its own with --config run=NAME (or move the old folder away)",
        )

    def identity(self) -> dict[str, Any]:
        """Whose raw data the folder holds: compared before anything may be written into it."""
        return {
            "gpu_name": self.gpu["name"],
            "gpu_uuid": self.gpu["uuid"],
            "archive": self.target["archive"],
            "archive_sha256": self.target["archive_sha256"],
        }


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
