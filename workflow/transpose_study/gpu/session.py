"""One process's hold on the GPU: modules, buffers with guard bands, launches. Only the modules of ``gpu/`` import CuPy.

CuPy serves as the door to the CUDA runtime: plain allocations (cudaMalloc), modules, streams, events. All device code
is the project's own cubins, so nothing is compiled at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from cupy.cuda import function as cuda_function
from cupy.cuda import memory as cuda_memory
from cupy.cuda import runtime

from transpose_study.errors import StudyError
from transpose_study.registry import Cell, Study

GUARD_BYTES = 65536  # before and after each buffer; a multiple of the allocator's alignment of 256 bytes
GUARD_BYTE = 0x5A
POISON_BYTE = 0xA5
FILL_BLOCKS, FILL_THREADS = 1024, 256
OBSERVED_BYTES = 256
MAX_DYNAMIC_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES; beyond 48 KiB the driver wants to be asked

Launch = Callable[[], None]
Emit = Callable[[dict[str, Any]], None]


class Buffer:
    """``size`` bytes of device memory between two guard bands."""

    def __init__(self, size: int, stream: Any) -> None:
        self.size, self._stream = size, stream
        self._memory = cuda_memory.Memory(size + 2 * GUARD_BYTES)
        self.pointer = self._memory.ptr + GUARD_BYTES
        self._bands = {"before": self._memory.ptr, "after": self.pointer + size}
        self.guard()

    def guard(self) -> None:
        """Write both guard bands anew, so that an earlier kernel's overrun is not taken for a later one's."""
        for start in self._bands.values():
            runtime.memsetAsync(start, GUARD_BYTE, GUARD_BYTES, self._stream.ptr)

    def fill(self, byte: int) -> None:
        """Set every byte."""
        runtime.memsetAsync(self.pointer, byte, self.size, self._stream.ptr)

    def overrun(self) -> str:
        """Which guard band was written, and how far from the buffer ("" if none was)."""
        self._stream.synchronize()
        for name, start in self._bands.items():
            band = np.empty(GUARD_BYTES, np.uint8)
            runtime.memcpy(band.ctypes.data, start, band.nbytes, runtime.memcpyDeviceToHost)
            wrong = np.flatnonzero(band != GUARD_BYTE)
            if len(wrong):
                distance = band.nbytes - int(wrong[-1]) if name == "before" else int(wrong[0])
                return f"wrote {name} the buffer, {distance} bytes {'ahead of it' if name == 'before' else 'past its end'}"
        return ""


@dataclass(frozen=True)
class Buffers:
    """What a kernel's pointer arguments point to."""

    input: Buffer
    output: Buffer
    observed: Buffer


class Session:
    """The GPU as one process uses it. ``build`` is the folder of cubins; the visible device 0 is used."""

    def __init__(self, study: Study, build: Path) -> None:
        self.study, self.build = study, Path(build)
        try:
            cupy.cuda.Device(0).use()
            self.stream = cupy.cuda.Stream(non_blocking=True)
        except runtime.CUDARuntimeError as error:
            raise StudyError(f"the GPU does not answer: {error}", hint="nvidia-smi shows its state") from None
        self._modules: dict[str, Any] = {}
        self._allowed: dict[int, int] = {}  # dynamic shared memory in bytes that the driver was asked to allow, by function
        self._harness = self._module("harness")
        self.delay_kernel = self._harness.get_function("harness_delay")
        self._result = cuda_memory.Memory(16)

    def _module(self, name: str) -> Any:
        if name not in self._modules:
            module = cuda_function.Module()
            try:
                module.load_file(str(self.build / f"{name}.cubin"))
            except cupy.cuda.driver.CUDADriverError as error:
                raise StudyError(f"the driver does not load this cubin: {error}", where=str(self.build / f"{name}.cubin")) from None
            self._modules[name] = module
        return self._modules[name]

    def allocate(self, size: int) -> Buffer:
        """Allocate a buffer; too little memory is a :class:`StudyError` with the amounts."""
        try:
            return Buffer(size, self.stream)
        except (runtime.CUDARuntimeError, cuda_memory.OutOfMemoryError):
            free, total = runtime.memGetInfo()
            raise StudyError(
                f"{size / 2**30:.2f} GiB could not be allocated; {free / 2**30:.2f} of {total / 2**30:.2f} GiB are free",
                hint="end other programs on the GPU, or take out the shape",
            ) from None

    def buffers(self, cells: Sequence[Cell]) -> Buffers:
        """Buffers that are large enough for each of the cells: input, output, and the words that kernels observe."""
        sizes = (max((f(c) for c in cells), default=0) for f in (self.study.input_bytes, self.study.matrix_bytes))
        return Buffers(*(self.allocate(s) for s in (*sizes, OBSERVED_BYTES)))

    def launcher(self, cell: Cell, buffers: Buffers) -> Launch:
        """A function that enqueues one launch of the cell on the session's stream."""
        stream = self.stream
        if cell.variant.driver_copy:
            target, source = buffers.output.pointer, buffers.input.pointer
            size, kind = self.study.matrix_bytes(cell), runtime.memcpyDeviceToDevice
            return lambda: runtime.memcpyAsync(target, source, size, kind, stream.ptr)
        kernel = self._module(self.study.kernel_name(cell)).get_function(cell.variant.name)
        geometry, shared = self.study.geometry(cell), self.study.dynamic_shared_bytes(cell)
        if shared > self._allowed.get(kernel.ptr, 0):  # one function serves many cells: what the largest asks holds for all
            cupy.cuda.driver.funcSetAttribute(kernel.ptr, MAX_DYNAMIC_SHARED_BYTES, shared)
            self._allowed[kernel.ptr] = shared
        arguments = tuple(
            np.uint64(getattr(buffers, a).pointer) if isinstance(a, str) else np.int32(a) for a in self.study.arguments_of(cell)
        )
        return lambda: kernel(geometry.grid, geometry.block, arguments, shared, stream)

    def observed(self, buffers: Buffers) -> int:
        """The number that a kernel wrote to ``observed[0]``."""
        self.stream.synchronize()
        return self.element(buffers.observed, 0)

    # -- the harness's kernels ------------------------------------------------------------------------------------------

    def _run(self, name: str, *arguments: Any) -> None:
        kernel = self._harness.get_function(name)
        kernel((FILL_BLOCKS,), (FILL_THREADS,), arguments, 0, self.stream)

    def fill_input(self, buffer: Buffer, settings: Mapping[str, Any]) -> None:
        """Fill with seeded random floats, or with zeros where the configuration asks for them."""
        if settings["init"] == "zeros":
            buffer.fill(0)
        else:
            self._run("harness_fill_random", np.uint64(buffer.pointer), np.uint64(buffer.size // 4), np.uint32(settings["seed"]))

    def fill_index(self, buffer: Buffer) -> None:
        """Fill so that each element encodes its own index."""
        self._run("harness_fill_index", np.uint64(buffer.pointer), np.uint64(buffer.size // 4))

    def compare(self, target: Buffer, period: int, step: int) -> tuple[int, int]:
        """Compare with ``in[(i % period) * step + i // period]`` of the index pattern: (wrong elements, the first one's index)."""
        result = np.array([0, 2**64 - 1], np.uint64)
        # In stream order: a plain copy from pageable memory may still be on its way when the kernel starts.
        runtime.memcpyAsync(self._result.ptr, result.ctypes.data, 16, runtime.memcpyHostToDevice, self.stream.ptr)
        self._run(
            "harness_compare", *map(np.uint64, (target.pointer, target.size // 4, period, step, self._result.ptr))
        )
        self.stream.synchronize()
        runtime.memcpy(result.ctypes.data, self._result.ptr, 16, runtime.memcpyDeviceToHost)
        return int(result[0]), int(result[1])

    def read(self, buffer: Buffer) -> np.ndarray:
        """The buffer's elements as bit patterns (uint32)."""
        values = np.empty(buffer.size // 4, np.uint32)
        self.stream.synchronize()
        runtime.memcpy(values.ctypes.data, buffer.pointer, values.nbytes, runtime.memcpyDeviceToHost)
        return values

    def element(self, buffer: Buffer, index: int) -> int:
        """Bit pattern of one element."""
        value = np.empty(1, np.uint32)
        runtime.memcpy(value.ctypes.data, buffer.pointer + 4 * index, 4, runtime.memcpyDeviceToHost)
        return int(value[0])
