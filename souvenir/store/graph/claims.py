"""Claims of callers and of a language model: of both about concepts, of models also the names and summaries of topics.

A claim of a model names its source message and its job. One that an entity of the knowledge graph states names the
entity's memory, and goes with it. A claim of kind `alias` makes its concept another name of
`other_id`; without `other_id`, `text` is another name of the concept.

A claim about a topic was written from all messages between two positions of a session, so the schema deletes it when
any of these is edited or deleted. It is shown while its message belongs to the topic. Each function takes a connection
inside a transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from souvenir.core.timestamps import to_us
from souvenir.core.types import ClaimedBy, ClaimKind, TopicClaimKind
from souvenir.store.graph import mentions
from souvenir.store.privacy import NOTHING_HIDDEN, Hidden
from souvenir.store.rows import CHOSEN, ids_parameter, readable, select
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


def insert(connection: Connection, namespace_id: int, draft: ClaimDraft, now: datetime) -> None:
    """Insert a claim; its concepts must be in the namespace."""
    connection.execute(
        "INSERT INTO claims (namespace_id, kind, concept_id, other_id, text, confidence, made_by, message_id, job_id, "
        "created_at, memory_id, other_memory_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(namespace_id, draft.kind.value, draft.concept_id, draft.other_id, draft.text, draft.confidence),
            *(draft.made_by.value, draft.message_id, draft.job_id, to_us(draft.created_at or now)),
            *(draft.memory_id, draft.other_memory_id),
        ),
    )
    if draft.kind is ClaimKind.ALIAS:
        mentions.queue_matching(connection, [draft.concept_id])


def of_concepts(connection: Connection, concept_ids: Iterable[int], hidden: Hidden = NOTHING_HIDDEN) -> list[Claim]:
    """Return the claims of any kind about these concepts, oldest first.

    :param hidden: Texts whose claims, other than names, are left out.
    """
    shown, parameters = hidden.no_claim("c")
    return _claims(connection, f"c.concept_id {CHOSEN}{shown}", ids_parameter(concept_ids), *parameters)


def aliases_of(connection: Connection, concept_ids: Iterable[int]) -> list[Claim]:
    """Return the claims that other concepts are aliases of these, oldest first."""
    return _claims(connection, f"c.other_id {CHOSEN} AND c.kind = 'alias'", ids_parameter(concept_ids))


def relations(connection: Connection, concept_ids: Iterable[int], hidden: Hidden) -> list[Claim]:
    """Return the relations from or to these concepts: of callers, then of entities, then of models, newest first.

    :param hidden: Texts whose relations are left out.
    """
    shown, parameters = hidden.no_claim("c")
    chosen = ids_parameter(concept_ids)
    of_relation = "SELECT id FROM claims WHERE kind = 'relation' AND"
    where = f"c.id IN ({of_relation} concept_id {CHOSEN} UNION {of_relation} other_id {CHOSEN}){shown}"
    found = _claims(connection, where, chosen, chosen, *parameters)
    found.sort(key=lambda one: (one.created_at, one.id), reverse=True)
    return sorted(found, key=lambda one: (one.made_by is ClaimedBy.MODEL, not one.is_direct))


def of_job(connection: Connection, namespace_id: int, job_id: str, hidden: Hidden) -> list[Claim]:
    """Return a job's remaining claims, oldest first.

    :param hidden: Texts whose claims, other than names, are left out.
    """
    shown, parameters = hidden.no_claim("c")
    return _claims(connection, f"c.job_id = ? AND c.namespace_id = ?{shown}", job_id, namespace_id, *parameters)


def of_memories(connection: Connection, memory_ids: Iterable[int]) -> list[Claim]:
    """Return the claims that these entities state, and the relations that lead to them."""
    chosen = ids_parameter(memory_ids)
    either = (
        f"SELECT id FROM claims WHERE memory_id {CHOSEN} UNION SELECT id FROM claims WHERE other_memory_id {CHOSEN}"
    )
    return _claims(connection, f"c.id IN ({either})", chosen, chosen)


def of_namespace(connection: Connection, namespace_id: int) -> list[Claim]:
    return _claims(connection, "c.namespace_id = ?", namespace_id)


def delete(connection: Connection, claim_ids: Iterable[int]) -> None:
    """Delete claims; concepts that were aliases are matched again."""
    query = f"DELETE FROM claims WHERE id {CHOSEN} RETURNING concept_id, kind = 'alias'"
    rows = list(select(connection, tuple[int, bool], query, (ids_parameter(claim_ids),)))
    mentions.queue_matching(connection, {concept_id for concept_id, is_alias in rows if is_alias})


def _claims(connection: Connection, where: str, *parameters: SqlValue) -> list[Claim]:
    return list(readable(connection, Claim, f"{_SELECT} WHERE {where} ORDER BY c.id", parameters, table="claims"))


# --- names and summaries of topics -----------------------------------------------------------------------------------


class MessageRange(NamedTuple):
    """The messages of a session between two positions, both included."""

    session_id: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class TopicClaimDraft:
    """A name or a summary of a topic by a language model.

    :param written_from: The messages that the model saw. :param digest: Digest of their texts.
    """

    kind: TopicClaimKind
    topic_id: int
    text: str
    message_id: int
    written_from: MessageRange
    digest: str


@dataclass(frozen=True, slots=True)
class TopicClaim:
    """:param message: The public id of the message that supports it."""

    id: int
    topic_id: int
    kind: TopicClaimKind
    text: str
    message: str
    created_at: datetime


def insert_for_topic(
    connection: Connection, namespace_id: int, draft: TopicClaimDraft, *, job_id: str, now: datetime
) -> bool:
    """Insert a claim, unless its topic no longer exists; return whether it does."""
    connection.execute(
        "INSERT INTO topic_claims (namespace_id, topic_id, kind, text, message_id, session_id, first_position, "
        "last_position, job_id, created_at) SELECT namespace_id, id, ?, ?, ?, ?, ?, ?, ?, ? FROM topics "
        "WHERE id = ? AND namespace_id = ?",
        (
            *(draft.kind.value, draft.text, draft.message_id, *draft.written_from, job_id, to_us(now)),
            *(draft.topic_id, namespace_id),
        ),
    )
    return connection.changes() > 0


_OF_NO_HIDDEN = (
    "NOT EXISTS (SELECT 1 FROM messages h WHERE h.session_id = c.session_id "
    f"AND h.position BETWEEN c.first_position AND c.last_position AND h.id {CHOSEN})"
)
"""The condition that no source message of a claim about a topic is hidden."""

SHOWN_OF_TOPIC = (
    "EXISTS (SELECT 1 FROM messages q JOIN topic_segments s ON s.session_id = q.session_id AND q.position "
    "BETWEEN s.first_position AND s.last_position WHERE q.id = c.message_id AND s.topic_id = c.topic_id) "
    f"AND {_OF_NO_HIDDEN}"
)
"""The condition that a claim `c` about a topic is shown; its parameter is the hidden messages."""


def current_of_topics(
    connection: Connection, topic_ids: Iterable[int], hidden: Iterable[int]
) -> dict[int, dict[TopicClaimKind, str]]:
    """Return the latest claims of topics by kind.

    :param hidden: Messages; claims that were written from one of them are left out.
    """
    query = (
        f"SELECT c.topic_id, c.kind, c.text FROM topic_claims c WHERE c.topic_id {CHOSEN} AND {SHOWN_OF_TOPIC} "
        "ORDER BY c.id"
    )
    rows = select(connection, tuple[int, TopicClaimKind, str], query, (ids_parameter(topic_ids), ids_parameter(hidden)))
    found: defaultdict[int, dict[TopicClaimKind, str]] = defaultdict(dict)
    for topic_id, kind, text in rows:
        found[topic_id][kind] = text
    return found


def topic_claims_of_job(
    connection: Connection, namespace_id: int, job_id: str, hidden: Iterable[int]
) -> list[TopicClaim]:
    """Return a job's remaining claims, oldest first.

    :param hidden: Messages; claims that were written from one of them are left out.
    """
    query = (
        "SELECT c.id, c.topic_id, c.kind, c.text, m.uid, c.created_at FROM topic_claims c "
        f"JOIN messages m ON m.id = c.message_id WHERE c.namespace_id = ? AND c.job_id = ? AND {_OF_NO_HIDDEN} "
        "ORDER BY c.id"
    )
    parameters = namespace_id, job_id, ids_parameter(hidden)
    rows = readable(connection, TopicClaim, query, parameters, table="topic_claims")
    return list(rows)


def delete_topic_claims_of_job(connection: Connection, namespace_id: int, job_id: str) -> int:
    """Delete the claims of a job; return how many there were."""
    connection.execute("DELETE FROM topic_claims WHERE namespace_id = ? AND job_id = ?", (namespace_id, job_id))
    return connection.changes()
