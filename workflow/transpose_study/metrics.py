"""The quantities of ``config/metrics.yaml`` and the ncu metrics they are on each chip family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from transpose_study.cells import Observation
from transpose_study.errors import StudyError, nearest
from transpose_study.records import digest_of, read_yaml
from transpose_study.registry import Study

CACHE_CONTROL = ("all", "none")
TOOLS = ("ncu", "kernel")
OBSERVED, COLD = "observed[0]", "_cold"  # what stands for a metric's name, and what marks a quantity observed with a displaced L2


@dataclass(frozen=True)
class Quantity:
    """A counted quantity: our key, its unit and meaning, its batch, its ncu name (by chip-family prefix where they differ)."""

    key: str
    unit: str
    meaning: str
    batch: str
    metric: str
    by_chip: Mapping[str, str]

    def metric_on(self, chip: str) -> str:
        """The ncu name on ``chip`` (such as ``gh100``): the longest matching prefix, else the general name."""
        prefixes = sorted((p for p in self.by_chip if chip.lower().startswith(p)), key=len)
        return self.by_chip[prefixes[-1]] if prefixes else self.metric


@dataclass(frozen=True)
class Batch:
    """One ncu process for each group: its cache control, and sections beside the named metrics.

    The batch of the tool ``kernel`` holds what kernels observe themselves; the registry names its quantities.
    """

    name: str
    meaning: str
    cache_control: str
    sections: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    tool: str = "ncu"
    optional: bool = False  # read where profile.batches names it, and not missed where it does not

    @property
    def observed(self) -> bool:
        """Whether kernels observe its quantities themselves, without ncu."""
        return self.tool == "kernel"

    @property
    def digest(self) -> str:
        """Digest of what decides the batch's raw values: names and units, not their order nor what they mean."""
        names = sorted([q.key, q.unit, q.metric, dict(q.by_chip)] for q in self.quantities)
        return digest_of([self.cache_control, list(self.sections), names])


def study_file(root: Path, kind: str, study: str) -> Path:
    """``config/<kind>-<study>.yaml`` where a study brings its own, else ``config/<kind>.yaml``."""
    own = root / "config" / f"{kind}-{study}.yaml"
    return own if own.is_file() else root / "config" / f"{kind}.yaml"


def study_metrics(root: Path, study: Study) -> dict[str, Batch]:
    """The metric batches of a study by name, what its kernels observe themselves among them."""
    path = study_file(root, "metrics", study.name)
    batches = load_metrics(path)
    observed = sorted(v.name for v in study.variants.values() if v.observes)
    if observed and not any(b.observed for b in batches.values()):
        hint = "add to its batches: kernel: {meaning: what kernels observe themselves, tool: kernel}"
        raise StudyError(f"has no batch that reads what {', '.join(observed)} observe{'s' * (len(observed) == 1)}", where=str(path), hint=hint)
    return {n: _observed(b, study, batches) if b.observed else b for n, b in batches.items()}


def _observed(batch: Batch, study: Study, batches: Mapping[str, Batch]) -> Batch:
    """The batch with the quantities that the registry names; one name has one unit, and is that of no other quantity."""
    taken = {q.key for b in batches.values() for q in b.quantities}
    seen: dict[str, Observation] = {}
    for variant in study.variants.values():
        for found in variant.observes:
            where = f"{study.path}, variant {variant.name}, key observes.{found.name}"
            if found.name in taken or found.name.endswith(COLD) or not found.name.isidentifier():
                raise StudyError(f"must be letters, digits and _, with no {COLD} at its end, and be none of the counted quantities", where=where)
            if seen.setdefault(found.name, found).unit != found.unit:
                raise StudyError(f"its unit is {found.unit}, where another variant says {seen[found.name].unit}", where=where)
    quantities = [
        Quantity(name + end, o.unit, o.meaning + more, batch.name, OBSERVED, {})
        for name, o in seen.items()
        for end, more in (("", ""), (COLD, ", L2 displaced before"))
    ]
    return replace(batch, sections=(), quantities=tuple(quantities))


def load_metrics(path: Path) -> dict[str, Batch]:
    """Read a file of metrics: batches by name. Mistakes are :class:`StudyError` with key and nearest known name."""
    data = read_yaml(path)
    where = str(path)
    if not isinstance(data, dict) or set(data) != {"batches", "quantities"}:
        raise StudyError("has not the two keys batches and quantities", where=where)
    for part, entries in data.items():
        if not isinstance(entries, dict) or not all(isinstance(spec, dict) for spec in entries.values()):
            raise StudyError(f"{part} must be a mapping of names to mappings", where=where)
    batches: dict[str, Batch] = {}
    quantities: dict[str, list[Quantity]] = {name: [] for name in data["batches"]}
    for key, spec in data["quantities"].items():
        unknown = set(spec) - {"unit", "meaning", "batch", "metric", "by_chip"}
        if unknown:
            name = sorted(unknown)[0]
            raise StudyError(
                f"unknown key {name!r}; {nearest(name, ['unit', 'meaning', 'batch', 'metric', 'by_chip'])}",
                where=f"{where}, quantity {key}",
            )
        missing = {"unit", "meaning", "batch", "metric"} - set(spec)
        if missing:
            raise StudyError(f"lacks {', '.join(sorted(missing))}", where=f"{where}, quantity {key}")
        if spec["batch"] not in quantities:
            raise StudyError(
                f"unknown batch {spec['batch']!r}; {nearest(str(spec['batch']), quantities)}", where=f"{where}, quantity {key}"
            )
        quantities[spec["batch"]].append(
            Quantity(key, spec["unit"], spec["meaning"], spec["batch"], spec["metric"], spec.get("by_chip", {}))
        )
    for name, spec in data["batches"].items():
        unknown = set(spec) - {"meaning", "cache_control", "sections", "tool", "optional"}
        if unknown:
            raise StudyError(f"unknown key {sorted(unknown)[0]!r}", where=f"{where}, batch {name}")
        control = spec.get("cache_control", "all")
        if control not in CACHE_CONTROL:
            raise StudyError(f"cache_control {control!r} is not one of {', '.join(CACHE_CONTROL)}", where=f"{where}, batch {name}")
        tool = spec.get("tool", "ncu")
        if tool not in TOOLS:
            raise StudyError(f"tool {tool!r} is not one of {', '.join(TOOLS)}", where=f"{where}, batch {name}")
        if tool == "kernel" and quantities[name]:
            raise StudyError("the registry names what kernels observe; this batch takes no quantities", where=f"{where}, batch {name}")
        batches[name] = Batch(
            name, spec.get("meaning", name), control, tuple(spec.get("sections", ())), tuple(quantities[name]), tool, bool(spec.get("optional"))
        )
    return batches
