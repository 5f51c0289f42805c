"""Writes and reads memories through the store alone, without the engine and its indexes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from souvenir.core.types import DEFAULT_NAMESPACE, MemoryDraft, Scope
from souvenir.index.analyser import Analyser
from souvenir.retrieval.preparation import PassageAnalyser, prepare
from souvenir.retrieval.profiles import PROFILES
from souvenir.store import check, namespaces
from souvenir.store.index_changes import IndexUpdate
from souvenir.store.memories import reads
from souvenir.store.sqlite.database import SqliteDatabase
from souvenir.store.transaction import Transaction
from tests.fake_embedder import FakeEmbedder

MODEL_ID = FakeEmbedder.model_id
NOW = datetime(2024, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def nothing(_: IndexUpdate) -> None:
    return None


def insert(
    database: SqliteDatabase, *texts: str, source: str = "notes", now: datetime = NOW, apply: Any = nothing
) -> list[int]:
    """Store all texts in one transaction."""
    embedder = FakeEmbedder()
    embedder.model_id = database.model_id
    prepared = prepare(texts, embedder, PassageAnalyser(Analyser(), PROFILES))

    def work(tx: Transaction) -> list[int]:
        return [tx.insert(MemoryDraft(text, source), part).id for text, part in zip(texts, prepared, strict=True)]

    return database.write(Scope(), now, work, apply)


def texts_of(database: SqliteDatabase) -> list[str]:
    """Return texts in id order."""
    with database.read() as connection:
        namespace = namespaces.named(connection, DEFAULT_NAMESPACE)
        if namespace is None:
            return []
        held = reads.list_memories(connection, namespace, reads.ALL, offset=0, limit=100_000)
        return [memory.text for memory in held]


def problems(database: SqliteDatabase) -> list[str]:
    with database.read() as connection:
        return check.problems(connection)
