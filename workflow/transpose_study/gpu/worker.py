"""The process that touches the GPU: ``python -m transpose_study.gpu.worker MODE`` reads a job, prints JSON lines.

It runs apart from the command that started it, because a faulty kernel can take the CUDA context, or the whole
process, with it; and because each timing process must be a fresh one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from transpose_study.errors import StudyError
from transpose_study.registry import Study


def main(mode: str) -> int:
    """Read the job from stdin (one JSON line), wait for ``go`` if asked to, run it, print one JSON line per result."""
    out = sys.stdout
    sys.stdout = sys.stderr  # nothing but results may reach the pipe

    def emit(message: dict[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    job = json.loads(sys.stdin.readline())
    try:
        import cupy  # noqa: F401 - slow; imported before the GPU is asked for

        from transpose_study.gpu import checking, launching, observe, rounds

        emit({"ready": True})
        if job.get("wait") and sys.stdin.readline().strip() != "go":
            return 0
        study = Study(Path(job["registry"]))
        {"check": checking.run, "time": rounds.run, "profile": launching.run, "observe": observe.run}[mode](study, job, emit)
    except StudyError as error:
        emit({"error": {"what": error.what, "where": error.where, "hint": error.hint}})
        return 0
    emit({"finished": True})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
