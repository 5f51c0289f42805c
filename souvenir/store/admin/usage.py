"""Rows of `usage_days`: calls by day, namespace and operation, in total and by each dimension."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from souvenir.store.rows import select
from souvenir.store.sql import Connection

MAX_ROWS = 500
"""Maximum number of rows of a day, namespace and dimension with a name of their own; more calls count as `OTHER`."""

MAX_NAME_CHARS = 200
OTHER = "(other)"
KEPT_DAYS = 400

WITHOUT_NAMESPACE = frozenset({"", "key", "client"})
"""Dimensions that are counted for a namespace that does not exist, under an empty name."""

_KEY = "day, namespace, dimension, operation, name"


@dataclass(frozen=True, slots=True)
class UsageRow:
    """:param day: Days since 1970 in UTC. :param dimension: Empty, like the name, for all calls of the operation.

    :param cost_usd: None if the price of a model is unknown.
    """

    day: int
    namespace: str
    dimension: str
    operation: str
    name: str
    calls: int
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0


def add_usage(connection: Connection, rows: Iterable[UsageRow]) -> None:
    """Add calls to the stored ones.

    Sources and sessions of a namespace that does not exist, or no longer, are not stored.
    """
    for row in rows:
        exists = connection.execute("SELECT EXISTS (SELECT 1 FROM namespaces WHERE name = ?)", (row.namespace,)).get
        if not exists and row.dimension not in WITHOUT_NAMESPACE:
            continue
        key = (row.day, row.namespace if exists else "", row.dimension, row.operation)
        name = row.name if _has_place(connection, *key, row.name) else OTHER
        connection.execute(
            f"INSERT INTO usage_days ({_KEY}, calls, input_tokens, output_tokens, cost_usd) "
            f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT ({_KEY}) DO UPDATE SET {_SUMS}",
            (*key, name, row.calls, row.input_tokens, row.output_tokens, row.cost_usd),
        )


_SUMS = ", ".join(
    f"{name} = usage_days.{name} + excluded.{name}" for name in ("calls", "input_tokens", "output_tokens", "cost_usd")
)


def _has_place(connection: Connection, day: int, namespace: str, dimension: str, operation: str, name: str) -> bool:
    """Return True if the name has a row, or may get one."""
    if dimension == "":
        return True
    key = "day = ? AND namespace = ? AND dimension = ?"
    has_row = f"SELECT EXISTS (SELECT 1 FROM usage_days WHERE {key} AND operation = ? AND name = ?)"
    if connection.execute(has_row, (day, namespace, dimension, operation, name)).get:
        return True
    return bool(
        connection.execute(
            f"SELECT count(*) < ? FROM usage_days WHERE {key} AND name <> ?",
            (MAX_ROWS, day, namespace, dimension, OTHER),
        ).get
    )


def usage_since(connection: Connection, first_day: int, namespace: str | None = None) -> Iterator[UsageRow]:
    """Yield the rows from that day on, of one namespace or of all."""
    rest = "" if namespace is None else " AND namespace = ?2"
    columns = f"{_KEY}, calls, input_tokens, output_tokens, cost_usd"
    query = f"SELECT {columns} FROM usage_days WHERE day >= ?1{rest} ORDER BY {_KEY}"
    return select(connection, UsageRow, query, (first_day,) if namespace is None else (first_day, namespace))


def trim_usage(connection: Connection, today: int) -> None:
    """Delete rows that are older than `KEPT_DAYS`, and those of namespaces that a restore did not bring back."""
    connection.execute("DELETE FROM usage_days WHERE day < ?", (today - KEPT_DAYS,))
    connection.execute(
        "DELETE FROM usage_days WHERE namespace <> '' AND namespace NOT IN (SELECT name FROM namespaces)"
    )


def forget_source(connection: Connection, namespace: str, source: str) -> None:
    """Delete the counts of a source."""
    connection.execute(
        "DELETE FROM usage_days WHERE namespace = ? AND dimension = 'source' AND name = ?",
        (namespace, first_segment(source)),
    )


def first_segment(source: str) -> str:
    """Return the first segment of a source's path, the name under which its calls are counted."""
    return source.partition("/")[0][:MAX_NAME_CHARS]
