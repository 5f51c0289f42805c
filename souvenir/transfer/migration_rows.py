"""Rows of a store as a migration copies and compares them: table by table, in the order of the primary key, in pages.

A page is one transaction, so the rows of a table in the target are always the first ones of the source. A migration
that was killed goes on after the last of them; nothing else records how far it came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from itertools import chain, zip_longest
from typing import Any

import apsw

from souvenir.core.errors import StoreUnusable
from souvenir.store import meta
from souvenir.store.sql import Connection
from souvenir.store.sqlite.schema import migrate

PAGE_BYTES = 4 * 2**20
"""About the size of a page: some thousand passages, or a few long transcripts."""

FIRST_PAGE_ROWS, MAX_PAGE_ROWS = 64, 20_000

OF_ONE_ENGINE = frozenset({"generations", "incidents", "replicas"})
"""Tables that are not copied: the history of the database itself, losses of a file, and running processes. The
checksums of rows are not copied either (`souvenir.store.sqlite.checksums`)."""

OF_ONE_DATABASE = (meta.MIGRATION, "restored_over", "timeline")
"""The keys in `meta` that are not copied: of the history of a database, and of PostgreSQL's feed of changes."""

_JSON_WITHOUT_CHECK = {"history": ("before", "after")}

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is copied.

    :param types: SQLite's types of the columns: INTEGER, TEXT, BLOB or REAL. :param key: The primary key.
    :param to_itself: Columns that refer to other rows of the table. :param json: Columns that hold JSON.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[str, ...]
    to_itself: tuple[str, ...]
    json: frozenset[str]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(name for name, kind in zip(self.columns, self.types, strict=True) if kind == "TEXT")

    def key_of(self, row: Sequence[Any]) -> Row:
        return tuple(row[self.columns.index(name)] for name in self.key)

    def refers_to_itself(self, row: Sequence[Any]) -> bool:
        """Return whether a row refers to another one of the table."""
        return any(row[self.columns.index(name)] is not None for name in self.to_itself)

    def named(self, row: Sequence[Any]) -> str:
        """Return the table and the key of a row, for a sentence."""
        return f"{self.name} {', '.join(map(str, self.key_of(row)))}"

    @property
    def _copied(self) -> str:
        """The condition of the rows that are copied."""
        return f"key NOT IN ({', '.join(map(repr, OF_ONE_DATABASE))})" if self.name == "meta" else "TRUE"

    def count(self, connection: Connection) -> int:
        return int(connection.execute(f"SELECT count(*) FROM {self.name} WHERE {self._copied}").get)

    def _select(self, condition: str, limit: int, *, descending: bool = False) -> str:
        condition += f" AND {self._copied}"
        order = ", ".join(f"{name} DESC" if descending else name for name in self.key)
        return f"SELECT {', '.join(self.columns)} FROM {self.name} WHERE {condition} ORDER BY {order} LIMIT {limit}"

    def pages(self, connection: Connection, after: Row | None = None) -> Iterator[list[Row]]:
        """Yield the rows in the order of their keys.

        :param after: The key after which to begin.
        """
        limit = FIRST_PAGE_ROWS
        following = f"({', '.join(self.key)}) > ({', '.join('?' * len(self.key))})"
        while True:
            query = self._select("TRUE" if after is None else following, limit)
            rows: list[Row] = connection.execute(query, after or ()).fetchall()
            if rows:
                yield rows
            if len(rows) < limit:
                return
            after = self.key_of(rows[-1])
            size = sum(len(value) if isinstance(value, str | bytes) else 8 for row in rows for value in row)
            limit = min(max(1, len(rows) * PAGE_BYTES // size), 4 * limit, MAX_PAGE_ROWS)

    def last_key(self, connection: Connection) -> Row | None:
        """Return the greatest key; None if there are no rows."""
        row = connection.execute(self._select("TRUE", 1, descending=True)).fetchone()
        return None if row is None else self.key_of(row)


@cache
def tables() -> tuple[Table, ...]:
    """Return all tables that are copied, each after those that its rows refer to."""
    with closing(apsw.Connection(":memory:")) as connection:
        migrate(connection)
        statements = dict(
            connection.execute(
                "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' "
                "AND name NOT LIKE '%~_checksums' ESCAPE '~' ORDER BY name"
            )
        )
        names = sorted(set(statements) - OF_ONE_ENGINE)
        referred = {name: _referred(connection, name) for name in names}
        order = TopologicalSorter({name: {other for other, _ in referred[name]} - {name} for name in names})
        return tuple(_table(connection, name, statements[name], referred[name]) for name in order.static_order())


def _referred(connection: apsw.Connection, name: str) -> list[tuple[str, str]]:
    """Return the tables that a table refers to, each with the column that refers to it."""
    found = connection.execute(f"PRAGMA foreign_key_list({name})").fetchall()
    return [(str(table), str(column)) for _, _, table, column, *_ in found]


def _table(connection: apsw.Connection, name: str, statement: str, referred: Sequence[tuple[str, str]]) -> Table:
    info: list[Row] = connection.execute(f"PRAGMA table_info({name})").fetchall()
    columns = [(column, kind, place) for _, column, kind, _, _, place in info]
    json = {*re.findall(r"json_valid\((\w+)\)", statement), *_JSON_WITHOUT_CHECK.get(name, ())}
    return Table(
        name,
        tuple(column for column, _, _ in columns),
        tuple(kind for _, kind, _ in columns),
        tuple(column for column, _, place in sorted(columns, key=lambda one: one[2]) if place),
        tuple(column for other, column in referred if other == name),
        frozenset(json),
    )


def copy(
    table: Table, source: Connection, target: Connection, insert: Callable[[Table, Sequence[Row]], None]
) -> Iterator[int]:
    """Copy the rows that the target lacks, and yield their number after each transaction.

    :param insert: Inserts rows into the target.
    """
    for page in table.pages(source, table.last_key(target)):
        with target:
            insert(table, without_references(table, page))
        yield len(page)
    if table.to_itself:
        for page in table.pages(source):
            with target:
                set_references(table, target, page)


def without_references(table: Table, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows without references to rows of their own table, which may come later."""
    places = [table.columns.index(name) for name in table.to_itself]
    if not places:
        return rows
    return [tuple(None if place in places else value for place, value in enumerate(row)) for row in rows]


def set_references(table: Table, target: Connection, rows: Iterable[Row]) -> None:
    """Set what `without_references` left out; the caller has a transaction."""
    rows = list(rows)
    for name in table.to_itself:
        at = table.columns.index(name)
        change = f"UPDATE {table.name} SET {name} = ? WHERE {' AND '.join(f'{key} = ?' for key in table.key)}"
        target.executemany(change, [(row[at], *table.key_of(row)) for row in rows if row[at] is not None])


def compare(table: Table, source: Connection, target: Connection) -> int:
    """Compare all rows of both sides; return their number.

    :raises StoreUnusable: If they differ; the message names the first difference.
    """
    compared = 0
    both = (chain.from_iterable(table.pages(connection)) for connection in (source, target))
    for one, other in zip_longest(*both):
        if one != other:
            raise StoreUnusable(
                f"The target differs from the source at {table.named(one or other)}; empty the target, make sure that "
                "nothing uses either of both, and migrate again"
            )
        compared += 1
    return compared
