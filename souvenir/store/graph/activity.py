"""Activity of an agent: when messages were written, how long sessions were, and which concepts co-occur."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from souvenir.core.timestamps import to_us
from souvenir.core.types import MessageRole
from souvenir.store.rows import ids_parameter, select
from souvenir.store.sql import Connection

_HOUR_US = 3_600_000_000
_CHOSEN = "IN (SELECT value FROM json_each(?))"


class Hour(NamedTuple):
    """The number of messages of a role in the hour that starts at `begin`."""

    begin: datetime
    role: MessageRole
    messages: int


class Length(NamedTuple):
    """The length of a session that has messages."""

    messages: int
    minutes: float


def hours(connection: Connection, namespace_id: int, since: datetime, until: datetime) -> list[Hour]:
    """Return message counts per hour, in UTC, without empty hours."""
    rows = select(
        connection,
        tuple[int, MessageRole, int],
        "SELECT (created_at - ((created_at % ?1) + ?1) % ?1) / ?1, role, count(*) FROM messages "
        "WHERE namespace_id = ?2 AND created_at BETWEEN ?3 AND ?4 GROUP BY 1, 2 ORDER BY 1, 2",
        (_HOUR_US, namespace_id, to_us(since), to_us(until)),
    )
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return [Hour(epoch + timedelta(hours=hour), role, count) for hour, role, count in rows]


def lengths(connection: Connection, namespace_id: int, since: datetime, until: datetime) -> list[Length]:
    """Return the full lengths of the sessions that began in that time."""
    return list(
        select(
            connection,
            Length,
            "SELECT count(*), (s.last_message_at - s.started_at) / 6e7 FROM sessions s JOIN messages m "
            "ON m.session_id = s.id WHERE s.namespace_id = ? AND s.started_at BETWEEN ? AND ? "
            "AND s.last_message_at IS NOT NULL GROUP BY s.id ORDER BY s.id",
            (namespace_id, to_us(since), to_us(until)),
        )
    )


def co_occurrence_counts(
    connection: Connection, ids: Iterable[int], first: int, last: int
) -> dict[tuple[int, int], dict[int, int]]:
    """Return monthly co-occurrence counts of pairs of these concepts; each pair once, the smaller id first.

    :param first: A month since the year 0; likewise `last`.
    """
    wanted = sorted(set(ids))
    rows = select(
        connection,
        tuple[int, int, int, int],
        "SELECT a.value, n.other_id, n.month, n.owners FROM json_each(?1) a CROSS JOIN json_each(?1) b "
        "CROSS JOIN neighbours n ON n.concept_id = a.value AND n.other_id = b.value "
        "WHERE b.value > a.value AND n.month BETWEEN ?2 AND ?3",
        (ids_parameter(wanted), first, last),
    )
    found: defaultdict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for one, other, month, owners in rows:
        found[one, other][month] = owners
    return found


def around(connection: Connection, ids: Iterable[int], first: int, last: int) -> dict[int, Counter[int]]:
    """Return, by month, how often concepts co-occur with one of these; spellings are not merged."""
    rows = select(
        connection,
        tuple[int, int, int],
        f"SELECT month, other_id, sum(owners) FROM neighbours WHERE concept_id {_CHOSEN} "
        "AND month BETWEEN ? AND ? GROUP BY month, other_id",
        (ids_parameter(ids), first, last),
    )
    found: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for month, other, owners in rows:
        found[month][other] += owners
    return found


def mention_times(connection: Connection, ids: Iterable[int]) -> list[int]:
    """Return the times at which one of these is mentioned, in microseconds, each message and memory once."""
    return list(
        select(
            connection,
            int,
            f"SELECT min(at) FROM mentions WHERE concept_id {_CHOSEN} GROUP BY kind, owner_id",
            (ids_parameter(ids),),
        )
    )
