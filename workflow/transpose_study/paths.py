"""Where everything of one run lies: ``results/<device>/<study>/`` (the project's data contract)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunPaths:
    """The paths of one results folder; relative to the project where the folder was given so."""

    folder: Path

    @property
    def run_config(self) -> Path:
        """The resolved configuration, defaults included."""
        return self.folder / "run_config.yaml"

    @property
    def environment(self) -> Path:
        """GPU, driver, compiler, ncu, packages, commit, start and end."""
        return self.folder / "environment.json"

    @property
    def identity(self) -> Path:
        """Whose raw data this folder holds: GPU, or the archive it was restored from."""
        return self.folder / "raw" / "run.json"

    @property
    def journal(self) -> Path:
        """One JSON line for each finished measuring stage: what, when, how long."""
        return self.folder / "logs" / "journal.jsonl"

    def build(self, architecture: str) -> Path:
        """Folder of the compiled kernels."""
        return self.folder / "build" / f"sm_{architecture}"

    def kernel(self, architecture: str, kernel: str, suffix: str) -> Path:
        """A compiled kernel's file; ``suffix`` is cubin, ptx, sass or json."""
        return self.build(architecture) / f"{kernel}.{suffix}"

    @property
    def check(self) -> Path:
        """Verdict of every cell, on the GPU."""
        return self.folder / "raw" / "check.csv"

    def check_part(self, group: str) -> Path:
        """Verdict of the cells of one group."""
        return self.folder / "raw" / "check" / f"{group}.csv"

    def timing(self, group: str) -> Path:
        """Every timing sample of one group."""
        return self.folder / "raw" / "timing" / f"{group}.csv"

    def counters(self, group: str) -> Path:
        """Every counter value of one group."""
        return self.folder / "raw" / "counters" / f"{group}.csv"

    def ncu_report(self, group: str, batch: str) -> Path:
        """ncu's own report of one group and metric batch."""
        return self.folder / "raw" / "counters" / f"{group}.{batch}.ncu-rep"

    def counters_part(self, group: str, batch: str) -> Path:
        """Counter values of one group and metric batch, before the batches are joined."""
        return self.folder / "raw" / "counters" / "parts" / f"{group}.{batch}.csv"

    @property
    def predicted(self) -> Path:
        """Every predicted quantity of every cell."""
        return self.folder / "predicted.csv"

    @property
    def predicted_banks(self) -> Path:
        """Words of shared memory, by bank, that one warp of each kernel touches."""
        return self.folder / "predicted_banks.csv"

    @property
    def predicted_check(self) -> Path:
        """Verdict of every cell, without a GPU."""
        return self.folder / "predicted_check.csv"

    def table(self, name: str) -> Path:
        """A tidy table."""
        return self.folder / "tables" / f"{name}.csv"

    def figure(self, name: str, suffix: str = "svg") -> Path:
        """A figure."""
        return self.folder / "figures" / f"{name}.{suffix}"

    def report(self, study: str, suffix: str) -> Path:
        """The write-up in one format."""
        return self.folder / "report" / f"{study}.{suffix}"

    def log(self, name: str) -> Path:
        """A stage's log."""
        return self.folder / "logs" / f"{name}.log"
