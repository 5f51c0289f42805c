"""Records the statements that SQLite runs, with their results, and repeats them in PostgreSQL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.sqlite import connections

_OWN = re.compile(
    r"sqlite_|\bgenerations\b|_checksums\b|^\s*(PRAGMA|VACUUM|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)\b", re.IGNORECASE
)
"""Statements that only SQLite's engine runs."""


@dataclass(slots=True)
class Ran:
    """A statement, and its parameters, or those of each of its runs; `rows` is None for several runs."""

    statement: str
    parameters: Any
    rows: list[Any] | None

    def difference(self, other: PostgresConnection) -> str | None:
        """Run it there; return its error, or both results if they are not the same."""
        named = f"{self.statement}\n{self.parameters!r:.300}"
        try:
            if self.rows is None:
                other.executemany(self.statement, self.parameters)
                return None
            rows = other.execute(self.statement, self.parameters or ()).fetchall()
        except psycopg.Error as error:
            return f"{named}\n{error}"
        mine, theirs = (_comparable(self.statement, each) for each in (self.rows, rows))
        return None if mine == theirs else f"{named}\nSQLite: {mine!r:.500}\nPostgreSQL: {theirs!r:.500}"


class _Rows(Iterator[Any]):
    """Rows that were all fetched."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = iter(rows)

    def __next__(self) -> Any:
        return next(self._rows)

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    @property
    def get(self) -> Any:
        row = self.fetchone()
        return row[0] if row is not None and len(row) == 1 else row


@dataclass(slots=True)
class Recording:
    """The statements of both engines' SQL, in the order in which they ran."""

    ran: list[Ran] = field(default_factory=list)

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Record everything that connections run which are opened from now on."""
        ran = self.ran

        base: Any = connections.ReportingConnection

        class Recorded(base):  # type: ignore[misc]  # the names of parameters differ
            begun = 0

            def execute(self, statement: str, parameters: Any = (), /, **options: Any) -> Any:
                cursor = super().execute(statement, parameters, **options)
                if statement == "SAVEPOINT job":
                    self.begun = len(ran)
                elif statement == "ROLLBACK TO job":
                    del ran[self.begun :]
                if _OWN.search(statement):
                    return cursor
                rows = list(cursor)
                ran.append(Ran(statement, parameters, rows))
                return _Rows(rows)

            def executemany(self, statement: str, parameters: Iterable[Any], /, **options: Any) -> Any:
                runs = list(parameters)
                cursor = super().executemany(statement, runs, **options)
                if not _OWN.search(statement):
                    ran.append(Ran(statement, runs, None))
                return cursor

        monkeypatch.setattr(connections, "ReportingConnection", Recorded)

    def differences(self, other: PostgresConnection) -> list[str]:
        """Repeat everything; return the statements that fail, or whose rows differ."""
        return [told for one in self.ran if (told := one.difference(other)) is not None]


def _comparable(statement: str, rows: Iterable[Sequence[Any]]) -> list[Any]:
    values = [tuple(map(_value, row)) for row in rows]
    return values if "ORDER BY" in statement else sorted(values, key=repr)


def _value(value: Any) -> Any:
    """Whatever differs in form only: spaces in JSON, and the last bits of a mean."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.dumps(json.loads(value), sort_keys=True)
        except ValueError:
            return value
    return round(value, 9) if isinstance(value, float) else value
