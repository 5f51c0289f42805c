"""The tools of the tier `memory`: their answers and their errors."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.client.running import RunningService
from tests.mcp.conftest import TIMEOUT_S, Asking, Start
from tests.memories.engine.conftest import BreakableEmbedder
from tests.memories.engine.verbs import leap


@pytest.fixture
def agent(request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    return f"/mcp/{request.node.name}"


def add(ask: Asking, path: str, text: str, **more) -> str:
    return str(ask.call("add_memory", path, text=text, **more)["memory_id"])


def test_a_memory_is_stored_with_its_tags_and_split_at_its_sentences_without_a_model(ask: Asking, agent):
    text = "Ana leads the billing team. She works from Oslo."
    stored = ask.call("add_memory", agent, text=text, context_tags=["Billing", "people"])
    assert (stored["memory"], stored["tags"], stored["facts_created"]) == (text, ["Billing", "people"], 2)
    assert stored["facts"] == ["Ana leads the billing team.", "Ana works from Oslo."]
    assert (stored["split_by"], stored["source"]) == ("sentences", "mcp")
    assert len(stored["memory_id"]) == 8
    assert ask.call("get_memory", agent, memory_id=stored["memory_id"])["facts"] == stored["facts"]


def test_either_spelling_of_an_argument_is_taken(ask: Asking, agent):
    stored = ask.call("add_memory", agent, data="The printer is on floor two.", tags=["office"])
    assert stored["memory"] == "The printer is on floor two."
    assert ask.call("search_memory", agent, query="printer", tags=["OFFICE"])["count"] == 1
    assert ask.call("search_memory", agent, query="printer", context_tags=["home"])["count"] == 0


def test_an_unused_tag_is_distinguished_from_an_empty_memory(ask: Asking, agent):
    add(ask, agent, "The boat is in the harbour.", context_tags=["Herne"])
    sentence = "No memory has the tag 'herno'; get_context_tags lists those in use"
    assert ask.call("search_memory", agent, query="boat", context_tags=["herno"])["note"] == sentence
    assert ask.call("list_memories", agent, context_tags="herno")["note"] == sentence
    assert "'a' or 'b';" in ask.call("list_memories", agent, context_tags=["a", "b"])["note"]
    assert "any of these tags" in ask.call("list_memories", agent, context_tags=["a", "b", "c", "d"])["note"]
    assert "note" not in ask.call("search_memory", agent, query="boat", context_tags=["herne", "herno"])
    assert "note" not in ask.call("list_memories", agent, context_tags=["herne"], offset=5)
    assert "note" not in ask.call("list_memories", f"{agent}-too")


def test_a_search_that_could_not_go_by_meaning_says_so(tmp_path: Path):
    embedder = BreakableEmbedder()
    service = RunningService(tmp_path / "data")
    service.start(embedder)
    try:
        with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as http:
            ask = Asking(http)
            add(ask, "/mcp", "The boat is in the harbour.")
            assert "note" not in ask.call("search_memory", query="boat")
            embedder.broken = True
            found = ask.call("search_memory", query="where do ships lie")
            assert (found["count"], found["note"]) == (
                0,
                "The search by meaning could not run, so this is by words only; try again later",
            )
    finally:
        service.stop()


def test_a_single_text_is_accepted_as_a_list(ask: Asking, agent):
    stored = ask.call("add_memory", agent, text="Tea, not coffee.", context_tags="taste", facts="Likes tea")
    assert (stored["tags"], stored["facts"], stored["split_by"]) == (["taste"], ["Likes tea"], "caller")


def test_a_search_finds_a_memory_by_one_of_its_facts_once(ask: Asking, agent):
    memory_id = add(ask, agent, "About Rex.", facts=["The dog eats salmon", "The vet is Dr Wu"])
    add(ask, agent, "The cat sleeps all day.")
    found = ask.call("search_memory", agent, query="who is the vet Dr Wu", limit=1)
    assert found["count"] == 1
    assert found["memories"][0]["memory_id"] == memory_id
    assert found["memories"][0]["facts"][0] == "The vet is Dr Wu"
    assert found["evidence"] in {"strong", "weak"}


def test_a_changed_text_is_split_again_and_changed_tags_keep_the_facts(ask: Asking, agent):
    memory_id = add(ask, agent, "Deploys run on Friday. Lena approves them.", tags=["ops"])
    tagged = ask.call("update_memory", agent, memory_id=memory_id, add_tags=["release"], remove_tags=["OPS"])
    assert (tagged["tags"], len(tagged["facts"])) == (["release"], 2)
    assert tagged["facts_created"] == 0
    changed = ask.call("update_memory", agent, memory_id=memory_id, text="Deploys run on Monday.")
    assert changed["facts_created"] == 1
    assert changed["facts"] == ["Deploys run on Monday."]
    assert changed["tags"] == ["release"]
    assert "Friday" not in str(ask.call("search_memory", agent, query="When do deploys run?"))


def test_an_empty_update_lists_the_fields(ask: Asking, agent):
    memory_id = add(ask, agent, "Something.")
    assert "add_tags" in ask.call("update_memory", agent, memory_id=memory_id)


def test_a_list_is_paged_newest_first(ask: Asking, agent):
    for number in range(5):
        add(ask, agent, f"Entry number {number}.", tags=["odd" if number % 2 else "even"])
    page = ask.call("list_memories", agent, limit=2, offset=1)
    assert [one["memory"] for one in page["memories"]] == ["Entry number 3.", "Entry number 2."]
    assert (page["total"], page["has_more"]) == (5, True)
    assert page["memories"][0]["fact_count"] == 1
    odd = ask.call("list_memories", agent, context_tags=["odd"])
    assert (odd["total"], odd["has_more"]) == (2, False)


def test_tags_are_counted_and_chosen_by_a_regex(ask: Asking, agent):
    for tags in (["Work/api", "home"], ["work/API"], ["home"]):
        add(ask, agent, f"A memory about {tags}.", tags=tags)
    used = ask.call("get_context_tags", agent)
    assert [(one["tag"], one["count"]) for one in used["tags"]] == [("home", 2), ("Work/api", 2)]
    assert used["tags"][0]["first_used_at"] <= used["tags"][0]["last_used_at"]
    assert [one["tag"] for one in ask.call("get_context_tags", agent, regex="^work/")["tags"]] == ["Work/api"]
    assert "regex" in ask.call("get_context_tags", agent, regex="(")


def test_long_texts_are_cut_among_others_and_whole_alone(ask: Asking, agent):
    long = "Zebra notes: " + "stripes " * 5000
    memory_id = add(ask, agent, long)
    [found] = ask.call("search_memory", agent, query="zebra stripes")["memories"]
    assert found["truncated"]
    assert len(found["memory"]) == 2_000
    assert ask.call("get_memory", agent, memory_id=memory_id)["memory"] == long
    memories = [{"text": f"Zebra {number}: " + "stripes " * 400, "source": "notes"} for number in range(49)]
    namespace = {"X-Namespace": agent.removeprefix("/mcp/")}
    assert ask.http.post("/memory/add-batch", json={"memories": memories}, headers=namespace).status_code == 200
    many = ask.call("list_memories", agent)["memories"]
    assert sum(len(one["memory"]) for one in many) <= 40_000


def test_a_deleted_memory_is_gone_and_its_id_is_said_not_to_exist(ask: Asking, agent):
    memory_id = add(ask, agent, "To be forgotten.")
    assert ask.call("delete_memory", agent, memory_id=memory_id)["deleted"]
    for tool in ("get_memory", "delete_memory"):
        assert "search_memory" in ask.call(tool, agent, memory_id=memory_id)
    assert "There is no memory" in ask.call("update_memory", agent, memory_id=memory_id, text="Back.")


@pytest.mark.parametrize("memory_id", ["", "12", "nothing!", "x" * 150, "\N{SNOWMAN}"])
def test_an_invalid_id_is_answered_with_a_sentence(ask: Asking, agent, memory_id):
    assert "search_memory and list_memories" in ask.call("get_memory", agent, memory_id=memory_id)


def test_a_pinned_memory_stays(ask: Asking, agent):
    namespace = agent.removeprefix("/mcp/")
    ask.http.post(
        "/memory/add",
        json={"text": "Pinned.", "source": "notes", "metadata": {"pinned": True}},
        headers={"X-Namespace": namespace},
    )
    [pinned] = ask.call("list_memories", agent)["memories"]
    assert "pinned" in ask.call("delete_memory", agent, memory_id=pinned["memory_id"])
    add(ask, agent, "Not pinned.")
    gone = ask.call("delete_all_memories", agent, confirm=True)
    assert gone == {"deleted": 1, "kept_pinned": 1, "backed_up": True}


@pytest.mark.parametrize("confirm", ["yes", "on", 1, "true"])
def test_nothing_but_true_confirms_that_all_is_deleted(ask: Asking, agent, confirm):
    add(ask, agent, "One.")
    assert "confirm: input should be a valid boolean" in ask.call("delete_all_memories", agent, confirm=confirm)
    assert ask.call("list_memories", agent)["total"] == 1


def test_all_is_deleted_only_if_that_is_confirmed(ask: Asking, agent):
    add(ask, agent, "One.")
    assert "confirm" in ask.call("delete_all_memories", agent, confirm=False)
    assert "confirm" in ask.call("delete_all_memories", agent)
    assert ask.call("list_memories", agent)["total"] == 1
    assert ask.call("delete_all_memories", agent, confirm=True)["deleted"] == 1
    assert ask.call("delete_all_memories", agent, confirm=True)["deleted"] == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"text": "x", "importance": 3}, "add_memory has no argument importance; it takes text, context_tags, facts"),
        ({}, "add_memory cannot be called so: it needs text"),
        ({"text": "x", "data": "y"}, "give one of text and data"),
        ({"text": ""}, "text: string should have at least 1 character"),
        ({"text": " \n"}, "the text is blank; give at least one visible character"),
        ({"text": "x", "context_tags": ["a" * 200]}, "context_tags.0"),
        ({"text": "x\0"}, "NUL"),
        ({"text": "x", "facts": [" "]}, "A fact takes 1 to"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(ask: Asking, agent, arguments, sentence):
    said = ask.call("add_memory", agent, **arguments)
    assert sentence in said
    assert "\n" not in said


def test_a_null_counts_as_not_given(ask: Asking, agent):
    assert ask.call("search_memory", agent, query="anything", limit=None, context_tags=None)["count"] == 0


def test_namespaces_are_isolated(ask: Asking, agent):
    memory_id = add(ask, agent, "A secret of this agent.")
    other = "/mcp/somebody-else"
    assert ask.call("search_memory", other, query="secret of this agent")["count"] == 0
    assert "There is no memory" in ask.call("get_memory", other, memory_id=memory_id)
    by_header = ask.call("list_memories", headers={"X-Namespace": agent.removeprefix("/mcp/")})
    assert by_header["total"] == 1


def test_who_names_no_namespace_gets_that_of_the_settings(start: Start):
    ask = start(mcp_namespace="ann")
    add(ask, "/mcp", "Ann likes tea.")
    assert ask.call("list_memories", "/mcp/ann")["total"] == 1
    assert ask.call("list_memories", headers={"X-Namespace": "default"})["total"] == 0


def test_no_tool_names_a_memory_by_the_id_of_another_one(tmp_path: Path):
    service = RunningService(tmp_path / "data")
    service.start()
    try:
        with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as http:
            ask = Asking(http)
            victim = add(ask, "/mcp", "The boat is in the harbour.")
            leap(service.app.state.service.engine, 2**46)
            large = http.post("/memory/add", json={"text": "A car is in the garage.", "source": "mcp"}).json()["id"]
            assert large == 2**46 + 1
            for refused in (ask.call("search_memory", query="car in the garage"), ask.call("list_memories")):
                assert "too large for MCP" in refused
                assert "repair-ids" in refused
            assert "too large for MCP" in ask.call("add_memory", text="A bike is in the shed.")
            assert http.get("/memories").json()["total"] == 2
            listed = ask.post({"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {}})
            assert "too large for MCP" in listed.json()["error"]["message"]
            assert ask.call("delete_memory", memory_id=victim)["deleted"]
            assert [one["id"] for one in http.get("/memories").json()["memories"]] == [large]
    finally:
        service.stop()


def test_arguments_are_read_strictly(ask: Asking):
    for limit in ("5", 5.5, True):
        assert "limit: input should be a valid integer" in ask.call("search_memory", query="tea", limit=limit)
    assert "confirm: input should be a valid boolean" in ask.call("delete_all_memories", confirm=1)
