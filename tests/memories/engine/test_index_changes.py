"""The log of index changes is emptied of what nobody needs, and an index that needs it is built again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from souvenir.core.timestamps import to_us, utc_now
from souvenir.core.types import MemoryDraft, PassageKind, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.store import index_changes
from souvenir.store.sql import Connection

QUIET, BUSY = Scope("quiet"), Scope("busy")
WRITES = index_changes.KEPT_OF_QUIET + 20


def filled(engine: MemoryEngine) -> None:
    for number in range(WRITES):
        for scope in (QUIET, BUSY):
            engine.add(scope, MemoryDraft(f"note {number} about violins", "notes"))
    long_ago = utc_now() - index_changes.KEPT_FOR - timedelta(seconds=1)
    engine.write_rows(
        lambda rows: rows.execute("UPDATE namespaces SET changed_at = ? WHERE name = 'quiet'", (to_us(long_ago),))
    )


def entries(engine: MemoryEngine, scope: Scope) -> list[int]:
    """The numbers of the logged writes."""
    with engine.namespace(scope) as (connection, namespace):
        assert namespace is not None
        query = "SELECT change_seq FROM index_changes WHERE namespace_id = ? ORDER BY change_seq"
        return [row[0] for row in connection.execute(query, (namespace.id,))]


def touched_since(engine: MemoryEngine, scope: Scope, change_seq: int) -> int | None:
    with engine.namespace(scope) as (connection, namespace):
        assert namespace is not None
        touched = index_changes.since(connection, namespace.id, PassageKind.MEMORY, change_seq)
    return None if touched is None else len(touched.passage_ids)


def test_a_namespace_that_nobody_writes_to_keeps_its_last_entries(engine: MemoryEngine):
    filled(engine)
    engine._maintain()
    kept = entries(engine, QUIET)
    assert len(kept) == index_changes.KEPT_OF_QUIET
    assert len(entries(engine, BUSY)) == WRITES
    assert touched_since(engine, QUIET, kept[0] - 1) == index_changes.KEPT_OF_QUIET
    assert touched_since(engine, QUIET, kept[0] - 2) is None
    assert touched_since(engine, BUSY, 1) == WRITES - 1
    assert list(engine.check()) == []
    assert engine.search(QUIET, SearchQuery("violins", top_k=3)) is not None


def test_entries_are_deleted_in_parts(engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(index_changes, "TRIMMED_AT_ONCE", 3)
    filled(engine)
    with engine.namespace(QUIET) as (connection, namespace):
        assert namespace is not None
        assert index_changes.quiet(connection, utc_now()) == [namespace.id]
    parts = 0
    while engine.write_rows(lambda rows: index_changes.trim_quiet(rows, namespace.id)):
        parts += 1
    assert parts == 4
    assert len(entries(engine, QUIET)) == index_changes.KEPT_OF_QUIET


def test_a_late_trim_does_not_forget_that_more_was_deleted(engine: MemoryEngine):
    filled(engine)
    with engine.namespace(QUIET) as (_, namespace):
        assert namespace is not None

    def trim(rows: Connection) -> None:
        for up_to in (15, 5):
            index_changes._trim(rows, namespace.id, up_to)

    engine.write_rows(trim)
    assert touched_since(engine, QUIET, 10) is None
    assert touched_since(engine, QUIET, 15) == WRITES - 15
