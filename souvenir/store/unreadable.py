"""Rows that cannot be decoded: reads that show or index content leave them out, and report them here.

An operator sees them in the log, in `/health/ready` and in the answer of `python app.py check`.
"""

from __future__ import annotations

import json
from threading import Lock

import structlog

from souvenir.core.service_warnings import ServiceWarnings
from souvenir.store.sql import Connection

WARNING = "rows_unreadable"
MAX_REMEMBERED = 10_000
"""Rows that are remembered, and so logged, at most."""

_KEYS = {
    "agents": "namespace_id",
    "block_history": "block_id",
    "concept_forms": "concept_id",
    "links": "from_id",
    "memory_tags": "memory_id",
    "mentions": "concept_id",
    "vectors": "passage_id",
}
"""The columns by which rows of tables without `id` are reported."""

MAX_NAMED = 5
"""Rows that the warning names."""

log = structlog.get_logger(__name__)


class UnreadableRows:
    """The rows of one database that reads have left out, by table and id. Thread-safe."""

    def __init__(self, warnings: ServiceWarnings) -> None:
        self._warnings = warnings
        self._lock = Lock()
        self.rows: dict[tuple[str, int], None] = {}

    def add(self, table: str, row_id: int) -> None:
        """Log a row, and add it to the warning, the first time that it is left out."""
        with self._lock:
            if (table, row_id) in self.rows or len(self.rows) >= MAX_REMEMBERED:
                return
            self.rows[table, row_id] = None
            log.error("row_unreadable", table=table, id=row_id)
            self._warn()

    def forget_deleted(self, connection: Connection) -> None:
        """Drop the rows that are deleted by now."""
        with self._lock:
            for table in {table for table, _ in self.rows}:
                key = _KEYS.get(table, "id")
                ids = json.dumps([row_id for of_table, row_id in self.rows if of_table == table])
                gone = f"SELECT value FROM json_each(?) WHERE value NOT IN (SELECT {key} FROM {table})"
                for (row_id,) in connection.execute(gone, (ids,)):
                    del self.rows[table, row_id]
            self._warn()

    def all(self) -> frozenset[tuple[str, int]]:
        with self._lock:
            return frozenset(self.rows)

    def _warn(self) -> None:
        """Show the rows in the warning, in the caller's lock."""
        rows = list(self.rows)
        if not rows:
            self._warnings.clear(WARNING)
            return
        named = ", ".join(f"{table} {row_id}" for table, row_id in rows[:MAX_NAMED])
        more = ", ..." if len(rows) > MAX_NAMED else ""
        self._warnings.put(
            WARNING,
            f"Rows that cannot be read are left out of answers: {len(rows)} ({named}{more}); stop the service and run "
            "`python app.py check --repair`",
        )

    def clear(self) -> None:
        """Forget all rows, since the database was replaced or is being checked again."""
        with self._lock:
            self.rows.clear()
            self._warn()


def left_out(connection: Connection) -> frozenset[tuple[str, int]]:
    """Return the rows, by table and id, that reads of the database have left out so far."""
    rows = _rows_of(connection)
    return frozenset() if rows is None else rows.all()


def report(connection: Connection, table: str, row_id: int) -> None:
    """Report a row that a read leaves out."""
    rows = _rows_of(connection)
    if rows is None:
        log.error("row_unreadable", table=table, id=row_id)
    else:
        rows.add(table, row_id)


def _rows_of(connection: Connection) -> UnreadableRows | None:
    rows: UnreadableRows | None = getattr(connection, "unreadable", None)
    return rows
