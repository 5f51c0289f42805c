"""Renumbering of memories in a store whose id counter was moved too far, as imports of earlier releases could do.

Memories with ids above `MAX_COUNTED_ID` get new ids in every table and JSON value that names them, and the counter
continues from there. The map from old to new ids is stored: a backup from before gets the same new ids when it is
restored, and an erasure under a new id writes a tombstone for the old one too (`souvenir.store.tombstones`). Audit
events, and the histories of deleted memories, keep the old ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import apsw

from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import utc_now
from souvenir.store.admin import events, jobs
from souvenir.store.memories.reads import MERGED_FROM
from souvenir.store.rows import select
from souvenir.store.sql import Connection

MAX_COUNTED_ID = 2**45
"""No store reaches this by counting, at 10,000 memories a second for a century. The ids of MCP hold twice as many."""

ID_GAP = 100_000
"""Between the greatest id known and the next one: a deleted namespace leaves no trace of its ids."""

_COLUMNS = (
    ("links", "from_id"),
    ("links", "to_id"),
    ("facts", "memory_id"),
    ("memory_tags", "memory_id"),
    ("unsplit", "memory_id"),
    ("learned_with", "memory_id"),
    ("feedback", "memory_id"),
    ("missed_memories", "memory_id"),
    ("retrievals", "memory_id"),
    ("history", "memory_id"),
    ("extraction_facts", "memory_id"),
    ("extraction_facts", "target_id"),
    ("import_ids", "new_id"),
    ("memories", "id"),
)
_OWNERS = ("passages", "mentions", "definitions", "unread", "removals")
"""Tables whose `owner_id` is that of a memory where `kind` says so."""

_KNOWN = (
    *_COLUMNS,
    ("(SELECT owner_id FROM tombstones WHERE kind = 'memory')", "owner_id"),
    ("renumbered_memories", "new_id"),
)

_SOURCES = (
    ("memories", "metadata", f"$.{MERGED_FROM}"),
    ("history", "before", f"$.metadata.{MERGED_FROM}"),
    ("history", "after", f"$.metadata.{MERGED_FROM}"),
)
"""Columns of JSON with a list of merged memories, and the path of the list."""

_LEDGERS = (("extraction_facts", "decision"), ("extraction_facts", "outcome"), ("jobs", "result"))
"""Columns of JSON that names memories in many places."""


def is_affected(connection: apsw.Connection) -> bool:
    return _counter(connection) > MAX_COUNTED_ID


def last_counted_id(connection: apsw.Connection) -> int:
    """The memory counter; of an affected store, the one that it would have without the leap, and some more."""
    if not is_affected(connection):
        return _counter(connection)
    greatest = " UNION ALL ".join(
        f"SELECT max({column}) AS id FROM {table} WHERE {column} <= {MAX_COUNTED_ID}" for table, column in _KNOWN
    )
    return int(connection.execute(f"SELECT coalesce(max(id), 0) FROM ({greatest})").get) + ID_GAP


def renumber(connection: apsw.Connection, *, above: int = 0) -> dict[int, int]:
    """Repair an affected store, inside of the caller's transaction. Unfinished jobs are cancelled.

    :param above: The new ids are greater.
    :return: The new id of each memory by its old one; empty if the store is not affected.
    """
    if not is_affected(connection):
        return {}
    last = max(above, last_counted_id(connection))
    connection.pragma("defer_foreign_keys", True)
    connection.execute(
        "INSERT OR IGNORE INTO renumbered_memories (old_id, new_id) SELECT id, ? + row_number() OVER (ORDER BY id) "
        "FROM memories WHERE id > ? AND id NOT IN (SELECT old_id FROM renumbered_memories)",
        (last, MAX_COUNTED_ID),
    )
    new_of_old = dict(
        select(
            connection,
            tuple[int, int],
            "SELECT old_id, new_id FROM renumbered_memories WHERE old_id IN (SELECT id FROM memories) ORDER BY old_id",
        )
    )
    _rename_rows(connection)
    _rename_json(connection, new_of_old)
    jobs.cancel_unfinished(connection, utc_now(), reason="the ids of memories were repaired")
    events.begin_again(connection)
    last = max(last, *new_of_old.values()) if new_of_old else last
    connection.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'memories'", (last,))
    return new_of_old


def former_ids(connection: Connection, memory_ids: Iterable[int]) -> list[int]:
    """The ids that backups from before a repair may hold these memories under."""
    return list(
        select(
            connection,
            int,
            "SELECT old_id FROM renumbered_memories WHERE new_id IN (SELECT value FROM json_each(?))",
            (to_json(list(memory_ids)),),
        )
    )


def _counter(connection: apsw.Connection) -> int:
    return int(connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'memories'").get or 0)


def _rename_rows(connection: apsw.Connection) -> None:
    kinds = ((table, "owner_id", "kind = 'memory' AND") for table in _OWNERS)
    for table, column, only in (*((*one, "") for one in _COLUMNS), *kinds):
        connection.execute(
            f"UPDATE {table} SET {column} = (SELECT new_id FROM renumbered_memories WHERE old_id = {column}) "
            f"WHERE {only} {column} IN (SELECT old_id FROM renumbered_memories)"
        )


def _rename_json(connection: apsw.Connection, new_of_old: Mapping[int, int]) -> None:
    for table, column, path in _SOURCES:
        connection.execute(
            f"UPDATE {table} SET {column} = json_set({column}, '{path}', json((SELECT "
            "json_group_array(coalesce(new_id, value) ORDER BY j.key) "
            f"FROM json_each({column}, '{path}') j LEFT JOIN renumbered_memories ON old_id = value))) "
            f"WHERE {column} -> '{path}' IS NOT NULL"
        )
    # An idempotent request names what it made by texts.
    connection.execute(
        "UPDATE idempotency_keys SET made = (SELECT json_group_array(coalesce(CAST(new_id AS TEXT), value) "
        "ORDER BY j.key) FROM json_each(made) j LEFT JOIN renumbered_memories ON CAST(old_id AS TEXT) = value)"
    )
    connection.create_scalar_function("renamed", partial(_renamed_json, new_of_old), 1)
    try:
        for table, column in _LEDGERS:
            connection.execute(f"UPDATE {table} SET {column} = renamed({column}) WHERE {column} IS NOT NULL")
    finally:
        connection.create_scalar_function("renamed", None, 1)


def _renamed_json(new_of_old: Mapping[int, int], stored: str) -> str:
    value = json.loads(stored)
    renamed = _renamed(new_of_old, value)
    return stored if renamed == value else to_json(renamed)


def _renamed(new_of_old: Mapping[int, int], value: Any) -> Any:
    match value:
        case dict():
            # Times are integers of the same size.
            return {key: held if _is_time(key) else _renamed(new_of_old, held) for key, held in value.items()}
        case list():
            return [_renamed(new_of_old, held) for held in value]
        case int():
            return new_of_old.get(value, value)
        case _:
            return value


def _is_time(key: str) -> bool:
    return key.endswith("_at") or key == "valid_to"
