"""Every tool with every kind of key: who sees it, who may call it, and the error for others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from souvenir.core.types import Role
from souvenir.mcp.registry import TIERS
from souvenir.mcp.tools import Tool
from tests.client.running import RunningService
from tests.mcp.conftest import ALL_TIERS, TIMEOUT_S, Asking, asking, calling, read_result

KEY = "k-4f9c2a7d6b1e"
ENV = {"X-API-Key": KEY}
AGENT = "ann"
PATH = f"/mcp/{AGENT}"
INSIDE, OUTSIDE = "team/notes", "other/notes"

TOOLS: dict[str, Tool[Any]] = {tool.name: tool for tier in TIERS.values() for tool in tier}

ARGUMENTS: dict[str, dict[str, Any]] = {
    "add_memory": {"text": "The kettle is in the kitchen."},
    "update_memory": {"add_tags": ["seen"]},
    "search_memory": {"query": "zebraquartz"},
    "list_memories": {},
    "get_context_tags": {},
    "get_memory": {},
    "delete_memory": {},
    "delete_all_memories": {"confirm": True},
    "get_context": {"query": "zebraquartz"},
    "remember_conversation": {"messages": [{"role": "user", "content": "Hello there."}]},
    "list_blocks": {},
    "get_block": {"label": "human"},
    "write_block": {"label": "human", "value": "Ann"},
    "append_to_block": {"label": "human", "text": "likes tea"},
    "replace_in_block": {"label": "human", "old_text": "Ann", "new_text": "Ann B."},
    "create_entities": {"entities": [{"name": "Kept", "entityType": "person", "observations": ["Runs"]}]},
    "create_relations": {"relations": [{"from": "Ann", "to": "Acme", "relationType": "works_at"}]},
    "add_observations": {"observations": [{"entityName": "Kept", "contents": ["Swims"]}]},
    "delete_entities": {"entityNames": ["Ann"]},
    "delete_observations": {"deletions": [{"entityName": "Kept", "observations": ["Swims"]}]},
    "delete_relations": {"relations": [{"from": "Ann", "to": "Acme", "relationType": "works_at"}]},
    "read_graph": {},
    "search_nodes": {"query": "Kept"},
    "open_nodes": {"names": ["Kept"]},
    "search": {"query": "zebraquartz"},
    "fetch": {},
}
OF_A_MEMORY = {"update_memory", "get_memory", "delete_memory"}


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    """A service that asks for keys; everything stored holds `zebraquartz`."""
    data_dir: Path = tmp_path_factory.mktemp("keys")
    service = RunningService(data_dir, mcp_tools=ALL_TIERS, api_key=KEY, auth_rate_limit=10**6)
    service.start()
    with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as http:
        yield Asking(http)
    service.stop()


def made_key(ask: Asking, role: Role, **reach: Any) -> Any:
    made = ask.http.post("/api/keys", json={"name": "caller", "role": role.value, **reach}, headers=ENV)
    assert made.status_code == 200, made.text
    return made.json()


def key(ask: Asking, role: Role, **reach: Any) -> dict[str, str]:
    return {"X-API-Key": made_key(ask, role, **reach)["key"]}


def arguments_of(ask: Asking, tool: str, source: str = INSIDE) -> dict[str, Any]:
    """With a memory and a block of the tool's own to be about."""
    arguments = dict(ARGUMENTS[tool])
    stored = ask.call("add_memory", PATH, ENV, text=f"zebraquartz for {tool}", source=source)
    ask.call("write_block", PATH, ENV, label="human", value="Ann")
    for graph in ("entities", "team/entities"):
        kept = {"text": "Kept", "source": graph, "key": "Kept"}
        assert ask.http.post("/memory/upsert", json=kept, headers={**ENV, "X-Namespace": AGENT}).status_code == 200
    return arguments | about(tool, stored["memory_id"])


def about(tool: str, memory_id: str) -> dict[str, Any]:
    """The arguments that name a memory."""
    if tool == "fetch":
        return {"id": f"memory-{memory_id}"}
    return {"memory_id": memory_id} if tool in OF_A_MEMORY else {}


def offered(ask: Asking, headers: dict[str, str]) -> set[str]:
    return {tool["name"] for tool in ask.post(asking("tools/list"), PATH, headers).json()["result"]["tools"]}


def is_answered(ask: Asking, tool: str, headers: dict[str, str]) -> bool:
    arguments = arguments_of(ask, tool)
    answer = ask.post(calling(tool, arguments), PATH, headers)
    assert answer.status_code == 200
    said = read_result(answer.json()["result"])
    if answer.json()["result"]["isError"]:
        assert "key" in said, said
        assert "\n" not in said
        return False
    return True


def test_the_table_has_every_tool():
    assert set(ARGUMENTS) == set(TOOLS)


@pytest.mark.parametrize(
    "kind",
    [
        *(pytest.param(kind, marks=pytest.mark.thorough) for kind in ("env", "bearer")),
        *("admin", "read-write", "read-only", "prefixes", "read-only prefixes"),
    ],
)
def test_a_key_is_offered_exactly_the_tools_that_it_may_call(ask: Asking, kind):
    headers = {
        "env": lambda: ENV,
        "bearer": lambda: {"Authorization": f"Bearer {KEY}"},
        "admin": lambda: key(ask, Role.ADMIN),
        "read-write": lambda: key(ask, Role.READ_WRITE, namespace=AGENT),
        "read-only": lambda: key(ask, Role.READ_ONLY, namespace=AGENT),
        "prefixes": lambda: key(ask, Role.READ_WRITE, namespace=AGENT, prefixes=["team"]),
        "read-only prefixes": lambda: key(ask, Role.READ_ONLY, namespace=AGENT, prefixes=["team"]),
    }[kind]()
    allowed = {
        name
        for name, tool in TOOLS.items()
        if (tool.is_reader or "read-only" not in kind) and not (tool.of_agent and "prefixes" in kind)
    }
    assert offered(ask, headers) == allowed
    assert {name for name in TOOLS if is_answered(ask, name, headers)} == allowed


def test_without_a_key_of_the_namespace_no_tool_says_anything(ask: Asking):
    made, elsewhere = made_key(ask, Role.READ_WRITE, namespace=AGENT), key(ask, Role.READ_WRITE, namespace="bob")
    assert ask.http.delete(f"/api/keys/{made['id']}", headers=ENV).status_code == 200
    callers = {
        "none": (PATH, {}, 401),
        "wrong": (PATH, {"X-API-Key": "wrong"}, 401),
        "revoked": (PATH, {"X-API-Key": made["key"]}, 401),
        "of another namespace": (PATH, elsewhere, 403),
        "of another namespace, by header": ("/mcp", {**elsewhere, "X-Namespace": AGENT}, 403),
    }
    assert "use /mcp/bob" in ask.post(asking("tools/list"), PATH, elsewhere).json()["error"]["message"]
    for tool in TOOLS:
        call = calling(tool, arguments_of(ask, tool))
        for kind, (path, headers, status) in callers.items():
            assert ask.post(call, path, headers).status_code == status, (tool, kind)


def test_a_key_for_some_sources_sees_and_touches_only_these(ask: Asking):
    agent = "/mcp/carl"
    inside = key(ask, Role.READ_WRITE, namespace="carl", prefixes=["team"])
    hidden = ask.call("add_memory", agent, ENV, text="zebraquartz is hidden", source=OUTSIDE, context_tags=["hush"])
    seen = ask.call("add_memory", agent, inside, text="zebraquartz is seen", context_tags=["told"])
    assert seen["source"] == "team"
    assert "may not write" in ask.call("add_memory", agent, inside, text="Elsewhere.", source=OUTSIDE)
    found = ask.call("search_memory", agent, inside, query="zebraquartz")
    assert [one["memory_id"] for one in found["memories"]] == [seen["memory_id"]]
    assert ask.call("list_memories", agent, inside)["total"] == 1
    assert [one["tag"] for one in ask.call("get_context_tags", agent, inside)["tags"]] == ["told"]
    for tag in ("hush", "never used"):
        assert "No memory has" in ask.call("list_memories", agent, inside, context_tags=[tag])["note"]
        assert (
            "No memory has" in ask.call("search_memory", agent, inside, query="zebraquartz", context_tags=[tag])["note"]
        )
    for tool in ("get_memory", "delete_memory", "update_memory"):
        more = {"text": "Changed."} if tool == "update_memory" else {}
        assert "There is no memory" in ask.call(tool, agent, inside, memory_id=hidden["memory_id"], **more)
    assert ask.call("delete_all_memories", agent, inside, confirm=True)["deleted"] == 1
    assert ask.call("get_memory", agent, ENV, memory_id=hidden["memory_id"])["memory"] == "zebraquartz is hidden"


def test_a_key_of_a_namespace_needs_to_name_none(ask: Asking):
    headers = key(ask, Role.READ_WRITE, namespace="dora")
    ask.call("add_memory", "/mcp", headers, text="Dora was here.")
    assert ask.call("list_memories", "/mcp/dora", ENV)["total"] == 1


def test_a_tool_that_a_key_may_not_call_is_in_the_audit(ask: Asking):
    headers = key(ask, Role.READ_ONLY, namespace=AGENT)
    assert "role" in ask.call("add_memory", PATH, headers, text="No.")
    [denied] = ask.http.get("/audit", params={"action": "denied", "limit": 1}, headers=ENV).json()["entries"]
    assert (denied["route"], denied["status"], denied["detail"]) == ("/mcp/{agent}", 403, "forbidden")
    assert denied["namespace"] == AGENT


def set_access(ask: Asking, agent: str, **levels: bool) -> None:
    assert ask.http.post("/agents", json={"name": agent}, headers=ENV).status_code == 200
    assert ask.http.put(f"/agents/{agent}/access", json=levels, headers=ENV).status_code == 200


def test_with_quick_access_a_key_is_offered_searches_and_they_find_five_at_most(ask: Asking):
    path, headers = "/mcp/quick", key(ask, Role.READ_ONLY, namespace="quick")
    set_access(ask, "quick", full_memory=False, logs=False)
    notes = [{"text": f"Blue boat {number} sails.", "source": "s"} for number in range(8)]
    ask.http.post("/memory/add-batch", json={"memories": notes}, headers={**ENV, "X-Namespace": "quick"})
    listed = ask.post(asking("tools/list"), path, headers).json()["result"]["tools"]
    assert {tool["name"] for tool in listed} == {"search_memory", "get_context", "search"}
    assert ask.call("search_memory", path, headers, query="blue boat", limit=8)["count"] == 5
    assert len(ask.call("search", path, headers, query="blue boat")["results"]) == 5
    assert ask.call("get_context", path, headers, query="blue boat")["text"].count("Blue boat") == 5
    recalled = ask.post(asking("prompts/get", name="recall", arguments={"query": "blue boat"}), path, headers)
    assert recalled.json()["result"]["messages"][0]["content"]["text"].count("Blue boat") == 5
    assert ask.call("search_memory", path, ENV, query="blue boat", limit=8)["count"] == 8
    refused = ask.call("list_memories", path, headers)
    assert refused.startswith("The access of the agent 'quick' does not include full_memory; ")
    for method, params in (("resources/list", {}), ("resources/read", {"uri": "souvenir://agents/quick/blocks/human"})):
        assert "full_memory" in ask.post(asking(method, **params), path, headers).json()["error"]["message"]


def test_without_access_levels_a_key_is_offered_only_writing_tools(ask: Asking):
    path, headers = "/mcp/closed", key(ask, Role.READ_WRITE, namespace="closed")
    set_access(ask, "closed", quick_memory=False, full_memory=False, logs=False)
    listed = ask.post(asking("tools/list"), path, headers).json()["result"]["tools"]
    assert {tool["name"] for tool in listed} == {name for name, tool in TOOLS.items() if not tool.needs}
    refused = ask.post(asking("prompts/get", name="recall", arguments={"query": "x"}), path, headers)
    assert "quick_memory" in refused.json()["error"]["message"]
