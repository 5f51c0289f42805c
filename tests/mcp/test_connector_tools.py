"""The tools `search` and `fetch`: what hosted assistants ask of a source of knowledge, and with which shapes."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from souvenir.core.types import Role
from tests.client.running import RunningService
from tests.mcp.conftest import TIMEOUT_S, Asking, Start, asking, calling
from tests.mcp.test_access_table import ENV, KEY, key

PUBLIC = "https://memory.example.org"


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory):
    data_dir: Path = tmp_path_factory.mktemp("connector")
    service = RunningService(data_dir, mcp_tools="connector", api_key=KEY, public_url=f"{PUBLIC}/")
    service.start()
    with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as http:
        yield Asking(http)
    service.stop()


@pytest.fixture
def agent(request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    return str(request.node.name)


def remember(ask: Asking, agent: str, text: str, source: str = "notes") -> int:
    answer = ask.http.post("/memory/add", json={"text": text, "source": source}, headers={**ENV, "X-Namespace": agent})
    return int(answer.json()["id"])


def say(ask: Asking, agent: str, *contents: str, session: str = "s1") -> list[str]:
    messages = [{"role": "user", "content": content} for content in contents]
    answer = ask.http.post(
        "/messages/batch", json={"agent_name": agent, "session_id": session, "messages": messages}, headers=ENV
    )
    return [message["id"] for message in answer.json()["messages"]]


def test_only_the_two_tools_are_offered_each_with_one_text_as_argument(ask: Asking):
    tools = ask.post(asking("tools/list"), headers=ENV).json()["result"]["tools"]
    arguments = {tool["name"]: tool["inputSchema"]["properties"] for tool in tools}
    assert {name: {one: spec["type"] for one, spec in given.items()} for name, given in arguments.items()} == {
        "search": {"query": "string"},
        "fetch": {"id": "string"},
    }
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)


def test_a_memory_is_found_and_fetched_with_its_address(ask: Asking, agent):
    text = "The kettle is in the blue cupboard. " * 8
    number = remember(ask, agent, text)
    [found] = ask.call("search", f"/mcp/{agent}", ENV, query="kettle")["results"]
    assert set(found) == {"id", "title", "url"}
    assert found["title"].startswith("The kettle is in the blue cupboard.")
    assert len(found["title"]) <= 100
    assert found["url"] == f"{PUBLIC}/#/memories?in={agent}&memory={number}"
    document = ask.call("fetch", f"/mcp/{agent}", ENV, id=found["id"])
    assert document["text"] == text
    assert {name: document[name] for name in ("id", "title", "url")} == found
    assert document["metadata"]["kind"] == "memory"
    assert document["metadata"]["source"] == "notes"


def test_the_result_is_one_json_text(ask: Asking, agent):
    remember(ask, agent, "The kettle whistles.")
    result = ask.post(calling("search", {"query": "kettle"}), f"/mcp/{agent}", ENV).json()["result"]
    [content] = result["content"]
    assert content["type"] == "text"
    assert json.loads(content["text"]) == result["structuredContent"]


def test_a_message_is_found_and_fetched_with_those_around_it(ask: Asking, agent):
    ids = say(ask, agent, *(f"Turn {number} is about weather." for number in range(20)), "The zeppelin landed.")
    found = ask.call("search", f"/mcp/{agent}", ENV, query="zeppelin")["results"][0]
    assert found["id"] == f"message-{ids[-1]}"
    assert found["title"] == "user: The zeppelin landed."
    assert f"message={ids[-1]}" in found["url"]
    lines = ask.call("fetch", f"/mcp/{agent}", ENV, id=found["id"])["text"].split("\n")
    assert [line.partition("] ")[2] for line in lines] == [
        *(f"user: Turn {number} is about weather." for number in range(15, 20)),
        "user: The zeppelin landed.",
    ]


def test_memories_and_messages_are_in_one_list(ask: Asking, agent):
    say(ask, agent, "My beagle is called Rollo.")
    remember(ask, agent, "The beagle of the user likes cheese.")
    kinds = {
        found["id"].partition("-")[0] for found in ask.call("search", f"/mcp/{agent}", ENV, query="beagle")["results"]
    }
    assert kinds == {"memory", "message"}


@pytest.mark.parametrize("id_", ["memory-AAAAAAAA", "memory-1", "message-nothing", "42", "memory-", "block-human"])
def test_an_unknown_id_is_one_sentence(ask: Asking, agent, id_):
    say(ask, agent, "Hello there.")
    sentence = f"There is no record {id_!r}; `search` returns the ids of those there are"
    assert ask.call("fetch", f"/mcp/{agent}", ENV, id=id_) == sentence


def test_a_record_of_another_agent_is_not_fetched(ask: Asking, agent):
    remember(ask, agent, "The kettle is secret.")
    say(ask, agent, "The kettle is secret, I said.")
    ids = [found["id"] for found in ask.call("search", f"/mcp/{agent}", ENV, query="kettle")["results"]]
    assert len(ids) == 2
    other = key(ask, Role.READ_ONLY, namespace="another-agent")
    assert ask.call("search", "/mcp", other, query="kettle")["results"] == []
    for id_ in ids:
        assert ask.call("fetch", "/mcp", other, id=id_).startswith("There is no record")


def test_a_key_for_some_sources_sees_their_memories_and_no_messages(ask: Asking, agent):
    remember(ask, agent, "The kettle of the team is red.", "team/notes")
    remember(ask, agent, "The kettle of the others is green.", "other/notes")
    [message] = say(ask, agent, "The kettle was mentioned.")
    limited = key(ask, Role.READ_ONLY, namespace=agent, prefixes=["team"])
    [found] = ask.call("search", f"/mcp/{agent}", limited, query="kettle")["results"]
    assert found["title"] == "The kettle of the team is red."
    refused = ask.call("fetch", f"/mcp/{agent}", limited, id=f"message-{message}")
    assert refused.startswith("There is no record")


def test_without_a_public_url_addresses_name_host_and_port(start: Start):
    ask = start(mcp_tools="connector")
    ask.http.post("/memory/add", json={"text": "The kettle whistles.", "source": "notes"})
    [found] = ask.call("search", query="kettle")["results"]
    assert found["url"] == "http://127.0.0.1:8900/#/memories?in=default&memory=1"


def test_the_instructions_name_only_tools_that_there_are(ask: Asking):
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = ask.post(asking("initialize", **params), headers=ENV).json()["result"]
    assert "call search with" in answer["instructions"]
    assert "_memory" not in answer["instructions"]
    prompts = ask.post(asking("prompts/list"), headers=ENV).json()["result"]["prompts"]
    assert [prompt["name"] for prompt in prompts] == ["recall"]


def test_a_service_with_a_public_address_is_not_open(tmp_path: Path):
    service = RunningService(tmp_path / "data", mcp_tools="connector", public_url=PUBLIC)
    service.start()
    with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as http:
        assert http.get("/memories").status_code == 401
        assert Asking(http).post(asking("tools/list")).status_code == 401
    service.stop()
