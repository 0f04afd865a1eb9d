"""In what two recorded environments differ: GPU, driver, compiler, ncu, packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNKNOWN = "not recorded"

# What is compared, and where environment.json has it.
FACTS = {
    "GPU": ("gpu", "name"),
    "GPU UUID": ("gpu", "uuid"),
    "compute capability": ("gpu", "compute_capability"),
    "SMs": ("gpu", "sm_count"),
    "L2, bytes": ("gpu", "l2_bytes"),
    "memory clock, kHz": ("gpu", "memory_clock_khz"),
    "nominal peak, GB/s": ("gpu", "peak_gb_s"),
    "power limit, W": ("gpu", "power_limit_w"),
    "ECC": ("gpu", "ecc"),
    "driver": ("gpu", "driver"),
    "CUDA of the driver": ("gpu", "driver_cuda"),
    "nvcc": ("compiler", "nvcc"),
    "nvcc flags": ("compiler", "flags"),
    "ncu": ("ncu",),
    "transpose-study": ("program",),
    "Python": ("python",),
    "system": ("machine", "system"),
    "kernel": ("machine", "kernel"),
}


def facts(environment: Mapping[str, Any]) -> dict[str, str]:
    """The compared facts of an environment, packages included, as text."""
    found = {name: _text(_look_up(environment, path)) for name, path in FACTS.items()}
    return found | {f"package {n}": str(v) for n, v in sorted(environment.get("packages", {}).items())}


def differences(environments: list[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Facts that are not equal in all environments: name -> text of each."""
    all_facts = [facts(e) for e in environments]
    names = dict.fromkeys(n for f in all_facts for n in f)
    rows = {n: [f.get(n, UNKNOWN) for f in all_facts] for n in names}
    return {n: values for n, values in rows.items() if len(set(values)) > 1}


def _look_up(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    if value is None:
        return UNKNOWN
    return " ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
