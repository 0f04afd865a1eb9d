"""A stand-in for a machine with the recorded GPU: Python imports this first where this folder is on PYTHONPATH.

It makes transpose_study believe that the archive's GPU is visible, and answers for the two programs that would touch it,
the worker process and ncu, with what they gave on the real one. The source of everything replayed is the archive that
TRANSPOSE_STUDY_STANDIN names, recorded by this project's own ``check``, ``time`` and ``profile`` on an NVIDIA H200; nothing
is made up. All shapes get the values of the one recorded shape, each under its own rows and columns: the tests that use
this look at which steps run again, never at the values. A cell that was not recorded is an error.

TRANSPOSE_STUDY_STANDIN_GATE names a file that every timing process waits for, to be killed in the middle.
TRANSPOSE_STUDY_STANDIN_NCU is ``missing`` for a machine without ncu, or a text that the real ncu printed when it gave nothing
(material/ncu/README.md names where each was recorded).
"""

from __future__ import annotations

import csv
import importlib.abc
import importlib.util
import io
import json
import os
import sys
import time
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

ARCHIVE = os.environ.get("TRANSPOSE_STUDY_STANDIN", "")


@cache
def recorded(prefix: str) -> list[dict[str, str]]:
    """The rows of the archive's CSV files whose names begin so."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        names = [n for n in archive.namelist() if n.startswith(prefix) and n.endswith(".csv")]
        return [row for name in names for row in csv.DictReader(io.StringIO(archive.read(name).decode()))]


def rows_of(prefix: str, cell: dict[str, Any], **wanted: str) -> list[dict[str, str]]:
    """The recorded rows of a cell, whatever its shape."""
    wanted |= {"variant": cell["variant"]} | {axis: str(value) for axis, value in cell["kernel_values"].items()}
    found = [row for row in recorded(prefix) if all(row[k] == v for k, v in wanted.items())]
    if not found:
        raise LookupError(f"the stand-in has no recorded {prefix} of {wanted}")
    return found


def device(module: Any) -> None:
    """``visible_devices()`` is the recorded GPU."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        facts = json.loads(archive.read("environment.json"))["gpu"]
    gpu = module.Device(**{k: v for k, v in facts.items() if k in module.Device.__dataclass_fields__})
    module.visible_devices = lambda: [gpu]


def supervise(module: Any) -> None:
    """``Worker`` says what the real worker said of the same cells."""

    class Recorded:
        pid = 0

        def __init__(self, mode: str, job: dict[str, Any], gpu_uuid: str) -> None:
            self.mode, self.job = mode, job

        def __enter__(self) -> Recorded:
            return self

        def __exit__(self, *_: object) -> None:
            self.end()

        def go(self) -> None:
            pass

        def end(self) -> None:
            pass

        def results(self, timeout_s: float) -> Any:
            return self.checked() if self.mode == "check" else self.timed()

        def checked(self) -> Any:
            for number, cell in enumerate(self.job["cells"]):
                yield {"begin": number}
                row = rows_of("raw/check.csv", cell)[0]
                yield {"cell": number} | {k: row[k] for k in ("status", "reason", "row", "col", "expected", "got")}

        def timed(self) -> Any:
            gate, end = os.environ.get("TRANSPOSE_STUDY_STANDIN_GATE", ""), time.monotonic() + 120
            while gate and not Path(gate).exists() and time.monotonic() < end:
                time.sleep(0.05)
            yield {"warmed_up": True, "passes": 1, "unsettled": 0, "seconds": 0.0}
            for number in range(self.job["rounds"]):
                samples: list[list[Any]] = []
                for position, entry in enumerate(self.job["entries"]):
                    for mode in self.job["timing"]["cache_modes"]:
                        rows = rows_of("raw/timing/", entry, cache_mode=mode, replicate=entry["replicate"])
                        row = rows[(self.job["process"] * self.job["rounds"] + number) % len(rows)]
                        samples.append([position, mode, int(row["launches"]), float(row["sample_us"])])
                telemetry = ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w", "throttle_reasons")
                yield {"round": number, "samples": samples, "telemetry": {k: row[k] for k in telemetry}}

    module.Worker = Recorded


def ncu(module: Any) -> None:
    """ncu is there, and its report is the list of launches it was asked for."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        version = json.loads(archive.read("environment.json"))["ncu"]
    refusal = os.environ.get("TRANSPOSE_STUDY_STANDIN_NCU", "")
    module.find_ncu = lambda: None if refusal == "missing" else Path("ncu")
    module.version = lambda path: version

    def profile(path: Path, batch: Any, metrics: Any, kernels: Any, job: str, *, gpu_uuid: str, report: Path, timeout_s: float) -> Any:
        if refusal:
            text = Path(refusal).read_text(encoding="utf-8")
            return module.NcuResult(None, module.explain(text, 1), text, False)
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(json.dumps(json.loads(job) | {"batch": batch.name}), encoding="utf-8")
        return module.NcuResult(report, "", "", False)

    module.profile = profile


def ncu_report_reader(module: Any) -> None:
    """The launches of such a report, with the values ncu read of the same kernels."""

    class Action:
        def __init__(self, cell: dict[str, Any], batch: str) -> None:
            self.cell, self.batch = cell, batch

        def name(self) -> str:
            return str(self.cell["variant"])

    def actions(report: Path) -> list[Action]:
        job = json.loads(report.read_text(encoding="utf-8"))
        return [Action(cell, job["batch"]) for cell in job["cells"] for _ in range(job["launches"])]

    def values(action: Action, quantities: Any) -> Any:
        rows = rows_of("raw/counters/", action.cell, batch=action.batch, launch="0")
        for quantity, _ in quantities:
            for row in rows:
                if row["quantity"].split("[")[0] == quantity.key:
                    value = float(row["value"]) if row["value"] else None
                    yield module.Value(row["quantity"], row["metric"], value, row["unit"], row["reason"])

    module.actions, module.values = actions, values


PATCHES = {
    "transpose_study.device": device,
    "transpose_study.gpu.supervise": supervise,
    "transpose_study.gpu.ncu": ncu,
    "transpose_study.gpu.ncu_report_reader": ncu_report_reader,
}


class Finder(importlib.abc.MetaPathFinder):
    """Changes the four modules as soon as they are loaded; nothing else is touched."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name not in PATCHES:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            PATCHES[name](module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if ARCHIVE:
    sys.meta_path.insert(0, Finder())
