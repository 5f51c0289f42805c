"""A connection to PostgreSQL that runs the statements which both engines share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import RawCursor, Transaction
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus

from souvenir.store.postgres.dialect import translate
from souvenir.store.sql import Parameters
from souvenir.store.unreadable import UnreadableRows


class _NumberLoader(Loader):
    """Sums of integers are `numeric` in PostgreSQL."""

    def load(self, data: Any) -> int | float:
        number = Decimal(bytes(data).decode())
        return int(number) if number == number.to_integral_value() else float(number)


class _TruthLoader(Loader):
    """Truth values are 0 and 1, as they are stored."""

    def load(self, data: Any) -> int:
        return int(bytes(data) == b"t")


class _Rows:
    """Rows in the form of `souvenir.store.sql.Rows`."""

    def __init__(self, cursor: RawCursor[tuple[Any, ...]]) -> None:
        self._cursor = cursor
        self._has_rows = cursor.description is not None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def fetchone(self) -> Any:
        return self._cursor.fetchone() if self._has_rows else None

    def fetchall(self) -> list[Any]:
        return self._cursor.fetchall() if self._has_rows else []

    @property
    def get(self) -> Any:
        row, following = self.fetchone(), self.fetchone()
        if following is not None:
            raise ValueError("The statement returned several rows")
        return row[0] if row is not None and len(row) == 1 else row

    @property
    def description(self) -> Sequence[Any]:
        return self._cursor.description or ()


class PostgresConnection:
    """`souvenir.store.sql.Connection` over psycopg. Outside of a `with` block, each statement is a transaction.

    `next_model_id` is the model that a write has to embed with too.
    """

    def __init__(
        self, connection: psycopg.Connection[tuple[Any, ...]], unreadable: UnreadableRows | None = None
    ) -> None:
        """:param connection: In autocommit mode; used by nobody else.

        :param unreadable: Gets the rows that reads leave out.
        """
        self.unreadable = unreadable
        self.next_model_id: str | None = None
        self._connection = connection
        self._connection.adapters.register_loader("numeric", _NumberLoader)
        self._connection.adapters.register_loader("bool", _TruthLoader)
        self._cursor: RawCursor[tuple[Any, ...]] | None = None
        self._open: list[AbstractContextManager[Transaction]] = []

    @property
    def in_transaction(self) -> bool:
        """True if a transaction is open whose statements did not fail; False if the connection is lost."""
        return self._connection.info.transaction_status is TransactionStatus.INTRANS

    def execute(self, statement: str, parameters: Parameters = (), /) -> _Rows:
        translated = translate(statement)
        cursor = RawCursor(self._connection)
        cursor.execute(translated.text.encode(), translated.arguments(parameters))
        self._cursor = cursor
        return _Rows(cursor)

    def executemany(self, statement: str, parameters: Iterable[Parameters], /) -> _Rows:
        translated = translate(statement)
        cursor = RawCursor(self._connection)
        cursor.executemany(translated.text.encode(), [translated.arguments(one) for one in parameters])
        self._cursor = cursor
        return _Rows(cursor)

    def changes(self) -> int:
        return 0 if self._cursor is None else max(0, self._cursor.rowcount)

    def __enter__(self) -> Self:
        block = self._connection.transaction()
        block.__enter__()
        self._open.append(block)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        return self._open.pop().__exit__(kind, error, trace)
