"""Reading the entries of a registry: each variant and reference checked key by key, every mistake named with its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from transpose_study import expressions
from transpose_study.cells import POINTERS, Axis, Observation, Reference, Value, Variant
from transpose_study.errors import StudyError, nearest

if TYPE_CHECKING:
    from transpose_study.registry import Study

KEYS = {
    "title", "origin", "source", "computes", "arguments", "takes", "block", "grid", "macros", "requires", "driver_copy", "allocates",
    "elements", "input_elements", "bytes", "shared_bytes", "observes",
}  # fmt: skip
_KINDS: dict[str, type] = {
    "takes": list, "requires": list, "macros": dict, "arguments": list, "observes": dict, "driver_copy": bool,
    "source": str, "title": str, "origin": str,
}  # fmt: skip
KIND_NAMES = {list: "list", dict: "mapping", bool: "choice of true and false", str: "text"}
INDEX = "i"  # in an index expression: the number of the output element


def known_keys(spec: Any, known: Iterable[str], where: str) -> dict[str, Any]:
    """``spec`` if it is a mapping with no key but the known ones."""
    if not isinstance(spec, dict):
        raise StudyError("is no mapping", where=where)
    for key in spec:
        if key not in known:
            raise StudyError(f"unknown key {key!r}; {nearest(str(key), known)}", where=where)
    return spec


def read_axis(name: str, spec: Any, path: str) -> Axis:
    """One entry of ``axes``."""
    where, kinds = f"{path}, axis {name}", {"meaning": str, "unit": str, "tag": str, "value": (int, str), "itemsize": int, "words": bool}
    for key, value in known_keys(spec, kinds, where).items():
        if not isinstance(value, kinds[key]):
            raise StudyError(f"{key} cannot be {value!r}", where=where)
    if spec.get("itemsize", 1) < 1:
        raise StudyError(f"itemsize is {spec['itemsize']}; it must be at least 1", where=where)
    return Axis(name=name, **spec)


def matrix_references(group_axes: Sequence[str]) -> dict[str, Reference]:
    """The references of a registry that names none (as older ones do): two group axes are the rows and columns of a matrix."""
    return {"copy": Reference(1, 0)} | ({"transpose": Reference(*group_axes)} if len(group_axes) == 2 else {})


def read_noise_pairs(study: Study, spec: Any) -> list[dict[str, Value]]:
    """The cells that are timed twice in every round: one mapping, or a list of them, of a variant and values of axes it takes."""
    where = f"{study.path}, key noise_floor"
    pairs = spec if isinstance(spec, list) else [spec]
    for pair in pairs:
        if not isinstance(pair, dict):
            raise StudyError("is a mapping, or a list of mappings, of a variant and values of its axes", where=where)
        takes = study.variant(str(pair.get("variant"))).takes
        for axis in pair:
            if axis not in ("variant", *takes):
                raise StudyError(f"{pair['variant']} takes no axis {axis!r}; {nearest(str(axis), takes)}", where=where)
        lacking = [a for a in takes if a not in pair]
        if lacking:
            raise StudyError(f"{pair['variant']} takes {', '.join(lacking)} too, so a cell of it has no place without", where=where)
    return [dict(p) for p in pairs]


def read_references(data: Mapping[str, Any], path: str) -> dict[str, Reference]:
    """What outputs can be compared with, by name."""
    references = {}
    for name, spec in data.items():
        where = f"{path}, reference {name}"
        if set(known_keys(spec, ("period", "step"), where)) != {"period", "step"}:
            raise StudyError("has the two keys period and step: out[i] is in[(i % period) * step + i // period]", where=where)
        for part in spec.values():
            expressions.parse(part, where=where)
        references[str(name)] = Reference(spec["period"], spec["step"])
    return references


def read_variant(study: Study, name: str, spec: Any) -> Variant:
    """One entry of ``variants``; raises :class:`StudyError` for unknown keys and axes, a missing source, an expression over others."""
    where = f"{study.path}, variant {name}"
    known_keys(spec, KEYS, where)
    if not name.isidentifier():
        raise StudyError("a variant's name is the kernel's name: letters, digits and _ only", where=where)
    for key, kind in _KINDS.items():
        if not isinstance(spec.get(key, kind()), kind):
            raise StudyError(f"{key} is no {KIND_NAMES[kind]} (got {spec[key]!r})", where=where)
    takes = tuple(spec.get("takes", ()))
    for number, axis in enumerate(takes):
        if not isinstance(axis, str) or axis not in study.axes:
            raise StudyError(f"takes the unknown axis {axis!r}; {nearest(str(axis), study.axes)}", where=where)
        if axis in study.group_axes or axis in takes[:number]:
            raise StudyError(f"takes the axis {axis} {'twice' if axis in takes[:number] else 'of its group, which every variant has'}", where=where)
    driver_copy = bool(spec.get("driver_copy", False))
    if driver_copy + ("source" in spec) + ("allocates" in spec) != 1:
        raise StudyError("give one of source: FILE.cu, driver_copy: true, allocates: BYTES", where=where)
    source = None
    if "source" in spec:
        source = study.path.parent / spec["source"]
        if not source.is_file():
            raise StudyError(f"the source {spec['source']} is not there", where=where, hint=f"put it into {source.parent}")
        for key in ("block", "grid"):
            if not isinstance(spec.get(key), list) or not 1 <= len(spec[key]) <= 3:
                raise StudyError(f"{key} must be a list of one to three expressions", where=where)
    requires = tuple(spec.get("requires", ()))
    for condition in requires:
        if not isinstance(condition, dict) or set(condition) != {"holds", "why"} or not isinstance(condition["why"], str):
            raise StudyError("each entry of requires has the two keys holds and why, a text", where=where)
    computes, reference = _reference(study, spec, where)
    variant = Variant(
        name=name,
        title=spec.get("title", name),
        origin=spec.get("origin", "user"),
        source=source,
        computes=computes,
        reference=reference,
        arguments=tuple(spec.get("arguments", study.arguments)),
        takes=takes,
        block=tuple(spec.get("block", (1,))),
        grid=tuple(spec.get("grid", (1,))),
        macros=dict(spec.get("macros", {})),
        requires=requires,
        driver_copy=driver_copy,
        allocates=spec.get("allocates"),
        elements=spec.get("elements"),
        input_elements=spec.get("input_elements"),
        bytes=spec.get("bytes"),
        shared_bytes=spec.get("shared_bytes", 0),
        observes=_observations(spec.get("observes", {}), where),
    )
    if variant.observes and variant.driver_copy:
        raise StudyError("is a copy by the driver, which observes nothing", where=where)
    if variant.observes and source and "observed" not in variant.arguments:
        raise StudyError("observes a quantity, so one of its arguments must be observed", where=where)
    _check_names(study, variant, where)
    return variant


def _reference(study: Study, spec: Mapping[str, Any], where: str) -> tuple[str, Reference]:
    """What the variant computes, by its name or expression, and as a reference; the study's last reference where it says nothing."""
    names = list(study.references)
    if "allocates" in spec:
        return "", Reference()
    computes = str(spec.get("computes", names[-1] if names else INDEX))
    if computes in study.references:
        return computes, study.references[computes]
    if INDEX not in expressions.names_in(computes):  # nor where it is no expression at all
        raise StudyError(f"computes {computes!r}; {nearest(computes, names) if names else 'write an expression over i'}", where=where)
    return computes, Reference(index=computes)


def _observations(data: Mapping[str, Any], where: str) -> tuple[Observation, ...]:
    if len(data) > 1:
        raise StudyError(f"observes {', '.join(map(str, data))}; there is one observed[0], so name one quantity", where=where)
    found = []
    for name, spec in data.items():
        known_keys(spec, ("unit", "per", "meaning"), f"{where}, key observes.{name}")
        if "unit" not in spec:
            raise StudyError("lacks unit", where=f"{where}, key observes.{name}")
        found.append(Observation(str(name), str(spec["unit"]), spec.get("per", 1), str(spec.get("meaning", name))))
    return tuple(found)


def _check_names(study: Study, variant: Variant, where: str) -> None:
    """No expression may speak of an axis that the variant does not have."""
    allowed = {*study.group_axes, *variant.takes, "itemsize"}
    sizes = [
        variant.allocates, variant.input_elements, variant.shared_bytes,
        study.elements if variant.elements is None else variant.elements, study.bytes_moved if variant.bytes is None else variant.bytes,
    ]  # fmt: skip
    texts = [
        *variant.block, *variant.grid, *variant.macros.values(), *(r["holds"] for r in variant.requires),
        *(t for t in sizes if t is not None), *(a for a in variant.arguments if a not in POINTERS), *(o.per for o in variant.observes),
    ]  # fmt: skip
    reference = variant.reference
    for text in [*texts, reference.period, reference.step]:
        _known(text, allowed, where)
    if reference.index:
        _known(reference.index, {*allowed, INDEX}, where)


def _known(text: Any, allowed: set[str], where: str) -> None:
    expressions.parse(text, where=where)
    unknown = sorted(expressions.names_in(text) - allowed)
    if unknown:
        raise StudyError(f"{unknown[0]!r} in the expression {text!r} is no axis of this variant; {nearest(unknown[0], allowed)}", where=where)
