"""No route or tool returns stored data to a key whose agent grants it no access level.

The requests are random ones of the OpenAPI document and of the tools' input schemas, so that a new route or tool is
among them without being listed.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.testclient import TestClient

from benchmarks.isolation.player import MOST_TRIES, Player
from benchmarks.isolation.requests import Party, Pool, Requests
from souvenir.core.types import Role
from souvenir.mcp.registry import TIERS
from souvenir.mcp.tools import Tool
from tests.api.conftest import KEY, Start
from tests.api.operations import AGENT, DOCUMENT, OPERATIONS, Operation
from tests.api.test_agents import ENV, key_for
from tests.api.test_isolation import sending
from tests.thoroughness import sampled

STORED, ASKING = Party("stored", "s", "zqs", agent=AGENT), Party("asking", "a", "zqa", agent=AGENT)
SEED, STORING_TURNS, TRIES = 22, 8, sampled(12, 50)
STORING = (
    "POST /messages",
    "POST /messages/batch",
    "POST /remember",
    "POST /memory/extract",
    "PUT /memory/{memory_id}/facts",
)
FOR_KEYS = [one for one in OPERATIONS if one.role in (Role.READ_ONLY, Role.READ_WRITE)]
TOOLS = [tool for tier in TIERS.values() for tool in tier]
ALL_TIERS = "memory,agent,graph,connector"


@dataclass(frozen=True)
class Asked:
    """A service with stored content, and a key of its agent with the least access."""

    client: TestClient
    key: str
    pool: Pool

    def player(self, seed: int) -> Player:
        send = sending(self.client, self.key)
        return Player(DOCUMENT, ASKING, STORED, self.pool, send, random.Random(seed))


def asked(start: Start, levels: dict[str, bool]) -> Asked:
    client = start(api_key=KEY, auth_rate_limit=10**6, mcp_tools=ALL_TIERS, extract_fallback_add=True)
    pool = Pool({STORED.name: [], ASKING.name: []}, tokens={STORED.name: [], ASKING.name: []})
    client.post("/agents", json={"name": AGENT}, headers=ENV)
    key = key_for(client, namespace=AGENT)["X-API-Key"]
    storing = Player(DOCUMENT, STORED, ASKING, pool, sending(client, key), random.Random(SEED))
    for operation in STORING:
        for _ in range(STORING_TURNS):
            storing.reach(operation)
    for _ in range(2):  # the first adds memories, the second knows their ids
        storing.play(1)
    pool.names += map(str, pool.ids[STORED.name])
    pool.ids[ASKING.name] = pool.ids[STORED.name]
    pool.tokens[STORED.name] = []  # so that no request names what is looked for
    answer = client.put(f"/agents/{AGENT}/access", json=levels, headers=ENV)
    assert answer.status_code == 200, answer.text
    return Asked(client, key, pool)


NO_LEVEL = {"quick_memory": False, "full_memory": False, "logs": False}
QUICK_ONLY = {"quick_memory": True, "full_memory": False, "logs": False}


def order(operation: Operation) -> tuple[bool, bool, int]:
    """Operations that delete come last, and of them what deletes most, such as the agent and with it the levels."""
    deletes = operation.method == "DELETE"
    ends_agent = deletes and operation.template.endswith("/{agent_name}")
    return deletes, ends_agent, -operation.template.count("{") if deletes else 0


def asked_for(level: str, operation: Operation) -> bool:
    return level not in operation.description["x-access"]


@pytest.mark.parametrize("levels", [NO_LEVEL, QUICK_ONLY], ids=["no level", "quick access"])
def test_no_route_shows_stored_content_to_a_key_without_the_level(start: Start, levels: dict[str, bool]):
    asking = asked(start, levels)
    player = asking.player(SEED)
    for operation in sorted(FOR_KEYS, key=order):
        if not levels["quick_memory"] or asked_for("quick_memory", operation):
            # Most that need a level refuse every try.
            player.reach(str(operation), TRIES if operation.description["x-access"] else MOST_TRIES)
    assert shown_texts(player) == []
    needing_none = [one for one in FOR_KEYS if not one.description["x-access"]]
    answered = [one for one in needing_none if player.findings.answered[str(one)]]
    assert len(answered) > 0.8 * len(needing_none), "most routes have to be asked something that they answer"


def test_a_route_that_shows_stored_content_would_be_noticed(start: Start):
    asking = asked(start, dict.fromkeys(NO_LEVEL, True))
    player = asking.player(SEED)
    for _ in range(TRIES):
        player.reach("DELETE /memory/{memory_id}")
    assert shown_texts(player)


def shown_texts(player: Player) -> list[str]:
    return [leak for leak in player.findings.leaks if "shows the text" in leak]


def call(client: TestClient, key: str, tool: str, arguments: Any) -> str:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"X-API-Key": key, "Accept": "application/json, text/event-stream"}
    answer = client.post(f"/mcp/{AGENT}", json=message, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.text


def arguments_of(tool: Tool[Any], pool: Pool, dice: random.Random) -> Any:
    """Random ones of the tool's input schema."""
    schema = tool.input_schema
    requests = Requests({"paths": {}, "components": {"schemas": schema.get("$defs", {})}}, ASKING, STORED, pool, dice)
    return requests.value("arguments", schema)


@pytest.mark.parametrize("levels", [NO_LEVEL, QUICK_ONLY], ids=["no level", "quick access"])
def test_no_tool_shows_stored_content_to_a_key_without_the_level(start: Start, levels: dict[str, bool]):
    asking, dice, worked = asked(start, levels), random.Random(SEED), set()
    asking.pool.names[:] = named_in_tools(asking)
    chosen = [tool for tool in TOOLS if not (levels["quick_memory"] and "quick_memory" in tool.needs)]
    for tool in sorted(chosen, key=lambda tool: tool.name.startswith("delete")):
        for _ in range(TRIES):
            answer = call(asking.client, asking.key, tool.name, arguments_of(tool, asking.pool, dice))
            assert STORED.mark not in answer, (tool.name, answer)
            worked |= {tool.name} if not json.loads(answer)["result"]["isError"] else set()
    assert worked >= {tool.name for tool in TOOLS if not tool.needs}


def named_in_tools(asking: Asked) -> list[str]:
    """Ids and names by which tools find what is stored; an admin adds entities to it."""
    entity = {"name": "Known", "entityType": "person", "observations": [f"{STORED.mark}{1:016x}"]}
    call(asking.client, KEY, "create_entities", {"entities": [entity]})
    listed = json.loads(call(asking.client, KEY, "list_memories", {"limit": 50}))["result"]["structuredContent"]
    ids = [one["memory_id"] for one in listed["memories"]][:10]
    return [*ids, *["Known"] * len(ids)]
