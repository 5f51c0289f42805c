"""docs/scaling.md, "Erasure": until when PostgreSQL's files keep the bytes of deleted rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from benchmarks.postgres_server import postgres_server

MARK = b"marked-for-erasure"
ROWS, MARKED = 2_000, 100


class Server:
    def __init__(self, folder: Path, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self._data = folder / "data"
        self.connection = connection
        # It would write other pages while the test looks at them.
        connection.execute("CREATE TABLE notes (id int PRIMARY KEY, text text) WITH (autovacuum_enabled = off)")

    def add(self, ids: range, *, marked: bool = False) -> None:
        word = MARK.decode() if marked else "ordinary"
        texts = [(number, f"{word} {number} " + "text " * 20) for number in ids]
        with self.connection.cursor() as cursor:
            cursor.executemany("INSERT INTO notes VALUES (%s, %s)", texts)

    def copies(self, folder: str) -> int:
        """Return how often the mark is in the files of a folder once everything is written."""
        self.connection.execute("CHECKPOINT")
        return sum(path.read_bytes().count(MARK) for path in (self._data / folder).rglob("*") if path.is_file())

    def renew_log(self) -> None:
        for _ in range(4):
            # A segment that nothing was written to is not switched.
            self.connection.execute("SELECT pg_logical_emit_message(FALSE, 'test', 'next')")
            self.connection.execute("SELECT pg_switch_wal()")
            self.connection.execute("CHECKPOINT")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with postgres_server(tmp_path) as address, psycopg.connect(address, autocommit=True) as connection:
        server = Server(tmp_path, connection)
        share = ROWS // MARKED
        for begin in range(0, ROWS, share):
            server.add(range(begin, begin + 1), marked=True)
            server.add(range(begin + 1, begin + share))
        assert server.copies("base") == MARKED
        connection.execute("DELETE FROM notes WHERE text LIKE %s", (f"{MARK.decode()}%",))
        yield server


def test_a_vacuum_leaves_bytes_of_deleted_rows_in_free_space_of_pages(server: Server):
    assert server.copies("base") == MARKED
    server.connection.execute("VACUUM notes")
    left = server.copies("base")
    server.add(range(ROWS, ROWS + MARKED))
    print(f"{left} after the vacuum, {server.copies('base')} after {MARKED} new rows")
    assert 0 < left < MARKED


def test_a_full_vacuum_and_new_segments_of_the_log_leave_no_byte_of_deleted_rows(server: Server):
    server.connection.execute("VACUUM FULL notes")
    assert server.copies("base") == 0
    assert server.copies("pg_wal") >= MARKED
    server.renew_log()
    assert server.copies("pg_wal") == 0
