"""PostgreSQL answers every statement that both engines share as SQLite does."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.history import history_of, page_at
from souvenir.memories.removals import Removals
from souvenir.store.idempotency import Once
from souvenir.store.memories.reads import ALL
from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.selection import Chooses
from tests.conversations.talk import draft
from tests.fake_embedder import FakeEmbedder
from tests.memories.erasure.conftest import no_jobs
from tests.memories.erasure.test_removals import furnish
from tests.store.make_database import fill
from tests.store.postgres.recording import Recording

NOW = datetime.now(UTC)
ANN, BEN = Scope("ann"), Scope("ben")


def read(engine: MemoryEngine, scope: Scope) -> None:
    engine.search(scope, SearchQuery("tea coffee"))
    ids = [memory.id for memory in engine.page(scope, offset=0, limit=100).memories]
    engine.get(scope, ids)
    with engine.namespace(scope) as (connection, namespace):
        assert namespace is not None
        page_at(connection, namespace, NOW, ALL, offset=0, limit=100)
        for memory_id in ids:
            history_of(connection, namespace, memory_id)


def remove(engine: MemoryEngine) -> None:
    """Delete one of each kind, and an agent with everything of it."""
    once = Once.of("messages", "key", {})
    conversations = Conversations(engine)
    with closing(Removals(engine, on_jobs_gone=no_jobs)) as removals:
        removals.start()
        [said] = conversations.add(ANN, [draft("hello", session_id="s")], once=once)
        assert removals.remove(ANN, Chooses.MESSAGE, said.uid).idempotency_keys == 1
        removals.remove(ANN, Chooses.USER, "mia")
        removals.remove(ANN, Chooses.SESSION, "dogs")
        removals.remove(BEN, Chooses.AGENT)


@pytest.mark.parametrize("kind", ["everything of every version", "agents and their removal"])
def test_everything_that_is_stored_and_read_is_the_same(
    tmp_path: Path, postgres: PostgresConnection, monkeypatch: pytest.MonkeyPatch, kind: str
):
    recording = Recording()
    recording.start(monkeypatch)
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
        if kind.startswith("agents"):
            furnish(engine, ANN)
            furnish(engine, BEN)
            engine.add(ANN, MemoryDraft("Ann drinks tea", "notes", tags=("Tea", "drinks")))
            read(engine, ANN)
            remove(engine)
            read(engine, ANN)
        else:
            fill(engine)
            for name in ("default", "ann"):
                read(engine, Scope(name))
        engine.stats(Scope())
        list(engine.check())
    assert len({one.statement for one in recording.ran}) > 100
    assert recording.differences(postgres) == []
