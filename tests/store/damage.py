"""Damages stored rows as a disk does: past the triggers and checks that every write goes through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw


@contextmanager
def behind_the_back(path: Path) -> Iterator[apsw.Connection]:
    """Open a database of a stopped service; changes fire no trigger, and keep no check or foreign key."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("ignore_check_constraints", True)
        triggers = list(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"))
        with connection:
            for name, _ in triggers:
                connection.execute(f'DROP TRIGGER "{name}"')
            yield connection
            for _, sql in triggers:
                connection.execute(sql)


def overwrite(path: Path, table: str, column: str, value: str, *, where: str) -> int:
    """Set a column to an SQL expression; return the number of rows."""
    with behind_the_back(path) as connection:
        connection.execute(f"UPDATE {table} SET {column} = {value} WHERE {where}")
        return connection.changes()


def overwrite_bytes(path: Path, old: bytes, new: bytes) -> int:
    """Replace bytes in the file by as many others; return how many times they were found."""
    assert len(old) == len(new)
    content = path.read_bytes()
    path.write_bytes(content.replace(old, new))
    return content.count(old)
