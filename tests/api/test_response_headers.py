"""Headers of every response, the Allow header of a 405, and headers that errors must not repeat."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.routing import Match, Route
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from tests.api.conftest import BASE_URL, KEY
from tests.api.operations import OPERATIONS, Operation
from tests.api.test_errors import with_faults
from tests.cases import for_all
from tests.fake_embedder import FakeEmbedder, fake_of

STRICT = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
ENV = {"X-API-Key": KEY}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
MCP = {**ENV, "Accept": "application/json, text/event-stream"}
PAGE = {**ENV, "Origin": "https://notes.example"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("keyed"),
        api_key=SecretStr(KEY),
        cors_origins=("https://notes.example",),
        max_body_bytes=2048,
    )
    app = create_app(settings, FakeEmbedder(), fake_of)
    with_faults(app)
    with TestClient(app, base_url=BASE_URL) as client:
        yield client


def security_headers(response: Any) -> dict[str, list[str]]:
    names = ("X-Content-Type-Options", "Referrer-Policy", "Content-Security-Policy")
    return {name: response.headers.get_list(name) for name in names}


@pytest.mark.parametrize(
    ("status", "method", "path", "options"),
    [
        (200, "GET", "/health", {}),
        (200, "GET", "/memories", {"headers": ENV}),
        (200, "GET", "/metrics", {"headers": ENV}),
        (200, "GET", "/export", {"headers": ENV}),
        (200, "GET", "/openapi.json", {}),
        (200, "GET", "/docs/swagger-ui.css", {}),
        (200, "OPTIONS", "/search", {"headers": {**PAGE, "Access-Control-Request-Method": "POST"}}),
        (200, "POST", "/mcp", {"json": CALL, "headers": MCP}),
        (200, "POST", "/mcp", {"json": CALL, "headers": {**ENV, "Accept": "text/event-stream"}}),
        (401, "GET", "/memories", {}),
        (401, "POST", "/mcp", {"json": CALL}),
        (403, "POST", "/backup", {"headers": {"Origin": "http://evil.example"}}),
        (404, "GET", "/nowhere", {}),
        (404, "GET", "/memory/7", {"headers": ENV}),
        (405, "GET", "/search", {}),
        (405, "GET", "/mcp", {"headers": ENV}),
        (413, "POST", "/memory/add", {"content": b"x" * 4096, "headers": ENV}),
        (415, "POST", "/import", {"content": b"x", "headers": ENV}),
        (421, "GET", "/health", {"headers": {"Host": "evil.example"}}),
        (422, "POST", "/search", {"json": {}, "headers": ENV}),
        (500, "GET", "/fault", {}),
    ],
)
def test_every_response_forbids_sniffing_rendering_and_referrers(
    keyed: TestClient, status: int, method: str, path: str, options: dict[str, Any]
):
    response = keyed.request(method, path, **options)
    assert response.status_code == status, response.text
    assert security_headers(response) == {
        "X-Content-Type-Options": ["nosniff"],
        "Referrer-Policy": ["no-referrer"],
        "Content-Security-Policy": [STRICT],
    }


@pytest.mark.parametrize(
    ("method", "path", "options", "stages"),
    [
        ("GET", "/health", {}, {"queue", "serialise"}),
        ("GET", "/nowhere", {}, set()),
        ("GET", "/memories", {}, set()),
        (
            "POST",
            "/memory/add",
            {"json": {"text": "red", "source": "notes"}, "headers": ENV},
            {"queue", "prepare", "commit", "apply", "serialise"},
        ),
        (
            "POST",
            "/search",
            {"json": {"query": "red"}, "headers": ENV},
            {"embed", "queue", "words", "vectors", "rank", "read", "serialise"},
        ),
    ],
)
def test_every_response_tells_how_long_its_stages_took(
    keyed: TestClient, method: str, path: str, options: dict[str, Any], stages: set[str]
):
    keyed.post("/memory/add", json={"text": "blue", "source": "notes"}, headers=ENV)
    response = keyed.request(method, path, **options)
    timing = [one.partition(";dur=")[::2] for one in response.headers["Server-Timing"].split(", ")]
    durations_ms = {name: float(value) for name, value in timing}
    assert len(durations_ms) == len(timing)
    total_ms = durations_ms.pop("total")
    assert durations_ms.keys() == stages
    assert all(0 <= value <= total_ms for value in durations_ms.values())
    # Each is rounded to a hundredth.
    assert sum(durations_ms.values()) <= total_ms + 0.01 * len(timing)


def test_the_page_of_the_docs_may_run_its_own_script_and_nothing_else(keyed: TestClient):
    response = keyed.get("/docs")
    [script] = re.findall(r"<script>(.*?)</script>", response.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    headers = security_headers(response)
    [policy] = headers.pop("Content-Security-Policy")
    assert headers == {"X-Content-Type-Options": ["nosniff"], "Referrer-Policy": ["no-referrer"]}
    directives = dict(directive.split(" ", 1) for directive in policy.split("; "))
    assert directives["script-src"] == f"'self' 'sha256-{digest}'"
    assert (directives["default-src"], directives["connect-src"]) == ("'none'", "'self'")
    assert directives["frame-ancestors"] == "'none'"
    assert re.findall(r"\son\w+=|style=|javascript:", response.text) == []


def methods_of(client: TestClient, path: str) -> set[str]:
    """The methods under which some route takes the path, asked one by one."""
    routes = [route for route in client.app.routes if isinstance(route, Route)]  # type: ignore[attr-defined]
    taken = (
        method
        for method in METHODS
        for route in routes
        if route.matches({"type": "http", "path": path, "method": method, "root_path": ""})[0] is Match.FULL
    )
    return set(taken)


@for_all("path", sorted({operation.path for operation in OPERATIONS}))
def test_a_405_names_every_method_that_the_path_has(shared_client: TestClient, path: str):
    """Segments like `conflicts` are taken by routes with a parameter there too."""
    expected = methods_of(shared_client, path)
    response = shared_client.request("TRACE", path)
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    assert response.headers["Allow"] == ", ".join(sorted(expected))
    for method in ("HEAD", "OPTIONS"):
        assert shared_client.request(method, path).status_code == 405


def test_a_path_with_several_methods_names_them_all(shared_client: TestClient):
    assert shared_client.put("/memory/1", json={}).headers["Allow"] == "DELETE, GET, PATCH"
    assert shared_client.get("/mcp").headers["Allow"] == "POST"


CANARY = "canary-5d1b"


@pytest.mark.parametrize(
    ("status", "method", "path", "headers", "content"),
    [
        (401, "GET", f"/memories?source_prefix={CANARY}", {"X-API-Key": CANARY}, None),
        (401, "GET", f"/memory-blocks/{CANARY}", {"Authorization": f"Bearer {CANARY}"}, None),
        (403, "POST", f"/memory/{CANARY}", {"Origin": f"http://{CANARY}"}, None),
        (404, "GET", f"/{CANARY}?{CANARY}", {}, None),
        (405, "PUT", f"/memory-blocks/{CANARY}?{CANARY}", ENV, CANARY),
        (413, "POST", "/memory/add", ENV, CANARY * 1000),
        (415, "POST", f"/import?{CANARY}", {**ENV, "Content-Type": CANARY}, CANARY),
        (421, "GET", f"/health?{CANARY}", {"Host": CANARY}, None),
        (422, "GET", "/memories", {**ENV, "X-Namespace": f"{CANARY}/"}, None),
        (422, "POST", "/search", {**ENV, "Content-Type": "application/json"}, f"{{{CANARY}"),
        (400, "POST", "/mcp", {**MCP, "Content-Type": "application/json"}, f"{{{CANARY}"),
        (500, "GET", "/fault", {}, None),
    ],
)
def test_an_error_repeats_neither_path_nor_header_nor_body_and_names_no_file(
    keyed: TestClient, status: int, method: str, path: str, headers: dict[str, str], content: str | None
):
    response = keyed.request(method, path, headers=headers, content=content)
    assert response.status_code == status, response.text
    answer = json.dumps([response.text, *response.headers.values()])
    assert CANARY not in answer
    assert not re.search(r"Traceback|\.py\b|/work|site-packages|uvicorn|fastapi|starlette", answer, re.IGNORECASE)
    assert "Server" not in response.headers


@for_all("operation", OPERATIONS)
def test_statuses_that_any_request_can_get_are_documented(operation: Operation):
    assert {"400", "408", "421", "431"} <= operation.description["responses"].keys()
