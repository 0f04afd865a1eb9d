"""The nouns of a study: axes, variants, and the kernels and cells they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from transpose_study.expressions import names_in

Value = int | str
Values = Mapping[str, Value]

POINTERS = ("input", "output", "observed")  # arguments of a kernel that are addresses; every other one is an integer expression


@dataclass(frozen=True)
class Axis:
    """One named axis. ``tag`` marks it in kernel names; ``value`` is fixed for axes that do not vary yet; ``words``: it has no numbers."""

    name: str
    meaning: str = ""
    unit: str = ""
    tag: str = ""
    value: Value | None = None
    itemsize: int | None = None
    words: bool = False


@dataclass(frozen=True)
class Reference:
    """What a kernel's output must be: ``out[i] = in[(i % period) * step + i // period]``, or ``out[i] = in[index]``."""

    period: str | int = 1
    step: str | int = 0
    index: str = ""


@dataclass(frozen=True)
class Observation:
    """A quantity that a kernel measures itself: the number it writes to ``observed[0]``, divided by ``per``."""

    name: str
    unit: str
    per: str | int = 1
    meaning: str = ""


@dataclass(frozen=True)
class Variant:
    """One entry of the registry: a kernel (``source``), a copy made by the driver, or an allocation of ``allocates`` bytes.

    ``elements``, ``input_elements`` and ``bytes`` stand in place of the study's where they are not None.
    """

    name: str
    title: str
    origin: str = "user"
    source: Path | None = None
    computes: str = ""
    reference: Reference = Reference()
    arguments: tuple[str | int, ...] = ()
    takes: tuple[str, ...] = ()
    block: tuple[str | int, ...] = (1,)
    grid: tuple[str | int, ...] = (1,)
    macros: Mapping[str, str | int] = field(default_factory=dict)
    requires: tuple[Mapping[str, str], ...] = ()
    driver_copy: bool = False
    allocates: str | int | None = None
    elements: str | int | None = None
    input_elements: str | int | None = None
    bytes: str | int | None = None
    shared_bytes: str | int = 0
    observes: tuple[Observation, ...] = ()

    @cached_property
    def code_axes(self) -> tuple[str, ...]:
        """The axes that select code: those its macros are made of. The others it takes are values of a launch."""
        used = frozenset().union(*(names_in(e) for e in self.macros.values())) if self.macros else frozenset()
        return tuple(a for a in self.takes if a in used)

    @property
    def no_kernel(self) -> str:
        """What the variant is where it has nothing to compile, predict or profile ("" where there is a kernel)."""
        if self.driver_copy:
            return "a copy by the driver"
        return "" if self.allocates is None else "an allocation"


@dataclass(frozen=True)
class Kernel:
    """What is compiled once: a variant and the values of the axes that select its code."""

    variant: Variant
    values: Values

    def __hash__(self) -> int:
        return hash((self.variant.name, tuple(self.values.items())))


@dataclass(frozen=True)
class Cell:
    """One measurable configuration: a variant with a value for each axis it takes (``kernel_values``), in a group."""

    variant: Variant
    kernel_values: Values
    group: Values

    @property
    def values(self) -> dict[str, Value]:
        """All axis values of the cell, the group's first."""
        return {**self.group, **self.kernel_values}

    def __hash__(self) -> int:
        return hash((self.variant.name, tuple(self.values.items())))


@dataclass(frozen=True)
class Geometry:
    """Grid and block of one launch, each as (x, y, z)."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]
