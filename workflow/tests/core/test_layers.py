"""Who may import whom: commands know everything, stages do not know each other's files, and nobody below knows archives."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import transpose_study

PACKAGE = Path(transpose_study.__file__).parent

# What is imported -> the parts of the package that may; a part is a folder or a module beside them.
ONLY_FOR = {
    "transpose_study.archive": {"archive", "cli"},  # reading an archive file is transpose_study.container, for everybody
    "transpose_study.comparison": {"comparison", "cli"},
    "transpose_study.doctor": {"doctor", "cli"},
    "transpose_study.cli": {"cli", "__main__"},
    "transpose_study.report": {"report", "comparison", "cli"},
    "cupy": {"gpu"},
}
NEVER = {"simt": "transpose_study.gpu", "analysis": "transpose_study.gpu", "report": "transpose_study.gpu"}


def imports() -> Iterator[tuple[str, str, str]]:
    """(part, file, imported name) of every import in the package, those inside functions included."""
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE)
        part = file.parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((part, str(file), a.name) for a in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from ((part, str(file), f"{node.module}.{a.name}") for a in node.names)


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


@pytest.mark.parametrize("package", ONLY_FOR)
def test_only_these_parts_import(package: str) -> None:
    found = [(part, file) for part, file, name in imports() if within(name, package)]
    assert found, f"nobody imports {package}: does it still exist?"
    assert [file for part, file in found if part not in ONLY_FOR[package]] == []


@pytest.mark.parametrize("part", NEVER)
def test_parts_that_never_touch_the_gpu(part: str) -> None:
    assert [(file, name) for p, file, name in imports() if p == part and within(name, NEVER[part])] == []
