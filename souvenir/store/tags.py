"""Every statement about the tags of memories. Each function takes a connection inside a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import apsw

from souvenir.moments import to_us
from souvenir.store.rows import ids_parameter, to_json
from souvenir.tags import fold
from souvenir.types import Memory


def put(
    connection: apsw.Connection, namespace_id: int, memory_id: int, tags: Sequence[str], now: datetime
) -> tuple[str, ...]:
    """Let a memory have these tags and no others, those that it had keeping their time; as `with_tags` gives them."""
    of_folded = {fold(tag): tag for tag in tags}
    connection.execute(
        "DELETE FROM memory_tags WHERE memory_id = ? AND folded NOT IN (SELECT value FROM json_each(?))",
        (memory_id, to_json(list(of_folded))),
    )
    connection.executemany(
        "INSERT INTO memory_tags (memory_id, folded, namespace_id, tag, added_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (memory_id, folded) DO UPDATE SET tag = excluded.tag",
        [(memory_id, folded, namespace_id, tag, to_us(now)) for folded, tag in of_folded.items()],
    )
    return tuple(of_folded[folded] for folded in sorted(of_folded))


def carry_times(connection: apsw.Connection, memory_ids: Iterable[int], heir_id: int) -> None:
    """Let a memory have had its tags for as long as those whose place it takes."""
    connection.execute(
        "UPDATE memory_tags SET added_at = min(added_at, coalesce((SELECT min(o.added_at) FROM memory_tags o "
        "WHERE o.folded = memory_tags.folded AND o.memory_id IN (SELECT value FROM json_each(?))), added_at)) "
        "WHERE memory_id = ?",
        (ids_parameter(memory_ids), heir_id),
    )


def with_tags(connection: apsw.Connection, found: dict[int, Memory]) -> dict[int, Memory]:
    """The memories with their tags, in the order of their names."""
    rows: list[Any] = connection.execute(
        "SELECT memory_id, tag FROM memory_tags WHERE memory_id IN (SELECT value FROM json_each(?)) "
        "ORDER BY memory_id, folded",
        (ids_parameter(found),),
    ).fetchall()
    of_each: dict[int, list[str]] = {}
    for memory_id, tag in rows:
        of_each.setdefault(memory_id, []).append(tag)
    return {id_: replace(one, tags=tuple(of_each[id_])) if id_ in of_each else one for id_, one in found.items()}


def condition(namespace_id: int, tags: Iterable[str], *, all_tags: bool) -> tuple[str, list[Any]]:
    """SQL that is true of the `id` of a namespace's memory that has any of the tags, or all, and its parameters."""
    folded = sorted({fold(tag) for tag in tags})
    having = "GROUP BY memory_id HAVING count(*) = ?" if all_tags else ""
    return (
        "id IN (SELECT memory_id FROM memory_tags WHERE namespace_id = ? AND folded IN "
        f"(SELECT value FROM json_each(?)) {having})",
        [namespace_id, to_json(folded), *([len(folded)] if all_tags else [])],
    )


def tagged(connection: apsw.Connection, folded: Iterable[str], memory_ids: Iterable[int]) -> set[int]:
    """Those of the memories that have any of the folded tags."""
    rows: Any = connection.execute(
        "SELECT DISTINCT memory_id FROM memory_tags WHERE memory_id IN (SELECT value FROM json_each(?)) "
        "AND folded IN (SELECT value FROM json_each(?))",
        (ids_parameter(memory_ids), to_json(list(folded))),
    )
    return {memory_id for (memory_id,) in rows}
