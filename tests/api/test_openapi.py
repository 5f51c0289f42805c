"""The description of the API is whole, true, and the same as docs/http_api.md."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from scripts.build_api_docs import API_PAGE, api_page
from souvenir.api import VERSION
from souvenir.api.caller import OPEN_PATHS
from souvenir.api.transfer_models import NDJSON
from tests.api.operations import DOCUMENT, OPERATIONS, schema_named

ROOT = Path(__file__).resolve().parent.parent.parent

# The wire of the issue that this part implements.
WIRE = {
    *("GET /health", "GET /health/ready", "GET /stats", "GET /metrics", "GET /audit", "POST /audit/purge"),
    "GET /usage",
    *("GET /facts", "PUT /memory/{memory_id}/facts", "POST /facts/split"),
    *("GET /tags", "POST /tags/rename", "POST /tags/merge", "DELETE /tags/{tag}"),
    "GET /memory/{memory_id}/history",
    *("POST /memory/{memory_id}/link", "GET /memory/{memory_id}/links", "DELETE /memory/{memory_id}/link/{target_id}"),
    *("GET /knowledge-graph", "POST /knowledge-graph"),
    *("POST /agents/{agent_name}/graph/describe", "GET /agents/{agent_name}/graph/describe/{job_id}"),
    "POST /agents/{agent_name}/graph/describe/{job_id}/undo",
    *(f"{method} /agents/{{agent_name}}/concepts/{{concept_id}}/relations" for method in ("GET", "PUT", "DELETE")),
    *("POST /search", "POST /search/explain", "POST /search/batch"),
    *("POST /memory/add", "POST /memory/add-batch", "POST /memory/upsert", "POST /memory/upsert-batch"),
    *("PATCH /memory/{memory_id}", "GET /memory/{memory_id}", "POST /memory/get-batch"),
    *("GET /memories", "GET /memories/count", "DELETE /memory/{memory_id}", "POST /memory/delete-batch"),
    *("POST /memory/delete-by-source", "POST /memory/delete-by-prefix", "DELETE /memories"),
    *("POST /memory/{memory_id}/supersede", "POST /memory/supersede", "POST /memory/merge"),
    *("POST /memory/archive-batch", "POST /memory/is-novel", "POST /memory/deduplicate"),
    *("POST /maintenance/reembed", "POST /maintenance/embedder/reload"),
    *("GET /memory/conflicts", "POST /memory/conflicts/resolve"),
    *("POST /maintenance/compact", "POST /maintenance/prune", "POST /maintenance/enforce-policies"),
    "POST /maintenance/consolidate",
    *("POST /memory/extract", "GET /memory/extract/{job_id}", "DELETE /memory/extract/{job_id}", "GET /extract/status"),
    *("POST /memory/extract/commit", "POST /memory/extract/{job_id}/approve", "POST /memory/extract/{job_id}/undo"),
    *("POST /memory/extract/{job_id}/rerun", "GET /memory/extract/{job_id}/diff"),
    *("GET /extraction/profiles", "GET /extraction/profiles/{prefix}"),
    *("PUT /extraction/profiles/{prefix}", "DELETE /extraction/profiles/{prefix}"),
    *("GET /export", "POST /import", "POST /index/build"),
    *("DELETE /agents/{agent_name}", "DELETE /agents/{agent_name}/users/{user}"),
    *("DELETE /sessions/{agent_name}/{session_id}", "DELETE /messages/{agent_name}/{message_id}", "POST /erase"),
    *("GET /jobs", "GET /jobs/{job_id}", "POST /jobs/{job_id}/cancel"),
    *("GET /backups", "POST /backup", "POST /restore"),
    *("GET /api/keys", "POST /api/keys", "GET /api/keys/me"),
    *("PATCH /api/keys/{key_id}", "DELETE /api/keys/{key_id}", "POST /api/keys/{key_id}/rotate"),
    *("POST /agents", "GET /agents", "GET /agents/{agent_name}", "POST /agents/{agent_name}/search"),
    *("GET /agents/{agent_name}/users", "GET /agents/{agent_name}/stats", "GET /agents/{agent_name}/export"),
    *("GET /agents/{agent_name}/graph", "POST /agents/{agent_name}/graph"),
    *("GET /agents/{agent_name}/topics", "GET /agents/{agent_name}/topics/{topic_id}"),
    *("PATCH /agents/{agent_name}/topics/{topic_id}", "GET /agents/{agent_name}/insights"),
    "GET /agents/{agent_name}/concepts/{concept_id}/history",
    *("POST /messages", "POST /messages/batch", "POST /messages/search", "POST /messages/search/explain"),
    *("GET /messages/{agent_name}", "GET /messages/{agent_name}/{message_id}"),
    "PATCH /messages/{agent_name}/{message_id}",
    *("POST /sessions", "GET /sessions/{agent_name}", "GET /sessions/{agent_name}/{session_id}"),
    *("PATCH /sessions/{agent_name}/{session_id}", "POST /sessions/{agent_name}/{session_id}/end"),
    "GET /sessions/{agent_name}/{session_id}/messages",
    *("POST /memory-blocks", "GET /memory-blocks/{agent_name}", "GET /memory-blocks/{agent_name}/{label}"),
    *("PUT /memory-blocks/{agent_name}/{label}", "DELETE /memory-blocks/{agent_name}/{label}"),
    *("GET /memory-blocks/{agent_name}/{label}/history", "POST /context/{agent_name}"),
    *("POST /remember", "POST /forget", "POST /recall", "POST /recall/search"),
    *("GET /preferences/{agent_name}", "GET /preferences/{agent_name}/{key}"),
    *("PUT /preferences/{agent_name}/{key}", "DELETE /preferences/{agent_name}/{key}"),
    *("POST /sessions/{agent_name}/{session_id}/messages", "POST /sessions/{agent_name}/{session_id}/context"),
    *("GET /sessions/{agent_name}/{session_id}/window", "DELETE /sessions/{agent_name}/{session_id}/window"),
    *(
        f"GET /api/locrits/{{agent_name}}/memory/{path}"
        for path in ("summary", "stats", "sessions", "concepts", "memories")
    ),
    *(f"{verb} /api/locrits/{{agent_name}}/memory/sessions/{{session_id}}" for verb in ("GET", "DELETE")),
    "GET /api/locrits/{agent_name}/memory/sessions/{session_id}/messages",
    *(f"{verb} /api/locrits/{{agent_name}}/memory/messages/{{message_id}}" for verb in ("GET", "PUT", "DELETE")),
    *(f"{verb} /api/locrits/{{agent_name}}/memory/concepts/{{concept_id}}" for verb in ("PUT", "DELETE")),
    "GET /api/locrits/{agent_name}/memory/concepts/details",
    "GET /api/locrits/{agent_name}/memory/concepts/{concept_name}/related",
    *("POST /api/locrits/{agent_name}/memory/memories", "DELETE /api/locrits/{agent_name}/memory/memories/{memory_id}"),
    *("DELETE /api/locrits/{agent_name}/memory/clear", "POST /api/v1/locrits/{agent_name}/memory/store-conversation"),
    *("GET /agents/{agent_name}/summary", "GET /agents/{agent_name}/concepts", "GET /agents/{agent_name}/concept"),
    *(f"{method} /agents/{{agent_name}}/concepts/{{concept_id}}" for method in ("GET", "PATCH", "DELETE")),
    *("GET /agents/{agent_name}/concepts/{concept_id}/related", "GET /agents/{agent_name}/concept/related"),
    *("GET /api/locrits/{agent_name}/memory/search", "GET /api/v1/locrits/{agent_name}/memory/ai-search"),
    *("GET /agents/{agent_name}/access", "PUT /agents/{agent_name}/access"),
    *("GET /agents/{agent_name}/policy", "PUT /agents/{agent_name}/policy", "POST /privacy/rescan"),
    *("GET /snapshots", "POST /snapshots", "POST /snapshots/{name}/restore"),
}


def test_every_operation_of_the_wire_is_there():
    assert {str(operation) for operation in OPERATIONS} == WIRE


def test_every_operation_has_an_id_of_its_own():
    ids = [operation.description["operationId"] for operation in OPERATIONS]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_an_operation_has_a_summary_one_sentence_a_response_model_and_examples(operation):
    description = operation.description
    assert description["summary"]
    assert re.fullmatch(r"[^.\n]+(\.\d+)?[^.\n]*\.", description["description"])
    for status, response in description["responses"].items():
        if NDJSON in response["content"]:
            assert json.loads(response["content"][NDJSON]["example"])
            continue
        schema = response["content"]["application/json"]["schema"]
        assert "$ref" in schema, f"{status} has no model"
        assert schema_named(DOCUMENT, schema)["examples"], f"{status} has no example"
    if "requestBody" in description:
        content = description["requestBody"]["content"]
        assert operation.body is not None or json.loads(content[NDJSON]["example"])


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.template not in OPEN_PATHS], ids=str)
def test_an_operation_says_how_it_fails_and_which_key_it_takes(operation):
    assert {"401", "403", "413", "421", "422", "429", "500", "503"} <= set(operation.description["responses"])
    assert [list(scheme) for scheme in operation.description["security"]] == [["APIKeyHeader"], ["HTTPBearer"]]
    assert "X-Namespace" in {parameter["name"] for parameter in operation.description["parameters"]}


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_every_field_and_parameter_of_a_request_is_described(operation):
    for parameter in operation.description.get("parameters", ()):
        assert parameter.get("description"), parameter["name"]
    if operation.body is not None:
        content = operation.description["requestBody"]["content"]["application/json"]["schema"]
        for name, field in schema_named(DOCUMENT, content)["properties"].items():
            assert any("description" in choice for choice in (field, *field.get("anyOf", ()))), name


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.body is not None], ids=str)
def test_the_example_of_a_request_is_accepted(shared_client: TestClient, operation):
    response = shared_client.request(operation.method, operation.path, json=operation.body)
    # Whether there is a memory to link with depends on what was asked before, and there is no language model.
    refused = {"link_not_usable", "extraction_not_configured"}
    assert response.status_code in {200, 202, 404, 409} or response.json()["code"] in refused


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


def test_the_page_in_docs_has_every_operation_once():
    shown = re.findall(r"^### `([A-Z]+ .+)`$", api_page(DOCUMENT), re.MULTILINE)
    assert sorted(shown) == sorted(WIRE)


def test_an_operation_whose_tag_has_no_section_is_refused():
    untitled = {**DOCUMENT["paths"]["/audit"]["get"], "tags": ["untitled"]}
    document = {**DOCUMENT, "paths": {**DOCUMENT["paths"], "/new": {"get": untitled}}}
    with pytest.raises(ValueError, match="GET /new is in no section"):
        api_page(document)


def test_the_page_in_docs_is_current():
    assert API_PAGE.read_text(encoding="utf-8") == api_page(DOCUMENT), "python -m scripts.build_api_docs"
