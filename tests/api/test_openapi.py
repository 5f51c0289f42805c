"""The OpenAPI document is complete, accurate, and equal to the committed docs/openapi.json."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from starlette.testclient import TestClient

from scripts.build_openapi import INDEX, OPENAPI, differences, index_of, serialized, wire_of
from souvenir import VERSION
from souvenir.api.events import SERVER_SENT_EVENTS
from souvenir.api.transfer import NDJSON
from souvenir.server.openapi import example_of
from souvenir.server.request_guards import OPEN_PATHS
from tests.api.conftest import keeps_backups
from tests.api.operations import DOCUMENT, OPERATIONS, described, schema_named
from tests.cases import for_all
from tests.test_english import violations

ROOT = Path(__file__).resolve().parent.parent.parent


def test_every_operation_has_a_unique_id():
    ids = [operation.description["operationId"] for operation in OPERATIONS]
    assert len(set(ids)) == len(ids)


@for_all("operation", OPERATIONS)
def test_an_operation_has_a_summary_one_sentence_a_response_model_and_examples(operation):
    description = operation.description
    assert description["summary"]
    assert re.fullmatch(r"[^.\n]+(\.\d+)?[^.\n]*\.", description["description"])
    for status, response in description["responses"].items():
        if NDJSON in response["content"]:
            assert json.loads(response["content"][NDJSON]["example"])
            continue
        if SERVER_SENT_EVENTS in response["content"]:
            assert "\nevent: " in response["content"][SERVER_SENT_EVENTS]["example"]
            continue
        schema = response["content"]["application/json"]["schema"]
        assert "$ref" in schema, f"{status} has no model"
        assert schema_named(DOCUMENT, schema)["examples"], f"{status} has no example"
    if "requestBody" in description:
        content = description["requestBody"]["content"]
        assert operation.body is not None or json.loads(content[NDJSON]["example"])


@for_all("operation", [one for one in OPERATIONS if one.template not in OPEN_PATHS])
def test_an_operation_says_how_it_fails_and_which_key_it_takes(operation):
    assert {"401", "403", "413", "421", "422", "429", "500", "503"} <= set(operation.description["responses"])
    assert [list(scheme) for scheme in operation.description["security"]] == [["APIKeyHeader"], ["HTTPBearer"]]
    assert "X-Namespace" in {parameter["name"] for parameter in operation.description["parameters"]}


@for_all("operation", OPERATIONS)
def test_every_field_and_parameter_of_a_request_is_described(operation):
    for parameter in operation.description.get("parameters", ()):
        assert parameter.get("description"), parameter["name"]
    if operation.body is not None:
        content = operation.description["requestBody"]["content"]["application/json"]["schema"]
        for name, field in schema_named(DOCUMENT, content)["properties"].items():
            assert any("description" in choice for choice in (field, *field.get("anyOf", ()))), name


def texts_of(node: Any) -> Iterator[str]:
    """Every summary and description of the document."""
    if isinstance(node, list):
        for item in node:
            yield from texts_of(item)
    elif isinstance(node, dict):
        yield from (node[key] for key in ("summary", "description") if isinstance(node.get(key), str))
        for key, value in node.items():
            if key not in {"example", "examples"}:
                yield from texts_of(value)


def test_the_texts_are_plain_english():
    assert [found for text in texts_of(DOCUMENT) for found in violations(text)] == []


@for_all("operation", [one for one in OPERATIONS if one.body is not None])
def test_the_example_of_a_request_is_accepted(shared_client: TestClient, operation):
    response = shared_client.request(operation.method, operation.path, json=operation.body)
    # Whether there is a memory to link with depends on what was asked before, and there is no language model.
    refused = {"link_not_usable", "extraction_not_configured"}
    if not keeps_backups(shared_client):
        refused.add("not_of_this_database")
    assert response.status_code in {200, 202, 404, 409} or response.json()["code"] in refused


REFERENCE = r"#/components/schemas/([\w.-]+)"
SCHEMAS = DOCUMENT["components"]["schemas"]
WITH_EXAMPLES = {name: schema for name, schema in SCHEMAS.items() if schema.get("examples")}


def referenced(name: str) -> set[str]:
    """Return the schema and all that it leads to: to compile the whole document for each takes longer than all else."""
    found, waiting = set[str](), {name}
    while waiting:
        found |= waiting
        waiting = {ref for one in waiting for ref in re.findall(REFERENCE, json.dumps(SCHEMAS[one]))} - found
    return found


@for_all("name", sorted(WITH_EXAMPLES))
def test_the_examples_of_a_schema_fit_it(name: str):
    schema = {**WITH_EXAMPLES[name], "components": {"schemas": {each: SCHEMAS[each] for each in referenced(name)}}}
    assert all(jsonschema_rs.validator_for(schema).is_valid(example) for example in schema["examples"])


def test_a_text_without_an_example_is_refused():
    with pytest.raises(LookupError, match="'colour' needs an example"):
        example_of({"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}, {})


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == VERSION == DOCUMENT["info"]["version"]


def test_the_description_and_its_page_are_served(shared_client: TestClient):
    assert shared_client.get("/openapi.json").json() == DOCUMENT
    page = shared_client.get("/docs")
    assert page.headers["Content-Type"].startswith("text/html")
    assert "openapi.json" in page.text


def test_the_page_needs_nothing_from_another_host(shared_client: TestClient):
    page = shared_client.get("/docs").text
    assert re.findall(r"""(?:src|href)=["'](https?:)?//""", page) == []
    files = re.findall(r"""(?:src|href)=["']([^"']+)["']""", page)
    assert {shared_client.get(f"/{file}").status_code for file in files} == {200}
    assert len(files) == 3


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return described().openapi()


def test_the_wire_is_the_one_that_is_committed(document: dict[str, Any]):
    assert list(differences(wire_of(DOCUMENT), wire_of(document))) == []


def test_the_committed_document_and_index_are_current(document: dict[str, Any]):
    assert OPENAPI.read_text(encoding="utf-8") == serialized(document), "python -m scripts.build_openapi"
    assert INDEX.read_text(encoding="utf-8") == index_of(document), "python -m scripts.build_openapi"


def test_only_texts_and_extensions_are_left_out_of_the_wire():
    schema = {"title": "A", "x-cost": 1, "properties": {"title": {"type": "string", "description": "..."}}}
    assert wire_of({"schemas": {"description": schema}}) == {
        "schemas": {"description": {"properties": {"title": {"type": "string"}}}}
    }
    assert list(differences({"a": {"b": 1}}, {"a": {"c": 1}})) == ["/a/b: 1 -> null", "/a/c: null -> 1"]


def test_the_index_has_every_operation_once():
    shown = re.findall(r"^\| `([A-Z]+ .+)` \|", index_of(DOCUMENT), re.MULTILINE)
    assert sorted(shown) == sorted(map(str, OPERATIONS))


def test_an_operation_whose_tag_has_no_section_is_refused():
    untitled = {**DOCUMENT["paths"]["/audit"]["get"], "tags": ["untitled"]}
    document = {**DOCUMENT, "paths": {**DOCUMENT["paths"], "/new": {"get": untitled}}}
    with pytest.raises(ValueError, match="GET /new is in no section"):
        index_of(document)
