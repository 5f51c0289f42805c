"""A request with an Idempotency-Key is executed once, however often and concurrently it is sent."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from souvenir.conversations.agents import Agents
from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.core.errors import EmbeddingUnavailable, IdempotencyKeyReused, MessageNotFound
from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.core.types import RecordKind, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store import idempotency
from souvenir.store.graph import mentions
from souvenir.store.idempotency import KEPT, PRUNED_AT_ONCE, Once
from souvenir.store.messages.messages import MessageFilter
from souvenir.store.transaction import Transaction
from tests.conversations.talk import ANN, BEN, BrokenEmbedder, draft, listed
from tests.fake_embedder import FakeEmbedder
from tests.killing import lines_until_killed

DRAFTS = [draft("blue"), draft("green")]


def asked(key: str = "k", request: Any = "the request") -> tuple[Once, list[str]]:
    """A request, and a list that gets an entry when it is answered with what was made before."""
    replays: list[str] = []
    return Once.of("route", key, request, lambda: replays.append(key)), replays


def test_a_repeated_request_is_executed_once_with_the_same_answer(conversations: Conversations):
    first, replays = asked()
    stored = conversations.add(ANN, DRAFTS, once=first)
    assert replays == []
    again, replays = asked()
    assert conversations.add(ANN, DRAFTS, once=again) == stored
    assert replays == ["k"]
    assert sorted(listed(conversations)) == ["blue", "green"]


def test_another_request_with_the_same_key_is_refused(conversations: Conversations):
    conversations.add(ANN, DRAFTS, once=asked(request={"a": 1, "b": 2})[0])
    conversations.add(ANN, DRAFTS, once=asked(request={"b": 2, "a": 1})[0])
    with pytest.raises(IdempotencyKeyReused):
        conversations.add(ANN, DRAFTS, once=asked(request={"a": 1, "b": 3})[0])
    assert len(listed(conversations)) == 2


def test_a_key_belongs_to_one_caller_in_one_agent(conversations: Conversations):
    for scope in (ANN, BEN, Scope(ANN.namespace, "somebody else")):
        conversations.add(scope, DRAFTS, once=asked(request=scope.actor)[0])
    assert (len(listed(conversations)), len(listed(conversations, BEN))) == (4, 2)


def test_concurrent_requests_with_one_key_are_executed_once(conversations: Conversations):
    with ThreadPoolExecutor(16) as threads:
        stored = list(threads.map(lambda _: conversations.add(ANN, DRAFTS, once=asked()[0]), range(16)))
    assert all(one == stored[0] for one in stored)
    assert len(listed(conversations)) == 2


def test_a_replayed_answer_shows_the_current_rows(conversations: Conversations):
    first, _ = conversations.add(ANN, DRAFTS, once=asked()[0])
    conversations.edit(ANN, first.uid, content="red")
    assert [one.content for one in conversations.add(ANN, DRAFTS, once=asked()[0])] == ["red", "green"]


def test_a_replay_does_not_recreate_deleted_rows(conversations: Conversations, engine: MemoryEngine):
    [stored] = conversations.add(ANN, DRAFTS[:1], once=asked()[0])

    def delete(tx: Transaction) -> None:
        tx.passages.delete(stored.owner.kind, [stored.id])
        mentions.forget(tx.connection, tx.namespace_id, RecordKind.MESSAGE, [stored.id])
        tx.connection.execute("DELETE FROM messages WHERE id = ?", (stored.id,))

    engine.write(ANN, delete)
    with pytest.raises(MessageNotFound):
        conversations.add(ANN, DRAFTS[:1], once=asked()[0])
    assert listed(conversations) == []


def test_a_replay_needs_no_model(conversations: Conversations, engine: MemoryEngine):
    stored = conversations.add(ANN, DRAFTS, once=asked()[0])
    assert engine.models.reload(BrokenEmbedder())
    assert conversations.add(ANN, DRAFTS, once=asked()[0]) == stored


def test_a_failed_request_can_be_retried(conversations: Conversations, engine: MemoryEngine):
    assert engine.models.reload(BrokenEmbedder())
    with pytest.raises(EmbeddingUnavailable):
        conversations.add(ANN, DRAFTS, once=asked()[0])
    assert engine.models.reload(FakeEmbedder())
    again, replays = asked()
    assert len(conversations.add(ANN, DRAFTS, once=again)) == 2
    assert replays == []


def test_agents_and_sessions_are_created_once_too(engine: MemoryEngine):
    agent = Agents(engine).create(ANN, {"n": 1}, once=asked()[0])
    again, replays = asked()
    assert Agents(engine).create(ANN, {"n": 1}, once=again) == agent
    sessions = Sessions(engine)
    started = sessions.start(ANN, title="t", once=asked("other")[0])
    assert sessions.start(ANN, title="t", once=asked("other")[0]) == started
    assert (replays, sessions.users(ANN)) == (["k"], ([], 0))


def stored_keys(engine: MemoryEngine) -> list[tuple[Any, ...]]:
    with engine.namespace(ANN) as (connection, _):
        return list(connection.execute("SELECT key_hash, request_hash, made FROM idempotency_keys"))


def test_neither_key_nor_request_can_be_read_from_the_database(conversations: Conversations, engine: MemoryEngine):
    [stored, _] = conversations.add(ANN, DRAFTS, once=asked("a secret key", "a secret text")[0])
    [row] = stored_keys(engine)
    assert "secret" not in str(row)
    assert stored.uid in str(row)


def test_keys_expire_after_a_day_in_small_batches(engine: MemoryEngine):
    for number in range(PRUNED_AT_ONCE + 5):
        engine.write(ANN, lambda tx, key=str(number): make(tx, key))  # type: ignore[misc]  # bound here
    assert len(stored_keys(engine)) == PRUNED_AT_ONCE + 5
    assert make_at(engine, "0", utc_now() + KEPT - timedelta(minutes=1)) == "before"
    later = utc_now() + KEPT + timedelta(minutes=1)
    assert make_at(engine, "0", later) == "made"
    assert len(stored_keys(engine)) == 6
    make_at(engine, "new", later)
    assert len(stored_keys(engine)) == 2


def make(tx: Transaction, key: str) -> str:
    return idempotency.do_once(tx, asked(key)[0], lambda: "made", ids=lambda made: [made], again=lambda _: "before")


def make_at(engine: MemoryEngine, key: str, now: datetime) -> str:
    return engine.models.write(ANN, now, lambda tx: make(tx, key))


def test_requests_repeated_after_each_kill_are_stored_once(tmp_path: Path):
    chance, answered = random.Random(8900), dict[str, set[str]]()
    for number in range(4):
        lines = chance.randrange(60 * number + 20, 60 * number + 60)
        for line in lines_until_killed("tests.conversations.sending_process", tmp_path, lines=lines):
            sent, uid = line.split()
            answered.setdefault(f"number {sent}", set()).add(uid)
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
        engine.warm_up()
        conversations = Conversations(engine)
        stored = {one.content: {one.uid} for one in conversations.page(ANN, MessageFilter(), limit=10_000)[0]}
        assert len(stored) == conversations.page(ANN, MessageFilter())[1]
        assert answered.items() <= stored.items()
        assert list(engine.check()) == []
