"""The tools of the tier `agent`: context, conversations and blocks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.mcp.conftest import Asking, Start
from tests.vendors.llm import LLMVendor


@pytest.fixture
def agent(request: pytest.FixtureRequest) -> str:
    return f"/mcp/{request.node.name}"


def test_a_context_contains_blocks_memories_and_messages(ask: Asking, agent):
    ask.call("write_block", agent, label="human", value="Name: Ann")
    ask.call("add_memory", agent, text="Ann's bicycle is green.")
    said = [{"role": "user", "content": "My bicycle has a flat tyre."}, {"role": "assistant", "content": "I see."}]
    stored = ask.call("remember_conversation", agent, messages=said, session_id="monday")
    assert stored == {"session_id": "monday", "stored": 2, "learning": False}
    context = ask.call("get_context", agent, query="What about the bicycle?")
    assert all(part in context["text"] for part in ("Name: Ann", "bicycle is green", "flat tyre"))
    running = ask.call("get_context", agent, query="What about the bicycle?", session_id="monday")
    assert "flat tyre" not in running["text"]


def test_a_reader_checks_searches_and_contexts(start: Start, agent):
    vendor = LLMVendor()
    vendor.start()
    ask = start(**vendor.settings("openai"))
    vendor.script(lambda _: {"quote": "bicycle is green", "answered": "yes"})
    ask.call("write_block", agent, label="human", value="Name: Ann. Ann's bicycle is green.")
    ask.call("add_memory", agent, text="The bicycle is green.")
    verdict = {"answered": "yes", "answer_quote": "bicycle is green"}
    for tool in ("search_memory", "get_context"):
        found = ask.call(tool, agent, query="What colour is the bicycle?", verify=True)
        assert {name: value for name, value in found.items() if name.startswith("answer")} == verdict
        assert "answered" not in ask.call(tool, agent, query="What colour is the bicycle?")
    assert [("Name: Ann" in asked.user) for asked in vendor.requests] == [False, True]
    vendor.stop()
    found = ask.call("search_memory", agent, query="What colour is the bicycle?", verify=True)
    assert (found["count"], found["answered"]) == (1, "unknown")
    assert "cannot be reached" in found["answer_reason"]


def test_a_namespace_that_is_no_agent_yet_has_a_context_of_its_memories(ask: Asking, agent):
    ask.call("add_memory", agent, text="The lighthouse is white.")
    assert "lighthouse" in ask.call("get_context", agent, query="lighthouse")["text"]
    assert ask.call("get_context", f"{agent}-too", query="lighthouse")["text"] == ""


def test_a_conversation_is_learned_from_where_that_is_set_up(start: Start, agent):
    ask = start(extract_fallback_add=True)
    said = [{"role": "user", "content": "I moved to Lisbon in March and I work as a baker."}]
    stored = ask.call("remember_conversation", agent, messages=said)
    assert (stored["stored"], stored["learning"]) == (1, True)
    assert "Lisbon" in str(ask.call("search_memory", agent, query="Where does the user live?"))


def test_a_block_is_made_replaced_and_edited(ask: Asking, agent):
    assert ask.call("list_blocks", agent) == {"blocks": [], "total": 0}
    made = ask.call("write_block", agent, label="project", value="Rust.", description="What we build.")
    assert (made["version"], made["chars"]) == (1, 5)
    assert ask.call("append_to_block", agent, label="project", text="Tests first.")["value"] == "Rust.\nTests first."
    edited = ask.call("replace_in_block", agent, label="project", old_text="Rust", new_text="Go")
    assert edited["value"] == "Go.\nTests first."
    written = ask.call("write_block", agent, label="project", value="Anew.")
    assert (written["value"], written["description"]) == ("Anew.", "What we build.")
    [listed] = ask.call("list_blocks", agent)["blocks"]
    assert listed == ask.call("get_block", agent, label="project")


def test_a_refused_change_of_a_block_gives_the_reason(ask: Asking, agent):
    for said in (
        ask.call("get_block", agent, label="none"),
        ask.call("append_to_block", agent, label="none", text="x"),
        ask.call("write_block", agent, label="none", value="x", expected_version=3),
    ):
        assert "write_block makes one" in said
    ask.call("write_block", agent, label="b", value="one one")
    assert "at version 1" in ask.call("write_block", agent, label="b", value="x", expected_version=9)
    assert "already" in ask.call("write_block", agent, label="b", value="x", expected_version=0)
    assert "2 times" in ask.call("replace_in_block", agent, label="b", old_text="one", new_text="x")
    assert "0 times" in ask.call("replace_in_block", agent, label="b", old_text="two", new_text="x")
    assert "limit" in ask.call("append_to_block", agent, label="b", text="x" * 5_000)
    assert ask.call("get_block", agent, label="b")["value"] == "one one"


def test_a_block_that_is_read_only_stays(ask: Asking, agent):
    namespace = agent.removeprefix("/mcp/")
    ask.http.post("/memory-blocks", json={"agent_name": namespace, "label": "b", "value": "x", "read_only": True})
    assert "read-only" in ask.call("write_block", agent, label="b", value="y")
    assert "read-only" in ask.call("append_to_block", agent, label="b", text="y")


def test_lines_that_are_appended_at_once_are_all_there(ask: Asking, agent):
    ask.call("write_block", agent, label="log", value="begin")
    with ThreadPoolExecutor(4) as threads:
        appended = threads.map(lambda n: ask.call("append_to_block", agent, label="log", text=f"line {n}"), range(4))
        assert sorted(one["version"] for one in appended) == [2, 3, 4, 5]
    lines = ask.call("get_block", agent, label="log")["value"].split("\n")
    assert sorted(lines) == ["begin", "line 0", "line 1", "line 2", "line 3"]
