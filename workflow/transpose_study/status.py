"""Whether a results folder holds together: its data against configuration, sources, cubins and what was made from them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transpose_study.container import Container
from transpose_study.errors import StudyError
from transpose_study.experiment import Experiment
from transpose_study.measured_code import other_code
from transpose_study.provenance import COLUMNS, Provenance, source_of
from transpose_study.recompile import EQUAL, SAME_CODE, recompile
from transpose_study.records import digest_of, read_csv, read_json, read_text, sha256_file
from transpose_study.registry import Kernel

BATCH = "profile "  # before a batch's name, a stage of the journal
SOURCE = re.compile(r"<dc:source>([^<]*)</dc:source>")


def mismatches(experiment: Experiment, *, kernels: bool = True, made: bool = True) -> list[str]:
    """Everything in the folder that does not belong together, each as one clause; an empty list where all does.

    ``kernels`` is False where the sources are compared elsewhere, ``made`` where tables and figures are.
    Raises :class:`StudyError` only for files that cannot be read at all.
    """
    found = [*_identity(experiment), *_raw(experiment), *_cubins(experiment)]
    found += _sources(experiment) if kernels else ()
    found += _replayed(experiment) if experiment.replay else _journal(experiment)
    return found if found or not made else [*_tables(experiment), *_figures(experiment)]


def measured_with_others(experiment: Experiment) -> list[str]:
    """Raw files that were measured with other cubins than those in build/: what may never get into one table."""
    return [] if experiment.replay else [text for kind, text in _measured(experiment) if kind == "cubins"]


def notes(experiment: Experiment) -> list[str]:
    """What could not be compared, and why; and in a replay the kernels that were edited since."""
    remarks = []
    if not experiment.replay and any("cubins" not in e for e in _latest(experiment).values()):
        remarks.append("the journal of this run does not say with which cubins it measured; the build records alone were compared")
    if experiment.replay and _archive(experiment):
        edited = sorted(other_code(experiment.study, Container(experiment.root / str(experiment.target["archive"]))))
        remarks += [f"{name} was edited since the archive was made; its cells count as not measured" for name in edited]
    return remarks


# -- the data ---------------------------------------------------------------------------------------------------------


def _identity(experiment: Experiment) -> Iterator[str]:
    path = experiment.paths.identity
    if not path.exists():
        yield f"{_short(experiment, path)} is missing: whose data these are is not recorded"
        return
    held, mine = read_json(path), experiment.identity()
    if held != mine:
        keys = [k for k in mine if held.get(k) != mine[k]]
        yield "the raw data are those of another run than run_config.yaml names: " + ", ".join(f"{k} {held.get(k)!r}, not {mine[k]!r}" for k in keys)


def _raw(experiment: Experiment) -> Iterator[str]:
    for path in experiment.raw_files():
        if not path.is_file():
            yield f"{_short(experiment, path)} is missing"
    folder = experiment.paths.folder / "raw"
    named = {experiment.study.group_name(g.values) for g in experiment.config.shapes}  # those that `variants` leaves empty too
    for kind in ("timing", "counters"):
        for path in sorted((folder / kind).glob("*.csv")):
            if path.stem not in named:
                yield f"{_short(experiment, path)} is of a shape that the configuration does not have"
    for group in experiment.groups if not experiment.replay else ():  # a replay may take a part of what its archive holds
        yield from _cells(experiment, group, experiment.paths.timing(group), {"cache_mode": set(experiment.config.timing.cache_modes)})
        if experiment.batch_names():
            yield from _cells(experiment, group, experiment.paths.counters(group), {"batch": set(experiment.batch_names(group))})


def _cells(experiment: Experiment, group: str, path: Path, known: dict[str, set[str]]) -> Iterator[str]:
    """Cells, cache modes and batches in a raw file that the configuration does not have."""
    if not path.is_file():
        return
    names = experiment.study.key_columns
    configured = {tuple(str(v) for v in experiment.study.key(c).values()) for c in experiment.cells(group)}
    foreign: dict[str, None] = {}
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            key = tuple(row.get(n) or "" for n in names)
            if key not in configured:
                foreign[" ".join(k for k in key if k)] = None
            for column, values in known.items():
                if row.get(column) not in values:
                    foreign[f"{column} {row.get(column)}"] = None
    if foreign:
        few = [*list(foreign)[:3], *(["and others"] if len(foreign) > 3 else [])]
        yield f"{_short(experiment, path)} holds what the configuration does not have: {', '.join(few)}"


# -- kernels ----------------------------------------------------------------------------------------------------------


def _built(experiment: Experiment) -> Iterator[tuple[Kernel, Path]]:
    """Every configured kernel with the path of its build record."""
    for variant in experiment.variants():
        for kernel in experiment.kernels(variant) if not variant.no_kernel else ():
            yield kernel, experiment.paths.kernel(experiment.architecture, experiment.study.kernel_name(kernel), "json")


def _cubins(experiment: Experiment) -> Iterator[str]:
    """Cubins against their build records."""
    for _, path in _built(experiment):
        if not path.is_file():
            yield f"{_short(experiment, path)} is missing"
            continue
        record, cubin = read_json(path), path.with_suffix(".cubin")
        if record.get("status") == "ok" and (not cubin.is_file() or sha256_file(cubin) != record.get("cubin_sha256")):
            yield f"{_short(experiment, cubin)} is not the one its build record describes"


def _sources(experiment: Experiment) -> Iterator[str]:
    """Build records against the sources."""
    edited = [k for k, p in _built(experiment) if p.is_file() and read_json(p).get("code_digest") != experiment.study.code_digest(k.variant)]
    # Another release may take the digest of the same code otherwise: the compiler has the last word.
    compared = recompile(experiment.study, edited, experiment.paths.build(experiment.architecture)) if edited else []
    for name in [c.kernel for c in compared if c.outcome not in (EQUAL, SAME_CODE)]:
        yield f"the source of {name} is not the one that was built: it was edited since"


def _journal(experiment: Experiment) -> list[str]:
    return [text for _, text in _measured(experiment)]


def _latest(experiment: Experiment) -> dict[tuple[str, str], dict[str, Any]]:
    """The last journal entry of each stage and group that is configured."""
    path = experiment.paths.journal
    entries = [json.loads(line) for line in read_text(path).splitlines()] if path.exists() else []
    return {(e["stage"], e["group"]): e for e in entries if e["group"] in experiment.groups}


def _measured(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """(kind, text) of every journal entry that tells of other settings or cubins than the folder holds now."""
    records = {p.stem: read_json(p) for p in experiment.kernel_records() if p.is_file()}
    cubins = {name: r.get("cubin_sha256") for name, r in records.items() if isinstance(r, dict)}  # who reads one whole tells damage
    for (stage, group), entry in _latest(experiment).items():
        if stage.startswith(BATCH) and stage.removeprefix(BATCH) not in experiment.batch_names(group):
            continue
        settings = _settings(experiment, stage, group)
        if settings is None:
            continue
        other = [k for k, digest in entry.get("cubins", {}).items() if k in cubins and not str(cubins[k] or "").startswith(digest)]
        if other:
            yield "cubins", f"{stage} at {group} was measured with other cubins than build/ holds: {', '.join(sorted(other))}"
        elif entry.get("settings", settings) != settings:
            yield "settings", f"{stage} at {group} was measured with another configuration than run_config.yaml"


def _settings(experiment: Experiment, stage: str, group: str) -> str | None:
    if stage.startswith(BATCH):
        text = experiment.profile_settings(group, stage.removeprefix(BATCH))
    elif stage == "time":
        text = experiment.time_settings(group)
    elif stage == "check":
        text = experiment.check_settings(group)
    else:
        return None
    return digest_of(json.loads(text))


# -- replays ----------------------------------------------------------------------------------------------------------


def _archive(experiment: Experiment) -> bool:
    return (experiment.root / str(experiment.target["archive"])).is_file()


def _replayed(experiment: Experiment) -> Iterator[str]:
    """Restored files against the archive they came from."""
    name = str(experiment.target["archive"])
    if not _archive(experiment):
        yield f"the archive {name} that this folder replays is not there"
        return
    container = Container(experiment.root / name)
    if container.sha256 != experiment.target["archive_sha256"]:
        yield f"{name} is another file than the one that was restored from"
    for path in experiment.raw_files():
        member = _short(experiment, path)
        if path.is_file() and container.names.get(member) != sha256_file(path):
            yield f"{member} is not the archive's"


# -- what was made from the data --------------------------------------------------------------------------------------


def _tables(experiment: Experiment) -> Iterator[str]:
    """Tables whose rows name another run, configuration or cubin than the folder holds."""
    provenance = Provenance(experiment)
    present = [p.stem for p in sorted((experiment.paths.folder / "tables").glob("*.csv"))]
    for name in dict.fromkeys([*experiment.tables(), *present]):
        path = experiment.paths.table(name)
        if not path.is_file():
            yield f"{_short(experiment, path)} is missing"
            continue
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            if not set(COLUMNS) <= set(reader.fieldnames or ()):
                yield f"{_short(experiment, path)} does not say what it was made from"
                continue
            for row in reader:
                wanted = provenance.stamp(row)
                other = [c for c in COLUMNS if row[c] != wanted[c]]
                if other:
                    old, new = row[other[0]] or "none", wanted[other[0]] or "none"
                    yield f"{_short(experiment, path)} was made from something else: {other[0]} {old}, not {new}"
                    break


def _figures(experiment: Experiment) -> Iterator[str]:
    path = experiment.paths.table("timings")
    wanted = source_of(read_csv(path)) if path.is_file() else None
    for figure in sorted((experiment.paths.folder / "figures").glob("*.svg")):
        try:
            found = SOURCE.search(read_text(figure))
        except StudyError:
            found = None
        if wanted and (found is None or found[1] != wanted):
            yield f"{_short(experiment, figure)} was drawn from other tables"


def _short(experiment: Experiment, path: Path) -> str:
    return path.relative_to(experiment.paths.folder).as_posix()
