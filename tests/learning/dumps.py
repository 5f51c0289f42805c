"""A dump of every stored memory as bytes, to compare two states of a store."""

from __future__ import annotations

from souvenir.memories.engine import MemoryEngine
from tests.learning.ledgers import ANN

TABLES = {
    "memories": "id",
    "links": "from_id, to_id, type",
    "passages": "id",
    "vectors": "passage_id",
    "facts": "id",
    "memory_tags": "memory_id, folded",
    "unsplit": "memory_id",
}

Dump = dict[str, list[tuple[object, ...]]]


def dump(engine: MemoryEngine) -> Dump:
    """Every row of every namespace, with its columns as they are stored."""
    with engine.namespace(ANN) as (connection, _):
        return {
            table: list(connection.execute(f"SELECT * FROM {table} ORDER BY {order}"))
            for table, order in TABLES.items()
        }


def history(engine: MemoryEngine) -> list[tuple[int, str, str, str | None]]:
    """Of each change: the memory, what it was, whose, and of which job."""
    with engine.namespace(ANN) as (connection, _):
        return list(connection.execute("SELECT memory_id, action, actor, job_id FROM history ORDER BY id"))
