"""Memories as they were at a moment, read from their history. Each function takes a connection inside a transaction.

A memory was what the last row of its history up to then left behind; one that has none was not stored yet. What was
deleted since is not there: its history is empty. Somebody who sees a part sees what lay in it then and still does.
Memories that nothing was written of since are read from their own rows, so the cost of the recent past is that of the
present: what is looked up one by one is what changed since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from souvenir.core.stored_json import same_json
from souvenir.core.timestamps import from_us, to_us
from souvenir.core.types import Fact, HistoryEntry, JsonObject, Listing, Memory
from souvenir.store.admin import transfers
from souvenir.store.memories import links, reads
from souvenir.store.memories.memories import MEMORY_STATE
from souvenir.store.namespaces import Namespace, source_condition, visible_condition
from souvenir.store.rows import MEMORY_COLUMNS, ids_parameter, select

_LAST_ROW = "SELECT id FROM history WHERE memory_id = m.id AND at <= :at ORDER BY id DESC LIMIT 1"

_SAME = " AND ".join(f"m.{column} IS h.after ->> '{column}'" for column in ("text", "source", "document_at"))
"""Whether passages say now what they said then; so does `created_at`, which older rows of a history do not name."""

_STOOD = f"""
WITH changed (memory_id) AS MATERIALIZED (
    SELECT DISTINCT memory_id FROM history INDEXED BY history_by_time WHERE at > :at AND namespace_id = :namespace
), stood AS (
    SELECT id, source, source AS source_now, pinned, archived, metadata, 1 AS same
    FROM memories WHERE namespace_id = :namespace AND id NOT IN (SELECT memory_id FROM changed)
    UNION ALL
    SELECT m.id, h.after ->> 'source', m.source, h.after ->> 'pinned', h.after ->> 'archived', h.after -> 'metadata',
        {_SAME} AND m.created_at = coalesce(h.after ->> 'created_at', m.created_at)
    FROM changed JOIN memories m ON m.id = changed.memory_id JOIN history h ON h.id = ({_LAST_ROW})
    WHERE h.after IS NOT NULL
)"""


class Stood(NamedTuple):
    """A memory that was stored at a moment.

    :param same: Whether it is searched now as it would have been then, but for being archived.
    :param fits: Whether it had the metadata that is asked for.
    """

    id: int
    archived: bool
    same: bool
    fits: bool


def stood_at(connection: apsw.Connection, namespace: Namespace, at: datetime, wanted: JsonObject) -> list[Stood]:
    """Every memory that was stored then, in the order of their ids.

    :param wanted: Metadata keys, and the exact JSON values that they must have had to fit.
    """
    where, parameters = _where(namespace, at)
    if not wanted:
        query = f"{_STOOD} SELECT id, archived, same, 1 FROM stood WHERE {where} ORDER BY id"
        return list(select(connection, Stood, query, parameters))
    query = f"{_STOOD} SELECT id, archived, same, metadata FROM stood WHERE {where} ORDER BY id"
    rows = select(connection, tuple[int, bool, bool, JsonObject], query, parameters)
    return [Stood(id_, archived, same, _fits(metadata, wanted)) for id_, archived, same, metadata in rows]


def _fits(metadata: JsonObject, wanted: JsonObject) -> bool:
    return all(name in metadata and same_json(metadata[name], value) for name, value in wanted.items())


def ids_at(
    connection: apsw.Connection,
    namespace: Namespace,
    at: datetime,
    listing: Listing = reads.ALL,
) -> list[int]:
    """Of the memories that were stored then; tags are those of now."""
    where, parameters = _where(namespace, at, listing)
    order = "DESC" if listing.newest_first else "ASC"
    return list(select(connection, int, f"{_STOOD} SELECT id FROM stood WHERE {where} ORDER BY id {order}", parameters))


def memories_at(
    connection: apsw.Connection, namespace: Namespace, at: datetime, ids: Iterable[int]
) -> dict[int, Memory]:
    """Those of the memories that were stored then, as they were, by id; with the links that they had and still have."""
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


def _newer(connection: apsw.Connection, namespace: Namespace, at: datetime, memory_id: int) -> list[int]:
    """The memories that had superseded it by then."""
    found = links.links_of(connection, namespace, memory_id, link_type=reads.SUPERSEDES, incoming=True)
    return [one.from_id for one in found if one.to_id == memory_id and one.created_at <= at]


def history(connection: apsw.Connection, namespace: Namespace, memory_id: int) -> list[HistoryEntry] | None:
    """Every change of a memory, oldest first; of a deleted one, what is left. None if nobody shall know of it.

    The source of a deleted memory is gone, so only who sees the whole namespace is told of it.
    """
    known = namespace.sources is None and _had(connection, namespace, memory_id)
    if not known and not reads.visible_ids(connection, namespace, [memory_id]):
        return None
    return transfers.histories(connection, namespace, [memory_id])[memory_id]


def _had(connection: apsw.Connection, namespace: Namespace, memory_id: int) -> bool:
    row = "SELECT 1 FROM history WHERE memory_id = ? AND namespace_id = ? LIMIT 1"
    return connection.execute(row, (memory_id, namespace.id)).get is not None


def _where(namespace: Namespace, at: datetime, listing: Listing = reads.ALL) -> tuple[str, Mapping[str, Any]]:
    """What `stood` is asked for; its parameters have names, so those of conditions get some."""
    conditions: list[str] = []
    parameters: dict[str, apsw.SQLiteValue] = {"at": to_us(at), "namespace": namespace.id}

    def add(condition: str, values: list[apsw.SQLiteValue]) -> None:
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
    if listing.tags:
        add(*reads.tag_condition(namespace.id, listing.tags, all_tags=listing.all_tags))
    return " AND ".join(f"({condition})" for condition in conditions), parameters


def _without_links(
    connection: apsw.Connection, namespace: Namespace, at: datetime, ids: Iterable[int]
) -> dict[int, Memory]:
    visible, values = visible_condition(namespace.sources, "m.source")
    columns = ", ".join(f"m.{column}" for column in MEMORY_COLUMNS.split(", "))
    rows = select(
        connection,
        tuple[int, JsonObject, Memory],
        f"SELECT h.at, h.after, {columns} FROM memories m JOIN history h ON h.id = "
        "(SELECT id FROM history WHERE memory_id = m.id AND at <= ? ORDER BY id DESC LIMIT 1) "
        f"WHERE m.id IN (SELECT value FROM json_each(?)) AND m.namespace_id = ? AND {visible} "
        "AND h.after IS NOT NULL ORDER BY m.id",
        (to_us(at), ids_parameter(ids), namespace.id, *values),
    )
    found: dict[int, Memory] = {}
    for changed_us, written, memory in list(rows):
        state = transfers.shown_state(connection, namespace, written)
        if state is not None:
            found[memory.id] = _as_it_was(memory, changed_us, state)
    return found


def _as_it_was(now: Memory, changed_us: int, written: JsonObject) -> Memory:
    """:param changed_us: When the state was written; that is when the memory was changed, unless the state says so."""
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
