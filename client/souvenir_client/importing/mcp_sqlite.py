"""The SQLite file of the MCP Local Memory server: memories with their facts and tags.

The file is never opened: SQLite reads a private copy of it and of its log (`-wal`) or journal, since even a reader may
write to these. Memories that the server has not moved from the log to the file yet are therefore included. Vectors are
not imported. All texts are held in memory.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from souvenir_client.errors import NotImportable
from souvenir_client.importing import storable
from souvenir_client.importing.reading import MAX_DOCUMENT_BYTES, too_large
from souvenir_client.importing.records import Reading, Record, Skipped

DEFAULT_SOURCE = "mcp-local-memory"
MAGIC = b"SQLite format 3\0"
"""The first bytes of every SQLite file."""

_SUFFIXES = ("", "-wal", "-journal")
_ATTEMPTS = 5
_COLUMNS: Mapping[str, Sequence[str]] = {
    "memories": ("id", "user_id", "data", "created_at", "updated_at"),
    "facts": ("id", "memory_id", "content", "created_at"),
    "context_tags": ("id", "memory_id", "tag", "created_at"),
}
_NEEDED: Mapping[str, frozenset[str]] = {
    "memories": frozenset({"id", "data"}),
    "facts": frozenset({"memory_id", "content"}),
    "context_tags": frozenset({"memory_id", "tag"}),
}

NO_DATABASE = "it is not a SQLite database"
NO_MEMORIES = "the database has no table memories with id and data, as the MCP Local Memory server makes it"
CHANGING = "it changes while it is read; stop its server and import it again"
LOST_FACT = "its memory is missing"
Row = Mapping[str, Any]


def read(path: Path, source: str | None) -> Reading:
    prefix = source or DEFAULT_SOURCE
    try:
        with _copied(path) as connection:
            tables = {name: _columns(connection, name) for name in _COLUMNS}
            if not tables["memories"]:
                raise NotImportable(str(path), NO_MEMORIES)
            if sum(_chars(connection, name, columns) for name, columns in tables.items()) > MAX_DOCUMENT_BYTES:
                raise too_large(str(path))
            memories, facts, tags = (_rows(connection, name, columns) for name, columns in tables.items())
    # Names of columns that are no text are a UnicodeDecodeError.
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise NotImportable(str(path), f"the database cannot be read ({error})") from error
    items = list(_items(memories, facts, tags, prefix))
    return Reading(len(items), iter(items), prefix)


@contextmanager
def _copied(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a private copy, checked for damage: a loop of pages, as an attacker can make it, would never end."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        _copy(path, copy)
        with closing(sqlite3.connect(copy)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda content: content.decode("utf-8", "replace")
            # The schema comes from the file, too.
            connection.execute("PRAGMA trusted_schema = OFF")
            [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise NotImportable(str(path), f"the database is damaged ({found})")
            yield connection


def _copy(path: Path, copy: Path) -> None:
    """Copy the file with its log and journal in one consistent state."""
    try:
        # SQLite follows links, and looks for the log next to the target.
        whole = path.resolve()
        with whole.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise NotImportable(str(path), NO_DATABASE)
        for _ in range(_ATTEMPTS):
            before = _states(whole)
            for suffix in _SUFFIXES:
                to = copy.with_name(copy.name + suffix)
                to.unlink(missing_ok=True)
                if before[suffix] is not None:
                    shutil.copyfile(f"{whole}{suffix}", to)
            if _states(whole) == before:
                return
    except OSError as error:
        raise NotImportable(str(path), f"it cannot be read ({error.strerror or error})") from error
    raise NotImportable(str(path), CHANGING)


def _states(path: Path) -> Mapping[str, tuple[int, int, int] | None]:
    """Size, inode and time of each file; None for one that does not exist."""
    found: dict[str, tuple[int, int, int] | None] = {}
    for suffix in _SUFFIXES:
        try:
            stat = Path(f"{path}{suffix}").stat()
        except FileNotFoundError:
            found[suffix] = None
        else:
            found[suffix] = stat.st_size, stat.st_ino, stat.st_mtime_ns
    return found


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """The columns to read; none if it is not such a table. A view and a virtual table, which run code, are none."""
    [stored] = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ? AND rootpage > 0", (table,)
    ).fetchone()
    # Generated columns, which run code too, are hidden.
    held = {str(row["name"]) for row in connection.execute(f"PRAGMA table_xinfo({table})") if row["hidden"] == 0}
    return [name for name in _COLUMNS[table] if name in held] if stored and held >= _NEEDED[table] else []


def _chars(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> int:
    lengths = " + ".join(f"coalesce(length({name}), 0)" for name in columns)
    return int(connection.execute(f"SELECT total({lengths}) FROM {table}").fetchone()[0]) if columns else 0


def _rows(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> list[Row]:
    """The rows, oldest first: the same order at each import."""
    if not columns:
        return []
    order = ", ".join(name for name in ("created_at", "id") if name in columns) or columns[0]
    return [dict(row) for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}")]


def _items(
    memories: Sequence[Row], facts: Sequence[Row], tags: Sequence[Row], prefix: str
) -> Iterator[Sequence[Record]]:
    of_memory: Mapping[str, dict[object, list[object]]] = {"content": defaultdict(list), "tag": defaultdict(list)}
    known = {row["id"] for row in memories}
    lost: list[Record] = []
    for number, (column, row) in enumerate([*(("content", row) for row in facts), *(("tag", row) for row in tags)], 1):
        if row["memory_id"] in known:
            of_memory[column][row["memory_id"]].append(row[column])
        else:
            noun = "fact" if column == "content" else "tag"
            lost.append(Skipped(f"{noun} {storable.line_of(row.get('id'), 100) or number}", LOST_FACT))
    for number, row in enumerate(memories, 1):
        yield tuple(_memory(row, number, prefix, of_memory["content"][row["id"]], of_memory["tag"][row["id"]]))
    if lost:
        yield lost


def _memory(row: Row, number: int, prefix: str, facts: list[object], tags: list[object]) -> Iterator[Record]:
    user = storable.name_of(row.get("user_id"))
    key = storable.line_of(row["id"], storable.MAX_SOURCE_CHARS)
    return storable.memory(
        row["data"],
        source=f"{prefix}/{user}" if user else prefix,
        key=key or storable.digest(storable.text_of(row["data"])),
        place=key or f"memory {number}",
        created_at=row.get("created_at"),
        # The model that called `add_memory` wrote it.
        metadata={
            **storable.foreign_metadata({"updated_at": row.get("updated_at")}, "mcp"),
            "origin_class": "assistant",
        },
        tags=list(dict.fromkeys(tags)) or None,
        facts=facts or None,
    )
