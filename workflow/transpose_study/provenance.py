"""What a table row or a figure came from: the run's raw data, its configuration, the kernel's cubin, as short digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transpose_study.container import Container
from transpose_study.experiment import Experiment
from transpose_study.records import digest_of, read_json, sha256_file

COLUMNS = ["run_id", "configuration_digest", "cubin_digest"]  # the last columns of every table
DIGITS = 12

# Keys of the configuration that decide neither what is measured nor how.
PRESENTATION = ("run", "device", "replay", "report", "paper", "compare", "also")


def configuration_digest(experiment: Experiment) -> str:
    """Digest of everything in the configuration that decides about the measured data (12 hex digits)."""
    data = experiment.config.model_dump(mode="json")
    return digest_of({k: v for k, v in data.items() if k not in PRESENTATION})[:DIGITS]


def run_id(experiment: Experiment) -> str:
    """Digest of the raw data themselves (12 hex digits): the same in a replay, another as soon as a single sample differs."""
    digest = hashlib.sha256()
    for path in sorted(experiment.raw_files()):
        if path.is_file():
            digest.update(f"{path.relative_to(experiment.paths.folder).as_posix()} {sha256_file(path)}\n".encode())
    return digest.hexdigest()[:DIGITS]


class Provenance:
    """The digests behind one results folder's tables and figures. In a replay the cubins are those that were measured."""

    def __init__(self, experiment: Experiment) -> None:
        self._study, self._architecture = experiment.study, experiment.architecture
        self.run_id = run_id(experiment)
        self.configuration_digest = configuration_digest(experiment)
        self._cubins = _cubins(experiment)

    def stamp(self, row: Mapping[str, Any]) -> dict[str, str]:
        """The columns of :data:`COLUMNS` for a table row: by its variant and axes, or by the cells that its ``cell`` names."""
        if "variant" in row:
            axes = self._study.variants[row["variant"]].code_axes if row["variant"] in self._study.variants else ()
            cubin = self._cubin(str(row["variant"]), {a: str(row.get(a, "")) for a in axes})
        else:
            cells = [c for c in str(row.get("cell") or "").split("; ") if c]
            cubin = "; ".join(d for d in (self._cubin_of(c) for c in cells) if d)
        return {"run_id": self.run_id, "configuration_digest": self.configuration_digest, "cubin_digest": cubin}

    def _cubin_of(self, cell: str) -> str:
        """The cubin of a cell written ``variant, axis value, axis value``."""
        variant, *pairs = (p.strip() for p in cell.split(","))
        return self._cubin(variant, dict(p.split(" ", 1) for p in pairs))

    def _cubin(self, variant: str, values: Mapping[str, str]) -> str:
        known = self._study.variants.get(variant)
        name = variant + "".join(f"_{self._study.axes[a].tag}{values.get(a, '')}" for a in (known.code_axes if known else ()))
        return (self._cubins.get(name) or "")[:DIGITS]


def source_of(rows: Sequence[Mapping[str, str]]) -> str | None:
    """One line for the metadata of a figure drawn from table ``rows``; None where they do not tell."""
    if not rows or not set(COLUMNS) <= set(rows[0]):
        return None
    cubins = digest_of(sorted({r["cubin_digest"] for r in rows}))[:DIGITS]
    return f"run {rows[0]['run_id']}, configuration {rows[0]['configuration_digest']}, cubins {cubins}"


def _cubins(experiment: Experiment) -> dict[str, str]:
    """sha256 of each kernel's cubin as the build recorded it; "" where it did not compile."""
    measured = _measured_cubins(experiment)
    found: dict[str, str] = {}
    for path in experiment.kernel_records():
        if path.stem in measured:
            found[path.stem] = measured[path.stem]
        elif path.is_file():
            found[path.stem] = _cubin(read_json(path))
    return found


def _measured_cubins(experiment: Experiment) -> dict[str, str]:
    """In a replay, what the archive's own build records say."""
    archive = experiment.root / str(experiment.target["archive"])
    if not experiment.replay or not archive.is_file():
        return {}
    container = Container(archive)
    prefix = f"build/sm_{experiment.architecture}/"
    names = [n for n in container.names if n.startswith(prefix) and n.endswith(".json")]
    return {Path(n).stem: _cubin(json.loads(container.read(n))) for n in names}


def _cubin(record: Any) -> str:
    return str(record.get("cubin_sha256") or "") if isinstance(record, dict) else ""
