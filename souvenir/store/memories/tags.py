"""Tags over all memories: counts and renaming. Each function takes a connection inside a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from souvenir.core.stored_json import to_json
from souvenir.store.namespaces import Namespace, visible_condition
from souvenir.store.rows import readable, select
from souvenir.store.sql import Connection


@dataclass(frozen=True, slots=True)
class TagCount:
    """:param tag: As it was first spelled. :param count: Active memories that have it.

    :param first_used_at: When a memory first got it. :param last_used_at: When one last did.
    """

    tag: str
    count: int
    first_used_at: datetime
    last_used_at: datetime


def count_each(connection: Connection, namespace: Namespace) -> list[TagCount]:
    """Return the tags of active memories, the most used first."""
    visible, parameters = visible_condition(namespace.sources, "m.source")
    rows = readable(
        connection,
        tuple[int, TagCount],
        # Of several spellings, the first one is shown.
        "SELECT memory_id, tag, uses, first_at, last_at FROM (SELECT t.memory_id, t.folded, t.tag, "
        "t.added_at AS first_at, max(t.added_at) OVER same AS last_at, count(*) OVER same AS uses, "
        "row_number() OVER (PARTITION BY t.folded ORDER BY t.added_at, t.memory_id) AS number "
        f"FROM memory_tags t JOIN memories m ON m.id = t.memory_id WHERE t.namespace_id = ? AND m.archived = 0 "
        f"AND {visible} WINDOW same AS (PARTITION BY t.folded)) AS used WHERE number = 1 ORDER BY uses DESC, folded",
        (namespace.id, *parameters),
        table="memory_tags",
    )
    return [tag for _, tag in rows]


def memories_with(connection: Connection, namespace: Namespace, folded: Iterable[str]) -> Mapping[int, int]:
    """Return the memories that have any of the tags, archived ones too, by id, and since when, in microseconds."""
    visible, parameters = visible_condition(namespace.sources, "m.source")
    return dict(
        select(
            connection,
            tuple[int, int],
            "SELECT t.memory_id, min(t.added_at) FROM memory_tags t JOIN memories m ON m.id = t.memory_id "
            f"WHERE t.namespace_id = ? AND t.folded IN (SELECT atom FROM json_each(?)) AND {visible} "
            "GROUP BY t.memory_id ORDER BY t.memory_id",
            (namespace.id, to_json(list(folded)), *parameters),
        )
    )


def backdate(connection: Connection, memory_id: int, folded: str, added_at_us: int) -> None:
    """Set the time when a memory got a tag to an earlier one; a later time changes nothing."""
    connection.execute(
        "UPDATE memory_tags SET added_at = min(added_at, ?) WHERE memory_id = ? AND folded = ?",
        (added_at_us, memory_id, folded),
    )
