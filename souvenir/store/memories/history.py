"""Memories as of a point in time, read from their history. Each function takes a connection inside a transaction.

A memory's state is that of its last history row up to that time; without such a row it was not stored yet. Memories
deleted since are not found: their history is empty. A caller with limited visibility sees what was in its sources then
and still is. Memories without later changes are read from their own rows, so the recent past costs as much as the
present, plus one lookup per memory that changed since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from souvenir.core.labels import fold
from souvenir.core.stored_json import same_json
from souvenir.core.timestamps import from_us, to_us
from souvenir.core.types import Fact, HistoryEntry, JsonObject, Listing, Memory
from souvenir.store.admin import transfers
from souvenir.store.memories import links, reads
from souvenir.store.memories.memories import MEMORY_STATE
from souvenir.store.namespaces import Namespace, source_condition, visible_condition
from souvenir.store.privacy import is_flagged, topics_parameter
from souvenir.store.rows import UNREADABLE, ids_parameter, readable, select
from souvenir.store.sql import Connection, SqlValue
from souvenir.store.unreadable import report

_LAST_ROW = "SELECT id FROM history WHERE memory_id = m.id AND at <= :at ORDER BY id DESC LIMIT 1"

_AFTER = "(CASE WHEN json_valid(h.after) THEN h.after ELSE '{}' END)"
"""The state of a history row, of which an unreadable one has no property."""

_SAME_FACTS = (
    f"coalesce((SELECT group_concat(j.value ->> 'id' ORDER BY j.key) FROM json_each({_AFTER}, '$.facts') j), '') = "
    "coalesce((SELECT group_concat(CAST(f.id AS TEXT) ORDER BY f.ordinal) FROM facts f WHERE f.memory_id = m.id), '')"
)
_SAME = " AND ".join(
    [
        *(
            f"m.{column} IS NOT DISTINCT FROM CAST({_AFTER} ->> '{column}' AS {kind})"
            for column, kind in (("text", "TEXT"), ("source", "TEXT"), ("document_at", "BIGINT"))
        ),
        _SAME_FACTS,
    ]
)
"""Whether passages are the same now as then; so does `created_at`, which older history rows do not have."""

_STOOD = f"""
WITH changed (memory_id) AS MATERIALIZED (
    SELECT DISTINCT memory_id FROM history INDEXED BY history_by_time WHERE at > :at AND namespace_id = :namespace
), stood AS (
    SELECT id, source, source AS source_now, pinned, archived, metadata, 1 AS same
    FROM memories WHERE namespace_id = :namespace AND id NOT IN (SELECT memory_id FROM changed)
    UNION ALL
    SELECT m.id, {_AFTER} ->> 'source', m.source, CAST({_AFTER} ->> 'pinned' AS BIGINT),
        CAST({_AFTER} ->> 'archived' AS BIGINT), {_AFTER} -> 'metadata', CASE WHEN {_SAME}
        AND m.created_at = coalesce(CAST({_AFTER} ->> 'created_at' AS BIGINT), m.created_at) THEN 1 ELSE 0 END
    FROM changed JOIN memories m ON m.id = changed.memory_id JOIN history h ON h.id = ({_LAST_ROW})
    WHERE json_valid(h.after)
)"""


class PastMemory(NamedTuple):
    """A memory that was stored at a point in time.

    :param same: Whether its passages are the same now as then, apart from being archived.
    :param fits: Whether it had the requested metadata.
    """

    id: int
    archived: bool
    same: bool
    fits: bool


def stored_at(connection: Connection, namespace: Namespace, at: datetime, wanted: JsonObject) -> list[PastMemory]:
    """Return every memory that was stored then, in id order.

    :param wanted: Metadata keys with the exact JSON values that a memory must have had to fit.
    """
    where, parameters = _where(namespace, at)
    if not wanted:
        query = f"{_STOOD} SELECT id, archived, same, 1 FROM stood WHERE {where} ORDER BY id"
        return list(select(connection, PastMemory, query, parameters))
    query = f"{_STOOD} SELECT id, archived, same, metadata FROM stood WHERE {where} ORDER BY id"
    rows = readable(connection, tuple[int, bool, bool, JsonObject], query, parameters, table="memories")
    return [PastMemory(id_, archived, same, _fits(metadata, wanted)) for id_, archived, same, metadata in rows]


def _fits(metadata: JsonObject, wanted: JsonObject) -> bool:
    return all(name in metadata and same_json(metadata[name], value) for name, value in wanted.items())


def ids_at(
    connection: Connection,
    namespace: Namespace,
    at: datetime,
    listing: Listing = reads.ALL,
) -> list[int]:
    """Return the ids of the memories that were stored then; tag filters use the current tags."""
    where, parameters = _where(namespace, at, listing)
    order = "DESC" if listing.newest_first else "ASC"
    return list(select(connection, int, f"{_STOOD} SELECT id FROM stood WHERE {where} ORDER BY id {order}", parameters))


def flagged_at(connection: Connection, namespace: Namespace, at: datetime, topics: Iterable[str]) -> set[int]:
    """Return the memories that were flagged with one of these sensitive topics then."""
    query = f"{_STOOD} SELECT id FROM stood WHERE {is_flagged('metadata', ':topics')}"
    parameters: dict[str, SqlValue] = {"at": to_us(at), "namespace": namespace.id, "topics": topics_parameter(topics)}
    return set(select(connection, int, query, parameters))


def memories_at(connection: Connection, namespace: Namespace, at: datetime, ids: Iterable[int]) -> dict[int, Memory]:
    """Return those of the memories that were stored then, as they were, by id; with links that still exist."""
    found = _without_links(connection, namespace, at, ids)
    now = reads.memories(connection, namespace, found)
    linked = {id_: [link for link in now[id_].links if link.created_at <= at] for id_ in found}
    newer = {id_: _newer(connection, namespace, at, id_) for id_ in found if now[id_].superseded_by is not None}
    others = {link.to_id for held in linked.values() for link in held}
    ends = _without_links(connection, namespace, at, others.union(*newer.values()))
    for id_, held in linked.items():
        kept = tuple(link for link in held if link.to_id in ends)
        replaced = [link.to_id for link in kept if link.type == reads.SUPERSEDES]
        contradicted = [link.to_id for link in kept if link.type == reads.CONFLICTS_WITH]
        found[id_] = replace(
            found[id_],
            links=kept,
            previous_text=ends[replaced[0]].text if len(replaced) == 1 else None,
            superseded_by=max((one for one in newer.get(id_, ()) if one in ends), default=None),
            conflicts_with=contradicted[-1] if contradicted else None,
        )
    return found


def dated_as(connection: Connection, namespace: Namespace, former: Iterable[Memory]) -> set[int]:
    """Return the memories that have the source and the given time of one of these, with which they share words."""
    places = {(one.source, one.document_at) for one in former}
    query = "SELECT id FROM memories WHERE namespace_id = ? AND source = ? AND document_at = ?"
    return {
        id_
        for source, document_at in places
        if document_at is not None
        for id_ in select(connection, int, query, (namespace.id, source, to_us(document_at)))
    }


def having_tags_at(
    connection: Connection, namespace: Namespace, at: datetime, folded: Iterable[str], ids: Iterable[int]
) -> set[int]:
    """Return those of the memories that had any of the folded tags then."""
    wanted = {*folded}
    found = _without_links(connection, namespace, at, ids)
    return {id_ for id_, memory in found.items() if not wanted.isdisjoint(map(fold, memory.tags))}


def was_stored(connection: Connection, namespace: Namespace, at: datetime, memory_id: int) -> bool:
    """Return whether a memory was stored and visible then; one that `memories_at` leaves out is damaged."""
    visible, values = visible_condition(namespace.sources, "m.source")
    visible_then, values_then = visible_condition(namespace.sources, f"({_AFTER} ->> 'source')")
    row = connection.execute(
        "SELECT 1 FROM memories m JOIN history h ON h.id = "
        "(SELECT id FROM history WHERE memory_id = m.id AND at <= ? ORDER BY id DESC LIMIT 1) "
        f"WHERE m.id = ? AND m.namespace_id = ? AND {visible} AND h.after IS NOT NULL "
        f"AND (NOT json_valid(h.after) OR {visible_then})",
        (to_us(at), memory_id, namespace.id, *values, *values_then),
    )
    return row.get is not None


def _newer(connection: Connection, namespace: Namespace, at: datetime, memory_id: int) -> list[int]:
    """Return the memories that had superseded it by then."""
    found = links.links_of(connection, namespace, memory_id, link_type=reads.SUPERSEDES, incoming=True)
    return [one.from_id for one in found if one.to_id == memory_id and one.created_at <= at]


def history(connection: Connection, namespace: Namespace, memory_id: int) -> list[HistoryEntry] | None:
    """Return every change of a memory, oldest first; of a deleted one, the remaining rows. None if it is not visible.

    The source of a deleted memory is gone, so only callers that see the whole namespace get its history.
    """
    known = namespace.sources is None and _had(connection, namespace, memory_id)
    if not known and not reads.visible_ids(connection, namespace, [memory_id]):
        return None
    return transfers.histories(connection, namespace, [memory_id])[memory_id]


def _had(connection: Connection, namespace: Namespace, memory_id: int) -> bool:
    row = "SELECT 1 FROM history WHERE memory_id = ? AND namespace_id = ? LIMIT 1"
    return connection.execute(row, (memory_id, namespace.id)).get is not None


def _where(namespace: Namespace, at: datetime, listing: Listing = reads.ALL) -> tuple[str, Mapping[str, Any]]:
    """Return the condition on `stood`, with named parameters."""
    conditions: list[str] = []
    parameters: dict[str, SqlValue] = {"at": to_us(at), "namespace": namespace.id}

    def add(condition: str, values: list[SqlValue]) -> None:
        for value in values:
            name = f"p{len(parameters)}"
            condition = condition.replace("?", f":{name}", 1)
            parameters[name] = value
        conditions.append(condition)

    for column in ("source", "source_now"):
        add(*visible_condition(namespace.sources, column))
    if listing.source is not None:
        add(*source_condition(listing.source))
    for column, value in (("pinned", listing.pinned), ("archived", listing.archived)):
        if value is not None:
            add(f"{column} = ?", [value])
    if listing.max_id is not None:
        add("id <= ?", [listing.max_id])
    if listing.tags:
        add(*reads.tag_condition(namespace.id, listing.tags, all_tags=listing.all_tags))
    return " AND ".join(f"({condition})" for condition in conditions), parameters


def _without_links(connection: Connection, namespace: Namespace, at: datetime, ids: Iterable[int]) -> dict[int, Memory]:
    visible, values = visible_condition(namespace.sources, "m.source")
    rows = readable(
        connection,
        tuple[int, int, int, JsonObject],
        "SELECT h.id, m.id, h.at, h.after FROM memories m JOIN history h ON h.id = "
        "(SELECT id FROM history WHERE memory_id = m.id AND at <= ? ORDER BY id DESC LIMIT 1) "
        f"WHERE m.id IN (SELECT value FROM json_each(?)) AND m.namespace_id = ? AND {visible} "
        "AND h.after IS NOT NULL ORDER BY m.id",
        (to_us(at), ids_parameter(ids), namespace.id, *values),
        table="history",
    )
    written = list(rows)
    present = reads.as_stored(connection, namespace, [memory_id for _, memory_id, _, _ in written])
    found: dict[int, Memory] = {}
    for row_id, memory_id, changed_us, stored in written:
        if memory_id not in present:
            continue
        try:
            state = transfers.shown_state(connection, namespace, stored)
            if state is not None:
                found[memory_id] = _as_it_was(present[memory_id], changed_us, state)
        except UNREADABLE:
            report(connection, "history", row_id)
    return found


def _as_it_was(now: Memory, changed_us: int, written: JsonObject) -> Memory:
    """:param changed_us: Time of the history row; the time of change, unless the state contains one."""
    state = MEMORY_STATE.load(written)
    return Memory(
        id=now.id,
        text=state.text,
        source=state.source,
        created_at=state.created_at or now.created_at,
        updated_at=state.updated_at or from_us(changed_us),
        metadata=state.metadata,
        key=state.key,
        document_at=state.document_at,
        pinned=state.pinned,
        archived=state.archived,
        origin_class=state.origin_class,
        valid_to=state.valid_to,
        tags=state.tags,
        facts=tuple(Fact(fact.id, fact.text, fact.made_by, fact.created_at) for fact in state.facts),
    )
