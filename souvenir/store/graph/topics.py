"""Topics: segments of sessions, their characteristic concepts and excerpts, and the queue of sessions to assign again.

A segment is a run of messages of a session, and belongs to one topic; a topic without a segment is deleted. The primary
topic of a session is the one with most of its messages. Names and summaries are places in messages, not texts, so that
a topic never holds what was deleted or edited. Each function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from souvenir.core.timestamps import to_us
from souvenir.core.types import ConceptKind, MessageRole
from souvenir.store.graph import mentions
from souvenir.store.graph.claims import SHOWN_OF_TOPIC
from souvenir.store.rows import CHOSEN, first, grouped, ids_parameter, only, readable, select
from souvenir.store.sql import Connection
from souvenir.store.vectors import MODEL

_VECTOR = (
    "(SELECT v.vector FROM passages p JOIN vectors v ON v.passage_id = p.id "
    f"AND v.model_id = (SELECT value FROM meta WHERE key = '{MODEL}') "
    "WHERE p.kind = 'message' AND p.owner_id = m.id AND p.ordinal = 0)"
)

_OF_NAMESPACE = "topic_id IN (SELECT id FROM topics WHERE namespace_id = ?)"

SESSIONS_AT_ONCE = 200
"""Sessions whose mentions are read with one statement."""

READ_CHARS = 2_000
"""Characters of a message whose terms tell its subject: about as many as its first vector covers."""


class SegmentPlace(NamedTuple):
    """Where a segment begins: a session and the position of a message."""

    session_id: int
    first: int


class TopicSegment(NamedTuple):
    """The position of the last message, and what is shown of a segment.

    :param relevance: Its similarity to the topic, 0 to 1.
    """

    last: int
    messages: int
    first_at_us: int
    last_at_us: int
    relevance: float


class Excerpt(NamedTuple):
    """A part of a message's text, by characters."""

    message_id: int
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class TopicContents:
    """A topic: its segments, and the weights of characteristic concepts by id."""

    segments: Mapping[SegmentPlace, TopicSegment]
    terms: Mapping[int, float]

    @property
    def extent(self) -> frozenset[tuple[SegmentPlace, int]]:
        """The places of its segments, with the positions of their last messages."""
        return frozenset((place, segment.last) for place, segment in self.segments.items())


@dataclass(frozen=True, slots=True)
class Topic:
    """:param name: The stated name, if any; `summary` likewise. :param sessions: Those with a segment of it."""

    id: int
    name: str | None
    summary: str | None
    named_by: str | None
    sessions: int
    messages: int
    first_at: datetime
    last_at: datetime


class AssignedSession(NamedTuple):
    """A session of a topic, by its public name.

    :param messages: How many of its messages belong to the topic.
    :param is_primary: Whether no other topic has more of them.
    """

    name: str
    title: str | None
    relevance: float
    is_primary: bool
    messages: int
    started_at: datetime
    last_message_at: datetime | None


class DiscussingMessage(NamedTuple):
    """A message, and the share, by weight, of its topic's characteristic concepts that it mentions."""

    message_id: int
    relevance: float


class TopicMessage(NamedTuple):
    """A message of a topic that may be quoted in its name and summary."""

    id: int
    role: MessageRole
    content: str
    vector: bytes | None


class Form(NamedTuple):
    """A concept as a message mentions it."""

    concept_id: int
    text: str
    kind: ConceptKind


@dataclass(slots=True)
class Texts:
    """The excerpts of a topic.

    :param name: Parts of its name, best first. :param summary: Sentences, in order.
    """

    name: list[str] = field(default_factory=list)
    summary: list[str] = field(default_factory=list)


# --- the queue of sessions to assign -------------------------------------------------------------------------------


def namespaces(connection: Connection) -> list[tuple[int, str]]:
    """Return ids and names of the namespaces with queued sessions and an empty mention queue, unless being removed."""
    return list(
        select(
            connection,
            tuple[int, str],
            "SELECT id, name FROM namespaces n WHERE EXISTS (SELECT 1 FROM unsorted u WHERE u.namespace_id = n.id) "
            "AND NOT EXISTS (SELECT 1 FROM unread u WHERE u.namespace_id = n.id) "
            "AND id NOT IN (SELECT owner_id FROM removals WHERE kind = 'namespace') ORDER BY id",
        )
    )


def unsorted(connection: Connection, namespace_id: int) -> dict[int, int]:
    """Return the queued sessions, each with its place in the queue: a session that changes again gets a new place."""
    return dict(
        select(
            connection, tuple[int, int], "SELECT session_id, id FROM unsorted WHERE namespace_id = ?", (namespace_id,)
        )
    )


def take(connection: Connection, places: Iterable[int]) -> None:
    connection.execute(f"DELETE FROM unsorted WHERE id {CHOSEN}", (ids_parameter(places),))


def session_ids(connection: Connection, namespace_id: int) -> list[int]:
    return list(select(connection, int, "SELECT id FROM sessions WHERE namespace_id = ? ORDER BY id", (namespace_id,)))


class Said(NamedTuple):
    """A message as the assignment of topics reads it.

    :param beginning: Its first `READ_CHARS` characters.
    :param concepts: The ids of the concepts that it mentions, separated by commas.
    """

    id: int
    session_id: int
    position: int
    is_answer: bool
    size_bytes: int
    beginning: str
    at_us: int
    vector: bytes | None
    concepts: str | None


def said_in(connection: Connection, session_ids: Sequence[int]) -> Iterator[Said]:
    """Yield the readable messages of these sessions, in the order of the sessions and of their messages."""
    for begin in range(0, len(session_ids), SESSIONS_AT_ONCE):
        yield from readable(
            connection,
            Said,
            "SELECT m.id, m.session_id, m.position, CASE WHEN m.role = 'user' THEN 0 ELSE 1 END, "
            f"octet_length(m.content), substr(m.content, 1, {READ_CHARS}), m.created_at, {_VECTOR}, "
            "(SELECT group_concat(CAST(n.concept_id AS TEXT) ORDER BY n.concept_id) FROM mentions n "
            "WHERE n.kind = 'message' AND n.owner_id = m.id) "
            f"FROM messages m WHERE m.session_id {CHOSEN} ORDER BY m.session_id, m.position",
            (ids_parameter(session_ids[begin : begin + SESSIONS_AT_ONCE]),),
            table="messages",
        )


def messages_of(connection: Connection, place: SegmentPlace, last: int) -> list[TopicMessage]:
    """Return the messages of a segment, given the position of the last one."""
    rows = readable(
        connection,
        TopicMessage,
        f"SELECT m.id, m.role, m.content, {_VECTOR} FROM messages m WHERE m.session_id = ? "
        "AND m.position BETWEEN ? AND ? ORDER BY m.position",
        (*place, last),
        table="messages",
    )
    return list(rows)


def forms(connection: Connection, message_ids: Iterable[int]) -> dict[int, list[Form]]:
    """Return the concepts that each message mentions."""
    rows = select(
        connection,
        tuple[int, Form],
        "SELECT owner_id, concept_id, form, concept_kind FROM mentions "
        f"WHERE kind = 'message' AND owner_id {CHOSEN} ORDER BY owner_id, concept_id",
        (ids_parameter(message_ids),),
    )
    return grouped(rows)


def after_session_deletion(connection: Connection, namespace_id: int) -> None:
    """Delete topics without sessions, and queue a session: inverse frequencies changed for all other sessions."""
    remove_empty(connection, namespace_id)
    mentions.requeue_sessions(connection, "id = (SELECT max(id) FROM sessions WHERE namespace_id = ?)", namespace_id)


# --- assigned topics -----------------------------------------------------------------------------------------------


def stored(connection: Connection, namespace_id: int) -> dict[int, TopicContents]:
    segments: defaultdict[int, dict[SegmentPlace, TopicSegment]] = defaultdict(dict)
    rows = select(
        connection,
        tuple[int, SegmentPlace, TopicSegment],
        "SELECT topic_id, session_id, first_position, last_position, messages, first_at, last_at, relevance "
        f"FROM topic_segments WHERE {_OF_NAMESPACE}",
        (namespace_id,),
    )
    for topic, place, segment in rows:
        segments[topic][place] = segment
    terms: defaultdict[int, dict[int, float]] = defaultdict(dict)
    weights = select(
        connection,
        tuple[int, int, float],
        f"SELECT topic_id, concept_id, weight FROM topic_concepts WHERE {_OF_NAMESPACE}",
        (namespace_id,),
    )
    for topic, concept, weight in weights:
        terms[topic][concept] = weight
    ids = select(connection, int, "SELECT id FROM topics WHERE namespace_id = ?", (namespace_id,))
    return {topic: TopicContents(segments[topic], terms[topic]) for topic in ids}


def named_ids(connection: Connection, namespace_id: int) -> set[int]:
    """Return the topics with a stated name or summary."""
    return set(
        select(
            connection,
            int,
            "SELECT id FROM topics WHERE namespace_id = ? AND (name IS NOT NULL OR summary IS NOT NULL)",
            (namespace_id,),
        )
    )


def insert(connection: Connection, namespace_id: int, now: datetime) -> int:
    query = "INSERT INTO topics (namespace_id, created_at) VALUES (?, ?) RETURNING id"
    return only(connection, int, query, (namespace_id, to_us(now)))


def remove_empty(connection: Connection, namespace_id: int) -> None:
    connection.execute(
        "DELETE FROM topics WHERE namespace_id = ? AND NOT EXISTS "
        "(SELECT 1 FROM topic_segments s WHERE s.topic_id = topics.id)",
        (namespace_id,),
    )


def remove(connection: Connection, ids: Iterable[int]) -> None:
    connection.execute(f"DELETE FROM topics WHERE id {CHOSEN}", (ids_parameter(ids),))


def remove_segments(connection: Connection, places: Iterable[SegmentPlace]) -> None:
    query = "DELETE FROM topic_segments WHERE session_id = ? AND first_position = ?"
    connection.executemany(query, list(places))


def change(connection: Connection, topic_id: int, before: TopicContents, after: TopicContents) -> None:
    """Write the differences, without removed segments; sessions and concepts deleted meanwhile are skipped."""
    new = [place for place, segment in after.segments.items() if before.segments.get(place) != segment]
    connection.executemany(
        "INSERT INTO topic_segments (session_id, first_position, last_position, topic_id, messages, first_at, last_at, "
        "relevance) SELECT id, ?, ?, ?, ?, ?, ?, ? FROM sessions WHERE id = ? ON CONFLICT (session_id, first_position) "
        "DO UPDATE SET last_position = excluded.last_position, topic_id = excluded.topic_id, "
        "messages = excluded.messages, first_at = excluded.first_at, last_at = excluded.last_at, "
        "relevance = excluded.relevance",
        [(one.first, after.segments[one].last, topic_id, *after.segments[one][1:], one.session_id) for one in new],
    )
    unsaid = [(topic_id, id_) for id_ in before.terms.keys() - after.terms.keys()]
    connection.executemany("DELETE FROM topic_concepts WHERE topic_id = ? AND concept_id = ?", unsaid)
    connection.executemany(
        "INSERT INTO topic_concepts (concept_id, topic_id, weight) SELECT id, ?, ? FROM concepts WHERE id = ? "
        "ON CONFLICT (topic_id, concept_id) DO UPDATE SET weight = excluded.weight",
        [(topic_id, weight, id_) for id_, weight in after.terms.items() if before.terms.get(id_) != weight],
    )


# --- topics as shown to callers ------------------------------------------------------------------------------------

_SELECT = (
    "SELECT t.id, t.name, t.summary, t.named_by, count(DISTINCT o.session_id), sum(o.messages), min(o.first_at), "
    "max(o.last_at) FROM topics t JOIN topic_segments o ON o.topic_id = t.id"
)

_HAS_NAME = (
    "(t.name IS NOT NULL OR EXISTS (SELECT 1 FROM topic_claims c WHERE c.topic_id = t.id AND c.kind = 'topic_name' "
    f"AND {SHOWN_OF_TOPIC}) OR EXISTS (SELECT 1 FROM topic_sentences e WHERE e.topic_id = t.id AND e.ordinal < 0 "
    f"AND NOT e.message_id {CHOSEN}))"
)

_OF_SESSIONS = (
    "SELECT session_id, topic_id, sum(messages) AS messages, max(relevance) AS relevance, CASE WHEN row_number() OVER "
    "(PARTITION BY session_id ORDER BY sum(messages) DESC, min(first_position)) = 1 THEN 1 ELSE 0 END AS is_primary "
    "FROM topic_segments WHERE session_id IN ({}) GROUP BY session_id, topic_id"
)
"""The topics of chosen sessions."""


def page(
    connection: Connection, namespace_id: int, *, hidden: Iterable[int] | None, offset: int, limit: int
) -> tuple[list[Topic], int]:
    """Return topics of the most sessions first, ties by their last message; and the total.

    :param hidden: Messages that are not quoted; topics without another name are left out. None: none is left out.
    """
    chosen, parameters = "t.namespace_id = ?", (namespace_id, *(() if hidden is None else (ids_parameter(hidden),) * 2))
    if hidden is not None:
        chosen += f" AND {_HAS_NAME}"
    rows = readable(
        connection,
        Topic,
        f"{_SELECT} WHERE {chosen} GROUP BY t.id ORDER BY 5 DESC, 8 DESC, t.id LIMIT ? OFFSET ?",
        (*parameters, limit, offset),
        table="topics",
    )
    total = connection.execute(f"SELECT count(*) FROM topics t WHERE {chosen}", parameters).get
    return list(rows), int(total)


def find(connection: Connection, namespace_id: int, topic_id: int) -> Topic | None:
    return first(
        connection, Topic, f"{_SELECT} WHERE t.namespace_id = ? AND t.id = ? GROUP BY t.id", (namespace_id, topic_id)
    )


def is_hidden(connection: Connection, topic_id: int, hidden: Set[int]) -> bool:
    """Return whether all messages of a topic are hidden."""
    query = (
        "SELECT m.id FROM topic_segments o JOIN messages m ON m.session_id = o.session_id AND m.position BETWEEN "
        f"o.first_position AND o.last_position WHERE o.topic_id = ? AND NOT m.id {CHOSEN} LIMIT 1"
    )
    return bool(hidden) and first(connection, int, query, (topic_id, ids_parameter(hidden))) is None


def terms(connection: Connection, topic_ids: Iterable[int]) -> dict[int, list[tuple[int, float]]]:
    """Return the characteristic concepts of each topic with their weights, heaviest first."""
    rows = select(
        connection,
        tuple[int, int, float],
        f"SELECT o.topic_id, o.concept_id, o.weight FROM topic_concepts o JOIN concepts c ON c.id = o.concept_id "
        f"WHERE o.topic_id {CHOSEN} ORDER BY o.topic_id, o.weight DESC, c.key",
        (ids_parameter(topic_ids),),
    )
    return grouped((topic, (concept, weight)) for topic, concept, weight in rows)


def texts(connection: Connection, topic_ids: Iterable[int], hidden: Iterable[int]) -> dict[int, Texts]:
    """Return the excerpts of each topic that has some.

    :param hidden: Messages that are not quoted.
    """
    rows = select(
        connection,
        tuple[int, int, str],
        "SELECT s.topic_id, s.ordinal, substr(m.content, CAST(s.start + 1 AS INTEGER), CAST(s.length AS INTEGER)) "
        "FROM topic_sentences s JOIN messages m ON m.id = s.message_id "
        f"WHERE s.topic_id {CHOSEN} AND NOT s.message_id {CHOSEN} ORDER BY s.topic_id, s.ordinal",
        (ids_parameter(topic_ids), ids_parameter(hidden)),
    )
    found: defaultdict[int, Texts] = defaultdict(Texts)
    for topic, ordinal, text in rows:
        (found[topic].name if ordinal < 0 else found[topic].summary).append(" ".join(text.split()))
    return found


def put_texts(connection: Connection, topic_id: int, name: Sequence[Excerpt], summary: Sequence[Excerpt]) -> None:
    """Replace the excerpts of a topic; those of its name have negative ordinals.

    Messages that were deleted meanwhile are skipped.
    """
    connection.execute("DELETE FROM topic_sentences WHERE topic_id = ?", (topic_id,))
    connection.executemany(
        "INSERT INTO topic_sentences (topic_id, ordinal, message_id, start, length) "
        "SELECT ?, ?, id, ?, ? FROM messages WHERE id = ?",
        [
            (topic_id, ordinal, one.start, one.length, one.message_id)
            for ordinal, one in enumerate([*name, *summary], -len(name))
        ],
    )


def sessions(connection: Connection, topic_id: int, *, limit: int) -> list[AssignedSession]:
    """Return the sessions whose primary topic it is, then others; most relevant first."""
    of_topic = _OF_SESSIONS.format("SELECT session_id FROM topic_segments WHERE topic_id = ?")
    rows = readable(
        connection,
        tuple[int, AssignedSession],
        "SELECT s.id, s.name, s.title, o.relevance, o.is_primary, o.messages, s.started_at, s.last_message_at "
        f"FROM ({of_topic}) o JOIN sessions s ON s.id = o.session_id "
        "WHERE o.topic_id = ? ORDER BY o.is_primary DESC, o.relevance DESC, s.started_at DESC LIMIT ?",
        (topic_id, topic_id, limit),
        table="sessions",
    )
    return [session for _, session in rows]


def of_sessions(connection: Connection, namespace_id: int) -> Iterator[tuple[int, int, bool]]:
    """Yield the sessions of a namespace with their topics, and whether it is the primary one."""
    every = _OF_SESSIONS.format("SELECT id FROM sessions WHERE namespace_id = ?")
    query = f"SELECT session_id, topic_id, is_primary FROM ({every}) o ORDER BY session_id, topic_id"
    return select(connection, tuple[int, int, bool], query, (namespace_id,))


def discussing(
    connection: Connection, topic_id: int, hidden: Set[int], *, looked_at: int, limit: int
) -> list[DiscussingMessage]:
    """Return the messages of its segments that mention most of its characteristic concepts, ties newest first.

    :param hidden: Messages that are left out.
    :param looked_at: The number of latest messages to consider for each concept.
    """
    of_topic = terms(connection, [topic_id]).get(topic_id, [])
    total = sum(weight for _, weight in of_topic)
    said: defaultdict[int, float] = defaultdict(float)
    for concept, weight in of_topic:
        rows = select(
            connection,
            int,
            "SELECT n.owner_id FROM (SELECT owner_id FROM mentions WHERE concept_id = ? AND kind = 'message' "
            "ORDER BY at DESC, owner_id DESC LIMIT ?) n JOIN messages m ON m.id = n.owner_id JOIN topic_segments o "
            "ON o.session_id = m.session_id AND m.position BETWEEN o.first_position AND o.last_position "
            "AND o.topic_id = ?",
            (concept, looked_at, topic_id),
        )
        for message in rows:
            if message not in hidden:
                said[message] += weight
    best = sorted(said, key=lambda message: (-round(said[message], 6), -message))[:limit]
    return [DiscussingMessage(message, min(said[message] / total, 1.0)) for message in best]


def describe(connection: Connection, topic_id: int, name: str | None, summary: str | None) -> None:
    """Set the name and summary that a caller states; without either, it is named by its messages again."""
    named_by = "caller" if name is not None or summary is not None else None
    connection.execute(
        "UPDATE topics SET name = ?, summary = ?, named_by = ? WHERE id = ?", (name, summary, named_by, topic_id)
    )
