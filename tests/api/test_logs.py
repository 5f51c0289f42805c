"""Request logs: enough to trace a request, without stored content or credentials."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import LogFormat, LogLevel, Settings
from souvenir.server.logs import configure_logging
from souvenir.server.middleware import REFUSALS_LOGGED_PER_S
from tests.api.conftest import BASE_URL, KEY, Start
from tests.fake_embedder import FakeEmbedder, fake_of

CANARY = "canary"


class Log:
    """What the process wrote to standard error since the test began."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self._text = ""

    @property
    def text(self) -> str:
        self._text += self._capture.readouterr().err
        return self._text

    def lines(self, event: str | None = None) -> list[dict[str, Any]]:
        parsed = [json.loads(line) for line in self.text.splitlines()]
        return [line for line in parsed if event in (None, line["event"])]


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Log:
    return Log(capsys)


def with_a_fault(app: FastAPI) -> None:
    @app.get("/fault")
    def fault() -> None:
        try:
            raise KeyError(f"{CANARY}-cause")
        except KeyError as error:
            raise ValueError(f"{CANARY}-message") from error


def test_a_request_is_one_line_with_its_template_status_time_and_id(logged: Log, start: Start):
    client = start(log_format="json")
    response = client.get("/memory/7", headers={"X-Namespace": "team", "X-Request-ID": "trace-7"})
    [line] = logged.lines("request")
    assert line.pop("duration_ms") > 0
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "request",
        "level": "info",
        "logger": "souvenir.server.middleware",
        "method": "GET",
        "route": "/memory/{memory_id}",
        "status": response.status_code,
        "request_id": "trace-7",
        "namespace": "team",
        "error_code": "memory_not_found",
    }


def test_a_flood_of_refusals_writes_few_lines_and_counts_the_others(logged: Log, start: Start, monkeypatch):
    monkeypatch.setattr("souvenir.server.middleware.time.monotonic", lambda: 1000.0)
    client = start(log_format="json", api_key=KEY)
    for _ in range(3 * REFUSALS_LOGGED_PER_S):
        assert client.get("/memory/7").status_code == 401
    assert len(logged.lines("request")) == REFUSALS_LOGGED_PER_S
    monkeypatch.setattr("souvenir.server.middleware.time.monotonic", lambda: 1001.0)
    client.get("/memory/7")
    assert logged.lines("request")[-1]["unlogged_refusals"] == 2 * REFUSALS_LOGGED_PER_S
    figures = client.get("/metrics", headers={"X-API-Key": KEY, "Accept": "application/json"}).json()["routes"]
    assert figures["GET /memory/{memory_id}"]["error_count"] == 3 * REFUSALS_LOGGED_PER_S + 1


def test_a_request_of_mcp_is_one_line_with_its_status_as_a_number(logged: Log, start: Start):
    client = start(log_format="text")
    asked_id = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}).headers["X-Request-ID"]
    [line] = [line for line in logged.text.splitlines() if asked_id in line]
    assert "route=/mcp status=200" in line


def test_a_fault_is_logged_with_its_place_and_without_its_message(logged: Log, start: Start):
    client = start(with_a_fault, log_format="json")
    request_id = client.get("/fault").headers["X-Request-ID"]
    [line] = logged.lines("request_failed")
    assert (line["request_id"], line["level"]) == (request_id, "error")
    assert line["error"] == "ValueError from KeyError"
    assert any("test_logs.py" in frame for frame in line["frames"])
    assert CANARY not in logged.text
    [request] = logged.lines("request")
    assert (request["status"], request["level"], request["error_code"]) == (500, "error", "internal")


def canary_requests(client: TestClient) -> Iterator[int]:
    """Requests of every kind that hold the canary in every place, with their statuses."""
    metadata = {f"{CANARY}-name": f"{CANARY}-value"}
    add = {"text": f"{CANARY} text", "source": f"{CANARY}/source", "metadata": metadata}
    key = {"X-API-Key": KEY}
    sent = [
        ("POST", "/memory/add", add),
        ("POST", "/memory/add", {**add, "deduplicate": True}),
        ("POST", "/memory/add", {**add, "text": 5, CANARY: CANARY}),
        ("POST", "/memory/upsert", {**add, "key": f"{CANARY}-key"}),
        ("POST", "/memory/add", {**add, "metadata": {"entity_key": f"{CANARY}-key"}, "source": "s"}),
        ("POST", "/memory/add", {**add, "metadata": {"entity_key": f"{CANARY}-key"}, "source": "s"}),
        ("POST", "/search", {"query": f"{CANARY} text", "source_prefix": CANARY}),
        ("POST", "/search/explain", {"query": f"{CANARY} txet"}),
        ("POST", "/search", {"query": CANARY, "since": CANARY}),
        ("GET", f"/memories?source={CANARY}", None),
        ("GET", f"/memory/{CANARY}", None),
        ("GET", f"/{CANARY}?{CANARY}={CANARY}", None),
        ("POST", "/memory/1/supersede", {"text": f"{CANARY} new"}),
        ("PATCH", "/memory/2", {"text": f"{CANARY} patched", "metadata_patch": metadata}),
        ("POST", "/restore", {"backup_name": CANARY}),
        ("DELETE", "/memory/1", None),
        ("DELETE", f"/memories?source={CANARY}", None),
    ]
    for method, path, body in sent:
        yield client.request(method, path, json=body, headers=key).status_code
    yield client.get("/stats", headers={"X-API-Key": f"{CANARY}-key"}).status_code
    yield client.get("/stats", headers={"Authorization": f"Bearer {CANARY}"}).status_code
    yield client.post("/memory/add", content=CANARY, headers={**key, "Content-Type": "application/json"}).status_code


@pytest.mark.parametrize("log_format", list(LogFormat))
def test_no_text_source_metadata_or_key_is_ever_logged(logged: Log, start: Start, log_format):
    client = start(api_key=KEY, log_level="DEBUG", log_format=log_format)
    statuses = set(canary_requests(client))
    client.__exit__(None, None, None)
    assert statuses >= {200, 401, 404, 409, 422}
    assert logged.text.count("request") >= 20
    assert CANARY not in logged.text
    assert KEY not in logged.text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "souvenir.lan"])
def test_a_service_that_is_open_on_purpose_warns_at_every_start(logged: Log, start: Start, tmp_path: Path, host: str):
    for _ in range(2):
        settings = Settings(data_dir=tmp_path / "data", host=host, allow_open=True, log_format=LogFormat.JSON)
        with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL) as client:
            assert client.get("/memories").status_code == 200
    warnings = [json.loads(line) for line in logged.text.splitlines() if "open_to_everyone" in line]
    assert [(warning["level"], warning["host"]) for warning in warnings] == [("warning", host)] * 2
    assert "API_KEY" in warnings[0]["action"]


@pytest.mark.parametrize(
    "values",
    [
        {"host": "127.0.0.1"},
        {"host": "localhost"},
        {"host": "0.0.0.0"},
        {"host": "0.0.0.0", "api_key": KEY, "allow_open": True},
        {"host": "0.0.0.0", "published_on": "[::1]"},
    ],
)
def test_a_service_on_this_machine_or_with_a_key_does_not_warn(logged: Log, start: Start, values: dict[str, Any]):
    start(log_format="json", **values)
    assert "open_to_everyone" not in logged.text


@pytest.mark.parametrize(("values", "count"), [({}, 1), ({"api_key": KEY}, 0)])
def test_a_service_without_keys_warns_if_every_page_may_call_it(logged: Log, start: Start, values, count):
    start(cors_origins="*", **values)
    assert logged.text.count("open_to_every_page") == count


def test_messages_of_libraries_go_through_the_same_handler(logged: Log):
    configure_logging(LogLevel.INFO, LogFormat.JSON)
    logging.getLogger("uvicorn.error").info("Started server process [%d]", 7)
    logging.getLogger("uvicorn.access").info("GET /memories?source=%s", CANARY)
    logging.getLogger("some.library").debug("not shown")
    [line] = logged.lines()
    assert (line["event"], line["logger"], line["level"]) == ("Started server process [7]", "uvicorn.error", "info")


def test_messages_of_the_operating_system_are_shown(logged: Log):
    configure_logging(LogLevel.INFO, LogFormat.JSON)
    try:
        raise PermissionError(13, "Permission denied", "/data/souvenir.db")
    except PermissionError:
        logging.getLogger("some.library").exception("writing failed")
    [line] = logged.lines()
    assert line["error"] == "PermissionError"
    assert "Permission denied" in line["error_message"]
