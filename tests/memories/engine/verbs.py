"""Helpers for frequent operations in tests of the engine."""

from __future__ import annotations

from typing import Any

from souvenir.core.types import Memory, MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.sql import Connection

DEFAULT = Scope()
ANN = Scope("ann")


def add(engine: MemoryEngine, text: str, source: str = "notes", *, scope: Scope = DEFAULT, **fields: Any) -> int:
    outcome = engine.add(scope, MemoryDraft(text, source, **fields))
    assert outcome.id is not None
    return outcome.id


def stored(engine: MemoryEngine, scope: Scope = DEFAULT) -> list[Memory]:
    return list(engine.page(scope, offset=0, limit=100_000).memories)


def texts(engine: MemoryEngine, scope: Scope = DEFAULT) -> list[str]:
    return [memory.text for memory in stored(engine, scope)]


def memory(engine: MemoryEngine, memory_id: int, scope: Scope = DEFAULT) -> Memory:
    return engine.get(scope, [memory_id])[memory_id]


def leap(engine: MemoryEngine, to: int = 2**50) -> None:
    """Move the counter as the import of one line with a large id did."""

    def move(connection: Connection) -> None:
        if engine.is_shared:
            connection.execute("SELECT setval(pg_get_serial_sequence('memories', 'id'), ?)", (to,))
            return
        connection.execute("DELETE FROM sqlite_sequence WHERE name = 'memories'")
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('memories', ?)", (to,))

    engine.write_rows(move)
