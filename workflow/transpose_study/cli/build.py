"""``build``: compile the kernels of one variant, or the measuring program's own."""

from __future__ import annotations

import argparse
from pathlib import Path

from transpose_study.cli.common import add_run, add_settings, settings
from transpose_study.progress import Log

HARNESS = "harness"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the sub-command."""
    build = commands.add_parser(
        "build",
        help="compile one variant for all its axis values: cubin, PTX, SASS, record",
        description="Compiles one variant for all its axis values: reads its source and registry entry, writes cubin, PTX, SASS and a "
        "record into build/.",
    )
    build.add_argument("variant", help=f"a variant of the registry, or {HARNESS}")
    add_run(build)
    add_settings(build)
    build.set_defaults(run_command=run_build)


def run_build(args: argparse.Namespace, log: Log) -> None:
    """Compile; kernels that fail are recorded and said, and the study goes on without them."""
    from transpose_study.gpu import toolchain
    from transpose_study.gpu.compile import build_harness, build_kernels
    from transpose_study.listings import archived, none
    from transpose_study.paths import RunPaths
    from transpose_study.registry import Study

    wanted = settings(args)
    tools = toolchain.find(wanted["toolchain"], wanted["driver_cuda"])
    log.note(f"nvcc {tools.version} from {tools.nvcc}")
    paths = RunPaths(args.run)
    if args.variant == HARNESS:
        build_harness(paths, wanted["architecture"], tools)
        return
    study = Study(Path("kernels") / wanted["study"] / "variants.yaml")
    kernels = study.kernels(study.variant(args.variant), wanted["axes"])
    known = archived(Path(wanted["archive"]), wanted["architecture"]) if wanted.get("archive") else none
    failed = build_kernels(study, kernels, paths, wanted["architecture"], flags=wanted["flags"], toolchain=tools, log=log, listings=known)
    if failed:
        log.say(f"{failed} of {len(kernels)} kernels of {args.variant} do not compile; their cells carry the reason, the others go on")
