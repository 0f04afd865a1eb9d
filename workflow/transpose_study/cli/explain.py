"""``explain``: what one warp of a kernel touches at each load and store, and why it costs what it costs."""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transpose_study.cli.common import AXIS, STUDY, Command, add_axis, add_log, study_asked_for, study_named, variant_named
from transpose_study.errors import StudyError
from transpose_study.progress import Log

if TYPE_CHECKING:
    from transpose_study.registry import Cell, Study, Variant
    from transpose_study.simt.explain import BankPicture, Touch
    from transpose_study.simt.machine import Launch, Program

USUAL_SIZE = 4096  # along each axis of a shape where none is given: the published study's is 4096 x 4096

# Local memory of a thread, for every compute capability (CUDA C++ Programming Guide, technical specifications: 512 KB).
MAX_LOCAL_BYTES = 512 * 1024


def add(commands: argparse._SubParsersAction[Command]) -> None:
    """Register the sub-command."""
    explain = commands.add_parser(
        "explain",
        help="show what one warp of a kernel touches, its banks, sectors and wavefronts",
        description="Compiles a kernel, executes one block of it on the CPU, and prints what a warp touches at each load and store; writes "
        "nothing but --svg.",
    )
    explain.add_argument("variant", help="a variant of the registry")
    explain.add_argument("--shape", metavar="RxC", help="shape of the input, or an experiment; default: 4096x4096, or the variant's experiment")
    explain.add_argument("--architecture", default="90", metavar="CC", help="compute capability without its dot to compile for; default: 90")
    explain.add_argument("--study", default=STUDY, help=f"default: {STUDY}")
    explain.add_argument("--svg", type=Path, metavar="FILE", help="also draw the banks of the tile into this file")
    add_log(explain)
    explain.set_defaults(run_command=run_explain)
    explain.late = _add_axes


def _add_axes(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """One option for each axis of the study that selects code; a registry that cannot be read is reported when the command runs."""
    study = study_asked_for(arguments)
    if study is None:
        return
    for name in dict.fromkeys(axis for variant in study.variants.values() for axis in variant.takes):
        usual = study.usual_value(name)
        meaning = study.axes[name].meaning + (f"; default: {usual}, the noise-floor cell's" if usual is not None else "")
        add_axis(parser, name, meaning, type=int, default=usual)


def run_explain(args: argparse.Namespace, log: Log) -> None:
    """Compile the kernel, execute one block of it on the CPU, and print what its first warp touches."""
    study = study_named(args.study)
    cell = _cell(study, args)
    try:
        _explain(study, cell, args, log)
    except MemoryError:
        raise StudyError(
            "takes more memory to execute on the CPU than there is here", where=study.cell_name(cell), hint="try smaller values"
        ) from None


def _explain(study: Study, cell: Cell, args: argparse.Namespace, log: Log) -> None:
    from transpose_study.records import write_text
    from transpose_study.simt import explain
    from transpose_study.simt.blocks import count_memory
    from transpose_study.simt.cells import launch_of

    program = _compile(study, cell, args.architecture)
    launch = launch_of(study, cell, program)
    lines = [f"{study.cell_name(cell)}: {cell.variant.title}", _geometry(launch)]
    lines += ["", "The first warp of the first block, access by access (PTX line, instruction, what it touches):"]
    every = explain.touches(program, launch)
    seen = [t for t in every if t.warp == 0]
    width = max((len(t.text) for t in seen), default=0)
    lines += [f"  {t.line:4}  {t.text:{width}}  {t.sentence()}" for t in seen]
    lines += ["", "The whole launch:", *_totals(count_memory(program, launch).totals)]
    picture = explain.bank_picture(program, launch)
    if picture:
        lines += ["", *_legend(every, picture)]
        header, *drawn = explain.terminal_picture(picture)
        lines += [f"  {'':9} {header}", *(f"  {_rows_of(n, picture.rows):9} {line}" for n, line in enumerate(drawn))]
        lines += [explain.picture_sentence(picture)]
    print("\n".join(lines))
    if args.svg:
        if picture is None:
            raise StudyError(f"{cell.variant.name} uses no shared memory: there are no banks to draw", where="--svg")
        write_text(args.svg, explain.svg_picture([(study.kernel_name(cell), picture)]))
        log.say(f"drew {args.svg}")


def _cell(study: Study, args: argparse.Namespace) -> Cell:
    from transpose_study.registry import Cell, Kernel

    variant = variant_named(study, args.variant)
    if variant.no_kernel:
        raise StudyError(f"{variant.name} is {variant.no_kernel}; there is no kernel to explain")
    group = _group(study, variant, args.shape)
    values = {a: getattr(args, AXIS + a) for a in variant.takes}
    for axis, value in values.items():
        if value is None:
            raise StudyError(f"{variant.name} takes the axis {axis}, which has no value", hint=f"give --{axis.replace('_', '-')} N")
        least = int(axis in variant.code_axes)  # what is only an argument may be 0: no offset, no shared memory, no lane
        if value < least:
            raise StudyError(f"{axis} is {value}; it must be at least {least}", where=f"--{axis.replace('_', '-')}")
    cell = Cell(variant, values, group)
    refusal = study.kernel_refusal(Kernel(variant, cell.kernel_values)) or study.cell_refusal(cell)
    if refusal:
        raise StudyError(refusal, where=study.cell_name(cell))
    return cell


def _group(study: Study, variant: Variant, shape: str | None) -> dict[str, Any]:
    """The group that is asked for; else the usual size, or the first configured experiment that holds the variant."""
    from transpose_study.cli.groups import configured_groups, group_named

    words = [a for a in study.group_axes if study.axes[a].words]
    if shape is None:
        usual = {a: a if a in words else USUAL_SIZE for a in study.group_axes}
        return next(iter(configured_groups(study, variant).values()), usual) if words else usual
    sizes = shape.lower().split("x")
    if not words and len(sizes) == len(study.group_axes) and all(re.fullmatch("[0-9]{1,20}", s) for s in sizes):
        return {a: int(s) for a, s in zip(study.group_axes, sizes, strict=True)}
    return group_named(study, variant, shape)


def _compile(study: Study, cell: Cell, architecture: str) -> Program:
    """The kernel's PTX, compiled for this purpose alone; the run folders stay as they are."""
    from transpose_study.gpu import toolchain
    from transpose_study.gpu.compile import build_kernels
    from transpose_study.paths import RunPaths
    from transpose_study.registry import Kernel
    from transpose_study.simt.cells import CompiledKernel
    from transpose_study.simt.limits import shared_refusal

    with tempfile.TemporaryDirectory(prefix="transpose-study-") as folder:
        paths = RunPaths(Path(folder))
        kernel = Kernel(cell.variant, cell.kernel_values)
        build_kernels(study, [kernel], paths, architecture, flags=[], toolchain=toolchain.find(), log=Log())
        built = CompiledKernel(paths, architecture, study.kernel_name(kernel), cell.variant.name)
        if built.refusal:
            raise StudyError(built.refusal, where=study.kernel_name(kernel))
        refusal = shared_refusal(study, cell, int(built.record["shared_bytes"]), architecture) or _local_refusal(built.program)
        if refusal:
            raise StudyError(refusal, where=study.cell_name(cell))
        return built.program


def _local_refusal(program: Program) -> str:
    needed = program.local_bytes
    return f"a thread needs {needed} bytes of local memory, a device gives at most {MAX_LOCAL_BYTES}" if needed > MAX_LOCAL_BYTES else ""


def _geometry(launch: Launch) -> str:
    grid, block = (" x ".join(str(n) for n in part[:2]) for part in (launch.grid, launch.block))
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    return f"{grid} blocks of {block} threads, {-(-threads // 32)} warps each"


def _legend(every: Sequence[Touch], picture: BankPicture) -> list[str]:
    """What the picture shows: whose words they are, of which instruction, and in which rows they lie."""
    told = ["Shared memory of the first block, 32 banks of 4 bytes across, two rows of 128 bytes in each line."]
    for shade, kind, verb, words in (("Dark", "load", "reads", picture.load), ("Light", "store", "writes", picture.store)):
        touch = next(t for t in every if (t.space, t.kind) == ("shared", kind) and _words(t) == set(words))
        rows = sorted({row for row, _ in words})
        where = f"row {rows[0]}" if len(rows) == 1 else f"rows {rows[0]} to {rows[-1]}"
        told.append(f"{shade}: the words that warp {touch.warp} {verb} at PTX line {touch.line}, in {where}.")
    return told


def _words(touch: Touch) -> set[tuple[int, int]]:
    """(row, bank) of each word of shared memory that is touched."""
    from transpose_study.simt.counters import BANKS, WORD_BYTES

    words = [a // WORD_BYTES + w for a in touch.address for w in range(max(1, touch.width // WORD_BYTES))]
    return {divmod(w, BANKS) for w in words}


def _rows_of(line: int, rows: int) -> str:
    """The rows that a line of the picture shows."""
    last = min(2 * line + 1, rows - 1)
    return f"row {2 * line}" if last == 2 * line else f"row {2 * line:2}-{last}"


def _totals(totals: dict[str, int]) -> list[str]:
    lines = []
    for way in ("load", "store"):
        requests = totals.get(f"global_{way}_requests", 0)
        if requests:
            sectors = totals[f"global_{way}_sectors"]
            lines.append(f"  global {way}s: {requests:,} requests, {sectors:,} sectors, {sectors / requests:.4g} sectors a request")
    for way in ("store", "load"):
        count = totals.get(f"shared_{way}_instructions", 0)
        if count:
            taken, ideal = totals[f"shared_{way}_wavefronts"], totals[f"shared_{way}_wavefronts_ideal"]
            lines.append(f"  shared {way}s: {count:,} instructions, {taken:,} wavefronts, {ideal:,} without conflicts")
    return lines
