"""Cold GPU times of some cells by NVIDIA's nvbench (Python package cuda-bench), for comparison with the project's own.

``python nvbench_cold.py REGISTRY BUILD OUTPUT [CELL ROWSxCOLS]...`` writes {"cell shape": {"mean_us": ..., ...}} as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cuda.bench as bench
import cupy
import numpy as np

from transpose_study.gpu.session import Session
from transpose_study.registry import Cell, Study


def cell_of(study: Study, name: str, shape: str) -> Cell:
    """The cell that a kernel name such as ``tiled_padded_b4`` and a shape such as ``4096x4096`` mean."""
    group = dict(zip(study.group_axes, map(int, shape.split("x")), strict=True))
    for variant in study.variants.values():
        for kernel in study.kernels(variant, {"block_rows": [4, 8, 16, 32]}):
            if study.kernel_name(kernel) == name:
                return Cell(variant, kernel.values, group)
    raise SystemExit(f"no kernel {name}")


def main() -> None:
    """Register one benchmark a cell and run them all."""
    registry, build, output, *rest = sys.argv[1:]
    study = Study(Path(registry))
    session = Session(study, Path(build))
    names = []
    keep = []
    for name, shape in zip(rest[::2], rest[1::2], strict=True):
        cell = cell_of(study, name, shape)
        size = study.matrix_bytes(cell.group)
        source, target = session.allocate(size), session.allocate(size)
        session.fill_input(source, {"init": "random", "seed": 1})
        session.stream.synchronize()
        geometry = study.geometry(cell)
        kernel = session._module(name).get_function(cell.variant.name)
        arguments = (np.uint64(source.pointer), np.uint64(target.pointer), *(np.int32(v) for v in cell.group.values()))
        keep.append((source, target, arguments))

        def run(state: bench.State, kernel=kernel, geometry=geometry, arguments=arguments) -> None:
            def launch(launch: bench.Launch) -> None:
                stream = cupy.cuda.ExternalStream(launch.get_stream().addressof())
                kernel(geometry.grid, geometry.block, arguments, 0, stream)

            state.exec(launch, batched=False)

        label = f"{name} {shape}"
        run.__name__ = label.replace(" ", "__")
        bench.register(run).set_name(run.__name__)
        names.append(label)
    raw = Path(output).with_suffix(".nvbench.json")
    bench.run_all_benchmarks(["nvbench_cold", "--json", str(raw)])
    result = {}
    for benchmark in json.loads(raw.read_text())["benchmarks"]:
        for state in benchmark["states"]:
            times = {}
            for summary in state["summaries"]:
                value = next((d["value"] for d in summary.get("data", []) if d["name"] == "value"), None)
                if summary["tag"].startswith("nv/cold/") and value is not None:
                    times[summary["tag"]] = float(value)
            result[benchmark["name"].replace("__", " ")] = times
    Path(output).write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
