"""The nouns of a study: axes, variants, and the kernels and cells they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

Value = int | str
Values = Mapping[str, Value]

@dataclass(frozen=True)
class Axis:
    """One named axis. ``tag`` marks it in kernel names; ``value`` is fixed for axes that do not vary yet."""

    name: str
    meaning: str = ""
    unit: str = ""
    tag: str = ""
    value: Value | None = None
    itemsize: int | None = None


@dataclass(frozen=True)
class Variant:
    """One entry of the registry. ``source`` is None for a copy made by the driver (``driver_copy``)."""

    name: str
    title: str
    origin: str = "user"
    source: Path | None = None
    computes: str = "transpose"
    takes: tuple[str, ...] = ()
    block: tuple[str | int, ...] = (1,)
    grid: tuple[str | int, ...] = (1,)
    macros: Mapping[str, str | int] = field(default_factory=dict)
    requires: tuple[Mapping[str, str], ...] = ()
    driver_copy: bool = False


@dataclass(frozen=True)
class Kernel:
    """What is compiled once: a variant and the values of the axes it takes."""

    variant: Variant
    values: Values

    def __hash__(self) -> int:
        return hash((self.variant.name, tuple(self.values.items())))


@dataclass(frozen=True)
class Cell:
    """One measurable configuration: a variant with a value for each axis it takes."""

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
