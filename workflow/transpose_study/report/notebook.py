"""Executing the write-up: py:percent source -> notebook -> kernel -> notebook with outputs, the same bytes every time."""

from __future__ import annotations

import copy
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import jupytext
import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode

from transpose_study.errors import StudyError
from transpose_study.report import marks
from transpose_study.report.page import mime_type
from transpose_study.report.texts import ENGLISH, Language

KERNEL = "python3"  # the name every Jupyter front end resolves to its own Python


def read_source(path: Path) -> NotebookNode:
    """Read a py:percent source as a notebook whose cell ids are its cells' positions."""
    if not path.is_file():
        raise StudyError("the write-up's source is not there", where=str(path))
    notebook = jupytext.read(path, fmt="py:percent")
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:03d}"
        cell["metadata"] = {}
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    notebook["metadata"] = {"kernelspec": {"name": KERNEL, "display_name": "Python 3", "language": "python"}}
    return notebook


def execute(source: Path, *, folder: Path, environment: Mapping[str, str], timeout_s: int = 300) -> NotebookNode:
    """Run all cells of ``source`` in ``folder`` with this interpreter and return the notebook with its outputs.

    The kernel sees none of the user's Jupyter or IPython settings: its specification, profile and connection file lie in
    a temporary folder. A cell that fails is a :class:`StudyError` that names the source, the cell and the error.
    """
    notebook = read_source(source)
    with tempfile.TemporaryDirectory(prefix="transpose-study-") as scratch:
        manager = AsyncKernelManager(
            kernel_name=KERNEL,
            kernel_spec_manager=_only_this_interpreter(Path(scratch)),
            connection_file=str(Path(scratch) / "kernel.json"),
        )
        client = NotebookClient(
            notebook,
            km=manager,
            timeout=timeout_s,
            startup_timeout=120,
            record_timing=False,
            resources={"metadata": {"path": str(folder)}},
        )
        said = Path(scratch) / "stderr"
        try:
            with said.open("wb") as stderr:
                client.execute(env={**os.environ, **_isolation(Path(scratch)), **environment}, stderr=stderr)
        except CellExecutionError as error:
            raise StudyError(f"a cell of the write-up fails: {error.ename}: {error.evalue}", where=_place(notebook, source)) from None
        except (DeadKernelError, TimeoutError) as error:
            last = said.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise StudyError(f"the write-up could not be executed: {error}", where=str(source), hint="".join(last)) from None
    _settle(notebook)
    nbformat.validate(notebook)
    return notebook


def as_text(notebook: NotebookNode) -> str:
    """The notebook as JSON with sorted keys: its English edition, without marks."""
    shown = copy.deepcopy(notebook)
    numbers = marks.labels(_joined(notebook, ENGLISH))
    for cell in shown.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            output["data"] = {k: marks.resolved(marks.untraced(v), numbers, marks.KINDS) for k, v in data.items() if k == mime_type(ENGLISH)}
    return json.dumps(shown, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def as_markdown(notebook: NotebookNode, language: Language, *, linked: bool = False) -> str:
    """One edition: its Markdown cells and the Markdown outputs of its code cells, without the code.

    ``linked`` keeps the traces of figures and links the references, for the pages made from it.
    """
    joined = _joined(notebook, language.code, language)
    words = {kind: language.template(word) for kind, word in marks.KINDS.items()}
    text = marks.resolved(joined, marks.labels(joined), words, linked=linked)
    return text if linked else marks.untraced(text)


def _joined(notebook: NotebookNode, code: str, language: Language | None = None) -> str:
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(_translated(cell.source, language or Language(ENGLISH)))
        for output in cell.get("outputs", ()):
            text = output.get("data", {}).get(mime_type(code))
            if text is not None:
                parts.append(text)
    return "\n\n".join(p.strip("\n") for p in parts if p.strip()) + "\n"


def _translated(source: str, language: Language) -> str:
    """A Markdown cell, paragraph by paragraph; the marks of headings are kept."""
    blocks = []
    for block in source.strip("\n").split("\n\n"):
        level = len(block) - len(block.lstrip("#"))
        blocks.append("#" * level + " " * bool(level) + language.template(" ".join(block[level:].split())))
    return "\n\n".join(blocks)


def _only_this_interpreter(scratch: Path) -> KernelSpecManager:
    folder = scratch / "kernels" / KERNEL
    folder.mkdir(parents=True)
    launch = [sys.executable, "-m", "ipykernel_launcher", "--HistoryManager.enabled=False", "-f", "{connection_file}"]
    specification = {"argv": launch, "display_name": "Python 3", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(specification), encoding="utf-8")
    return KernelSpecManager(kernel_dirs=[str(scratch / "kernels")], ensure_native_kernel=False)


def _isolation(scratch: Path) -> dict[str, str]:
    package = str(Path(__file__).resolve().parents[2])  # importable in the kernel even where the package is not installed
    search = os.pathsep.join(p for p in (package, os.environ.get("PYTHONPATH", "")) if p)
    names = ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    return {n: str(scratch / n.lower()) for n in names} | {"JUPYTER_NO_CONFIG": "1", "PYTHONPATH": search, "PYTHONHASHSEED": "0"}


def _place(notebook: NotebookNode, source: Path) -> str:
    for cell in notebook.cells:
        if any(o.output_type == "error" for o in cell.get("outputs", ())):
            first = next((line for line in cell.source.splitlines() if line.strip()), "")
            return f"{source}, {cell.id} ({first.strip()})"
    return str(source)


def _settle(notebook: NotebookNode) -> None:
    """Remove what differs between machines: the interpreter's version, and warnings on stderr."""
    notebook["metadata"]["language_info"] = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}
    for cell in notebook.cells:
        cell["metadata"] = {}
        if "outputs" in cell:
            cell["outputs"] = [o for o in cell["outputs"] if not (o.output_type == "stream" and o.name == "stderr")]
