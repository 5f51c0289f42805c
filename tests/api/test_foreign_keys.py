"""Another tenant's key on every route and every tool: no content, and no difference by what there is.

Each request is sent to two services that differ only in what another tenant has: in one it is stored, in the other it
was stored and deleted, so that ids are counted alike. The answers have to be the same, apart from times and random ids.
The requests are made of the OpenAPI document and of the tools' schemas, so that new ones are among them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from app import create_app
from benchmarks.isolation.requests import Party, Pool, Requests
from souvenir.core.settings import McpTier, Settings
from souvenir.core.types import Role
from souvenir.mcp.registry import TIERS
from tests.api.conftest import BASE_URL, KEY
from tests.api.operations import AGENT, DOCUMENT, OPERATIONS, Operation
from tests.api.test_agents import ENV, key_for
from tests.cases import for_all
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.thoroughness import sampled

OWN = "tenant-b"
ME, OTHER = Party("me", "mine", "zqm", agent=OWN), Party("other", "theirs", "zqo", agent=AGENT)
FOR_KEYS = [one for one in OPERATIONS if one.role in (Role.READ_ONLY, Role.READ_WRITE)]
TOOLS = [tool for tier in TIERS.values() for tool in tier]
TURNS = sampled(2, 6)
SECRET = "zqo0123456789abcdef"
STORED = 5

_RANDOM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{8,32}\b|\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00|Z)?|\d{8}_\d{6}(?:_\d+)?"
    r"|whsec_[\w+/=]+"
)


class Pair:
    """Two services for the same requests."""

    def __init__(self, folder: Path) -> None:
        self.clients = [
            TestClient(create_app(settings_of(folder / name), FakeEmbedder(), fake_of), base_url=BASE_URL)
            for name in ("with", "without")
        ]
        self.keys: list[dict[str, str]] = []

    def __enter__(self) -> Pair:
        for client, stays in zip(self.clients, (True, False), strict=True):
            client.__enter__()
            store(client)
            catch_up(client)
            if not stays:
                assert client.delete(f"/agents/{AGENT}", headers=ENV).status_code == 200
            client.post("/agents", json={"name": OWN}, headers=ENV)
            self.keys.append(key_for(client, namespace=OWN))
        return self

    def __exit__(self, *error: object) -> None:
        for client in self.clients:
            client.__exit__(None, None, None)

    def answers(self, method: str, path: str, **options: Any) -> list[tuple[int, str]]:
        """Status and text of both, without what is random."""
        for client in self.clients:
            catch_up(client)
        headers = options.pop("headers", {})
        found = [
            client.request(method, path, headers={**headers, **key}, **options)
            for client, key in zip(self.clients, self.keys, strict=True)
        ]
        return [(answer.status_code, _RANDOM.sub("*", answer.text)) for answer in found]


def settings_of(folder: Path) -> Settings:
    return Settings(
        data_dir=folder,
        api_key=SecretStr(KEY),
        auth_rate_limit=10**6,
        mcp_tools=tuple(McpTier),
        extract_fallback_add=True,
    )


def catch_up(client: TestClient) -> None:
    """Let the concepts of all texts be extracted, since answers depend on that."""
    client.app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]


def store(client: TestClient) -> None:
    """What the other tenant has: an agent with memories, messages, a block and a preference."""
    client.post("/agents", json={"name": AGENT}, headers=ENV)
    theirs = {**ENV, "X-Namespace": AGENT}
    memories = [{"text": f"{SECRET} number {number}", "source": "theirs"} for number in range(STORED)]
    assert client.post("/memory/add-batch", json={"memories": memories}, headers=theirs).status_code == 200
    message = {"agent_name": AGENT, "role": "user", "content": SECRET, "session_id": "session_id-1"}
    assert client.post("/messages", json=message, headers=ENV).status_code == 200
    block = {"agent_name": AGENT, "label": "label-1", "value": SECRET}
    assert client.post("/memory-blocks", json=block, headers=ENV).status_code == 200
    assert client.post("/remember", json={"agent_name": AGENT, "key": "key-1", "value": SECRET}, headers=ENV).is_success


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with Pair(tmp_path_factory.mktemp("pair")) as services:
        yield services


def pool() -> Pool:
    """What the caller knows of the other: the ids of its memories."""
    ids = list(range(1, STORED + 1))
    return Pool({ME.name: ids, OTHER.name: ids}, tokens={ME.name: [], OTHER.name: []})


@for_all("operation", FOR_KEYS)
def test_a_route_answers_another_tenants_key_as_if_there_was_nothing(pair: Pair, operation: Operation):
    requests = Requests(DOCUMENT, ME, OTHER, pool(), random.Random(str(operation)))
    example = pair.answers(operation.method, operation.path, json=operation.body, params=operation.query)
    drawn = [requests.draw_of(str(operation)) for _ in range(TURNS)]
    pairs = [example] + [
        pair.answers(one.method, one.path, content=one.body, headers={"Content-Type": one.content_type})
        for one in drawn
    ]
    for stored, deleted in pairs:
        assert stored == deleted
        assert SECRET not in stored[1]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_answers_another_tenants_key_as_if_there_was_nothing(pair: Pair, tool: Any):
    schema, dice = tool.input_schema, random.Random(tool.name)
    document = {"paths": {}, "components": {"schemas": schema.get("$defs", {})}}
    requests = Requests(document, ME, OTHER, pool(), dice)
    for path in ("/mcp", f"/mcp/{OWN}", f"/mcp/{AGENT}"):
        params = {"name": tool.name, "arguments": requests.value("arguments", schema)}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        accept = {"Accept": "application/json, text/event-stream"}
        stored, deleted = pair.answers("POST", path, json=message, headers=accept)
        assert stored == deleted
        assert SECRET not in stored[1]


def test_a_route_that_tells_one_from_the_other_would_be_noticed(pair: Pair):
    keys, pair.keys = pair.keys, [ENV, ENV]
    try:
        stored, deleted = pair.answers("GET", f"/agents/{AGENT}")
    finally:
        pair.keys = keys
    assert stored != deleted
