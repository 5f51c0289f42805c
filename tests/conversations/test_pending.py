"""Messages that are stored first and indexed later: durable at once, and indexed exactly once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from souvenir.conversations.messages import Conversations
from souvenir.conversations.pending_index import BATCH_SIZE, index_all_pending, index_pending
from souvenir.conversations.sessions import INDEXED_AT_START, Sessions
from souvenir.core.errors import EmbeddingUnavailable
from souvenir.memories.engine import MemoryEngine
from tests.conversations.talk import ANN, BEN, BrokenEmbedder, draft, found, listed, say
from tests.fake_embedder import FakeEmbedder


def append(conversations: Conversations, *contents: str, session: str = "s") -> None:
    conversations.append(ANN, session, [draft(content) for content in contents])


def test_an_appended_message_is_searchable_after_its_session_ended(conversations: Conversations, sessions: Sessions):
    append(conversations, "blue", "green")
    append(conversations, "red")
    assert listed(conversations) == ["red", "green", "blue"]
    assert found(conversations, "blue") == []
    sessions.end(ANN, "s")
    assert found(conversations, "blue", limit=1) == ["blue"]


def test_only_the_requested_session_is_indexed(conversations: Conversations):
    append(conversations, "blue", session="s1")
    append(conversations, "blue too", session="s2")
    assert conversations.index_pending(ANN, "s1") == 1
    assert found(conversations, "blue") == ["blue"]
    assert conversations.index_pending(ANN) == 1
    assert conversations.index_pending(ANN) == 0
    assert len(found(conversations, "blue")) == 2


def test_starting_a_session_indexes_pending_messages_of_another(conversations: Conversations, sessions: Sessions):
    append(conversations, *[f"blue {number}" for number in range(INDEXED_AT_START + 1)])
    conversations.append(BEN, "s", [draft("blue")])
    sessions.start(ANN)
    assert len(found(conversations, "blue", limit=1000)) == INDEXED_AT_START
    assert found(conversations, "blue", scope=BEN) == []
    sessions.start(ANN)
    assert len(found(conversations, "blue", limit=1000)) == INDEXED_AT_START + 1


def test_every_agent_is_indexed_when_the_service_starts_unless_it_stops(
    conversations: Conversations, engine: MemoryEngine
):
    append(conversations, *[f"blue {number}" for number in range(BATCH_SIZE + 1)])
    conversations.append(BEN, "s", [draft("blue")])
    assert index_all_pending(engine, stop=lambda: True) == 0
    assert index_all_pending(engine, stop=lambda: False) == BATCH_SIZE + 2
    assert found(conversations, "blue", scope=BEN) == ["blue"]


def test_a_message_edited_before_indexing_is_found_by_its_new_content(conversations: Conversations, sessions: Sessions):
    append(conversations, "blue", "red")
    stored = {one.content: one for one in conversations.of_session(ANN, "s")[0]}
    conversations.edit(ANN, stored["blue"].uid, content="green")
    conversations.edit(ANN, stored["red"].uid, metadata={"n": 1})
    assert found(conversations, "green") == ["green"]
    sessions.end(ANN, "s")
    assert sorted(found(conversations, "green red")) == ["green", "red"]


def test_concurrent_indexing_indexes_each_message_once(conversations: Conversations, engine: MemoryEngine):
    append(conversations, *[f"blue {number}" for number in range(3 * BATCH_SIZE)])
    with ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(lambda _: conversations.index_pending(ANN), range(4)))
    assert sum(counts) == 3 * BATCH_SIZE
    assert engine.check() == []


def test_without_the_model_a_session_starts_but_does_not_end(
    conversations: Conversations, sessions: Sessions, engine: MemoryEngine
):
    append(conversations, "blue")
    assert engine.models.reload(BrokenEmbedder())
    sessions.start(ANN, "other")
    with pytest.raises(EmbeddingUnavailable):
        sessions.end(ANN, "s")
    assert sessions.get(ANN, "s").ended_at is None
    assert engine.models.reload(FakeEmbedder())
    sessions.end(ANN, "s")
    assert found(conversations, "blue") == ["blue"]


def test_indexed_and_pending_messages_of_a_session_keep_their_order(
    conversations: Conversations,
):
    say(conversations, "a", session_id="s")
    append(conversations, "b")
    say(conversations, "c", session_id="s")
    assert [(one.content, one.position) for one in conversations.of_session(ANN, "s")[0]] == [
        ("a", 0),
        ("b", 1),
        ("c", 2),
    ]
    assert sorted(found(conversations, "a b c")) == ["a", "c"]


def test_a_stop_between_batches_keeps_what_was_indexed(conversations: Conversations, engine: MemoryEngine):
    append(conversations, *[f"blue {number}" for number in range(2 * BATCH_SIZE)])

    def after(batches: int) -> Callable[[], bool]:
        asked = iter([False] * batches + [True])
        return lambda: next(asked)

    assert index_pending(engine, ANN, stop=after(1)) == BATCH_SIZE
    assert len(found(conversations, "blue", limit=1000)) == BATCH_SIZE
