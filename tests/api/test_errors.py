"""The error body, the limits that cause errors, and the request id."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from souvenir.core.errors import (
    ExtractionNotConfigured,
    ExtractQueueFull,
    LLMUnavailable,
    Overloaded,
    SearchUnavailable,
)
from tests.api.conftest import Start

JSON = {"Content-Type": "application/json"}
MIB = 1024 * 1024


def problem(response) -> tuple[int, str]:
    """Status and code, after the shape of the body was checked."""
    body = response.json()
    assert set(body) == {"detail", "code", "request_id"}
    assert body["request_id"] == response.headers["X-Request-ID"]
    return response.status_code, body["code"]


def with_faults(app: FastAPI) -> None:
    @app.get("/fault")
    def fault() -> None:
        raise RuntimeError("the password is hunter2")

    @app.get("/busy")
    def busy() -> None:
        raise Overloaded("Too many writes wait; try again", retry_after_s=7)

    @app.get("/full")
    def full() -> None:
        raise ExtractQueueFull(32, 32, retry_after_s=9)

    @app.get("/unconfigured")
    def unconfigured() -> None:
        raise ExtractionNotConfigured

    @app.get("/no-model")
    def no_model() -> None:
        raise LLMUnavailable("The model rests", retry_after_s=20)

    @app.get("/unavailable")
    def unavailable() -> None:
        raise SearchUnavailable("Neither arm can run")


def test_a_fault_is_a_500_that_says_nothing_of_its_cause(start: Start):
    response = start(with_faults).get("/fault")
    assert problem(response) == (500, "internal")
    assert response.json()["detail"] == "Internal server error"
    assert "hunter2" not in response.text


def test_an_overloaded_service_says_when_to_come_back(start: Start):
    response = start(with_faults).get("/busy")
    assert problem(response) == (429, "overloaded")
    assert response.headers["Retry-After"] == "7"


def test_a_full_extraction_queue_answers_with_the_compatible_object(start: Start):
    response = start(with_faults).get("/full")
    assert problem(response) == (429, "extract_queue_full")
    assert response.headers["Retry-After"] == "9"
    detail = response.json()["detail"]
    assert detail.pop("message").startswith("Too many extractions wait")
    assert detail == {"error": "extract_queue_full", "queue_depth": 32, "queue_max": 32, "retry_after_sec": 9}


def test_extraction_without_a_provider_is_501_with_the_compatible_message(start: Start):
    response = start(with_faults).get("/unconfigured")
    assert problem(response) == (501, "extraction_not_configured")
    assert response.json()["detail"] == "Extraction not configured. Set EXTRACT_PROVIDER env var."


def test_a_language_model_that_rests_is_a_503_that_says_when_to_come_back(start: Start):
    response = start(with_faults).get("/no-model")
    assert problem(response) == (503, "llm_unavailable")
    assert response.headers["Retry-After"] == "20"


def test_an_unavailable_part_is_a_503_with_its_sentence(start: Start):
    response = start(with_faults).get("/unavailable")
    assert problem(response) == (503, "search_unavailable")
    assert response.json()["detail"] == "Neither arm can run"


def test_an_unknown_route_is_404_in_the_one_body(shared_client: TestClient):
    assert problem(shared_client.get("/nowhere")) == (404, "not_found")


def test_a_slash_too_many_is_404_and_no_redirect(shared_client: TestClient):
    assert problem(shared_client.get("/memories/", follow_redirects=False)) == (404, "not_found")


def test_a_wrong_method_is_405_and_names_the_right_ones(shared_client: TestClient):
    response = shared_client.get("/search")
    assert problem(response) == (405, "method_not_allowed")
    assert response.headers["Allow"] == "POST"


def test_a_missing_memory_is_404_with_the_compatible_message(shared_client: TestClient):
    response = shared_client.get("/memory/4711")
    assert problem(response) == (404, "memory_not_found")
    assert response.json()["detail"] == "Memory ID 4711 not found"


def test_a_missing_field_is_reported_in_the_compatible_list(shared_client: TestClient):
    response = shared_client.post("/memory/add", json={"text": "no source"})
    assert problem(response) == (422, "invalid_request")
    [error] = response.json()["detail"]
    assert (error["type"], error["loc"], error["msg"]) == ("missing", ["body", "source"], "Field required")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"query": "a"',
        b"query=a",
        b"\xff\xfe",
        b'{"query": "\xed\xa0\x80"}',
        b'{"query": "\\ud800"}',
        b"[" * 100_000,
        b'{"query": "a", "k": ' + b"9" * 5000 + b"}",
        b"null",
        b"[]",
        b'"text"',
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_body_that_is_no_json_object_is_422(shared_client: TestClient, body):
    assert problem(shared_client.post("/search", content=body, headers=JSON)) == (422, "invalid_request")


def test_json_under_another_content_type_is_422(shared_client: TestClient):
    response = shared_client.post("/search", content=b'{"query": "a"}', headers={"Content-Type": "text/plain"})
    assert problem(response) == (422, "invalid_request")


@pytest.mark.parametrize("text", ["a\0b", "\0"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/memory/add", {"text": "@", "source": "s"}),
        ("/memory/add", {"text": "t", "source": "@"}),
        ("/memory/add", {"text": "t", "source": "s", "metadata": {"a": [{"b": "@"}]}}),
        ("/memory/add", {"text": "t", "source": "s", "metadata": {"@": 1}}),
        ("/memory/upsert", {"text": "t", "source": "s", "key": "@"}),
        ("/search", {"query": "@"}),
        ("/search", {"query": "q", "source_prefix": "@"}),
        ("/search", {"query": "q", "source_prefixes": ["@"]}),
        ("/search", {"query": "q", "metadata": {"@": "@"}}),
        ("/memory/delete-by-prefix", {"source_prefix": "@"}),
        ("/restore", {"backup_name": "@"}),
        ("/backup", {"prefix": "@"}),
    ],
)
def test_a_nul_character_is_422_anywhere_in_a_request(shared_client: TestClient, path, body, text):
    sent = json.loads(json.dumps(body).replace("@", json.dumps(text)[1:-1]))
    assert problem(shared_client.post(path, json=sent)) == (422, "invalid_request")


@pytest.mark.parametrize("path", ["/memories?source=a%00b", "/memories/count?source=a%00b"])
def test_a_nul_character_in_the_query_is_422(shared_client: TestClient, path):
    assert problem(shared_client.get(path)) == (422, "invalid_request")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_422(shared_client: TestClient, number):
    add = f'{{"text": "t", "source": "s", "metadata": {{"n": [{number}]}}}}'
    assert problem(shared_client.post("/memory/add", content=add, headers=JSON)) == (422, "invalid_request")
    for field in ("threshold", "k", "recency_half_life_days", "vector_weight"):
        search = f'{{"query": "q", "{field}": {number}}}'
        assert problem(shared_client.post("/search", content=search, headers=JSON)) == (422, "invalid_request")


def test_a_rejected_value_is_echoed_in_part(shared_client: TestClient):
    response = shared_client.post("/memory/add", json={"text": "x" * 60_000, "source": {"deep": ["y" * 1000] * 100}})
    assert problem(response) == (422, "invalid_request")
    assert len(response.content) < 2000


def test_many_invalid_fields_make_no_endless_answer(shared_client: TestClient):
    response = shared_client.post("/memory/add-batch", json={"memories": [{"text": 1}] * 500})
    assert problem(response) == (422, "invalid_request")
    assert len(response.json()["detail"]) == 100


def test_a_declared_body_above_the_limit_is_413(start: Start):
    client = start(max_body_bytes=2000)
    response = client.post("/memory/add", json={"text": "x" * 3000, "source": "s"})
    assert problem(response) == (413, "payload_too_large")
    assert "2000 bytes" in response.json()["detail"]


def test_a_chunked_body_above_the_limit_is_413(start: Start):
    def chunks() -> Iterator[bytes]:
        yield b'{"text": "'
        for _ in range(30):
            yield b"x" * 100

    client = start(max_body_bytes=2000)
    assert problem(client.post("/memory/add", content=chunks(), headers=JSON)) == (413, "payload_too_large")


@pytest.mark.parametrize(
    ("method", "path", "max_bytes"),
    [
        ("PUT", "/agents/ann/policy", 2 * MIB),
        ("POST", "/search", 2 * MIB),
        ("POST", "/context/ann", 2 * MIB),
        ("POST", "/memory/add", 8 * MIB),
        ("POST", "/messages/batch", 32 * MIB),
        ("POST", "/search/batch", 32 * MIB),
        ("POST", "/knowledge-graph", 32 * MIB),
        ("POST", "/agents/ann/graph", 32 * MIB),
        ("POST", "/memory/extract", 32 * MIB),
    ],
)
def test_the_largest_body_depends_on_the_cost_class_of_the_route(start: Start, method, path, max_bytes):
    client = start()
    response = client.request(method, path, content=b" " * (max_bytes + 1), headers=JSON)
    assert problem(response) == (413, "payload_too_large")
    assert f"{max_bytes} bytes" in response.json()["detail"]
    assert problem(client.request(method, path, content=b" " * max_bytes, headers=JSON))[0] == 422


def test_a_chunked_search_above_the_limit_of_its_class_is_413(start: Start):
    chunks = (b" " * MIB for _ in range(3))
    assert problem(start().post("/search", content=chunks, headers=JSON)) == (413, "payload_too_large")


def test_a_body_at_the_limit_passes(start: Start):
    body = json.dumps({"text": "x", "source": "s"}).encode().ljust(2000)
    assert start(max_body_bytes=2000).post("/memory/add", content=body, headers=JSON).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/memory/add", {"text": "x" * 50_001, "source": "s"}),
        ("/memory/add", {"text": "", "source": "s"}),
        ("/memory/add", {"text": "t", "source": "s" * 501}),
        ("/memory/add", {"text": "t", "source": ""}),
        ("/memory/add", {"text": "t", "source": "s", "on_duplicate": "replace"}),
        ("/memory/add", {"text": "t", "source": "s", "metadata": {"big": "x" * 70_000}}),
        ("/memory/add-batch", {"memories": []}),
        ("/memory/add-batch", {"memories": [{"text": "t", "source": "s"}] * 501}),
        ("/memory/upsert", {"text": "t", "source": "s", "key": "k" * 501}),
        ("/memory/upsert-batch", {"memories": [{"text": "t", "source": "s", "key": "k"}] * 1001}),
        ("/search", {"query": ""}),
        ("/search", {"query": "q" * 10_001}),
        ("/search", {"query": "q", "k": 0}),
        ("/search", {"query": "q", "k": 101}),
        ("/search", {"query": "q", "threshold": 1.1}),
        ("/search", {"query": "q", "recency_half_life_days": 0}),
        ("/search/batch", {"queries": [{"query": "q"}] * 201}),
        ("/memory/get-batch", {"ids": []}),
        ("/memory/get-batch", {"ids": list(range(1001))}),
        ("/memory/get-batch", {"ids": [2**63]}),
        ("/memory/get-batch", {"ids": [2**53]}),
        ("/memory/delete-batch", {"ids": [-1]}),
        ("/memory/archive-batch", {"ids": ["one"]}),
        ("/memory/merge", {"ids": [1], "merged_text": "t", "source": "s"}),
        ("/memory/is-novel", {"text": "t", "threshold": 2}),
        ("/memory/deduplicate", {"threshold": 0.4}),
        ("/memory/supersede", {"old_id": 1}),
        ("/restore", {"backup_name": ""}),
        ("/backup", {"prefix": "p" * 51}),
        pytest.param("/backup", {"prefix": "../../etc"}, marks=pytest.mark.sqlite_only(reason="backs up")),
    ],
)
def test_a_field_outside_of_its_limits_is_422(shared_client: TestClient, path, body):
    assert problem(shared_client.post(path, json=body)) == (422, "invalid_request")


@pytest.mark.parametrize(
    "path",
    [
        "/memories?limit=0",
        "/memories?limit=5001",
        "/memories?offset=-1",
        f"/memories?offset={2**63}",
        "/memories?source=" + "s" * 501,
        f"/memory/{2**63}",
        f"/memory/{2**53}",
        "/memory/seven",
    ],
)
def test_a_parameter_outside_of_its_limits_is_422(shared_client: TestClient, path):
    assert problem(shared_client.get(path)) == (422, "invalid_request")


def test_a_sane_request_id_is_kept_and_another_is_replaced(shared_client: TestClient):
    assert (
        shared_client.get("/health", headers={"X-Request-ID": "trace-1.a:b"}).headers["X-Request-ID"] == "trace-1.a:b"
    )
    for bad in ("", "a b", "x" * 101, "a\tb", "<script>", "ü"):
        made = shared_client.get("/health", headers=[(b"X-Request-ID", bad.encode())]).headers["X-Request-ID"]
        assert len(made) == 32
        int(made, 16)


def test_of_a_body_with_very_many_errors_only_their_number_is_reported(client: TestClient):
    relations = [{"from": 1, "to": 2, "relationType": 3}] * 400
    answer = client.post("/knowledge-graph", json={"relations": relations})
    assert answer.status_code == 422
    [error] = answer.json()["detail"]
    assert (error["type"], error["msg"]) == ("too_many_errors", "the body has 1,200 errors")
