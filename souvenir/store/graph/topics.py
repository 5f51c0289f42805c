"""Topics: their sessions, their characteristic concepts, and the queue of sessions to assign again.

A topic holds each of its sessions once: primary ones (`is_primary`) and related ones. A topic without a primary session
is deleted. Each function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from souvenir.core.timestamps import to_us
from souvenir.store.graph import mentions
from souvenir.store.rows import first, ids_parameter, only, readable, select
from souvenir.store.sql import Connection

_CHOSEN = "IN (SELECT value FROM json_each(?))"

_OF_NAMESPACE = "topic_id IN (SELECT id FROM topics WHERE namespace_id = ?)"

SESSIONS_AT_ONCE = 200
"""Sessions whose mentions are read with one statement."""


class SessionRelevance(NamedTuple):
    """The relevance of a session to a topic, 0 to 1, and whether the topic is its primary one."""

    relevance: float
    is_primary: bool


@dataclass(frozen=True, slots=True)
class TopicContents:
    """A topic: its primary and related sessions by id, and the weights of characteristic concepts by id."""

    sessions: Mapping[int, SessionRelevance]
    terms: Mapping[int, float]

    @property
    def own(self) -> frozenset[int]:
        """The sessions whose primary topic it is."""
        return frozenset(id_ for id_, about in self.sessions.items() if about.is_primary)


@dataclass(frozen=True, slots=True)
class Topic:
    """:param name: The stated name, if any. :param sessions: Primary sessions; `messages` are theirs."""

    id: int
    name: str | None
    summary: str | None
    named_by: str | None
    sessions: int
    messages: int
    first_at: datetime
    last_at: datetime
    created_at: datetime
    updated_at: datetime


class AssignedSession(NamedTuple):
    """A session of a topic, by its public name."""

    name: str
    title: str | None
    about: SessionRelevance
    messages: int
    started_at: datetime
    last_message_at: datetime | None


class DiscussingMessage(NamedTuple):
    """A message, and the share, by weight, of its topic's characteristic concepts that it mentions."""

    message_id: int
    relevance: float


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
    connection.execute(f"DELETE FROM unsorted WHERE id {_CHOSEN}", (ids_parameter(places),))


def session_ids(connection: Connection, namespace_id: int) -> list[int]:
    return list(select(connection, int, "SELECT id FROM sessions WHERE namespace_id = ? ORDER BY id", (namespace_id,)))


def mentioned_in(connection: Connection, session_ids: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield the concept ids mentioned in each session, one per mention, separated by commas.

    Dates and quantities are excluded, since they do not characterise a subject.
    """
    for begin in range(0, len(session_ids), SESSIONS_AT_ONCE):
        rows = select(
            connection,
            tuple[int, str],
            "SELECT m.session_id, group_concat(CAST(n.concept_id AS TEXT) ORDER BY m.id, n.concept_id) "
            "FROM messages m CROSS JOIN mentions n "
            "ON n.kind = 'message' AND n.owner_id = m.id AND n.concept_kind NOT IN ('date', 'quantity') "
            f"WHERE m.session_id {_CHOSEN} GROUP BY m.session_id",
            (ids_parameter(session_ids[begin : begin + SESSIONS_AT_ONCE]),),
        )
        yield from rows


def after_session_deletion(connection: Connection, namespace_id: int) -> None:
    """Delete topics without sessions, and queue a session: inverse frequencies changed for all other sessions."""
    remove_empty(connection, namespace_id)
    mentions.requeue_sessions(connection, "id = (SELECT max(id) FROM sessions WHERE namespace_id = ?)", namespace_id)


# --- assigned topics -----------------------------------------------------------------------------------------------


def stored(connection: Connection, namespace_id: int) -> dict[int, TopicContents]:
    sessions: defaultdict[int, dict[int, SessionRelevance]] = defaultdict(dict)
    rows = select(
        connection,
        tuple[int, int, SessionRelevance],
        f"SELECT topic_id, session_id, relevance, is_primary FROM session_topics WHERE {_OF_NAMESPACE}",
        (namespace_id,),
    )
    for topic, session, about in rows:
        sessions[topic][session] = about
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
    return {topic: TopicContents(sessions[topic], terms[topic]) for topic in ids}


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
    query = "INSERT INTO topics (namespace_id, created_at, updated_at) VALUES (?, ?, ?) RETURNING id"
    return only(connection, int, query, (namespace_id, to_us(now), to_us(now)))


def remove_empty(connection: Connection, namespace_id: int) -> None:
    connection.execute(
        "DELETE FROM topics WHERE namespace_id = ? AND NOT EXISTS "
        "(SELECT 1 FROM session_topics s WHERE s.topic_id = topics.id AND s.is_primary = 1)",
        (namespace_id,),
    )


def remove(connection: Connection, ids: Iterable[int]) -> None:
    connection.execute(f"DELETE FROM topics WHERE id {_CHOSEN}", (ids_parameter(ids),))


def change(connection: Connection, topic_id: int, before: TopicContents, after: TopicContents, now: datetime) -> None:
    """Write the differences; sessions and concepts that were deleted meanwhile are skipped."""
    gone = [(topic_id, id_) for id_ in before.sessions.keys() - after.sessions.keys()]
    connection.executemany("DELETE FROM session_topics WHERE topic_id = ? AND session_id = ?", gone)
    connection.executemany(
        "INSERT INTO session_topics (session_id, topic_id, relevance, is_primary) SELECT id, ?, ?, ? FROM sessions "
        "WHERE id = ? ON CONFLICT (session_id, topic_id) "
        "DO UPDATE SET relevance = excluded.relevance, is_primary = excluded.is_primary",
        [(topic_id, *about, id_) for id_, about in after.sessions.items() if before.sessions.get(id_) != about],
    )
    unsaid = [(topic_id, id_) for id_ in before.terms.keys() - after.terms.keys()]
    connection.executemany("DELETE FROM topic_concepts WHERE topic_id = ? AND concept_id = ?", unsaid)
    connection.executemany(
        "INSERT INTO topic_concepts (concept_id, topic_id, weight) SELECT id, ?, ? FROM concepts WHERE id = ? "
        "ON CONFLICT (topic_id, concept_id) DO UPDATE SET weight = excluded.weight",
        [(topic_id, weight, id_) for id_, weight in after.terms.items() if before.terms.get(id_) != weight],
    )
    if before.own != after.own:
        connection.execute("UPDATE topics SET updated_at = ? WHERE id = ?", (to_us(now), topic_id))


# --- topics as shown to callers ------------------------------------------------------------------------------------

_SELECT = (
    "SELECT t.id, t.name, t.summary, t.named_by, count(*), "
    "sum((SELECT count(*) FROM messages WHERE session_id = s.id)), "
    "min(s.started_at), max(coalesce(s.last_message_at, s.started_at)), t.created_at, t.updated_at FROM topics t "
    "JOIN session_topics o ON o.topic_id = t.id AND o.is_primary = 1 JOIN sessions s ON s.id = o.session_id"
)


def page(connection: Connection, namespace_id: int, *, offset: int, limit: int) -> tuple[list[Topic], int]:
    """Return topics with the most sessions first, ties by their last message; and the total."""
    rows = readable(
        connection,
        Topic,
        f"{_SELECT} WHERE t.id IN (SELECT t.id FROM topics t JOIN session_topics o ON o.topic_id = t.id "
        "AND o.is_primary = 1 JOIN sessions s ON s.id = o.session_id WHERE t.namespace_id = ? GROUP BY t.id "
        "ORDER BY count(*) DESC, max(coalesce(s.last_message_at, s.started_at)) DESC, t.id LIMIT ? OFFSET ?) "
        "GROUP BY t.id ORDER BY 5 DESC, 8 DESC, t.id",
        (namespace_id, limit, offset),
        table="topics",
    )
    total = connection.execute("SELECT count(*) FROM topics WHERE namespace_id = ?", (namespace_id,)).get
    return list(rows), int(total)


def find(connection: Connection, namespace_id: int, topic_id: int) -> Topic | None:
    return first(
        connection, Topic, f"{_SELECT} WHERE t.namespace_id = ? AND t.id = ? GROUP BY t.id", (namespace_id, topic_id)
    )


def terms(connection: Connection, topic_ids: Iterable[int]) -> dict[int, list[tuple[int, float]]]:
    """Return the characteristic concepts of each topic with their weights, heaviest first."""
    rows = select(
        connection,
        tuple[int, int, float],
        f"SELECT o.topic_id, o.concept_id, o.weight FROM topic_concepts o JOIN concepts c ON c.id = o.concept_id "
        f"WHERE o.topic_id {_CHOSEN} ORDER BY o.topic_id, o.weight DESC, c.key",
        (ids_parameter(topic_ids),),
    )
    found: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
    for topic, concept, weight in rows:
        found[topic].append((concept, weight))
    return found


def sessions(connection: Connection, topic_id: int, *, limit: int) -> list[AssignedSession]:
    """Return primary sessions, then related ones; most relevant first."""
    rows = readable(
        connection,
        tuple[int, AssignedSession],
        "SELECT s.id, s.name, s.title, o.relevance, o.is_primary, "
        "(SELECT count(*) FROM messages WHERE session_id = s.id), s.started_at, s.last_message_at "
        "FROM session_topics o JOIN sessions s ON s.id = o.session_id "
        "WHERE o.topic_id = ? ORDER BY o.is_primary DESC, o.relevance DESC, s.started_at DESC LIMIT ?",
        (topic_id, limit),
        table="sessions",
    )
    return [session for _, session in rows]


def primary_topics(connection: Connection, session_ids: Iterable[int]) -> dict[int, int]:
    """Return the primary topic of each of these sessions that has one."""
    return dict(
        select(
            connection,
            tuple[int, int],
            f"SELECT session_id, topic_id FROM session_topics WHERE is_primary = 1 AND session_id {_CHOSEN}",
            (ids_parameter(session_ids),),
        )
    )


def discussing(connection: Connection, topic_id: int, *, looked_at: int, limit: int) -> list[DiscussingMessage]:
    """Return the messages of its sessions that mention most of its characteristic concepts, ties newest first.

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
            "ORDER BY at DESC, owner_id DESC LIMIT ?) n JOIN messages m ON m.id = n.owner_id JOIN session_topics o "
            "ON o.session_id = m.session_id AND o.topic_id = ? AND o.is_primary = 1",
            (concept, looked_at, topic_id),
        )
        for message in rows:
            said[message] += weight
    best = sorted(said, key=lambda message: (-round(said[message], 6), -message))[:limit]
    return [DiscussingMessage(message, min(said[message] / total, 1.0)) for message in best]


def describe(
    connection: Connection, topic_id: int, name: str | None, summary: str | None, by: str, now: datetime
) -> None:
    """Set the stated name and summary; without either, the topic is named by its best terms again."""
    named_by = by if name is not None or summary is not None else None
    connection.execute(
        "UPDATE topics SET name = ?, summary = ?, named_by = ?, updated_at = ? WHERE id = ?",
        (name, summary, named_by, to_us(now), topic_id),
    )
