"""Who may use the memory tool of an agent: roles, agents, sources and access levels."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compat.memory_tool.conftest import Tool

FILE = "/memories/a.md"

CHANGES: dict[str, dict[str, Any]] = {
    "create": {"path": "/memories/b.md", "file_text": "b"},
    "str_replace": {"path": FILE, "old_str": "apple", "new_str": "pear"},
    "insert": {"path": FILE, "insert_line": 0, "insert_text": "pear"},
    "delete": {"path": FILE},
    "rename": {"old_path": FILE, "new_path": "/memories/c.md"},
    "undo": {},
}


@pytest.fixture
def owned(tool: Tool) -> Tool:
    tool.done("create", path=FILE, file_text="apple")
    return tool


def with_key(tool: Tool, agent: str | None = None, **key: Any) -> Tool:
    """The tool of the same agent with a key that an admin made."""
    body = {"name": "k", "role": "read-write", **({"namespace": tool.agent} if "prefixes" not in key else {}), **key}
    made = tool.client.post("/api/keys", json=body, headers=tool.headers)
    assert made.status_code == 200, made.text
    return Tool(tool.client, agent or tool.agent, {"X-API-Key": made.json()["key"]})


def refusals(tool: Tool, commands: dict[str, dict[str, Any]]) -> set[tuple[int, str]]:
    answers = [tool.send(command, **sent) for command, sent in commands.items()]
    return {(answer.status_code, answer.json()["code"]) for answer in answers}


ALL = {"view": {"path": FILE}, **CHANGES}


def test_a_key_of_the_agent_does_everything(owned: Tool):
    mine = with_key(owned)
    for command in ("create", "str_replace", "insert", "rename"):
        mine.done(command, **CHANGES[command])
    mine.done("delete", path="/memories/c.md")
    assert owned.texts() == {"memories/b.md": "b"}


def test_a_key_that_only_reads_views_and_changes_nothing(owned: Tool):
    reader = with_key(owned, role="read-only")
    assert reader.done("view", path=FILE).endswith("\tapple")
    assert refusals(reader, CHANGES) == {(403, "forbidden")}
    assert owned.texts() == {"memories/a.md": "apple"}


def test_a_key_of_another_agent_sees_and_changes_nothing(owned: Tool):
    other = with_key(Tool(owned.client, "other-agent", owned.headers), agent=owned.agent)
    assert refusals(other, ALL) == {(403, "forbidden")}
    assert owned.texts() == {"memories/a.md": "apple"}


def test_the_documents_of_two_agents_are_separate(owned: Tool):
    other = Tool(owned.client, f"{owned.agent}-twin", owned.headers)
    assert other.refused("view", path=FILE).startswith(f"The path {FILE} does not exist.")
    other.done("create", path=FILE, file_text="other")
    other.done("delete", path=FILE)
    assert owned.texts() == {"memories/a.md": "apple"}


def test_a_key_for_some_sources_has_no_agent_even_if_the_source_is_that_of_documents(owned: Tool):
    limited = with_key(owned, prefixes=["memories"])
    assert refusals(limited, ALL) == {(403, "forbidden")}


def test_without_a_key_nothing_is_shown(owned: Tool):
    assert refusals(Tool(owned.client, owned.agent, {}), ALL) == {(401, "unauthorized")}


def test_an_agent_that_does_not_grant_its_whole_memory_has_no_memory_tool(owned: Tool):
    mine = with_key(owned)
    levels = {"full_memory": False}
    owned.client.put(f"/agents/{owned.agent}/access", json=levels, headers=owned.headers)
    assert refusals(mine, ALL) == {(403, "access_limited")}
    assert owned.done("view", path=FILE).endswith("\tapple")
