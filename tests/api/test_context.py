"""The context over HTTP with the real model: requests of the seed's clients, and access levels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from souvenir.core.types import PassageKind, Scope
from souvenir.index.index_key import IndexKey
from tests.api.conftest import BASE_URL, KEY, Start
from tests.api.test_agents import key_for
from tests.conversations.talk import without_tokens

ENV = {"X-API-Key": KEY}


@pytest.fixture(scope="module")
def real_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The service with the model that it comes with."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("real"))
    with TestClient(create_app(settings), base_url=BASE_URL) as client:
        yield client


def context(client: TestClient, query: str, agent: str = "my_agent", **fields: Any) -> dict[str, Any]:
    answer = client.post(f"/context/{agent}", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def say(client: TestClient, content: str, agent: str = "my_agent", role: str = "user", **fields: Any) -> dict[str, Any]:
    body = {"agent_name": agent, "role": role, "content": content, **fields}
    answer = client.post("/messages", json=body)
    assert answer.status_code == 200, answer.text
    message: dict[str, Any] = answer.json()
    return message


def test_an_agent_recalls_a_favorite_color_in_a_later_session(real_client: TestClient):
    agent = real_client.post("/agents", json={"name": "my_agent"}).json()
    block = real_client.post(
        "/memory-blocks", json={"agent_name": "my_agent", "label": "human", "value": "Name: Alice\nLocation: Boston"}
    ).json()
    said = [
        ("user", "Can you recommend a good bakery near the harbour?"),
        ("assistant", "Try the one at the old fish market, they bake their own bread."),
        ("user", "By the way, I love blue. I painted my whole kitchen in it."),
        ("assistant", "Blue is a calm colour for a kitchen."),
        ("user", "What time does the train to New York leave on Sundays?"),
        ("assistant", "There is one every hour from seven in the morning on."),
    ]
    for role, content in said:
        say(real_client, content, role=role, session_id="monday", created_at="2025-03-31T10:00:00Z")
    question = say(real_client, "What's my favorite color?", session_id="tuesday")

    found = context(real_client, "What's my favorite color?", agent_name="my_agent", session_id="tuesday")

    assert found["memory_blocks"] == [block]
    best = found["relevant_messages"][0]
    assert best["content"] == "By the way, I love blue. I painted my whole kitchen in it."
    assert best["agent_id"] == agent["id"]
    assert best["role"] == "user"
    assert 0.3 < best["similarity"] <= 1.0
    assert question["id"] not in [message["id"] for message in found["relevant_messages"]]
    assert found["text"] == found["stable_prefix"] + found["volatile_tail"]
    assert without_tokens(found["stable_prefix"]).startswith(
        "<recalled_memory>\n## Memory\n\n### human\nName: Alice\nLocation: Boston\n</"
    )
    assert without_tokens(found["volatile_tail"]).startswith("\n<recalled_memory>\n## Relevant Past Conversations\n")
    assert "\n### 2025-03-31\n\n" in found["text"]
    assert "**User**: By the way, I love blue. I painted my whole kitchen in it." in found["text"]
    assert "What's my favorite color?" not in found["text"]
    tokens = real_client.app.state.service.engine.models.serving.embedder.token_offsets(found["text"])  # type: ignore[attr-defined]
    assert found["tokens"] == len(tokens)
    assert (found["degraded"], found["dropped"]) == ([], {"messages": 0, "memories": 0})
    assert found["evidence"] in {"strong", "weak"}
    assert found["relevance"] >= 0.25
    other = context(real_client, "How do I sharpen a chainsaw?")
    assert (other["evidence"], other["relevance"] < 0.25) == ("none", True)


def test_a_small_budget_is_kept_with_the_real_tokenizer(real_client: TestClient):
    for number in range(12):
        say(
            real_client,
            f"Recipe {number}: " + "flour, sugar, crème fraîche. " * 30,
            agent="cook",
            session_id=str(number),
        )
    shown = 0
    for max_tokens in (64, 200, 1000):
        found = context(real_client, "Which recipe has sugar?", agent="cook", max_tokens=max_tokens)
        assert found["tokens"] <= max_tokens
        shown = len(found["relevant_messages"])
        assert found["volatile_tail"].count("**User**: Recipe") == shown
        assert shown + found["dropped"]["messages"] == 12
    assert 0 < shown < 12


def test_an_explained_context_says_where_each_result_is_and_what_was_left_out(client: TestClient):
    asked = {"agent_name": "cook", "role": "assistant", "content": "Which soup do you like?", "session_id": "s"}
    client.post("/messages", json=asked)
    said = [say(client, f"soup {number} " + "of leek " * 20, agent="cook", session_id="s") for number in range(8)]
    client.post("/memory/add", json={"text": "soup is hot", "source": "notes"}, headers={"X-Namespace": "cook"})
    plain = context(client, "soup", agent="cook", max_tokens=200)
    assert "results" not in plain["dropped"]
    found = context(client, "soup", agent="cook", max_tokens=200, explain=True)
    assert without_tokens(found["text"]) == without_tokens(plain["text"])
    lines = found["text"].split("\n")
    scores = {one["id"]: one["score"] for one in (*found["relevant_messages"], *found["relevant_memories"])}
    placed = {one["message_id"] or one["memory_id"]: one for one in found["explain"]["lines"]}
    assert {id_: placed[id_]["score"] for id_ in scores} == scores
    [memory] = found["relevant_memories"]
    assert lines[placed[memory["id"]]["first_line"] - 1].endswith(": soup is hot")
    budget = [one for one in found["dropped"]["results"] if one["reason"] == "budget"]
    assert len(budget) == found["dropped"]["messages"]
    assert {one["message_id"] for one in budget} == {one["id"] for one in said} - scores.keys()
    assert all(one["session_id"] == "s" and len(one["text"]) <= 200 for one in budget)


def test_the_shape_is_read_from_the_query_explained_and_can_be_given(client: TestClient):
    say(client, "the boat is sold", session_id="past")
    asked = "In which order did I mention the boat?"
    found = context(client, asked)["explain"]
    assert found == {"intent": "order", "shape": "outline", "only_users": True}
    found = context(client, asked, shape="excerpts")["explain"]
    assert found == {"intent": "order", "shape": "excerpts", "only_users": False}
    found = context(client, "the boat", shape="outline")["explain"]
    assert found == {"intent": None, "shape": "outline", "only_users": False}


def test_memories_of_the_namespace_are_in_its_context(client: TestClient):
    client.post("/agents", json={"name": "my_agent"})
    memory = {"text": "colour red", "source": "notes", "metadata": {"category": "taste", "score": 7}}
    client.post("/memory/add", json=memory, headers={"X-Namespace": "my_agent"})
    client.post("/memory/add", json={**memory, "text": "colour elsewhere"})
    [found] = context(client, "colour")["relevant_memories"]
    assert (found["text"], found["category"]) == ("colour red", "taste")
    assert found["score"] != 7
    assert found["similarity"] > 0


def test_the_context_of_an_unknown_agent_is_404_and_creates_no_agent(client: TestClient):
    answer = client.post("/context/nobody", json={"query": "q"})
    assert (answer.status_code, answer.json()["code"]) == (404, "agent_not_found")
    assert client.get("/agents").json()["total"] == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"query": ""},
        {"max_tokens": 63},
        {"max_tokens": 200_001},
        {"deadline_ms": 0},
        {"deadline_ms": 60_001},
        {"session_id": ""},
        {"exclude_topics": [""]},
        {"shape": "haiku"},
    ],
    ids=str,
)
def test_a_field_that_cannot_be_used_is_422(client: TestClient, fields: dict[str, Any]):
    client.post("/agents", json={"name": "my_agent"})
    assert client.post("/context/my_agent", json={"query": "q", **fields}).status_code == 422


def test_max_context_messages_limits_the_results(start: Start):
    client = start(max_context_messages=2)
    for number in range(4):
        say(client, f"colour {number}", session_id=str(number))
    assert len(context(client, "colour")["relevant_messages"]) == 2


def test_no_messages_are_found_where_the_setting_wants_none(start: Start):
    client = start(max_context_messages=0)
    say(client, "colour", session_id="past")
    found = context(client, "colour")
    assert (found["relevant_messages"], found["degraded"]) == ([], [])


def test_a_search_that_is_held_up_gets_an_answer_before_it_ends(client: TestClient):
    client.post("/memory-blocks", json={"agent_name": "my_agent", "label": "human", "value": "Name: Alice"})
    say(client, "colour", session_id="past")
    engine = client.app.state.service.engine  # type: ignore[attr-defined]
    with engine.namespace(Scope("my_agent")) as (_, namespace):
        pass
    index = engine.models.serving.registry.get(IndexKey(namespace.id, PassageKind.MESSAGE), 0)
    with index.lock.write():
        found = context(client, "colour", deadline_ms=300)
    assert found["degraded"] == ["messages", "deadline"]
    assert found["memory_blocks"][0]["value"] == "Name: Alice"
    assert (
        without_tokens(found["text"]) == "<recalled_memory>\n## Memory\n\n### human\nName: Alice\n</recalled_memory>\n"
    )


def test_a_key_of_another_agent_gets_no_context(start: Start):
    client = start(api_key=KEY)
    client.headers.update(ENV)
    say(client, "colour", agent="mine", session_id="past")
    other = key_for(client, namespace="other")
    answer = client.post("/context/mine", json={"query": "colour"}, headers=other)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
