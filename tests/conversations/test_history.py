"""Tier 2: conversations are stored completely, listed, and searchable."""

from __future__ import annotations

import time
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from souvenir.conversations.history import ConversationHistory
from souvenir.core.errors import EmbeddingUnavailable, InvalidRequest, SessionEnded, SessionNotFound
from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from tests.conversations.running import run
from tests.conversations.talk import BrokenEmbedder
from tests.vendors.embeddings import VendorServer, answer, vectors_of
from tests.vendors.server import Reply


@pytest.fixture
def history(engine: MemoryEngine) -> ConversationHistory:
    history = ConversationHistory.over(engine)
    run(history.initialize())
    return history


def talk(history: ConversationHistory, *contents: str, **metadata: Any) -> str:
    """A conversation of user and assistant in turns; its id."""
    conversation_id = run(history.start_conversation(metadata or None))
    for number, content in enumerate(contents):
        run(history.add_message(conversation_id, "assistant" if number % 2 else "user", content))
    return conversation_id


def contents(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


def test_a_new_history_is_empty(history: ConversationHistory):
    assert run(history.list_conversations()) == []
    assert run(history.search("anything")) == []
    assert run(history.get_conversation("nobody")) is None


def test_a_conversation_starts_with_an_id_and_its_metadata(history: ConversationHistory):
    before = time.time()
    conversation_id = run(history.start_conversation({"channel": "voice"}))
    assert uuid.UUID(conversation_id).version == 4
    found = run(history.get_conversation(conversation_id))
    assert found is not None
    assert before - 0.001 <= found.pop("started_at") <= time.time()
    assert found == {
        "id": conversation_id,
        "ended_at": None,
        "metadata": {"channel": "voice"},
        "message_count": 0,
        "messages": [],
    }


def test_an_ended_conversation_has_its_time_and_accepts_no_messages(history: ConversationHistory):
    conversation_id = talk(history, "hello")
    run(history.end_conversation(conversation_id))
    found = run(history.get_conversation(conversation_id))
    assert found is not None
    assert found["ended_at"] >= found["started_at"]
    with pytest.raises(SessionEnded):
        run(history.add_message(conversation_id, "user", "one more thing"))
    with pytest.raises(SessionNotFound):
        run(history.end_conversation("nobody"))


def test_a_message_gets_an_id_and_can_be_found_at_once(history: ConversationHistory):
    conversation_id = run(history.start_conversation())
    message_id = run(history.add_message(conversation_id, "user", "the parrot is green"))
    [found] = run(history.search("green parrot"))
    assert (found["id"], found["conversation_id"], found["role"]) == (message_id, conversation_id, "user")
    assert found["content"] == "the parrot is green"
    assert found["similarity"] == pytest.approx(2 / (4 * 2) ** 0.5, abs=1e-5)


def test_a_message_with_an_unknown_conversation_or_role_is_refused(history: ConversationHistory):
    with pytest.raises(SessionNotFound):
        run(history.add_message("nobody", "user", "hello"))
    conversation_id = run(history.start_conversation())
    with pytest.raises(InvalidRequest, match="user, assistant, system"):
        run(history.add_message(conversation_id, "robot", "hello"))
    assert contents(run(history.search("hello"))) == []


def test_search_returns_the_best_matches_first_up_to_the_limit(history: ConversationHistory):
    talk(history, "my bike is red", "a red bike is quick", "tea is green", "water is wet")
    found = run(history.search("red bike quick", limit=2))
    assert contents(found) == ["a red bike is quick", "my bike is red"]
    assert found[0]["score"] > found[1]["score"]
    assert found[0]["similarity"] > found[1]["similarity"]
    assert run(history.search("red bike", limit=0)) == []


def test_search_can_be_limited_to_one_conversation(history: ConversationHistory):
    talk(history, "red apples", "red pears")
    second = talk(history, "red grapes", "green grapes")
    assert contents(run(history.search("red", conversation_id=second))) == ["red grapes", "green grapes"]
    assert len(run(history.search("red"))) == 4
    assert run(history.search("red", conversation_id="nobody")) == []


def test_a_conversation_is_read_whole_and_in_order(history: ConversationHistory):
    said = [f"sentence {number}" for number in range(7)]
    conversation_id = talk(history, *said)
    found = run(history.get_conversation(conversation_id))
    assert found is not None
    assert contents(found["messages"]) == said
    assert [message["role"] for message in found["messages"][:2]] == ["user", "assistant"]
    assert found["message_count"] == 7
    times = [message["timestamp"] for message in found["messages"]]
    assert times == sorted(times)


def test_a_conversation_longer_than_a_page_is_read_whole(history: ConversationHistory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("souvenir.conversations.history._PAGE", 3)
    for count in (3, 7):
        found = run(history.get_conversation(talk(history, *map(str, range(count)))))
        assert found is not None
        assert contents(found["messages"]) == [str(number) for number in range(count)]


def test_conversations_are_listed_newest_first_in_pages(history: ConversationHistory):
    ids = [talk(history, *("word",) * number) for number in range(4)]
    listed = run(history.list_conversations())
    assert [one["id"] for one in listed] == ids[::-1]
    assert [one["message_count"] for one in listed] == [3, 2, 1, 0]
    assert [one["id"] for one in run(history.list_conversations(limit=2, offset=1))] == [ids[2], ids[1]]
    assert run(history.list_conversations(limit=0)) == []


def test_a_failed_embedding_stores_nothing_and_leaves_nothing_open(settings: Settings):
    with closing(MemoryEngine.open(settings, BrokenEmbedder())) as engine:
        history = ConversationHistory.over(engine)
        run(history.initialize())
        conversation_id = run(history.start_conversation())
        with pytest.raises(EmbeddingUnavailable):
            run(history.add_message(conversation_id, "user", "lost"))
        found = run(history.get_conversation(conversation_id))
        assert found is not None
        assert found["messages"] == []
        run(history.start_conversation())
        assert list(engine.check()) == []


def test_histories_of_agents_are_isolated(engine: MemoryEngine):
    ana, ben = (ConversationHistory.over(engine, agent=name) for name in ("ana", "ben"))
    for history in (ana, ben):
        run(history.initialize())
    conversation_id = talk(ana, "a secret of ana")
    assert run(ben.search("secret")) == []
    assert run(ben.list_conversations()) == []
    assert run(ben.get_conversation(conversation_id)) is None
    assert contents(run(ana.search("secret"))) == ["a secret of ana"]


def test_conversations_persist_when_the_file_is_opened_again(tmp_path: Path):
    database = tmp_path / "data" / "memory.db"
    history = ConversationHistory(database)

    async def store() -> str:
        await history.initialize()
        conversation_id = await history.start_conversation()
        await history.add_message(conversation_id, "user", "My cat is called Biscuit")
        await history.end_conversation(conversation_id)
        await history.close()
        return conversation_id

    conversation_id = run(store())
    if Settings(data_dir=database.parent).database_url is None:
        assert database.is_file()
    with pytest.raises(InvalidRequest, match=r"initialize\(\) first"):
        run(history.search("cat"))

    async def read() -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        await history.initialize()
        found = await history.search("what is the pet's name?")
        whole = await history.get_conversation(conversation_id)
        await history.close()
        return found, whole

    found, whole = run(read())
    assert contents(found) == ["My cat is called Biscuit"]
    assert found[0]["similarity"] > 0.3
    assert whole is not None
    assert contents(whole["messages"]) == ["My cat is called Biscuit"]


def test_a_named_model_embeds_with_the_named_ollama(tmp_path: Path, vendor: VendorServer):
    for text in ("search_document: the parrot is green", "search_query: parrot"):
        folded = vectors_of([text])
        vendor.replies.append(Reply(body=answer(np.hstack([folded, folded, folded]))))

    async def talk() -> list[dict[str, Any]]:
        history = ConversationHistory(tmp_path / "memory.db", vendor.url, "nomic-embed-text")
        await history.initialize()
        conversation_id = await history.start_conversation()
        await history.add_message(conversation_id, "user", "the parrot is green")
        found = await history.search("parrot")
        await history.close()
        return found

    assert contents(run(talk())) == ["the parrot is green"]
    assert {request.body["model"] for request in vendor.requests} == {"nomic-embed-text"}
    assert vendor.batches == [["search_document: the parrot is green"], ["search_query: parrot"]]
