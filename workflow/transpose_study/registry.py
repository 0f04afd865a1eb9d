"""A study's registry: its axes, its variants, and the kernels and cells they make.

A *cell* is a variant with a value for each axis it takes; a *kernel* is what the compiler makes of a variant for the
axes that select code; a *group* is what one timing job holds (for the transpose: a shape). Nothing here knows which
axes a study has; ``kernels/<study>/variants.yaml`` names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transpose_study import expressions
from transpose_study.cells import POINTERS, Cell, Geometry, Kernel, Reference, Value, Values, Variant
from transpose_study.entries import INDEX, KIND_NAMES, matrix_references, read_axis, read_noise_pairs, read_references, read_variant
from transpose_study.errors import StudyError, nearest
from transpose_study.records import digest_of, read_yaml
from transpose_study.sources import normalised_source

# CUDA's limits of one launch for every compute capability since 3.0 (CUDA C++ Programming Guide, technical specifications).
MAX_THREADS_PER_BLOCK = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)

# Keys of the file that hold more than a word.
_SHAPES: dict[str, type] = {
    "axes": dict, "group": dict, "edge_groups": list, "baselines": dict, "variants": dict, "references": dict, "arguments": list,
}  # fmt: skip


class Study:
    """A study's registry, read from ``kernels/<study>/variants.yaml``.

    Raises :class:`StudyError` for an unknown key, a missing source, an expression over unknown axes.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        data = read_yaml(self.path)
        if not isinstance(data, dict):
            raise StudyError("is no mapping", where=str(path))
        known = {"study", "title", "elements", "bytes", "noise_floor", *_SHAPES}
        for key in data:
            if key not in known:
                raise StudyError(f"unknown key {key!r}; {nearest(str(key), known)}", where=str(path))
        missing = {"study", "axes", "group", "elements", "bytes", "variants"} - set(data)
        if missing:
            raise StudyError(f"lacks {', '.join(sorted(missing))}", where=str(path))
        for key, kind in _SHAPES.items():
            if not isinstance(data.get(key, kind()), kind):
                raise StudyError(f"{key} is no {KIND_NAMES[kind]}", where=str(path))
        self.digest = digest_of(data)  # of everything but comments and white space
        self.name: str = str(data["study"])
        self.title: str = str(data.get("title", self.name))
        self.axes = {str(n): read_axis(str(n), spec or {}, str(path)) for n, spec in data["axes"].items()}
        self.group_axes, self._group_name = self._group(data["group"])
        self.elements: str | int = data["elements"]
        self.bytes_moved: str | int = data["bytes"]
        self.edge_groups: tuple[Values, ...] = tuple(data.get("edge_groups", ()))
        for group in self.edge_groups:
            if not isinstance(group, dict) or set(group) != set(self.group_axes):
                raise StudyError(f"each entry of edge_groups has the keys {', '.join(self.group_axes)}", where=str(path))
            for axis, value in group.items():
                if type(value) is not (str if self.axes[axis].words else int):
                    raise StudyError(f"{axis} is {value!r} in edge_groups, no {'word' if self.axes[axis].words else 'whole number'}", where=str(path))
        named = "references" in data
        self.references = read_references(data["references"], str(path)) if named else matrix_references(self.group_axes)
        self.arguments: tuple[str | int, ...] = tuple(data.get("arguments", self._usual_arguments))
        self.variants = {str(n): read_variant(self, str(n), spec) for n, spec in data["variants"].items()}
        self.baselines: dict[str, str] = dict(data.get("baselines", {}))
        for name in self.baselines.values():
            self.variant(str(name))
        self.noise_pairs = read_noise_pairs(self, data.get("noise_floor") or [])

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def _usual_arguments(self) -> tuple[str, ...]:
        """A kernel's arguments where the registry says nothing: both matrices, and the group's numbers."""
        return ("input", "output", *(a for a in self.group_axes if not self.axes[a].words))

    def _group(self, spec: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
        where = f"{self.path}, key group"
        if set(spec) != {"axes", "name"} or not isinstance(spec["axes"], list):
            raise StudyError("has the two keys axes (a list) and name", where=where)
        for axis in spec["axes"]:
            if not isinstance(axis, str) or axis not in self.axes:
                raise StudyError(f"unknown axis {axis!r}; {nearest(str(axis), self.axes)}", where=where)
        try:
            str(spec["name"]).format(**dict.fromkeys(spec["axes"], 1))
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise StudyError(f"the name {spec['name']!r} cannot be filled in from the axes ({error})", where=where) from None
        return tuple(spec["axes"]), str(spec["name"])

    # -- names ----------------------------------------------------------------------------------------------------

    def variant(self, name: str) -> Variant:
        """Return the variant called ``name``; an unknown name is a :class:`StudyError` that offers the nearest."""
        if name not in self.variants:
            raise StudyError(f"unknown variant {name!r}; {nearest(name, self.variants)}", where=str(self.path))
        return self.variants[name]

    def group_name(self, group: Values) -> str:
        """File-name form of a group, for example ``4096x4096``."""
        return self._group_name.format(**group)

    def kernel_name(self, kernel: Kernel | Cell) -> str:
        """File-name form of a kernel, for example ``tiled_padded_b8``."""
        values = kernel.kernel_values if isinstance(kernel, Cell) else kernel.values
        return kernel.variant.name + "".join(f"_{self.axes[a].tag}{values[a]}" for a in kernel.variant.code_axes)

    def short_name(self, cell: Cell) -> str:
        """A cell's name within its group, for example ``bank_load_w4, stride 3``: the kernel's, then its run-time axes."""
        own = [f"{a} {v}" for a, v in cell.kernel_values.items() if a not in cell.variant.code_axes]
        return ", ".join([self.kernel_name(cell), *own])

    def cell_name(self, cell: Cell) -> str:
        """Readable form of a cell, for example ``tiled_padded_b8 at 4096x4096``."""
        return f"{self.short_name(cell)} at {self.group_name(cell.group)}"

    def key(self, cell: Cell) -> dict[str, Value]:
        """The identifying columns of a cell: variant, then each axis in table order ("" where it takes none)."""
        values = cell.values
        return {"variant": cell.variant.name} | {
            a.name: values.get(a.name, a.value if a.value is not None else "") for a in self.axes.values()
        }

    @property
    def key_columns(self) -> list[str]:
        """Names of the identifying columns, the variant first."""
        return ["variant", *self.axes]

    def noise_pair(self, variants: Iterable[str]) -> dict[str, Value]:
        """The cell that is timed twice where these variants are: the first that the registry names of one of them, else its first; {} for none."""
        names = set(variants)
        return next((p for p in self.noise_pairs if p["variant"] in names), self.noise_pairs[0] if self.noise_pairs else {})

    def usual_value(self, axis: str, variant: Variant | None = None) -> Value | None:
        """The value of an axis in a cell that is timed twice, of this variant where one is; None where none takes the axis."""
        pairs = sorted(self.noise_pairs, key=lambda p: variant is None or p["variant"] != variant.name)
        return next((p[axis] for p in pairs if axis in p), None)

    # -- kernels and cells --------------------------------------------------------------------------------------------

    def kernels(self, variant: Variant, axis_values: Mapping[str, Sequence[Value]]) -> list[Kernel]:
        """All kernels of a variant for the configured values of the axes that select its code."""
        return [Kernel(variant, c) for c in _combinations(variant.code_axes, axis_values)]

    def cells(self, group: Values, variants: Iterable[str], axis_values: Mapping[str, Sequence[Value]]) -> list[Cell]:
        """All cells of a group, in the order of the registry."""
        wanted = set(variants)
        chosen = [v for v in self.variants.values() if v.name in wanted]
        return [Cell(v, values, group) for v in chosen for values in _combinations(v.takes, axis_values)]

    def numbers(self, values: Values) -> dict[str, int]:
        """The integer axis values an expression may use, ``itemsize`` included."""
        itemsize = next((a.itemsize for a in self.axes.values() if a.itemsize), 1)
        return {k: v for k, v in values.items() if isinstance(v, int)} | {"itemsize": itemsize}

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.numbers({})["itemsize"]

    def geometry(self, cell: Cell) -> Geometry:
        """Grid and block of the cell's launch."""
        names = self.numbers(cell.values)
        where = f"{self.path}, variant {cell.variant.name}"

        def triple(parts: Sequence[str | int]) -> tuple[int, int, int]:
            x, y, z = ([expressions.evaluate(p, names, where=where) for p in parts] + [1, 1])[:3]
            return x, y, z

        return Geometry(triple(cell.variant.grid), triple(cell.variant.block))

    def macros(self, kernel: Kernel) -> dict[str, int]:
        """Macros given to the compiler by -D."""
        names = self.numbers(kernel.values)
        where = f"{self.path}, variant {kernel.variant.name}"
        return {m: expressions.evaluate(e, names, where=where) for m, e in kernel.variant.macros.items()}

    def arguments_of(self, cell: Cell) -> list[str | int]:
        """A kernel's arguments in order: ``input``, ``output`` and ``observed`` are addresses, the others 32-bit integers."""
        names, where = self.numbers(cell.values), f"{self.path}, variant {cell.variant.name}, key arguments"
        return [str(a) if a in POINTERS else expressions.evaluate(a, names, where=where) for a in cell.variant.arguments]

    def observed_per(self, cell: Cell) -> int:
        """What the number that a kernel writes to ``observed[0]`` is divided by."""
        (what,) = cell.variant.observes
        return self._value(cell, what.per)

    def allocated_bytes(self, cell: Cell) -> int:
        """Bytes that a variant which is an allocation asks for."""
        assert cell.variant.allocates is not None
        return self._value(cell, cell.variant.allocates)

    def dynamic_shared_bytes(self, cell: Cell) -> int:
        """Bytes of shared memory that a launch asks for beside what the kernel declares."""
        return self._value(cell, cell.variant.shared_bytes)

    def element_count(self, group: Values | Cell) -> int:
        """Elements of the output, and of the input where nothing else is said."""
        if isinstance(group, Cell):
            return self._value(group, self.elements if group.variant.elements is None else group.variant.elements)
        return expressions.evaluate(self.elements, self.numbers(group), where=str(self.path))

    def input_count(self, cell: Cell) -> int:
        """Elements of the input."""
        return self.element_count(cell) if cell.variant.input_elements is None else self._value(cell, cell.variant.input_elements)

    def matrix_bytes(self, group: Values | Cell) -> int:
        """Bytes of the output, and of the input where nothing else is said."""
        return self.element_count(group) * self.itemsize

    def input_bytes(self, cell: Cell) -> int:
        """Bytes of the input."""
        return self.input_count(cell) * self.itemsize

    def effective_bytes(self, group: Values | Cell) -> int:
        """Bytes that count for the effective bandwidth: one read and one write of each element."""
        if isinstance(group, Cell):
            return self._value(group, self.bytes_moved if group.variant.bytes is None else group.variant.bytes)
        return expressions.evaluate(self.bytes_moved, self.numbers(group), where=str(self.path))

    def _value(self, cell: Cell, expression: str | int) -> int:
        return expressions.evaluate(expression, self.numbers(cell.values), where=f"{self.path}, variant {cell.variant.name}")

    def check_reference(self, cell: Cell) -> None:
        """Raise :class:`StudyError` where the first or the last output element has no input element to be equal to."""
        count, last = self.input_count(cell), self.element_count(cell) - 1
        where = f"{self.path}, variant {cell.variant.name}, key computes"
        for i in (0, last):
            source = self.source_of(cell, i)
            if not 0 <= source < count:
                raise StudyError(f"output element {i} of {self.cell_name(cell)} would be input element {source} of {count}", where=where)

    def source_of(self, cell: Cell, element: int) -> int:
        """The index of the input element that an output element must equal."""
        reference = cell.variant.reference
        if reference.index:
            where = f"{self.path}, variant {cell.variant.name}, key computes"
            return expressions.evaluate(reference.index, {**self.numbers(cell.values), INDEX: element}, where=where)
        period, step = self.stride_of(cell, reference)
        if period < 1:
            raise StudyError(f"the period of its reference {cell.variant.computes} is {period}", where=f"{self.path}, variant {cell.variant.name}")
        return element % period * step + element // period

    def stride_of(self, cell: Cell, reference: Reference) -> tuple[int, int]:
        """Period and step of a reference that has them."""
        return self._value(cell, reference.period), self._value(cell, reference.step)

    def input_row(self, cell: Cell) -> int:
        """Elements of an input's row, to say where an element is: the last group axis, or all elements where that is a word."""
        last = cell.group[self.group_axes[-1]]
        return last if isinstance(last, int) else max(1, self.input_count(cell))

    def output_row(self, cell: Cell) -> int:
        """Elements of an output's row: the period of the permutation where it is no copy."""
        reference = cell.variant.reference
        period = 1 if reference.index else self.stride_of(cell, reference)[0]
        return period if period > 1 else self.input_row(cell)

    # -- preconditions --------------------------------------------------------------------------------------------------

    def kernel_refusal(self, kernel: Kernel) -> str:
        """Why this kernel cannot be compiled ("" if it can): the preconditions on the axes that select code."""
        names = self.numbers(kernel.values)
        return self._refusal(kernel.variant, names)

    def cell_refusal(self, cell: Cell, memory_bytes: int | None = None) -> str:
        """Why this cell cannot run ("" if it can): preconditions, limits of a launch, device memory."""
        names = self.numbers(cell.values)
        for axis in self.group_axes:
            if isinstance(cell.group[axis], int) and int(cell.group[axis]) < 1:
                return f"{axis} is {cell.group[axis]}; it must be at least 1"
        refusal = self._refusal(cell.variant, names)
        if refusal:
            return refusal
        if not cell.variant.no_kernel:
            geometry = self.geometry(cell)
            if geometry.threads > MAX_THREADS_PER_BLOCK:
                return f"a block of {geometry.threads} threads is above the limit of {MAX_THREADS_PER_BLOCK}"
            for what, size, limits in (("block", geometry.block, MAX_BLOCK), ("grid", geometry.grid, MAX_GRID)):
                for axis, value, limit in zip("xyz", size, limits, strict=True):
                    if not 1 <= value <= limit:
                        return f"the {what}'s {axis} of {value} is outside 1..{limit}"
            for argument in self.arguments_of(cell):
                if isinstance(argument, int) and not -(2**31) <= argument < 2**31:
                    return f"the argument {argument} has no room in the 32 bits of an int"
        needed = self.input_bytes(cell) + self.matrix_bytes(cell)
        if memory_bytes is not None and needed > memory_bytes:
            return f"input and output need {needed / 2**30:.1f} GiB, the device has {memory_bytes / 2**30:.1f} GiB for them"
        return ""

    def shared_refusal(self, cell: Cell, static_bytes: int, limit: int) -> str:
        """Why a block cannot have its shared memory ("" if it can): ``limit`` is what the device gives a block at most."""
        dynamic = self.dynamic_shared_bytes(cell)
        if not dynamic:
            return ""  # the compiler has seen to what a kernel declares
        asked = static_bytes + dynamic
        return f"a block needs {asked} bytes of shared memory, the device gives at most {limit}" if asked > limit else ""

    def _refusal(self, variant: Variant, names: Mapping[str, int]) -> str:
        for condition in variant.requires:
            if expressions.names_in(condition["holds"]) <= set(names) and not expressions.evaluate(
                condition["holds"], names, where=f"{self.path}, variant {variant.name}"
            ):
                return condition["why"]
        return ""

    # -- digests ----------------------------------------------------------------------------------------------------------

    def code_digest(self, variant: Variant) -> str:
        """Digest of everything that decides the compiled code: normalised source, local includes, macros."""
        source = normalised_source(variant.source) if variant.source else "driver copy"
        macros = {name: _squeezed(value) for name, value in variant.macros.items()}
        return digest_of([source, macros, list(variant.code_axes), [_squeezed(r["holds"]) for r in variant.requires]])

    def launch_digest(self, variant: Variant) -> str:
        """Digest of everything that decides a measurement of the variant: its code, its launch, and what is compared and counted."""
        block, grid = ([_squeezed(e) for e in parts] for parts in (variant.block, variant.grid))
        parts: list[Any] = [self.code_digest(variant), block, grid, variant.computes]
        plain = Variant("", "")
        own = {
            key: [o.__dict__ for o in value] if key == "observes" else _squeezed(value)
            for key in ("allocates", "elements", "input_elements", "bytes", "shared_bytes", "observes")
            if (value := getattr(variant, key)) != getattr(plain, key)
        }
        if variant.arguments != self._usual_arguments:
            own["arguments"] = [_squeezed(a) for a in variant.arguments]
        reference = variant.reference
        if variant.computes in self.references and reference != matrix_references(self.group_axes).get(variant.computes):
            own["reference"] = [_squeezed(reference.period), _squeezed(reference.step)]  # the name alone would hide another meaning
        return digest_of([*parts, own] if own else parts)


def _combinations(axes: Sequence[str], axis_values: Mapping[str, Sequence[Value]]) -> list[dict[str, Value]]:
    combinations: list[dict[str, Value]] = [{}]
    for axis in axes:
        combinations = [{**c, axis: v} for c in combinations for v in axis_values[axis]]
    return combinations


def _squeezed(expression: str | int) -> str:
    """An expression without its white space, which is no part of what it says."""
    return "".join(str(expression).split())
