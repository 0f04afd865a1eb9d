"""What is predicted for one cell: from its PTX, machine code, build record and geometry, and the device's limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transpose_study import sass
from transpose_study.errors import StudyError
from transpose_study.paths import RunPaths
from transpose_study.records import read_json
from transpose_study.registry import Cell, Study
from transpose_study.simt import cubin, ptx
from transpose_study.simt.blocks import Counts, count_memory
from transpose_study.simt.counters import SECTOR_BYTES
from transpose_study.simt.limits import limits_of
from transpose_study.simt.machine import Launch, Program
from transpose_study.simt.memory import place
from transpose_study.simt.occupancy import residency
from transpose_study.simt.sassmachine import Issued, count_instructions

OBSERVED_BYTES = 256  # of the words that a kernel writes what it observes to, as on a GPU
BY_OPCODE = "instructions_by_opcode[{}]"


@dataclass(frozen=True)
class Prediction:
    """One predicted quantity; ``value`` is None with a ``reason`` where nothing can be said."""

    quantity: str
    value: float | int | None
    unit: str
    reason: str = ""


class CompiledKernel:
    """The files of one built kernel, parsed once for all its cells."""

    def __init__(self, paths: RunPaths, architecture: str, name: str, variant: str) -> None:
        self.paths, self.architecture, self.name, self.variant = paths, architecture, name, variant
        record = read_json(self.file("json"))
        if not isinstance(record, dict) or "status" not in record:
            raise StudyError("is no build record", where=str(self.file("json")), hint="delete it and run snakemake again")
        self.record: dict[str, Any] = record

    def file(self, suffix: str) -> Path:
        """One of the kernel's files."""
        return self.paths.kernel(self.architecture, self.name, suffix)

    @property
    def refusal(self) -> str:
        """Why there is no compiled code, or ""."""
        return "" if self.record["status"] == "ok" else str(self.record["reason"] or self.record["status"])

    @cached_property
    def program(self) -> Program:
        """The kernel's PTX, ready to run."""
        return Program(_only(ptx.parse_file(self.file("ptx")), self.variant, self.file("ptx")))

    @cached_property
    def code(self) -> sass.MachineCode:
        """The kernel's machine code."""
        return _only(sass.parse_file(self.file("sass")), self.variant, self.file("sass"))

    @cached_property
    def parameter_base(self) -> int:
        """Where its parameters begin in constant bank 0."""
        return cubin.parameter_base(self.file("cubin"), self.variant)

    @property
    def parameter_sizes(self) -> list[int]:
        """Bytes of each parameter."""
        return [p.size for p in self.program.kernel.parameters]


def _only(kernels: Mapping[str, Any], name: str, path: Path) -> Any:
    if name not in kernels:
        raise StudyError(f"holds no kernel {name}; it holds {', '.join(kernels)}", where=str(path))
    return kernels[name]


def launch_of(study: Study, cell: Cell, program: Program) -> Launch:
    """The cell's launch, with the arguments that the registry names: addresses of 8 bytes, integers of 4."""
    geometry, given = study.geometry(cell), study.arguments_of(cell)
    sizes = {"input": study.input_bytes(cell), "output": study.matrix_bytes(cell), "observed": OBSERVED_BYTES}
    names = [n for n in sizes if n in given]  # each buffer has its place, whatever the order of the arguments
    buffers = dict(zip(names, place([(f"the {n}" if n != "observed" else "what it observes", sizes[n]) for n in names]), strict=True))
    parameters = program.kernel.parameters
    if [p.size for p in parameters] != [8 if isinstance(a, str) else 4 for a in given]:
        found = ", ".join(p.type for p in parameters)
        raise StudyError(
            f"takes the parameters ({found})",
            where=f"kernel {program.kernel.name}",
            hint=f"the registry says that it takes {', '.join(map(str, cell.variant.arguments))}",
        )
    arguments = tuple(buffers[a] if isinstance(a, str) else a for a in given)
    return Launch(geometry.grid, geometry.block, arguments, study.dynamic_shared_bytes(cell))


def predict_cell(study: Study, cell: Cell, kernel: CompiledKernel, compute_capability: str, peak_gb_s: float) -> list[Prediction]:
    """Everything that is predicted for a cell that can run; what one part cannot tell does not keep the others back."""
    out: list[Prediction] = []
    try:
        launch = launch_of(study, cell, kernel.program)
        counts, reason = count_memory(kernel.program, launch), ""
    except StudyError as error:
        counts, reason = None, str(error)
    try:
        issued, reason_issued = (
            count_instructions(kernel.code, launch_of(study, cell, kernel.program), kernel.parameter_sizes, kernel.parameter_base),
            "",
        )
    except StudyError as error:
        issued, reason_issued = None, str(error)
    out += _memory(counts, issued, reason)
    out += _traffic(counts, peak_gb_s, reason)
    out += _instructions(issued, reason_issued)
    out += _occupancy(study, cell, kernel.record, compute_capability)
    return out


def _memory(counts: Counts | None, issued: Issued | None, reason: str) -> list[Prediction]:
    totals = counts.totals if counts else {}

    def number(key: str) -> int | None:
        return totals.get(key, 0) if counts else None

    out = []
    for way in ("load", "store"):
        requests, sectors = number(f"global_{way}_requests"), number(f"global_{way}_sectors")
        out += [
            Prediction(f"global_{way}_requests", requests, "requests", reason),
            Prediction(f"global_{way}_sectors", sectors, "sectors", reason),
            Prediction(
                f"global_{way}_sectors_per_request",
                sectors / requests if requests and sectors is not None else None,
                "sectors/request",
                reason or ("" if requests else f"there is no global {way}"),
            ),
            Prediction(f"shared_{way}_instructions", _shared_instructions(issued, way, number(f"shared_{way}_instructions")), "instructions", reason),
            Prediction(f"shared_{way}_wavefronts", number(f"shared_{way}_wavefronts"), "wavefronts", reason),
            Prediction(f"shared_{way}_bank_conflicts", number(f"shared_{way}_conflicts"), "conflicts", reason),
        ]
    both = {k: sum(totals.get(f"shared_{way}_{k}", 0) for way in ("load", "store")) if counts else None for k in _BOTH}
    out += [Prediction(_BOTH[k], v, "wavefronts", reason) for k, v in both.items()]
    lines = totals.get("global_load_lines", 0) + totals.get("global_store_lines", 0) if counts else None
    out += [Prediction("global_lines", lines, "lines", reason)]
    out += [Prediction("barriers", number("barriers"), "instructions", reason), Prediction("warps_launched", number("warps"), "warps", reason)]
    return out


_BOTH = {"wavefronts": "shared_wavefronts_exact", "wavefronts_ideal": "shared_wavefronts_ideal", "conflicts": "shared_conflicts_exact"}


def _shared_instructions(issued: Issued | None, way: str, with_lanes: int | None) -> int | None:
    """Shared instructions as the hardware counts them: issued ones, also those whose guard is false in every lane."""
    if issued is None:
        return with_lanes
    return issued.by_opcode["LDS" if way == "load" else "STS"] + issued.by_opcode["ATOMS"] * (way == "load")


def _traffic(counts: Counts | None, peak_gb_s: float, reason: str) -> list[Prediction]:
    """Compulsory traffic: each sector between the first and the last byte touched moves once, or less where fewer are touched."""
    read = written = None
    if counts:
        read, written = (_touched(counts, way) for way in ("load", "store"))
    time = None if read is None or written is None else (read + written) / (peak_gb_s * 1e3)
    return [
        Prediction("compulsory_dram_read_bytes", read, "bytes", reason),
        Prediction("compulsory_dram_write_bytes", written, "bytes", reason),
        Prediction("compulsory_dram_time_us", time, "us", reason),
    ]


def _touched(counts: Counts, way: str) -> int:
    spans = [
        -(-last // SECTOR_BYTES) * SECTOR_BYTES - first // SECTOR_BYTES * SECTOR_BYTES
        for (kind, _), (first, last) in counts.reach.items()
        if kind == way
    ]
    return min(sum(spans), counts.totals.get(f"global_{way}_sectors", 0) * SECTOR_BYTES)


def _instructions(issued: Issued | None, reason: str) -> list[Prediction]:
    out = [
        Prediction("warp_instructions", issued.total if issued else None, "instructions", reason),
        Prediction("threads_per_instruction", issued.threads / issued.total if issued and issued.total else None, "threads", reason),
    ]
    if issued:
        out += [Prediction(BY_OPCODE.format(o), n, "instructions") for o, n in sorted(issued.by_opcode.items())]
    return out


def _occupancy(study: Study, cell: Cell, record: Mapping[str, Any], compute_capability: str) -> list[Prediction]:
    """Residency from ptxas's facts; limits that depend on the driver's carve-out are those of the largest one."""
    threads = study.geometry(cell).threads
    names = {
        "registers_per_thread": "registers",
        "shared_allocated_bytes_per_block": "bytes",
        "limit_blocks": "blocks",
        "limit_registers": "blocks",
        "limit_shared_memory": "blocks",
        "limit_warps": "blocks",
        "resident_blocks_per_sm": "blocks",
        "theoretical_occupancy_pct": "%",
    }
    shared_bytes = int(record["shared_bytes"]) + study.dynamic_shared_bytes(cell)
    shared = Prediction("shared_bytes", shared_bytes, "bytes")
    try:
        found = residency(limits_of(compute_capability), threads, int(record["registers"]), shared_bytes)
    except StudyError as error:
        return [shared, *(Prediction(n, None, u, str(error)) for n, u in names.items())]
    values = {n: getattr(found, n, None) for n in names}
    values |= {"resident_blocks_per_sm": found.resident_blocks}
    return [shared, *(Prediction(n, values[n], u) for n, u in names.items())]
