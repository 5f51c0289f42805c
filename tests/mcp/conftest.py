"""A running service on loopback, and JSON-RPC requests to it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.client.running import RunningService

BOTH = "application/json, text/event-stream"
TIMEOUT_S = 20.0
GRAPH_TEXT = re.compile(r"\[|[A-Z][a-z]+ deleted successfully$")
"""Texts of the nine tools of the reference memory server that are not the whole structured answer."""
ALL_TIERS = "memory,agent,graph,connector"


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks one service over plain HTTP."""

    http: httpx.Client

    def post(self, message: Any, path: str = "/mcp", headers: dict[str, str] | None = None) -> httpx.Response:
        """:param message: Text is sent as it is."""
        content = message if isinstance(message, str) else json.dumps(message)
        given = {"Content-Type": "application/json", "Accept": BOTH, **(headers or {})}
        return self.http.post(path, content=content, headers=given)

    def call(self, tool: str, path: str = "/mcp", headers: dict[str, str] | None = None, **arguments: Any) -> Any:
        """The result of a tool: what it answers, or its sentence if it is an error."""
        answer = self.post(calling(tool, arguments), path, headers)
        assert answer.status_code == 200, answer.text
        return read_result(answer.json()["result"])


def calling(tool: str, arguments: dict[str, Any], **meta: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def asking(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def read_result(result: dict[str, Any]) -> Any:
    [content] = result["content"]
    assert content["type"] == "text"
    if result["isError"]:
        assert "structuredContent" not in result
        return content["text"]
    if GRAPH_TEXT.match(content["text"]) is None:
        assert json.loads(content["text"]) == result["structuredContent"]
    return result["structuredContent"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """An open service with every tool, for the tests of a file."""
    service = RunningService(tmp_path_factory.mktemp("service") / "data", mcp_tools=ALL_TIERS)
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def ask(service: RunningService) -> Iterator[Asking]:
    with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as http:
        yield Asking(http)


Start = Callable[..., Asking]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a service with these settings, for one test."""
    with ExitStack() as running:

        def started(**settings: Any) -> Asking:
            service = RunningService(tmp_path / "data", **{"mcp_tools": ALL_TIERS, **settings})
            service.start()
            running.callback(service.stop)
            return Asking(running.enter_context(httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False)))

        yield started
