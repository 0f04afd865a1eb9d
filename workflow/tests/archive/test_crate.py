"""The archive as an RO-Crate: by the profiles' own validator without a network, and property by property."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import rocrate
from archive_run import members_of
from rocrate.rocrate import ROCrate

CONTEXT = Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld"  # RO-Crate 1.3's, which the package ships
# Where RO-Crate 1.1 has these terms of Bioschemas; 1.3 moved them.
BIOSCHEMAS = {t: f"https://bioschemas.org/{t}" for t in ("ComputationalWorkflow", "FormalParameter")} | {
    t: f"https://bioschemas.org/ComputationalWorkflow#{t}" for t in ("input", "output")
}


@pytest.fixture(scope="module")
def graph(archive: Path) -> dict[str, dict[str, Any]]:
    """The entities of ro-crate-metadata.json by their @id."""
    data = json.loads(members_of(archive)["ro-crate-metadata.json"])
    assert data["@context"] == "https://w3id.org/ro/crate/1.1/context"
    ids = [e["@id"] for e in data["@graph"]]
    assert len(ids) == len(set(ids)), "an entity stands there twice"
    return {e["@id"]: e for e in data["@graph"]}


def types(entity: dict[str, Any]) -> set[str]:
    found = entity["@type"]
    return {found} if isinstance(found, str) else set(found)


def refs(entity: dict[str, Any], name: str) -> list[str]:
    value = entity[name]
    return [v["@id"] for v in (value if isinstance(value, list) else [value])]


def test_every_term_is_in_the_context(graph: dict[str, dict[str, Any]]) -> None:
    terms = set(json.loads(CONTEXT.read_text(encoding="utf-8"))["@context"])
    used = {k for e in graph.values() for k in e if not k.startswith("@")} | {t for e in graph.values() for t in types(e)}
    assert used <= terms, used - terms


def test_every_reference_leads_somewhere(graph: dict[str, dict[str, Any]]) -> None:
    for entity in graph.values():
        for name, value in entity.items():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, dict):
                    assert item["@id"] in graph or item["@id"].startswith("https://"), f"{entity['@id']}, {name}: {item['@id']}"


def test_workflow_run_crate_profile(graph: dict[str, dict[str, Any]]) -> None:
    """What w3id.org/ro/wfrun/workflow/0.5 and what it builds on require."""
    top = graph["./"]
    assert {"name", "description", "datePublished", "license", "author"} <= set(top)
    assert {f"https://w3id.org/ro/wfrun/{p}/0.5" for p in ("process", "workflow")} <= set(refs(top, "conformsTo"))
    (main,) = refs(top, "mainEntity")
    workflow = graph[main]
    assert types(workflow) == {"File", "SoftwareSourceCode", "ComputationalWorkflow"} and main == "sources/Snakefile"
    assert graph[refs(workflow, "programmingLanguage")[0]]["name"] == "Snakemake"
    (action,) = (e for e in graph.values() if "CreateAction" in types(e))
    assert refs(top, "mentions") == [action["@id"]] and refs(action, "instrument") == [main]
    assert action["startTime"] < action["endTime"] and action["startTime"].startswith("20")
    parameters = set(refs(workflow, "input")) | set(refs(workflow, "output"))
    assert all(types(graph[p]) == {"FormalParameter"} and graph[p]["additionalType"] in ("File", "Dataset") for p in parameters)
    for name in (*refs(action, "object"), *refs(action, "result")):
        assert graph[name]["exampleOfWork"]["@id"] in parameters and name in refs(top, "hasPart")
    assert graph["#developers"]["name"] == "The developers of the transpose study"
    assert graph[refs(top, "license")[0]]["name"] == "MIT License"


def test_machine_and_software_are_the_recorded_ones(graph: dict[str, dict[str, Any]], archive: Path) -> None:
    recorded = json.loads(members_of(archive)["environment.json"])
    gpu = graph["#gpu"]
    assert gpu["name"] == recorded["gpu"]["name"] and gpu["serialNumber"] == recorded["gpu"]["uuid"]
    facts = {graph[p]["name"]: graph[p]["value"] for p in refs(gpu, "additionalProperty")}
    assert facts["l2_bytes"] == recorded["gpu"]["l2_bytes"] and facts["driver"] == recorded["gpu"]["driver"]
    versions = {e["name"]: e["softwareVersion"] for e in graph.values() if types(e) == {"SoftwareApplication"}}
    assert versions["nvcc"] == recorded["compiler"]["nvcc"] and versions["ncu"] == recorded["ncu"]
    assert versions["python"] == recorded["python"] and versions["numpy"] == recorded["packages"]["numpy"]


def test_files_are_those_of_the_archive(graph: dict[str, dict[str, Any]], archive: Path) -> None:
    members = members_of(archive)
    described = {name for name, e in graph.items() if "File" in types(e)}
    assert described == set(members) - {"manifest.json", "ro-crate-metadata.json"}
    assert all(graph[n]["contentSize"] == str(len(members[n])) for n in described)


def test_rocrate_reads_it(archive: Path) -> None:
    crate = ROCrate(str(archive))
    assert crate.mainEntity.id == "sources/Snakefile" and crate.name.endswith("measured on NVIDIA H200")


@pytest.mark.parametrize("profile", ["workflow-run-crate-0.5", "process-run-crate-0.5", "workflow-ro-crate-1.0", "ro-crate-1.1"])
def test_validator_of_the_profiles(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
    """roc-validator, every required check; the context it would fetch is the one that the package rocrate ships."""
    requests, requests_cache = pytest.importorskip("requests"), pytest.importorskip("requests_cache")
    validator = pytest.importorskip("rocrate_validator.services")
    models = pytest.importorskip("rocrate_validator.models")
    context = json.loads(CONTEXT.read_text(encoding="utf-8"))
    context["@context"] |= BIOSCHEMAS

    def offline(self: object, method: str, url: str, **options: object) -> Any:
        answer = requests.Response()
        answer.url, answer.status_code = url, 504
        if str(url).startswith("https://w3id.org/ro/crate/"):
            answer.status_code, answer._content = 200, json.dumps(context).encode()
            answer.headers["Content-Type"] = "application/ld+json"
        return answer

    monkeypatch.setattr(requests.Session, "request", offline)
    monkeypatch.setattr(requests_cache.CachedSession, "request", offline)
    for name, data in members_of(archive).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    settings = validator.ValidationSettings(rocrate_uri=str(tmp_path), profile_identifier=profile, requirement_severity=models.Severity.REQUIRED)
    issues = [f"{i.check.identifier}: {i.message} ({i.violatingEntity})" for i in validator.validate(settings).get_issues()]
    assert issues == []
