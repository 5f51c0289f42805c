"""Activity of an agent: which concepts are mentioned when, and in which sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from souvenir.store.rows import readable, select
from souvenir.store.sql import Connection


class MentionSpan(NamedTuple):
    """A concept with the number of texts that mention it, and the time of the last one in microseconds."""

    concept_id: int
    key: str
    owners: int
    last_at: int


class MentioningSession(NamedTuple):
    """A session in which a concept is mentioned by its user, and the time of its last mention there, likewise."""

    session_id: int
    message_id: int
    at: int


def most_mentioned(connection: Connection, namespace_id: int, *, limit: int) -> list[MentionSpan]:
    """Return the concepts that most texts mention, without merging their spellings."""
    query = (
        "SELECT c.id, c.key, c.owners, (SELECT max(at) FROM mentions WHERE concept_id = c.id) FROM (SELECT id, "
        "key, owners FROM concepts WHERE namespace_id = ? AND owners > 0 ORDER BY owners DESC, id DESC LIMIT ?) c "
        "ORDER BY c.owners DESC, c.id DESC"
    )
    return list(readable(connection, MentionSpan, query, (namespace_id, limit), table="concepts"))


def sessions_mentioning(connection: Connection, ids: Iterable[int], *, mentions: int) -> list[MentioningSession]:
    """Return the sessions in which users mention one of these, newest first.

    :param mentions: Maximum number of mentions of each that are read, the latest ones.
    """
    query = (
        "SELECT m.session_id, m.id, n.at FROM (SELECT owner_id, at FROM mentions WHERE concept_id = ? "
        "AND kind = 'message' ORDER BY at DESC LIMIT ?) n CROSS JOIN messages m ON m.id = n.owner_id "
        "WHERE m.role = 'user'"
    )
    found: dict[int, MentioningSession] = {}
    for id_ in ids:
        rows = select(connection, MentioningSession, query, (id_, mentions))
        for row in rows:
            known = found.get(row.session_id)
            if known is None or (known.at, known.message_id) < (row.at, row.message_id):
                found[row.session_id] = row
    return sorted(found.values(), key=lambda one: (one.at, one.message_id), reverse=True)


def sessions_after(connection: Connection, namespace_id: int, at: int, *, limit: int) -> int:
    """Count the sessions that began after a time, up to a limit."""
    query = "SELECT count(*) FROM (SELECT 1 FROM sessions WHERE namespace_id = ? AND started_at > ? LIMIT ?) s"
    return int(connection.execute(query, (namespace_id, at, limit)).get)
