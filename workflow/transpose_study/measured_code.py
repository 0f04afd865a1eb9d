"""Which kernels of the project differ from those an archive measured: its figures are not theirs."""

from __future__ import annotations

import tempfile
from pathlib import Path, PurePosixPath

from transpose_study.container import Container
from transpose_study.errors import StudyError
from transpose_study.records import write_bytes
from transpose_study.registry import Study, Variant


def other_code(study: Study, container: Container) -> set[str]:
    """Variants of ``study`` whose code, launch or sizes are not what the archive's own sources say.

    A variant that the archive lacks is not among them (nothing is measured of it), and nor is any where the archive holds
    no readable registry, for then nothing can be told.
    """
    prefix = f"sources/kernels/{study.path.parent.name}/"
    members = [n for n in container.names if n.startswith(prefix)]
    with tempfile.TemporaryDirectory(prefix="transpose-study-") as scratch:
        for name in members:
            write_bytes(Path(scratch) / PurePosixPath(name).relative_to(prefix), container.read(name))
        try:
            archived = Study(Path(scratch) / study.path.name)
        except StudyError:
            return set()
        return {
            name
            for name, variant in study.variants.items()
            if name in archived.variants and _measured(archived, archived.variants[name]) != _measured(study, variant)
        }


def _measured(study: Study, variant: Variant) -> tuple[str, ...]:
    """What a variant was measured with, and the registry's sizes that stand where it has none of its own."""
    sizes = (study.elements if variant.elements is None else variant.elements, study.bytes_moved if variant.bytes is None else variant.bytes)
    return study.launch_digest(variant), *("".join(str(s).split()) for s in sizes)
