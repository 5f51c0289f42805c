"""Two engines on one database in PostgreSQL, as in two processes: each sees what the other stored, at once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from pydantic import SecretStr

from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.store.postgres.connection import PostgresConnection
from tests.fake_embedder import FakeEmbedder

ANN = Scope("ann")
Open = Callable[[str], MemoryEngine]


@pytest.fixture
def replica(tmp_path: Path, postgres: PostgresConnection, server_address: str) -> Iterator[Open]:
    """Opens an engine by the name of its folder."""
    with ExitStack() as opened:

        def open_replica(name: str) -> MemoryEngine:
            settings = Settings(data_dir=tmp_path / name, database_url=SecretStr(server_address))
            return opened.enter_context(closing(MemoryEngine.open(settings, FakeEmbedder())))

        yield open_replica


def found(engine: MemoryEngine, text: str) -> list[str]:
    return [hit.memory.text for hit in engine.search(ANN, SearchQuery(text, top_k=5)).hits]


def test_a_replica_finds_what_another_stored_changed_and_deleted(replica: Open):
    one, other = replica("one"), replica("other")
    first = one.add(ANN, MemoryDraft("Ann plays the violin", "notes")).id
    assert first is not None
    assert found(other, "violin") == ["Ann plays the violin"]
    other.update(ANN, first, MemoryPatch(text="Ann plays the cello"))
    assert found(one, "cello") == ["Ann plays the cello"]
    one.update(ANN, first, MemoryPatch(archived=True))
    assert found(other, "cello") == []
    other.update(ANN, first, MemoryPatch(archived=False))
    one.delete(ANN, first)
    assert found(other, "cello") == found(one, "cello") == []
    assert list(one.check()) == list(other.check()) == []


def test_writers_on_several_replicas_lose_nothing(replica: Open):
    replicas = [replica(name) for name in ("one", "other", "third")]

    def write(number: int) -> list[int]:
        dice, ids = random.Random(number), list[int]()
        for step in range(12):
            engine, reader = dice.choice(replicas), dice.choice(replicas)
            text = f"writer {number} wrote step {step} of plan{number}x{step}"
            stored = engine.add(ANN, MemoryDraft(text, f"notes/{number}")).id
            assert stored is not None
            ids.append(stored)
            assert text in found(reader, f"plan{number}x{step}")
            if step % 4 == 3:
                gone = ids.pop(dice.randrange(len(ids)))
                dice.choice(replicas).delete(ANN, gone)
        return ids

    with ThreadPoolExecutor(4) as writers:
        kept = {id_ for ids in writers.map(write, range(4)) for id_ in ids}
    for engine in replicas:
        assert {memory.id for memory in engine.page(ANN, offset=0, limit=100).memories} == kept
        found(engine, "plan")
        assert list(engine.check()) == []


def test_a_replica_starts_with_its_snapshot_and_catches_up(replica: Open):
    one = replica("one")
    one.add_batch(ANN, [MemoryDraft(f"note {number} of the garden", "notes") for number in range(30)])
    with closing(replica("other")) as other:
        assert len(found(other, "garden")) == 5
    one.add(ANN, MemoryDraft("a shed for the bicycle", "notes"))
    again = replica("other")
    assert found(again, "bicycle shed")[0] == "a shed for the bicycle"
    assert list(again.check()) == []


def test_a_loaded_index_follows_other_replicas_without_being_asked(replica: Open):
    one, other = replica("one"), replica("other")
    one.add(ANN, MemoryDraft("Ann plays the violin", "notes"))
    found(other, "violin")
    [loaded] = other.models.serving.registry.loaded().values()
    one.add(ANN, MemoryDraft("Ann mends bicycles", "notes"))
    until = time.monotonic() + 10
    while len(loaded) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(loaded) == 2
