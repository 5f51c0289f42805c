"""The database connection as statements use it, whatever the engine.

Statements are written once, in the SQL that the engines share. Parameters are `?`, `?1` or `:name`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

SqlValue = None | int | float | str | bytes
Parameters = Sequence[SqlValue] | Mapping[str, SqlValue]

NO_LIMIT = 2**63 - 1
"""The `LIMIT` of all rows: PostgreSQL accepts no negative number."""


class Rows(Protocol):
    """The result of a statement; each row is a tuple of its columns."""

    def __iter__(self) -> Iterator[Any]: ...

    def __next__(self) -> Any: ...

    def fetchone(self) -> Any:
        """Return the next row as a tuple; None if there is none."""

    def fetchall(self) -> list[Any]: ...

    @property
    def description(self) -> Sequence[Any]:
        """One item for each column."""

    @property
    def get(self) -> Any:
        """The row of a statement that returns at most one: its value if it has one column; None if there is none."""


class Connection(Protocol):
    """As a context manager, a transaction, or a part of one that fails alone."""

    def execute(self, statement: str, parameters: Parameters = (), /) -> Rows: ...

    def executemany(self, statement: str, parameters: Iterable[Parameters], /) -> Rows: ...

    def changes(self) -> int:
        """Return the number of rows that the last statement inserted, changed or deleted."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None: ...
