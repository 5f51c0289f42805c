"""Claims of callers and of a language model about concepts, and the messages that a model has analysed for them.

A claim of a model names its source message and its job. One that an entity of the knowledge graph states names the
entity's memory, and goes with it. A claim of kind `alias` makes its concept another name of
`other_id`; without `other_id`, `text` is another name of the concept. System messages are never analysed, and an
edited message is queued again by `souvenir.store.graph.mentions`. Each function takes a connection inside a
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from souvenir.core.timestamps import to_us
from souvenir.core.types import ClaimedBy, ClaimKind, MessageRole
from souvenir.store.graph import mentions
from souvenir.store.rows import first, grouped, ids_parameter, readable, select
from souvenir.store.sql import Connection, SqlValue


@dataclass(frozen=True, slots=True)
class ClaimDraft:
    """:param text: A name, a description, a kind, or the type of a relation in snake_case.

    :param other_id: The target of a relation, or the concept of which this one is an alias.
    :param memory_id: The entity that states it; `other_memory_id` is the one that its relation leads to.
    :param created_at: When it was stated; None for now.
    """

    kind: ClaimKind
    concept_id: int
    text: str
    made_by: ClaimedBy
    other_id: int | None = None
    confidence: float = 1.0
    message_id: int | None = None
    job_id: str | None = None
    memory_id: int | None = None
    other_memory_id: int | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """:param message: The public id of its source message. :param memory_id: As in `ClaimDraft`.

    :param key: The key of its concept; `other_key` is that of the other one.
    """

    id: int
    kind: ClaimKind
    concept_id: int
    other_id: int | None
    text: str
    confidence: float
    made_by: ClaimedBy
    message: str | None
    job_id: str | None
    created_at: datetime
    memory_id: int | None
    other_memory_id: int | None
    key: str
    other_key: str | None

    @property
    def ends(self) -> tuple[int, int]:
        """The concepts that a relation leads from and to."""
        return self.concept_id, self.concept_id if self.other_id is None else self.other_id

    @property
    def is_direct(self) -> bool:
        """True if a caller stated it about the concept itself, not about an entity."""
        return self.made_by is ClaimedBy.CALLER and self.memory_id is None


_SELECT = (
    "SELECT c.id, c.kind, c.concept_id, c.other_id, c.text, c.confidence, c.made_by, m.uid, c.job_id, c.created_at, "
    "c.memory_id, c.other_memory_id, k.key, o.key FROM claims c JOIN concepts k ON k.id = c.concept_id "
    "LEFT JOIN concepts o ON o.id = c.other_id LEFT JOIN messages m ON m.id = c.message_id"
)


def insert(connection: Connection, namespace_id: int, draft: ClaimDraft, now: datetime) -> Claim:
    """Insert a claim; its concepts must be in the namespace."""
    row = connection.execute(
        "INSERT INTO claims (namespace_id, kind, concept_id, other_id, text, confidence, made_by, message_id, job_id, "
        "created_at, memory_id, other_memory_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            namespace_id,
            draft.kind.value,
            draft.concept_id,
            draft.other_id,
            draft.text,
            draft.confidence,
            draft.made_by.value,
            draft.message_id,
            draft.job_id,
            to_us(draft.created_at or now),
            draft.memory_id,
            draft.other_memory_id,
        ),
    ).get
    if draft.kind is ClaimKind.ALIAS:
        mentions.queue_matching(connection, [draft.concept_id])
    [claim] = _claims(connection, "c.id = ?", row)
    return claim


def of_concepts(connection: Connection, concept_ids: Iterable[int]) -> list[Claim]:
    """Return the claims of any kind about these concepts, oldest first."""
    return _claims(connection, "c.concept_id IN (SELECT value FROM json_each(?))", ids_parameter(concept_ids))


def aliases_of(connection: Connection, concept_ids: Iterable[int]) -> list[Claim]:
    """Return the claims that other concepts are aliases of these, oldest first."""
    chosen = ids_parameter(concept_ids)
    return _claims(connection, "c.other_id IN (SELECT value FROM json_each(?)) AND c.kind = 'alias'", chosen)


def relations(connection: Connection, concept_ids: Iterable[int]) -> list[Claim]:
    """Return the relations from or to these concepts: of callers, then of entities, then of models, newest first."""
    chosen = ids_parameter(concept_ids)
    found = _claims(
        connection,
        "c.id IN (SELECT id FROM claims WHERE concept_id IN (SELECT value FROM json_each(?)) AND kind = 'relation' "
        "UNION SELECT id FROM claims WHERE other_id IN (SELECT value FROM json_each(?)) AND kind = 'relation')",
        chosen,
        chosen,
    )
    found.sort(key=lambda one: (one.created_at, one.id), reverse=True)
    return sorted(found, key=lambda one: (one.made_by is ClaimedBy.MODEL, not one.is_direct))


def of_job(connection: Connection, namespace_id: int, job_id: str) -> list[Claim]:
    """Return a job's remaining claims, oldest first."""
    return _claims(connection, "c.job_id = ? AND c.namespace_id = ?", job_id, namespace_id)


def of_memories(connection: Connection, memory_ids: Iterable[int]) -> list[Claim]:
    """Return the claims that these entities state, and the relations that lead to them."""
    chosen = ids_parameter(memory_ids)
    return _claims(
        connection,
        "c.id IN (SELECT id FROM claims WHERE memory_id IN (SELECT value FROM json_each(?)) "
        "UNION SELECT id FROM claims WHERE other_memory_id IN (SELECT value FROM json_each(?)))",
        chosen,
        chosen,
    )


def of_namespace(connection: Connection, namespace_id: int) -> list[Claim]:
    return _claims(connection, "c.namespace_id = ?", namespace_id)


def delete(connection: Connection, claim_ids: Iterable[int]) -> int:
    """Delete claims; return how many there were."""
    query = "DELETE FROM claims WHERE id IN (SELECT value FROM json_each(?)) RETURNING concept_id, kind = 'alias'"
    rows = list(select(connection, tuple[int, bool], query, (ids_parameter(claim_ids),)))
    mentions.queue_matching(connection, {concept_id for concept_id, is_alias in rows if is_alias})
    return len(rows)


def _claims(connection: Connection, where: str, *parameters: SqlValue) -> list[Claim]:
    return list(readable(connection, Claim, f"{_SELECT} WHERE {where} ORDER BY c.id", parameters, table="claims"))


# --- messages to describe --------------------------------------------------------------------------------------------


MAX_MESSAGES = 400
"""Messages of one session fetched at once, before they are cut to the size of a model call."""


class Undescribed(NamedTuple):
    """A message that a model has not analysed yet."""

    id: int
    position: int
    role: MessageRole
    speaker: str | None
    content: str
    at: datetime


_COLUMNS = (
    "m.id, m.position, m.role, coalesce(m.speaker, CASE m.role WHEN 'user' THEN u.name END), m.content, m.created_at"
)
_WAITS = (
    "m.role <> 'system' AND NOT EXISTS (SELECT 1 FROM described d WHERE d.message_id = m.id) "
    "AND NOT EXISTS (SELECT 1 FROM unread r WHERE r.kind = 'message' AND r.owner_id = m.id)"
)


def following_session(
    connection: Connection,
    namespace_id: int,
    *,
    after: tuple[int, int],
    quiet_since: datetime | None,
    only: str | None = None,
) -> int | None:
    """Return the first session with an undescribed message after this place whose mentions are extracted.

    :param after: A session's row and a position in it.
    :param quiet_since: Of open sessions, only those without a message since then.
    :param only: The name of the only session; `quiet_since` does not apply to it.
    """
    query = (
        "SELECT s.id FROM sessions s WHERE s.namespace_id = ?1 AND s.id >= ?2 "
        "AND (CAST(?5 AS TEXT) IS NULL OR s.name = ?5) AND (CAST(?5 AS TEXT) IS NOT NULL OR s.ended_at IS NOT NULL "
        "OR s.last_message_at <= CAST(?4 AS BIGINT)) AND EXISTS ("
        f"SELECT 1 FROM messages m WHERE m.session_id = s.id AND (s.id > ?2 OR m.position > ?3) AND {_WAITS}) "
        "ORDER BY s.id LIMIT 1"
    )
    return first(
        connection, int, query, (namespace_id, *after, None if quiet_since is None else to_us(quiet_since), only)
    )


def waiting_agents(connection: Connection, *, quiet_since: datetime) -> list[str]:
    """Return the agents with undescribed messages in ended or idle sessions: those that have waited longest first."""
    query = (
        "SELECT n.name FROM agents a JOIN namespaces n ON n.id = a.namespace_id "
        "JOIN sessions s ON s.namespace_id = n.id WHERE (s.ended_at IS NOT NULL OR s.last_message_at <= ?) "
        f"AND EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id AND {_WAITS}) "
        "AND n.id NOT IN (SELECT owner_id FROM removals WHERE kind = 'namespace') "
        "GROUP BY n.name ORDER BY min(s.last_message_at), n.name"
    )
    return list(select(connection, str, query, (to_us(quiet_since),)))


def following_messages(connection: Connection, session_id: int, *, after_position: int) -> list[Undescribed]:
    """Return the undescribed messages of a session after this position, in order."""
    return _messages(
        connection,
        f"m.session_id = ? AND m.position > ? AND {_WAITS} ORDER BY m.position LIMIT ?",
        session_id,
        after_position,
        MAX_MESSAGES,
    )


def before(connection: Connection, session_id: int, position: int, *, limit: int) -> list[Undescribed]:
    """Return the last messages of a session before this position, in order, including described ones."""
    found = _messages(
        connection,
        "m.session_id = ? AND m.position < ? AND m.role <> 'system' ORDER BY m.position DESC LIMIT ?",
        session_id,
        position,
        limit,
    )
    return found[::-1]


def still_undescribed(connection: Connection, namespace_id: int, message_ids: Iterable[int]) -> list[Undescribed]:
    """Return those of these messages that still exist and are undescribed, with their mentions extracted."""
    return _messages(
        connection,
        f"m.namespace_id = ? AND m.id IN (SELECT value FROM json_each(?)) AND {_WAITS} ORDER BY m.id",
        namespace_id,
        ids_parameter(message_ids),
    )


def has_queued_messages(connection: Connection, namespace_id: int) -> bool:
    """Return whether messages are still queued for the extraction of mentions."""
    query = "SELECT EXISTS (SELECT 1 FROM unread WHERE namespace_id = ? AND kind = 'message')"
    return bool(connection.execute(query, (namespace_id,)).get)


def names_in(connection: Connection, session_id: int) -> list[tuple[str, str]]:
    """Return key and form of each concept mentioned in a session, the most mentioned first."""
    query = (
        "SELECT c.key, n.form FROM messages m JOIN mentions n ON n.kind = 'message' AND n.owner_id = m.id "
        "JOIN concepts c ON c.id = n.concept_id WHERE m.session_id = ? GROUP BY c.key, n.form "
        "ORDER BY count(*) DESC, c.key, n.form"
    )
    return list(select(connection, tuple[str, str], query, (session_id,)))


def keys_by_message(connection: Connection, message_ids: Iterable[int]) -> dict[int, list[str]]:
    """Return the keys of the concepts that each of these messages mentions."""
    query = (
        "SELECT n.owner_id, c.key FROM mentions n JOIN concepts c ON c.id = n.concept_id "
        "WHERE n.kind = 'message' AND n.owner_id IN (SELECT value FROM json_each(?))"
    )
    return grouped(select(connection, tuple[int, str], query, (ids_parameter(message_ids),)))


def mark(connection: Connection, namespace_id: int, message_ids: Iterable[int], job_id: str) -> None:
    """Mark messages as described."""
    connection.executemany(
        "INSERT INTO described (message_id, namespace_id, job_id) VALUES (?, ?, ?) "
        "ON CONFLICT (message_id) DO UPDATE SET namespace_id = excluded.namespace_id, job_id = excluded.job_id",
        [(id_, namespace_id, job_id) for id_ in message_ids],
    )


def unmark(connection: Connection, namespace_id: int, job_id: str) -> int:
    """Queue the messages that a job described again; return how many there are."""
    connection.execute("DELETE FROM described WHERE job_id = ? AND namespace_id = ?", (job_id, namespace_id))
    return connection.changes()


def _messages(connection: Connection, rest: str, *parameters: SqlValue) -> list[Undescribed]:
    query = f"SELECT {_COLUMNS} FROM messages m LEFT JOIN users u ON u.id = m.user_id WHERE {rest}"
    return list(select(connection, Undescribed, query, parameters))
