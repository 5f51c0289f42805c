"""Queries of the privacy rules: rows flagged with a sensitive topic, and the texts that a re-scan reads and writes.

What quotes the texts of an agent takes those that its policy hides (`Hidden`). A field of a re-scan is the key of a
row and one text or JSON value of it. Each function takes a connection inside a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Any, Protocol

from souvenir.core.labels import SENSITIVE_TOPICS
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject, PassageKind, RecordKind
from souvenir.store.rows import CHOSEN, ids_parameter, readable, select
from souvenir.store.sql import Connection, SqlValue

_TABLES: Mapping[PassageKind, str] = MappingProxyType({PassageKind.MEMORY: "memories", PassageKind.MESSAGE: "messages"})


_PATH = f"'$.{SENSITIVE_TOPICS}'"


def is_flagged(metadata: str, topics: str) -> str:
    """Return the condition that metadata has one of the topics of a parameter, which is a `topics_parameter`."""
    return (
        # As in the index of flagged rows.
        f"iif(json_valid({metadata}), json_extract({metadata}, {_PATH}), NULL) IS NOT NULL AND EXISTS (SELECT 1 "
        f"FROM json_each({metadata}, {_PATH}) WHERE atom IN (SELECT atom FROM json_each({topics})))"
    )


def topics_parameter(topics: Iterable[str]) -> str:
    return json.dumps(list(topics))


_SOURCES_OF_CLAIMS = (("messages", "message_id"), ("memories", "memory_id"), ("memories", "other_memory_id"))
"""The columns of a claim that name its texts; of a relation of entities also the entity that it leads to."""


class Hidden(Protocol):
    """The texts that a policy hides, as conditions of a query: they are quoted nowhere.

    Each condition follows others, with its parameters, and is empty if nothing is hidden.

    :param table: The name of the table in the query.
    """

    def no_owner(self, table: str) -> tuple[str, tuple[str, ...]]:
        """Return the condition that a row, with `kind` and `owner_id`, is of no hidden text."""

    def no_claim(self, table: str) -> tuple[str, tuple[str, ...]]:
        """Return the condition that a claim is of no hidden message, and of or to no hidden entity; names are shown."""


@dataclass(frozen=True, slots=True)
class HiddenTopics:
    """The texts that are flagged now with one of these topics: each row that is read is looked up, and no other."""

    topics: tuple[str, ...] = ()

    def no_owner(self, table: str) -> tuple[str, tuple[str, ...]]:
        if not self.topics:
            return "", ()
        flagged_one = (
            f"{table}.kind = '{kind.value}' AND EXISTS (SELECT 1 FROM {_TABLES[kind]} h WHERE h.id = {table}.owner_id "
            f"AND {is_flagged('h.metadata', '?')})"
            for kind in (PassageKind.MESSAGE, PassageKind.MEMORY)
        )
        return f" AND NOT ({' OR '.join(flagged_one)})", (topics_parameter(self.topics),) * 2

    def no_claim(self, table: str) -> tuple[str, tuple[str, ...]]:
        if not self.topics:
            return "", ()
        flagged_one = (
            f"EXISTS (SELECT 1 FROM {source} h WHERE h.id = {table}.{column} AND {is_flagged('h.metadata', '?')})"
            for source, column in _SOURCES_OF_CLAIMS
        )
        is_of_hidden = f"{table}.kind NOT IN ('name', 'alias') AND ({' OR '.join(flagged_one)})"
        return f" AND NOT ({is_of_hidden})", (topics_parameter(self.topics),) * len(_SOURCES_OF_CLAIMS)


@dataclass(frozen=True, slots=True)
class HiddenTexts:
    """The ids of the messages and memories that are flagged with a hidden topic, now or then."""

    messages: frozenset[int] = frozenset()
    memories: frozenset[int] = frozenset()

    def holds(self, kind: RecordKind, owner_id: int) -> bool:
        return owner_id in (self.messages if kind is RecordKind.MESSAGE else self.memories)

    def no_owner(self, table: str) -> tuple[str, tuple[str, ...]]:
        if not self.messages and not self.memories:
            return "", ()
        of_kind = "{0}.kind = '{1}' AND {0}.owner_id " + CHOSEN
        parts = (of_kind.format(table, kind.value) for kind in (RecordKind.MESSAGE, RecordKind.MEMORY))
        return f" AND NOT ({' OR '.join(parts)})", (ids_parameter(self.messages), ids_parameter(self.memories))

    def no_claim(self, table: str) -> tuple[str, tuple[str, ...]]:
        if not self.messages and not self.memories:
            return "", ()
        is_of_hidden = " OR ".join(
            f"({table}.{column} IS NOT NULL AND {table}.{column} {CHOSEN})" for _, column in _SOURCES_OF_CLAIMS
        )
        ids = {"messages": ids_parameter(self.messages), "memories": ids_parameter(self.memories)}
        chosen = tuple(ids[source] for source, _ in _SOURCES_OF_CLAIMS)
        return f" AND NOT ({table}.kind NOT IN ('name', 'alias') AND ({is_of_hidden}))", chosen


NOTHING_HIDDEN = HiddenTexts()


def hidden_texts(connection: Connection, namespace_id: int, hidden: HiddenTopics) -> HiddenTexts:
    """Return the texts of a namespace that are flagged with one of these topics."""
    kinds = (PassageKind.MESSAGE, PassageKind.MEMORY)
    return HiddenTexts(*(frozenset(flagged(connection, kind, namespace_id, hidden.topics)) for kind in kinds))


def flagged(connection: Connection, kind: PassageKind, namespace_id: int, topics: Collection[str]) -> list[int]:
    """Return the ids flagged with one of these topics; the cost is proportional to the number of flagged rows."""
    if not topics:
        return []
    query = f"SELECT id FROM {_TABLES[kind]} WHERE namespace_id = :namespace AND {is_flagged('metadata', ':topics')}"
    parameters: dict[str, SqlValue] = {"namespace": namespace_id, "topics": topics_parameter(topics)}
    return list(select(connection, int, query, parameters))


def messages_flagged_then(connection: Connection, namespace_id: int, topics: Collection[str], at: datetime) -> set[int]:
    """Return the messages that were edited since, and were flagged with one of these topics at this time."""
    query = (
        "SELECT message_id FROM message_versions v WHERE namespace_id = :namespace AND replaced_at > :at "
        "AND id = (SELECT min(id) FROM message_versions o WHERE o.message_id = v.message_id AND o.replaced_at > :at) "
        f"AND {is_flagged('metadata', ':topics')}"
    )
    parameters: dict[str, SqlValue] = {"namespace": namespace_id, "at": to_us(at), "topics": topics_parameter(topics)}
    return set(select(connection, int, query, parameters))


# --- re-scans ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """:param key: SQL of the key of a row. :param is_json: Whether the values are JSON instead of text."""

    table: str
    name: str
    key: str = "id"
    is_json: bool = False


class Columns(Enum):
    """Every column with user-written content, except those of memories, messages and versions of messages."""

    AGENT_METADATA = Column("agents", "metadata", key="namespace_id", is_json=True)
    SESSION_TITLE = Column("sessions", "title")
    SESSION_METADATA = Column("sessions", "metadata", is_json=True)
    BLOCK_VERSION_VALUE = Column("block_history", "value", key="block_id || ':' || version")
    BLOCK_VERSION_DESCRIPTION = Column("block_history", "description", key="block_id || ':' || version")
    CLAIM_TEXT = Column("claims", "text")
    TOPIC_NAME = Column("topics", "name")
    TOPIC_SUMMARY = Column("topics", "summary")
    TOPIC_CLAIM_TEXT = Column("topic_claims", "text")
    FEEDBACK_QUERY = Column("feedback", "query")
    MISSED_CONTEXT = Column("missed_memories", "context")
    LEDGER_FACT = Column("extraction_facts", "proposal", key="job_id || ':' || ordinal", is_json=True)
    LEDGER_DECISION = Column("extraction_facts", "decision", key="job_id || ':' || ordinal", is_json=True)
    LEDGER_OUTCOME = Column("extraction_facts", "outcome", key="job_id || ':' || ordinal", is_json=True)
    HISTORY_BEFORE = Column("history", "before", is_json=True)
    HISTORY_AFTER = Column("history", "after", is_json=True)


_OF_NAMESPACE = MappingProxyType(
    {
        # The others are derived from entities, which are screened themselves.
        "claims": "namespace_id = ? AND memory_id IS NULL",
        "block_history": "block_id IN (SELECT id FROM blocks WHERE namespace_id = ?)",
        "extraction_facts": "job_id IN (SELECT e.job_id FROM namespaces n JOIN extractions e ON e.namespace = n.name "
        "WHERE n.id = ?)",
    }
)
"""Conditions on the rows of a namespace, by table; the others have its id."""


def keys(connection: Connection, namespace_id: int, column: Column) -> list[int | str]:
    """Return the keys of the rows that have a value in the column."""
    of_namespace = _OF_NAMESPACE.get(column.table, "namespace_id = ?")
    return list(
        select(
            connection,
            str,
            f"SELECT {column.key} FROM {column.table} WHERE {of_namespace} AND {column.name} IS NOT NULL "
            f"ORDER BY {column.key}",
            (namespace_id,),
        )
    )


def values(connection: Connection, column: Column, wanted: Iterable[int | str]) -> dict[int | str, Any]:
    """Return the values of these rows, as text or parsed JSON."""
    item = "value" if column.key.endswith("id") else "atom"
    rows = select(
        connection,
        tuple[int | str, str],
        f"SELECT {column.key}, {column.name} FROM {column.table} "
        f"WHERE {column.name} IS NOT NULL AND {column.key} IN (SELECT {item} FROM json_each(?))",
        (json.dumps(list(wanted)),),
    )
    return {key: json.loads(value) if column.is_json else value for key, value in rows}


def put(connection: Connection, column: Column, key: int | str, value: Any) -> None:
    connection.execute(
        f"UPDATE {column.table} SET {column.name} = ? WHERE {column.key} = ?",
        (to_json(value) if column.is_json else value, key),
    )


def message_ids(connection: Connection, namespace_id: int, *, after_id: int, limit: int) -> list[int]:
    return list(
        select(
            connection,
            int,
            "SELECT id FROM messages WHERE namespace_id = ? AND id > ? ORDER BY id LIMIT ?",
            (namespace_id, after_id, limit),
        )
    )


@dataclass(frozen=True, slots=True)
class MessageVersion:
    """A former state of a message."""

    id: int
    content: str
    metadata: JsonObject | None


def message_versions(
    connection: Connection, namespace_id: int, *, after_id: int, limit: int
) -> tuple[list[int], list[MessageVersion]]:
    """Return the ids of the next versions of messages, in id order, and the readable ones of these versions."""
    ids = list(
        select(
            connection,
            int,
            "SELECT v.id FROM message_versions v WHERE v.namespace_id = ? AND v.id > ? ORDER BY v.id LIMIT ?",
            (namespace_id, after_id, limit),
        )
    )
    rows = readable(
        connection,
        MessageVersion,
        "SELECT id, content, metadata FROM message_versions WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (ids_parameter(ids),),
        table="message_versions",
    )
    return ids, list(rows)


def put_message_version(connection: Connection, version: MessageVersion) -> None:
    metadata = None if version.metadata is None else to_json(dict(version.metadata))
    query = "UPDATE message_versions SET content = ?, metadata = ? WHERE id = ?"
    connection.execute(query, (version.content, metadata, version.id))
