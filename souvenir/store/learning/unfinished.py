"""Unfinished extractions, found by the memories that they would store.

Each function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from souvenir.core.timestamps import to_us
from souvenir.store.memories.conditions import Condition, sql_of
from souvenir.store.namespaces import Namespace, visible_condition
from souvenir.store.rows import select
from souvenir.store.sql import Connection

_TO_COME = (
    "(SELECT e.job_id, e.source, '{}' AS metadata, '' AS text, e.document_at, CAST(? AS BIGINT) AS created_at, "
    "CAST(? AS BIGINT) AS updated_at, 0 AS id, 0 AS archived FROM extractions e JOIN jobs j ON j.id = e.job_id "
    "WHERE e.namespace = ? AND j.status IN ('queued', 'running'))"
)
"""A memory of each unfinished extraction, as far as it is known: with its source and date, without a text."""


def matching(connection: Connection, namespace: Namespace, condition: Condition, now: datetime) -> Sequence[str]:
    """Return the unfinished extractions whose memories would be visible and meet the condition."""
    visible, parameters = visible_condition(namespace.sources)
    text, values = sql_of(condition, namespace.id)
    query = f"SELECT job_id FROM {_TO_COME} m WHERE {visible} AND ({text}) ORDER BY job_id"
    at = to_us(now)
    return list(select(connection, str, query, (at, at, namespace.name, *parameters, *values)))
