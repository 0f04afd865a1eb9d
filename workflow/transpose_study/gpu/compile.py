"""Compile kernels: one cubin, PTX, disassembly and build record for each kernel and architecture."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from transpose_study.errors import StudyError
from transpose_study.gpu import toolchain as tools
from transpose_study.gpu.toolchain import Toolchain
from transpose_study.listings import Listings, none
from transpose_study.paths import RunPaths
from transpose_study.progress import Log
from transpose_study.records import read_json, sha256_bytes, sha256_file, write_bytes, write_json
from transpose_study.registry import Kernel, Study
from transpose_study.sources import HARNESS, local_includes

# ptxas -v prints one line of each kind for a kernel.
_FACTS = {
    "registers": re.compile(r"Used (\d+) registers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "barriers": re.compile(r"used (\d+) barriers"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spill_store_bytes": re.compile(r"(\d+) bytes spill stores"),
    "spill_load_bytes": re.compile(r"(\d+) bytes spill loads"),
}

# What nvcc and the host compiler say when something outside stopped them: nothing about the kernel, so no verdict on it.
_STOPPED = re.compile(
    r"No space left on device|Could not open output file|Cannot allocate memory|out of memory allocating"
    r"|died due to signal (?:2|9|15)\b|(?:Killed|Terminated|Interrupt) signal terminated program"
)
_INDIRECT = re.compile(r"\b(?:BRX|JMX)U?\b")
_STOPPED_HINT = "free some memory, and some disk space where temporary files go (TMPDIR), then run the same command again"


def build_kernels(
    study: Study,
    kernels: Sequence[Kernel],
    paths: RunPaths,
    architecture: str,
    *,
    flags: Sequence[str],
    toolchain: Toolchain,
    log: Log,
    listings: Listings = none,
) -> int:
    """Compile ``kernels``; write their files and records; return how many did not compile.

    A kernel that its preconditions rule out is recorded as skipped, one that the compiler refuses as failed, with the
    compiler's words: its cells carry the reason through the whole study while the others go on.
    """
    toolchain.require(architecture)
    workers = min(4, len(os.sched_getaffinity(0)))
    with ThreadPoolExecutor(workers) as pool:
        records = list(pool.map(lambda k: _build(study, k, paths, architecture, flags=flags, toolchain=toolchain, listings=listings), kernels))
    for record in records:
        if record["status"] == "failed":
            log.say(f"{record['kernel']} does not compile:\n{record['reason']}")
        else:
            facts = f"{record['registers']} registers, {record['shared_bytes']} B shared" if record["status"] == "ok" else record["reason"]
            log.note(f"{record['kernel']}: {record['status']}, {facts}")
    return sum(r["status"] == "failed" for r in records)


def _build(
    study: Study, kernel: Kernel, paths: RunPaths, architecture: str, *, flags: Sequence[str], toolchain: Toolchain, listings: Listings
) -> dict[str, Any]:
    name = study.kernel_name(kernel)
    source = kernel.variant.source
    assert source is not None, "a driver copy has nothing to compile"
    record: dict[str, Any] = {
        "variant": kernel.variant.name,
        "values": dict(kernel.values),
        "kernel": name,
        "architecture": architecture,
        "status": "skipped",
        "reason": study.kernel_refusal(kernel),
        "compiler": {"nvcc": toolchain.version, "flags": list(flags)},
        "code_digest": study.code_digest(kernel.variant),
        "cubin_sha256": None,
        "ptx_sha256": None,
        **dict.fromkeys(_FACTS),
    }
    outputs = {s: paths.kernel(architecture, name, s) for s in ("cubin", "ptx", "sass")}
    for path in outputs.values():
        path.unlink(missing_ok=True)
    if not record["reason"]:
        macros = [f"-D{m}={v}" for m, v in study.macros(kernel).items()]
        made, output = compile_source(source, toolchain, architecture, [*macros, *flags], lambda cubin: listings(name, cubin))
        if made is None:
            record |= {"status": "failed", "reason": output}
        elif kernel.variant.name not in _entry_names(made["ptx"]):
            entries = ", ".join(_entry_names(made["ptx"])) or "none"
            reason = f'{source.name} has no extern "C" __global__ function {kernel.variant.name}; it has: {entries}'
            record |= {"status": "failed", "reason": reason}
        else:
            for suffix, data in made.items():
                write_bytes(outputs[suffix], data)
            record |= {"status": "ok", "cubin_sha256": sha256_bytes(made["cubin"]), "ptx_sha256": sha256_bytes(made["ptx"])}
            record |= ptxas_facts(output)
    write_json(paths.kernel(architecture, name, "json"), record)
    return record


def compile_source(
    source: Path, toolchain: Toolchain, architecture: str, flags: Sequence[str], listing: Callable[[bytes], bytes | None] = lambda _: None
) -> tuple[dict[str, bytes] | None, str]:
    """Compile one source; return its cubin, PTX and disassembly (or None) and what the compiler said.

    ``listing`` gives the disassembly of a cubin where that is known already.

    The source is copied under a fixed name into a folder of its own, since the cubin records file names: equal code then
    gives equal bytes on every machine. Messages name the user's own file again.
    """
    with tempfile.TemporaryDirectory(prefix="transpose-study-") as folder:
        scratch = _lay_out(source, Path(folder))
        done = toolchain.run(
            toolchain.nvcc, f"-arch=sm_{architecture}", "-cubin", "--keep", "-Xptxas", "-v",
            *tools.host_compiler_flags(scratch), *flags, "kernel.cu", "-o", "kernel.cubin", cwd=scratch,
        )  # fmt: skip
        output = done.stdout.replace("kernel.cu(", f"{source}(").replace("kernel.cu:", f"{source}:")
        if done.returncode < 0 or (done.returncode and _STOPPED.search(output)):
            raise StudyError(f"the compiler was stopped: {output.strip() or 'by a signal'}", where=str(source), hint=_STOPPED_HINT)
        if done.returncode:
            return None, output.strip()
        made = {s: (scratch / f"kernel.{s}").read_bytes() for s in ("cubin", "ptx")}
        known = listing(made["cubin"])
        return made | {"sass": _disassembly(scratch, toolchain) if known is None else known}, output


def _disassembly(scratch: Path, toolchain: Toolchain) -> bytes:
    # Without dataflow analysis, which only names the targets of indirect branches and takes a quarter of the time.
    sass = toolchain.run(toolchain.nvdisasm, "-c", "-ndf", "kernel.cubin", cwd=scratch)
    if _INDIRECT.search(sass.stdout):
        sass = toolchain.run(toolchain.nvdisasm, "-c", "kernel.cubin", cwd=scratch)
    if sass.returncode:
        raise StudyError(f"nvdisasm cannot read the cubin: {sass.stdout.strip()}", where=str(toolchain.nvdisasm))
    return sass.stdout.encode()


def _lay_out(source: Path, folder: Path) -> Path:
    """Copy ``source`` (as ``kernel.cu``) and what it includes into ``folder``, each where it lies relative to the source.

    Returns the folder of ``kernel.cu``: so deep that an include above the source's folder stays inside ``folder``.
    """
    home = os.path.abspath(source.parent)
    includes = {os.path.relpath(os.path.abspath(i), home): i for i in local_includes(source)}
    above = max((Path(place).parts.count(os.pardir) for place in includes), default=0)
    scratch = folder.joinpath(*["above"] * above)
    for place, origin in {"kernel.cu": source, **includes}.items():
        target = Path(os.path.normpath(scratch / place))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(origin, target)
    return scratch


def _entry_names(ptx: bytes) -> list[str]:
    return re.findall(r"\.entry\s+([\w$]+)", ptx.decode())


def ptxas_facts(output: str) -> dict[str, int]:
    """Registers, static shared memory, barriers, stack and spills from what ptxas -v printed (0 where it names none)."""
    facts = {}
    for key, pattern in _FACTS.items():
        match = pattern.search(output)
        facts[key] = int(match.group(1)) if match else 0
    return facts


def build_harness(paths: RunPaths, architecture: str, toolchain: Toolchain) -> None:
    """Compile the measuring program's own kernels (filling, comparing, delaying)."""
    toolchain.require(architecture)
    made, output = compile_source(HARNESS, toolchain, architecture, [])
    if made is None:
        raise StudyError(f"the harness does not compile:\n{output}", where=str(HARNESS))
    write_bytes(paths.kernel(architecture, "harness", "cubin"), made["cubin"])


def load_record(paths: RunPaths, architecture: str, kernel: str) -> dict[str, Any]:
    """A kernel's build record, its cubin compared with it; a missing or foreign cubin is a :class:`StudyError`."""
    record: dict[str, Any] = read_json(paths.kernel(architecture, kernel, "json"))
    cubin = paths.kernel(architecture, kernel, "cubin")
    if record["status"] == "ok" and (not cubin.is_file() or sha256_file(cubin) != record["cubin_sha256"]):
        raise StudyError(
            "is missing or is not the one its build record describes",
            where=str(cubin),
            hint=f"build it anew: snakemake --cores 1 --forcerun build_{record['variant']} (build_{record['variant']}_STUDY in a further study)",
        )
    return record
