"""The software bill of materials: valid, complete, and the same for the same checkout."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.build_sbom import bill

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(bill())
    return read


def libraries(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(each["name"], each["version"]): each for each in document["components"] if each["type"] == "library"}


def test_the_bill_of_materials_is_valid_by_the_schema_of_cyclonedx():
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill()) is None


def test_its_root_is_the_project_with_version_and_licence(document):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    root = document["metadata"]["component"]
    assert (root["type"], root["name"], root["version"]) == ("application", project["name"], project["version"])
    assert root["licenses"] == [{"expression": project["license"]}]


def test_it_lists_every_package_of_the_lock_with_all_its_hashes(document):
    lock = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    listed = libraries(document)
    assert set(listed) == set(re.findall(r"^([\w.-]+)==([\w.+-]+)", lock, flags=re.MULTILINE))
    hashes = [hashed["content"] for each in listed.values() for hashed in each["hashes"]]
    assert sorted(hashes) == sorted(re.findall(r"--hash=sha256:(\w+)", lock))
    assert all(each["purl"] == f"pkg:pypi/{name}@{version}" for (name, version), each in listed.items())


def test_its_graph_contains_what_the_installed_packages_require(document):
    graph = {entry["ref"]: set(entry.get("dependsOn", [])) for entry in document["dependencies"]}
    refs = {each["bom-ref"]: canonicalize_name(name) for (name, _), each in libraries(document).items()}
    for package in ("fastapi", "mcp", "anyio"):
        [ref] = [ref for ref, name in refs.items() if name == package]
        required = [Requirement(each) for each in requires(package) or []]
        needed = {
            canonicalize_name(each.name) for each in required if not each.marker or each.marker.evaluate({"extra": ""})
        }
        assert needed <= {refs[each] for each in graph[ref]}
    # Everything is reached from the project.
    reached: set[str] = set()
    waiting = ["souvenir"]
    while waiting:
        ref = waiting.pop()
        if ref not in reached:
            reached.add(ref)
            waiting += graph[ref]
    assert reached == set(graph)


def test_the_embedding_model_is_a_component_with_licence_hash_and_origin(document):
    [model] = [each for each in document["components"] if each["type"] == "machine-learning-model"]
    folder = ROOT / "models" / model["name"]
    assert model["licenses"] == [{"expression": "Apache-2.0"}]
    assert "Apache License 2.0" in (folder / "NOTICE").read_text(encoding="utf-8")
    digest = hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()
    assert model["hashes"] == [{"alg": "SHA-256", "content": digest}]
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["onnx"]["sha256"] == digest
    [weights] = model["pedigree"]["ancestors"]
    assert weights["name"] == manifest["source"]["model"]
    assert weights["hashes"] == [{"alg": "SHA-256", "content": manifest["source"]["weights_sha256"]}]


def test_two_processes_write_the_same_bytes_without_time_and_serial_number():
    build = "import sys; from scripts.build_sbom import bill; sys.stdout.write(bill())"
    environments = [{"PYTHONHASHSEED": seed} for seed in ("1", "2")]
    first, second = (
        subprocess.run([sys.executable, "-c", build], cwd=ROOT, env=each, check=True, stdout=subprocess.PIPE).stdout
        for each in environments
    )
    assert first == second == bill().encode()
    assert "serialNumber" not in json.loads(first)
    assert "timestamp" not in json.loads(first)["metadata"]


def test_its_time_is_that_of_source_date_epoch_if_it_is_set(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert json.loads(bill())["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill()) is None


def test_it_names_no_registry_and_no_path_of_this_machine():
    text = bill()
    assert re.findall(r"https?://[^\"]+", text) == ["http://cyclonedx.org/schema/bom-1.6.schema.json"]
    assert str(ROOT) not in text
