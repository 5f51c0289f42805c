"""What a re-scan reads and writes beside memories and messages: texts that nothing is embedded of.

A field is a row's id and one text or JSON value of it. Each function takes a connection inside a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import apsw

from souvenir.store.rows import to_json


@dataclass(frozen=True, slots=True)
class Column:
    """:param key: What names a row of the table. :param is_json: Whether the values are JSON, not texts."""

    table: str
    name: str
    key: str = "id"
    is_json: bool = False


class Columns(Enum):
    """Every column that holds what somebody wrote, but for the memories and messages themselves."""

    AGENT_METADATA = Column("agents", "metadata", key="namespace_id", is_json=True)
    SESSION_TITLE = Column("sessions", "title")
    SESSION_METADATA = Column("sessions", "metadata", is_json=True)
    BLOCK_VERSION_VALUE = Column("block_history", "value", key="block_id || ':' || version")
    BLOCK_VERSION_DESCRIPTION = Column("block_history", "description", key="block_id || ':' || version")
    CLAIM_TEXT = Column("claims", "text")
    TOPIC_NAME = Column("topics", "name")
    TOPIC_SUMMARY = Column("topics", "summary")
    HISTORY_BEFORE = Column("history", "before", is_json=True)
    HISTORY_AFTER = Column("history", "after", is_json=True)


def keys(connection: apsw.Connection, namespace_id: int, column: Column) -> list[int | str]:
    """Of the rows that hold something there."""
    of_namespace = (
        "block_id IN (SELECT id FROM blocks WHERE namespace_id = ?)"
        if column.table == "block_history"
        else "namespace_id = ?"
    )
    rows: list[Any] = connection.execute(
        f"SELECT {column.key} FROM {column.table} WHERE {of_namespace} AND {column.name} IS NOT NULL "
        f"ORDER BY {column.key}",
        (namespace_id,),
    ).fetchall()
    return [key for (key,) in rows]


def values(connection: apsw.Connection, column: Column, wanted: Iterable[int | str]) -> dict[int | str, Any]:
    """What stands in these rows, as text or as JSON."""
    rows: list[Any] = connection.execute(
        f"SELECT {column.key}, {column.name} FROM {column.table} WHERE {column.name} IS NOT NULL AND {column.key} IN "
        "(SELECT value FROM json_each(?))",
        (json.dumps(list(wanted)),),
    ).fetchall()
    return {key: json.loads(value) if column.is_json else value for key, value in rows}


def put(connection: apsw.Connection, column: Column, key: int | str, value: Any) -> None:
    connection.execute(
        f"UPDATE {column.table} SET {column.name} = ? WHERE {column.key} = ?",
        (to_json(value) if column.is_json else value, key),
    )


def message_ids(connection: apsw.Connection, namespace_id: int, *, after_id: int, limit: int) -> list[int]:
    rows: list[Any] = connection.execute(
        "SELECT id FROM messages WHERE namespace_id = ? AND id > ? ORDER BY id LIMIT ?", (namespace_id, after_id, limit)
    ).fetchall()
    return [id_ for (id_,) in rows]
