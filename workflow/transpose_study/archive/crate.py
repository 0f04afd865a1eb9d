"""ro-crate-metadata.json of an archive: the run as a Workflow Run Crate, with nothing in it that was not recorded.

Profiles: RO-Crate 1.1, Workflow RO-Crate 1.0, Process Run Crate 0.5, Workflow Run Crate 0.5 (w3id.org/ro/wfrun). The JSON-LD
is made here and not by the package ``rocrate``, which dates a crate by the clock and names new entities at random.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from transpose_study.archive.contents import SOURCES

METADATA = "ro-crate-metadata.json"
README = "README.md"
CONTEXT = "https://w3id.org/ro/crate/1.1/context"
WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    WORKFLOW_CRATE: ("Workflow RO-Crate", "1.0"),
}
LICENSE = {
    "@id": "https://spdx.org/licenses/MIT",
    "@type": "CreativeWork",
    "name": "MIT License",
    "identifier": "MIT",
    "url": "https://opensource.org/license/mit",
}
AUTHOR = {"@id": "#developers", "@type": "Organization", "name": "The developers of the transpose study"}
SNAKEMAKE = {"@id": "https://w3id.org/workflowhub/workflow-ro-crate#snakemake", "@type": "ComputerLanguage", "name": "Snakemake"}
WORKFLOW_PROFILE = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
PARAMETER = "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"
MEDIA = {
    "csv": "text/csv", "json": "application/json", "jsonl": "application/jsonl", "yaml": "application/yaml", "svg": "image/svg+xml",
    "html": "text/html", "md": "text/markdown", "py": "text/x-python", "log": "text/plain", "rst": "text/x-rst", "cu": "text/x-cuda",
    "ptx": "text/plain", "sass": "text/plain", "txt": "text/plain", "lock": "text/plain", "toml": "application/toml", "css": "text/css",
}  # fmt: skip
OTHER_MEDIA = "application/octet-stream"

Entity = dict[str, Any]

# Inputs and outputs of the workflow: name -> (folder or file in the archive, what it is).
INPUTS = {
    "configuration": ("run_config.yaml", "the resolved configuration, defaults included"),
    "kernels": (f"{SOURCES}/kernels/", "CUDA sources and their registry"),
    "metrics": (f"{SOURCES}/config/metrics.yaml", "the hardware counters that are read"),
}
OUTPUTS = {
    "raw": ("raw/", "verdicts, timing samples and counter values as they were measured"),
    "build": ("build/", "cubin, PTX, SASS and build record of every kernel"),
    "environment": ("environment.json", "GPU, driver, compiler, packages, commit, start and end"),
    "tables": ("tables/", "tidy tables"),
    "figures": ("figures/", "figures"),
    "report": ("report/", "the write-up"),
}


def metadata(sizes: Mapping[str, int], digests: Mapping[str, str], environment: Mapping[str, Any], *, study: str, title: str, program: str) -> bytes:
    """The JSON-LD of an archive whose members have these ``sizes`` (bytes) and sha256 ``digests``.

    ``environment`` is the run's environment.json, ``title`` the study's, ``program`` the version of transpose-study.
    """
    gpu = environment["gpu"]
    own = f"{SOURCES}/config/metrics-{study}.yaml"
    inputs = _present(INPUTS | ({"metrics": (own, INPUTS["metrics"][1])} if own in sizes else {}), sizes)
    outputs = _present(OUTPUTS, sizes)
    parameters = {name: f"#{name}" for name in (*inputs, *outputs)}
    software = _software(environment, program)
    workflow = f"{SOURCES}/Snakefile"
    files = [_file(name, sizes[name], digests[name]) for name in sorted(sizes)]
    folders = [_folder(path, what) for path, what in (*inputs.values(), *outputs.values()) if path.endswith("/")]
    data = {e["@id"]: e for e in (*files, *folders)}
    data[README] |= {"about": {"@id": "./"}}
    for name, (path, what) in (*inputs.items(), *outputs.items()):
        data[path] |= {"exampleOfWork": {"@id": parameters[name]}, "description": what}
    for folder in folders:
        data[folder["@id"]]["hasPart"] = _refs(n for n in sorted(sizes) if n.startswith(folder["@id"]))
    language = SNAKEMAKE | {"version": environment.get("packages", {}).get("snakemake", "not recorded"), "url": "https://snakemake.github.io"}
    data[workflow] |= {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "Snakefile of the transpose study",
        "conformsTo": {"@id": WORKFLOW_PROFILE},
        "programmingLanguage": {"@id": language["@id"]},
        "license": {"@id": LICENSE["@id"]},
        "creator": {"@id": AUTHOR["@id"]},
        "version": program,
        "input": _refs(parameters[n] for n in inputs),
        "output": _refs(parameters[n] for n in outputs),
        "softwareRequirements": _refs(e["@id"] for e in software),
    }
    action = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"Measurement on {gpu['name']}",
        "description": "Command line: " + " ".join(str(a) for a in environment.get("argv") or ["not recorded"]),
        "startTime": environment["start"],
        "endTime": environment["end"],
        "actionStatus": "http://schema.org/CompletedActionStatus",
        "agent": {"@id": AUTHOR["@id"]},
        "instrument": {"@id": workflow},
        "object": _refs(path for path, _ in inputs.values()),
        "result": _refs(path for path, _ in outputs.values()),
    }
    top = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{title}, measured on {gpu['name']}",
        "description": f"One complete run of the study {study!r}: raw data, kernels as built, configuration, environment, tables, figures, report.",
        "datePublished": environment["end"],
        "license": {"@id": LICENSE["@id"]},
        "author": {"@id": AUTHOR["@id"]},
        "publisher": {"@id": AUTHOR["@id"]},
        "conformsTo": _refs(PROFILES),
        "mainEntity": {"@id": workflow},
        "mentions": {"@id": "#run"},
        "about": [{"@id": "#gpu"}, {"@id": "#host"}],
        "hasPart": _refs([e["@id"] for e in folders] + [e["@id"] for e in files]),
    }
    descriptor = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": _refs(["https://w3id.org/ro/crate/1.1", WORKFLOW_CRATE]),
        "license": {"@id": LICENSE["@id"]},
    }
    profiles = [{"@id": i, "@type": "CreativeWork", "name": name, "version": version} for i, (name, version) in PROFILES.items()]
    formal = [_parameter(parameters[n], n, path, what) for n, (path, what) in (*inputs.items(), *outputs.items())]
    graph = [descriptor, top, *profiles, LICENSE, AUTHOR, language, action, *_machine(environment), *software, *formal, *data.values()]
    text = json.dumps({"@context": CONTEXT, "@graph": graph}, indent=1, ensure_ascii=False)
    return (text + "\n").encode()


def readme(environment: Mapping[str, Any], *, title: str, program: str) -> bytes:
    """README.md at the archive's top: what it is, and the commands that check it, rebuild it and run it again."""
    gpu = environment["gpu"]
    return f"""# {title}, measured on {gpu["name"]}

One complete run, from {environment["start"]} to {environment["end"]}, packed by transpose-study {program}. The folder `{SOURCES}/`
holds the project as it was when this was packed, the program itself among it; its `README.md` says how to install it. The commit
that measured is in `environment.json` ({environment.get("git", {}).get("commit") or "not recorded"}). With the program installed:

- `transpose-study verify THIS_ARCHIVE` checks every byte, and rebuilds tables, figures and report from the raw data;
- `transpose-study rerun THIS_ARCHIVE` makes the same experiment on another GPU;
- `snakemake --cores 1 compare --config 'compare=[THIS_ARCHIVE, ANOTHER]'` sets two runs side by side.

`manifest.json` holds the sha256 of every file, `{METADATA}` describes run, software and machine (a Workflow Run Crate),
`raw/` is what was measured, `report/` the write-up. Large members are compressed as bzip2:
`unzip`, 7-Zip and Python's zipfile read them.
""".encode()


def _present(parts: Mapping[str, tuple[str, str]], sizes: Mapping[str, int]) -> dict[str, tuple[str, str]]:
    return {k: v for k, v in parts.items() if any(n == v[0] or (v[0].endswith("/") and n.startswith(v[0])) for n in sizes)}


def _refs(names: Any) -> list[Entity]:
    return [{"@id": n} for n in names]


def _file(name: str, size: int, digest: str) -> Entity:
    media = MEDIA.get(name.rpartition(".")[2], OTHER_MEDIA)
    return {"@id": name, "@type": "File", "name": name, "contentSize": str(size), "encodingFormat": media, "sha256": digest}


def _folder(path: str, what: str) -> Entity:
    return {"@id": path, "@type": "Dataset", "name": path.rstrip("/"), "description": what}


def _parameter(identifier: str, name: str, path: str, what: str) -> Entity:
    return {
        "@id": identifier,
        "@type": "FormalParameter",
        "additionalType": "Dataset" if path.endswith("/") else "File",
        "conformsTo": {"@id": PARAMETER},
        "name": name,
        "description": what,
    }


def _software(environment: Mapping[str, Any], program: str) -> list[Entity]:
    """The program, compiler, profiler, driver and packages with the versions that were recorded, named by package URLs."""
    gpu = environment["gpu"]
    versions: dict[str, Any] = {
        "generic/transpose-study": program,
        "generic/nvcc": environment.get("compiler", {}).get("nvcc"),
        "generic/ncu": environment.get("ncu"),
        "generic/nvidia-driver": gpu.get("driver"),
        "generic/cuda-driver-api": gpu.get("driver_cuda"),
        "generic/python": environment.get("python"),
        **{f"pypi/{name.lower().replace('_', '-')}": version for name, version in environment.get("packages", {}).items()},
    }
    return [
        {"@id": f"pkg:{name}@{version}", "@type": "SoftwareApplication", "name": name.partition("/")[2], "softwareVersion": str(version)}
        for name, version in versions.items()
        if version
    ]


def _machine(environment: Mapping[str, Any]) -> list[Entity]:
    """The GPU and the host with every fact that was recorded of them."""
    gpu, host = environment["gpu"], environment.get("machine", {})
    entities = [*_thing("#gpu", str(gpu["name"]), "the measured GPU", gpu), *_thing("#host", "host of the GPU", "the machine it is built into", host)]
    entities[0]["serialNumber"] = str(gpu["uuid"])
    return entities


def _thing(identifier: str, name: str, what: str, facts: Mapping[str, Any]) -> Sequence[Entity]:
    known = {k: v for k, v in facts.items() if v is not None}
    properties = [{"@id": f"{identifier}-{k}", "@type": "PropertyValue", "name": k, "value": v} for k, v in known.items()]
    thing = {"@id": identifier, "@type": "IndividualProduct", "name": name, "description": what}
    return [thing | {"additionalProperty": _refs(p["@id"] for p in properties)}, *properties]
