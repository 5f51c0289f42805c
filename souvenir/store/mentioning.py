"""Which messages and memories mention some concepts, by how rare those are, and which of them each one mentions.

Each function takes a connection inside a read transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from souvenir.moments import to_us
from souvenir.store import messages
from souvenir.store.messages import MessageFilter
from souvenir.store.reads import Namespace, visible_condition
from souvenir.store.rows import ids_parameter, to_json
from souvenir.types import RecordKind


class Spelling(NamedTuple):
    """A concept, what it is a spelling of (itself, if of nothing), and what mentioning that one counts."""

    concept_id: int
    root_id: int
    weight: float


_NAMED = (
    "WITH named AS MATERIALIZED (SELECT value ->> 0 AS concept_id, value ->> 1 AS root_id, value ->> 2 AS weight "
    "FROM json_each(?)), found AS (SELECT DISTINCT n.owner_id, n.at, d.root_id, d.weight FROM named d "
    "CROSS JOIN mentions n ON n.concept_id = d.concept_id AND n.kind = ? {joined}) "
    "SELECT owner_id, sum(weight) FROM found GROUP BY owner_id "
    "ORDER BY sum(weight) DESC, count(*) DESC, max(at) DESC, owner_id DESC LIMIT ?"
)
"""A concept counts once, however many of its spellings are mentioned."""


def messages_mentioning(
    connection: apsw.Connection,
    namespace_id: int,
    spellings: Iterable[Spelling],
    chosen: MessageFilter,
    *,
    limit: int,
) -> dict[int, float]:
    """What the mentions of those count that mention most, and the latest of equal ones, in this order."""
    where, parameters = messages.condition(namespace_id, chosen)
    joined = f"CROSS JOIN messages m ON m.id = n.owner_id AND {where}"
    rows: Any = connection.execute(
        _NAMED.format(joined=joined), (to_json(list(spellings)), RecordKind.MESSAGE.value, *parameters, limit)
    )
    return dict(rows.fetchall())


def memories_mentioning(
    connection: apsw.Connection,
    namespace: Namespace,
    spellings: Iterable[Spelling],
    *,
    since: datetime | None,
    until: datetime | None,
    limit: int,
) -> dict[int, float]:
    """Likewise of the memories that may be seen."""
    visible, parameters = visible_condition(namespace.sources, "m.source")
    joined = f"CROSS JOIN memories m ON m.id = n.owner_id AND m.archived = 0 AND {visible}"
    for operator, moment in ((">=", since), ("<=", until)):
        if moment is not None:
            joined += f" AND n.at {operator} ?"
            parameters.append(to_us(moment))
    rows: Any = connection.execute(
        _NAMED.format(joined=joined), (to_json(list(spellings)), RecordKind.MEMORY.value, *parameters, limit)
    )
    return dict(rows.fetchall())


def mentioned_by(
    connection: apsw.Connection, kind: RecordKind, owner_ids: Iterable[int], concept_ids: Iterable[int]
) -> Mapping[int, set[int]]:
    """Which of the concepts each of the messages or memories mentions."""
    rows: Any = connection.execute(
        "SELECT owner_id, concept_id FROM mentions WHERE kind = ? AND owner_id IN (SELECT value FROM json_each(?)) "
        "AND concept_id IN (SELECT value FROM json_each(?))",
        (kind.value, ids_parameter(owner_ids), ids_parameter(concept_ids)),
    )
    found: defaultdict[int, set[int]] = defaultdict(set)
    for owner_id, concept_id in rows:
        found[owner_id].add(concept_id)
    return found
