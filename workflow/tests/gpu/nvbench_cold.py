"""Cold GPU times of some cells by NVIDIA's nvbench (Python package cuda-bench), for comparison with the project's own.

``python nvbench_cold.py REGISTRY BUILD OUTPUT [VARIANT AXES-JSON ROWSxCOLS]...`` writes {"label": median in us} as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cuda.bench as bench
import cupy
from transpose_study.gpu.session import Buffers, Session
from transpose_study.registry import Cell, Study


def main() -> None:
    """Register one benchmark a cell and run them all."""
    registry, build, output, *rest = sys.argv[1:]
    study = Study(Path(registry))
    session = Session(study, Path(build))
    keep = []
    for variant, values, shape in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        group = dict(zip(study.group_axes, map(int, shape.split("x")), strict=True))
        cell = Cell(study.variant(variant), json.loads(values), group)
        buffers = session.buffers([cell])
        keep.append(buffers)
        session.fill_input(buffers.input, {"init": "random", "seed": 1})
        session.stream.synchronize()

        def run(state: bench.State, cell: Cell = cell, buffers: Buffers = buffers) -> None:
            def launch(launch: bench.Launch) -> None:
                session.stream = cupy.cuda.ExternalStream(launch.get_stream().addressof())
                session.launcher(cell, buffers)()

            state.exec(launch, batched=False)

        run.__name__ = f"{study.kernel_name(cell)}__{shape}"
        bench.register(run).set_name(run.__name__)
    raw = Path(output).with_suffix(".nvbench.json")
    bench.run_all_benchmarks(["nvbench_cold", "--json", str(raw)])
    result = {}
    for benchmark in json.loads(raw.read_text())["benchmarks"]:
        for summary in benchmark["states"][0]["summaries"]:
            if summary["tag"] == "nv/cold/time/gpu/median":
                value = next(d["value"] for d in summary["data"] if d["name"] == "value")
                result[benchmark["name"]] = float(value) * 1e6
    Path(output).write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
