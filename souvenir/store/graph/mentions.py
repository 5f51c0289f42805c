"""Mentions of concepts in messages and memories, all counts derived from them, and lookups by mention.

Concepts, their forms and their neighbours are derived from mentions alone: each write keeps them consistent, in any
order of additions and deletions, so analysing everything again gives the same counts. A concept without mentions is
deleted with its claims. Each function takes a connection inside a transaction.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby, permutations
from typing import NamedTuple

from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import from_us, to_us
from souvenir.core.types import Mentioned, RecordKind
from souvenir.core.types.statements import Definition, Statement
from souvenir.store.graph import mention_queue, statements
from souvenir.store.messages import messages
from souvenir.store.messages.messages import MessageFilter
from souvenir.store.namespaces import Namespace, visible_condition
from souvenir.store.rows import grouped, ids_parameter, select
from souvenir.store.sql import Connection, SqlValue


@dataclass(frozen=True, slots=True)
class Reading:
    """The concepts found in a queued item, without duplicates.

    :param definitions: Definitions of its concepts, by key. :param statements: The statements of a message.
    """

    unread_id: int
    kind: RecordKind
    owner_id: int
    at: datetime
    mentions: Sequence[Mentioned]
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    statements: Sequence[Statement] = ()


class Forgotten(NamedTuple):
    """Numbers of deleted rows."""

    mentions: int
    concepts: int


@dataclass(slots=True)
class _Counts:
    """Changes of the counts by some mentions."""

    owners: Counter[int] = field(default_factory=Counter)
    forms: Counter[tuple[int, str, str]] = field(default_factory=Counter)
    neighbours: Counter[tuple[int, int, int]] = field(default_factory=Counter)

    def add(self, mentions: Iterable[tuple[int, str, str]], month: int) -> None:
        """Add the mentions of one message or memory: concept, form, kind."""
        found = list(mentions)
        self.owners.update(concept_id for concept_id, _, _ in found)
        self.forms.update(found)
        self.neighbours.update((*pair, month) for pair in permutations((one for one, _, _ in found), 2))


def month_of(at: datetime) -> int:
    """Return months since the year 0, in UTC."""
    utc = at.astimezone(UTC)
    return 12 * utc.year + utc.month - 1


def key_hash(key: str) -> str:
    """Return the hash by which a deleted concept is identified."""
    return hashlib.sha256(key.encode()).hexdigest()


def known_keys(connection: Connection, namespace_id: int, keys: Iterable[str]) -> dict[str, int]:
    """Return the ids of the existing concepts by key."""
    query = "SELECT key, id FROM concepts WHERE namespace_id = ? AND key IN (SELECT atom FROM json_each(?))"
    return dict(select(connection, tuple[str, int], query, (namespace_id, to_json(list(keys)))))


def hidden_keys(connection: Connection, namespace_id: int, keys: Iterable[str]) -> set[str]:
    """Return those of the keys whose concepts were deleted by a caller."""
    by_hash = {key_hash(key): key for key in keys}
    query = (
        "SELECT key_hash FROM hidden_concepts WHERE namespace_id = ? AND key_hash IN (SELECT atom FROM json_each(?))"
    )
    rows = select(connection, str, query, (namespace_id, to_json(list(by_hash))))
    return {by_hash[one] for one in rows}


def write(connection: Connection, namespace_id: int, readings: Sequence[Reading]) -> int:
    """Store the mentions of items that are still queued and remove these from the queue; return the number of items."""
    taken = [one for one in readings if mention_queue.take(connection, one.unread_id)]
    keys = {mention.key for one in taken for mention in one.mentions}
    ids = known_keys(connection, namespace_id, keys)
    hidden = hidden_keys(connection, namespace_id, keys - ids.keys())
    ids |= _insert(connection, namespace_id, sorted(keys - ids.keys() - hidden))
    for kind in RecordKind:
        # An item that was queued again for new rules still has the mentions of the previous rules.
        _take_back(connection, namespace_id, kind, [one.owner_id for one in taken if one.kind is kind])
    counts, rows, mentioning = _Counts(), list[tuple[str, int, int, str, str, int]](), 0
    for one in taken:
        found = [(ids[said.key], said.form, said.kind.value) for said in one.mentions if said.key in ids]
        counts.add(found, month_of(one.at))
        mentioning += bool(found)
        rows += [(one.kind.value, one.owner_id, *mention, to_us(one.at)) for mention in found]
    connection.executemany(
        "INSERT INTO mentions (kind, owner_id, concept_id, form, concept_kind, at) VALUES (?, ?, ?, ?, ?, ?)", rows
    )
    statements.write_definitions(
        connection,
        namespace_id,
        (
            (one.kind, one.owner_id, ids[key], one.at, definition)
            for one in taken
            for key, definition in one.definitions.items()
            if key in ids
        ),
    )
    statements.write(
        connection,
        namespace_id,
        ((one.owner_id, one.at, one.statements) for one in taken if one.kind is RecordKind.MESSAGE),
    )
    _count(connection, namespace_id, counts, mentioning)
    queue_sessions(connection, (one.owner_id for one in taken if one.kind is RecordKind.MESSAGE))
    sweep(connection, namespace_id)
    return len(taken)


def forget(connection: Connection, namespace_id: int, kind: RecordKind, owner_ids: Sequence[int]) -> Forgotten:
    """Delete the mentions of these, while they still exist, and remove them from the queue."""
    mention_queue.forget(connection, kind, owner_ids)
    mentions, concepts = _forget(connection, namespace_id, kind, owner_ids)
    gone = list(dict.fromkeys([*concepts, *_unmentioned(connection, namespace_id)]))
    remove_concepts(connection, gone)
    return Forgotten(mentions, len(gone))


def reread(connection: Connection, namespace_id: int, kind: RecordKind, owner_id: int, *, stays: bool = True) -> None:
    """Delete the mentions of a changed message or memory, and queue it again if it stays; an archived memory does not.

    Concepts with claims are kept until the queue is processed, since the new text may mention them again.
    """
    if not stays:
        _ids(connection, "DELETE FROM claims WHERE memory_id", [owner_id])
        _ids(connection, "DELETE FROM claims WHERE other_memory_id", [owner_id])
    _, concepts = _forget(connection, namespace_id, kind, [owner_id])
    claimed = set(_ids(connection, "SELECT concept_id FROM claims WHERE concept_id", concepts))
    claimed |= set(_ids(connection, "SELECT other_id FROM claims WHERE other_id", concepts))
    remove_concepts(connection, [one for one in concepts if one not in claimed])
    if stays:
        mention_queue.put(connection, namespace_id, kind, [owner_id])
    else:
        mention_queue.forget(connection, kind, [owner_id])


def sweep(connection: Connection, namespace_id: int) -> None:
    """Delete concepts without mentions, unless the queue may still mention them."""
    remove_concepts(connection, _unmentioned(connection, namespace_id))


def hide_key(connection: Connection, namespace_id: int, key: str) -> None:
    """Exclude a key from the extraction of concepts."""
    query = "INSERT INTO hidden_concepts (namespace_id, key_hash) VALUES (?, ?) ON CONFLICT DO NOTHING"
    connection.execute(query, (namespace_id, key_hash(key)))


def hide(connection: Connection, namespace_id: int, concept_id: int, key: str) -> None:
    """Delete a concept with its mentions and exclude its key from extraction."""
    hide_key(connection, namespace_id, key)
    query = "DELETE FROM mentions WHERE concept_id = ? RETURNING kind, owner_id"
    owners = list(select(connection, tuple[RecordKind, int], query, (concept_id,)))
    by_kind = {kind: [id_ for of_kind, id_ in owners if of_kind is kind] for kind in RecordKind}
    silent = sum(
        len(ids) - len(set(_ids(connection, _STILL_MENTIONING.format(kind.value), ids)))
        for kind, ids in by_kind.items()
    )
    connection.execute("UPDATE graphs SET owners = owners - ? WHERE namespace_id = ?", (silent, namespace_id))
    connection.execute(
        "DELETE FROM neighbours WHERE other_id = ?1 AND concept_id IN "
        "(SELECT other_id FROM neighbours WHERE concept_id = ?1)",
        (concept_id,),
    )
    queue_sessions(connection, by_kind[RecordKind.MESSAGE])
    remove_concepts(connection, [concept_id])


_STILL_MENTIONING = "SELECT DISTINCT owner_id FROM mentions WHERE kind = '{}' AND owner_id"


def remove_concepts(connection: Connection, ids: Sequence[int]) -> None:
    """Delete concepts without mentions; concepts similar to one are matched again."""
    if not ids:
        return
    near = _ids(connection, "SELECT DISTINCT other_id FROM near_concepts WHERE concept_id", ids)
    same = _ids(connection, "SELECT id FROM concepts WHERE same_as", ids)
    queue_matching(connection, {*near, *same} - {*ids})
    # The schema cascades to claims.
    _ids(connection, "DELETE FROM concepts WHERE id", ids)


def queue_matching(connection: Connection, concept_ids: Iterable[int]) -> None:
    """Queue concepts for matching with their other spellings."""
    connection.execute(
        "INSERT INTO unmatched (concept_id, namespace_id) "
        "SELECT id, namespace_id FROM concepts WHERE id IN (SELECT value FROM json_each(?)) ON CONFLICT DO NOTHING",
        (ids_parameter(concept_ids),),
    )


def queue_sessions(connection: Connection, message_ids: Iterable[int]) -> None:
    """Queue the sessions of these messages for topic assignment."""
    requeue_sessions(
        connection,
        "id IN (SELECT session_id FROM messages WHERE id IN (SELECT value FROM json_each(?)))",
        ids_parameter(message_ids),
    )


def requeue_sessions(connection: Connection, condition: str, parameter: SqlValue) -> None:
    """Queue sessions at the end of the queue, with a new id, so that one that is being assigned is assigned again."""
    chosen = f"FROM sessions WHERE {condition}"
    connection.execute(f"DELETE FROM unsorted WHERE session_id IN (SELECT id {chosen})", (parameter,))
    query = f"INSERT INTO unsorted (session_id, namespace_id) SELECT id, namespace_id {chosen} ORDER BY id"
    connection.execute(query, (parameter,))


def _forget(
    connection: Connection, namespace_id: int, kind: RecordKind, owner_ids: Sequence[int]
) -> tuple[int, list[int]]:
    """Delete the mentions of these; return how many there were, and the concepts without mentions now."""
    if kind is RecordKind.MESSAGE:
        statements.forget(connection, owner_ids)
        _forget_claims(connection, owner_ids)
        queue_sessions(connection, owner_ids)
    counts = _take_back(connection, namespace_id, kind, owner_ids)
    gone = _ids(connection, "SELECT id FROM concepts WHERE owners = 0 AND id", counts.owners)
    return counts.owners.total(), gone


def _take_back(connection: Connection, namespace_id: int, kind: RecordKind, owner_ids: Sequence[int]) -> _Counts:
    statements.forget_definitions(connection, kind, owner_ids)
    query = (
        "DELETE FROM mentions WHERE kind = ? AND owner_id IN (SELECT value FROM json_each(?)) "
        "RETURNING owner_id, at, concept_id, form, concept_kind"
    )
    rows = list(select(connection, tuple[int, int, int, str, str], query, (kind.value, ids_parameter(owner_ids))))
    counts, owners = _Counts(), 0
    for (_, at), of_owner in groupby(sorted(rows), key=lambda row: row[:2]):
        counts.add((row[2:] for row in of_owner), month_of(from_us(at)))
        owners += 1
    if owners:
        _count(connection, namespace_id, counts, owners, sign=-1)
    return counts


def _unmentioned(connection: Connection, namespace_id: int) -> list[int]:
    """Return the concepts without mentions, if the queue is empty."""
    query = (
        "SELECT id FROM concepts WHERE namespace_id = ?1 AND owners = 0 "
        "AND NOT EXISTS (SELECT 1 FROM unread WHERE namespace_id = ?1)"
    )
    return list(select(connection, int, query, (namespace_id,)))


def _insert(connection: Connection, namespace_id: int, keys: Sequence[str]) -> dict[str, int]:
    """Add concepts with these keys, and return their ids by key."""
    connection.executemany(
        "INSERT INTO concepts (namespace_id, key, owners) VALUES (?, ?, 0)", [(namespace_id, key) for key in keys]
    )
    ids = known_keys(connection, namespace_id, keys)
    queue_matching(connection, ids.values())
    return ids


def _count(connection: Connection, namespace_id: int, counts: _Counts, owners: int, *, sign: int = 1) -> None:
    connection.execute(
        "INSERT INTO graphs (namespace_id, owners) VALUES (?, ?) "
        "ON CONFLICT (namespace_id) DO UPDATE SET owners = graphs.owners + excluded.owners",
        (namespace_id, sign * owners),
    )
    connection.executemany(
        "UPDATE concepts SET owners = owners + ? WHERE id = ?", [(sign * n, id_) for id_, n in counts.owners.items()]
    )
    for table, columns, counted in (
        ("concept_forms", "concept_id, form, kind", counts.forms),
        ("neighbours", "concept_id, other_id, month", counts.neighbours),
    ):
        connection.executemany(
            f"INSERT INTO {table} ({columns}, owners) VALUES (?, ?, ?, ?) "
            f"ON CONFLICT ({columns}) DO UPDATE SET owners = {table}.owners + excluded.owners",
            [(*key, sign * n) for key, n in counted.items()],
        )
        if sign < 0:
            connection.executemany(f"DELETE FROM {table} WHERE ({columns}) = (?, ?, ?) AND owners = 0", list(counted))


def _forget_claims(connection: Connection, message_ids: Sequence[int]) -> None:
    """Delete the claims a model made from these messages, and that it analysed them; match renamed concepts again."""
    rows = _ids(connection, "SELECT concept_id FROM claims WHERE message_id", message_ids)
    queue_matching(connection, set(rows))
    _ids(connection, "DELETE FROM claims WHERE message_id", message_ids)
    _ids(connection, "DELETE FROM described WHERE message_id", message_ids)


def _ids(connection: Connection, before_ids: str, ids: Iterable[int]) -> list[int]:
    """Run a statement that ends with a column, for the rows whose column is among the ids."""
    return list(select(connection, int, f"{before_ids} IN (SELECT value FROM json_each(?))", (ids_parameter(ids),)))


# --- lookup ----------------------------------------------------------------------------------------------------------


class Spelling(NamedTuple):
    """A concept, its root (itself, if it is one), and the weight of a mention of the root."""

    concept_id: int
    root_id: int
    weight: float


_NAMED = (
    "WITH named AS MATERIALIZED (SELECT CAST(j.value ->> 0 AS BIGINT) AS concept_id, "
    "CAST(j.value ->> 1 AS BIGINT) AS root_id, CAST(j.value ->> 2 AS DOUBLE PRECISION) AS weight "
    "FROM json_each(?) j), found AS (SELECT DISTINCT n.owner_id, n.at, d.root_id, d.weight FROM named d "
    "CROSS JOIN mentions n ON n.concept_id = d.concept_id AND n.kind = ? {joined}) "
    "SELECT owner_id, sum(weight) FROM found GROUP BY owner_id "
    "ORDER BY sum(weight) DESC, count(*) DESC, max(at) DESC, owner_id DESC LIMIT ?"
)
"""A concept counts once, however many of its spellings are mentioned."""


def messages_mentioning(
    connection: Connection,
    namespace_id: int,
    spellings: Iterable[Spelling],
    chosen: MessageFilter,
    *,
    limit: int,
) -> dict[int, float]:
    """Return summed weights of the messages with the highest ones, the latest first among ties, in this order."""
    where, parameters = messages.condition(namespace_id, chosen)
    joined = f"CROSS JOIN messages m ON m.id = n.owner_id AND {where}"
    named = to_json(list(spellings)), RecordKind.MESSAGE.value
    return dict(select(connection, tuple[int, float], _NAMED.format(joined=joined), (*named, *parameters, limit)))


def memories_mentioning(
    connection: Connection,
    namespace: Namespace,
    spellings: Iterable[Spelling],
    *,
    since: datetime | None,
    until: datetime | None,
    limit: int,
) -> dict[int, float]:
    """As `messages_mentioning`, for visible memories."""
    visible, parameters = visible_condition(namespace.sources, "m.source")
    joined = f"CROSS JOIN memories m ON m.id = n.owner_id AND m.archived = 0 AND {visible}"
    for operator, moment in ((">=", since), ("<=", until)):
        if moment is not None:
            joined += f" AND n.at {operator} ?"
            parameters.append(to_us(moment))
    named = to_json(list(spellings)), RecordKind.MEMORY.value
    return dict(select(connection, tuple[int, float], _NAMED.format(joined=joined), (*named, *parameters, limit)))


def mentioned_by(
    connection: Connection, kind: RecordKind, owner_ids: Iterable[int], concept_ids: Iterable[int]
) -> Mapping[int, Sequence[int]]:
    """Return which of the concepts each of the messages or memories mentions."""
    query = (
        "SELECT owner_id, concept_id FROM mentions WHERE kind = ? AND owner_id IN (SELECT value FROM json_each(?)) "
        "AND concept_id IN (SELECT value FROM json_each(?))"
    )
    rows = select(
        connection, tuple[int, int], query, (kind.value, ids_parameter(owner_ids), ids_parameter(concept_ids))
    )
    return grouped(rows)
