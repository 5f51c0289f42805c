"""Rows of a graph export, read lazily or in small pages.

Spellings of one concept are exported as one: `concept` is always the id of the root. Each function takes a connection
inside a read transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from souvenir.core.types import FloatVector, MessageRole, RecordKind
from souvenir.store.graph.concepts import Concept, by_ids
from souvenir.store.privacy import Hidden
from souvenir.store.rows import CHOSEN, grouped, ids_parameter, readable, select
from souvenir.store.sql import Connection
from souvenir.store.vectors import MODEL

PAGE = 200
_ONE = "coalesce(c.same_as, c.id)"


class Said(NamedTuple):
    """The place of a message in the order of its session."""

    id: int
    uid: str
    session_row: int
    role: MessageRole
    user_row: int | None
    at_us: int


def said(connection: Connection, namespace_id: int) -> Iterator[Said]:
    """Yield the places of all messages, session by session."""
    query = (
        "SELECT m.id, m.uid, m.session_id, m.role, m.user_id, m.created_at FROM sessions s "
        "CROSS JOIN messages m ON m.session_id = s.id WHERE s.namespace_id = ? ORDER BY s.started_at, s.id, m.position"
    )
    return readable(connection, Said, query, (namespace_id,), table="messages")


def owner_counts(connection: Connection, namespace_id: int) -> dict[int, int]:
    """Return the number of messages and memories that mention each concept. Two spellings in one count twice."""
    query = f"SELECT {_ONE}, sum(c.owners) FROM concepts c WHERE c.namespace_id = ? GROUP BY 1"
    return dict(select(connection, tuple[int, int], query, (namespace_id,)))


def concepts(connection: Connection, namespace_id: int, hidden: Hidden) -> Iterator[Concept]:
    """Yield every root in id order, with no description from a hidden text."""
    query = "SELECT id FROM concepts WHERE namespace_id = ? AND same_as IS NULL ORDER BY id"
    ids = list(select(connection, int, query, (namespace_id,)))
    for begin in range(0, len(ids), PAGE):
        yield from by_ids(connection, namespace_id, ids[begin : begin + PAGE], hidden).values()


def mentions_in(connection: Connection, namespace_id: int, kind: RecordKind) -> Iterator[tuple[int, int, str]]:
    """Yield the mentions in messages, oldest message first, or in memories in id order: each concept once per owner.

    A mention is the id of its owner, its concept, and the kind of the concept in it.
    """
    owners, order = ("messages", "o.created_at, o.id") if kind is RecordKind.MESSAGE else ("memories", "o.id")
    query = (
        f"SELECT m.concept_id, o.id, {_ONE}, m.concept_kind FROM {owners} o "
        f"CROSS JOIN mentions m ON m.kind = '{kind.value}' AND m.owner_id = o.id "
        f"CROSS JOIN concepts c ON c.id = m.concept_id WHERE o.namespace_id = ? ORDER BY {order}"
    )
    rows = readable(connection, tuple[int, int, int, str], query, (namespace_id,), table="mentions")
    for owner_id, of_owner in groupby(rows, key=itemgetter(1)):
        seen = dict[int, str]()
        for _, _, concept, concept_kind in of_owner:
            seen.setdefault(concept, concept_kind)
        yield from ((owner_id, concept, concept_kind) for concept, concept_kind in seen.items())


def co_occurrences(connection: Connection, concept: int) -> Iterator[tuple[int, int, int]]:
    """Yield the concepts that co-occur with this one or its spellings: concept, month, number of texts of the month."""
    query = (
        f"SELECT {_ONE}, n.month, sum(n.owners) FROM neighbours n JOIN concepts c ON c.id = n.other_id "
        "WHERE n.concept_id IN (SELECT ?1 UNION ALL SELECT id FROM concepts WHERE same_as = ?1) "
        f"AND {_ONE} <> ?1 GROUP BY 1, 2 ORDER BY 1, 2"
    )
    return select(connection, tuple[int, int, int], query, (concept,))


def claimed_relations(
    connection: Connection, namespace_id: int, hidden: Hidden
) -> Iterator[tuple[int, int, str, float]]:
    """Yield the stated relations between concepts without duplicates: both concepts, type, confidence."""
    shown, parameters = hidden.no_claim("l")
    query = (
        "SELECT min(l.id), coalesce(c.same_as, c.id), coalesce(o.same_as, o.id), l.text, max(l.confidence) "
        "FROM claims l JOIN concepts c ON c.id = l.concept_id JOIN concepts o ON o.id = l.other_id "
        f"WHERE l.namespace_id = ? AND l.kind = 'relation'{shown} GROUP BY 2, 3, 4 ORDER BY 1"
    )
    rows = readable(connection, tuple[int, int, int, str, float], query, (namespace_id, *parameters), table="claims")
    return (row[1:] for row in rows)


def discussed(connection: Connection, namespace_id: int) -> Iterator[tuple[int, int, float]]:
    """Yield the messages that mention concepts of their topic, with the share of the topic's weight."""
    query = (
        "SELECT m.id, t.topic_id, sum(w.weight) / "
        "(SELECT sum(a.weight) FROM topic_concepts a WHERE a.topic_id = t.topic_id) "
        "FROM sessions s CROSS JOIN topic_segments t ON t.session_id = s.id CROSS JOIN messages m "
        "ON m.session_id = s.id AND m.position BETWEEN t.first_position AND t.last_position "
        "CROSS JOIN mentions n ON n.kind = 'message' AND n.owner_id = m.id "
        "JOIN topic_concepts w ON w.topic_id = t.topic_id AND w.concept_id = n.concept_id "
        "WHERE s.namespace_id = ? GROUP BY s.id, t.topic_id, m.id"
    )
    return select(connection, tuple[int, int, float], query, (namespace_id,))


def learned_in_sessions(connection: Connection, namespace_id: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the active memories learned from existing sessions, with the rows of these sessions."""
    query = (
        "SELECT m.id, s.id FROM memories m CROSS JOIN learned_with l ON l.memory_id = m.id AND l.kind = 'session' "
        "JOIN sessions s ON s.namespace_id = m.namespace_id AND s.name = l.name "
        "WHERE m.namespace_id = ? AND m.archived = 0 ORDER BY m.id"
    )
    rows = select(connection, tuple[int, int], query, (namespace_id,))
    for memory_id, found in groupby(rows, key=itemgetter(0)):
        yield memory_id, [session_row for _, session_row in found]


def concepts_of_memory(connection: Connection, memory_id: int) -> set[int]:
    query = (
        f"SELECT {_ONE} FROM mentions m JOIN concepts c ON c.id = m.concept_id "
        "WHERE m.kind = 'memory' AND m.owner_id = ?"
    )
    return set(select(connection, int, query, (memory_id,)))


def messages_mentioning(
    connection: Connection, session_rows: Sequence[int], concepts: Iterable[int]
) -> dict[int, list[int]]:
    """Return the messages of these sessions that mention these concepts, each with the mentioned ones."""
    query = (
        f"SELECT DISTINCT o.id, {_ONE} FROM messages o CROSS JOIN mentions m ON m.kind = 'message' "
        "AND m.owner_id = o.id CROSS JOIN concepts c ON c.id = m.concept_id "
        f"WHERE o.session_id {CHOSEN} AND {_ONE} {CHOSEN} ORDER BY o.id"
    )
    rows = select(connection, tuple[int, int], query, (ids_parameter(session_rows), ids_parameter(concepts)))
    return grouped(rows)


def message_vector(connection: Connection, message_id: int) -> FloatVector | None:
    """Return the vector of the current model; None if the message is not indexed yet."""
    found = connection.execute(
        "SELECT v.vector FROM passages p JOIN vectors v ON v.passage_id = p.id "
        "AND v.model_id = (SELECT value FROM meta WHERE key = ?) WHERE p.kind = 'message' AND p.owner_id = ? "
        "ORDER BY p.ordinal LIMIT 1",
        (MODEL, message_id),
    ).get
    return None if found is None else np.frombuffer(found, dtype=np.float32)
