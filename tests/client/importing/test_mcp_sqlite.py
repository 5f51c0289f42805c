"""The database of the MCP Local Memory server, as its schema says, and hostile files."""

from __future__ import annotations

import hashlib
import random
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from souvenir_client import Souvenir
from souvenir_client.errors import NotImportable
from souvenir_client.importing import Kind, MemoryRecord, detect, import_file, mcp_sqlite, storable
from tests.client.importing.files import altered, records, skipped, usable

Row = tuple[Any, ...]
SCHEMA = """
CREATE TABLE memories (id TEXT PRIMARY KEY, user_id TEXT NOT NULL, data TEXT NOT NULL,
  created_at DATETIME, updated_at DATETIME);
CREATE TABLE facts (id TEXT PRIMARY KEY, memory_id TEXT REFERENCES memories(id), content TEXT NOT NULL,
  created_at DATETIME);
CREATE TABLE fact_vectors (fact_id TEXT PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE context_tags (id TEXT PRIMARY KEY, memory_id TEXT, tag TEXT NOT NULL, created_at DATETIME);
"""
MEMORIES: list[Row] = [
    ("U2ESeh7V", "ann", "Polly the parrot moved to Oslo.", "2025-01-02T03:04:05.678Z", "2025-01-03T00:00:00.000Z"),
    ("aaaaaaaa", "bob", "The bike is red.", "2025-01-01 10:00:00", None),
]
FACTS: list[Row] = [
    ("f2", "U2ESeh7V", "Polly lives in Oslo", "2025-01-02T03:04:06Z"),
    ("f1", "U2ESeh7V", "Polly is a parrot", "2025-01-02T03:04:05Z"),
]
TAGS: list[Row] = [
    ("t1", "U2ESeh7V", "pets", "2025"),
    ("t2", "U2ESeh7V", "home", "2026"),
    ("t3", "U2ESeh7V", "pets", "2027"),
]


def database(path: Path, schema: str = SCHEMA) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(schema)
    return connection


def filled(
    path: Path, memories: Sequence[Row] = MEMORIES, facts: Sequence[Row] = FACTS, tags: Sequence[Row] = TAGS
) -> Path:
    with closing(database(path)) as connection:
        fill(connection, memories, facts, tags)
    return path


def fill(
    connection: sqlite3.Connection,
    memories: Sequence[Row] = MEMORIES,
    facts: Sequence[Row] = FACTS,
    tags: Sequence[Row] = TAGS,
) -> None:
    connection.executemany("INSERT INTO memories VALUES (?, ?, ?, ?, ?)", memories)
    connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?)", facts)
    connection.executemany("INSERT INTO context_tags VALUES (?, ?, ?, ?)", tags)
    connection.execute("INSERT INTO fact_vectors VALUES ('f1', zeroblob(6144))")


def contents(folder: Path) -> dict[str, str]:
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()}


def test_memories_keep_ids_users_times_facts_and_tags(tmp_path):
    path = filled(tmp_path / "memory.db")
    before = contents(tmp_path)
    assert detect(path) is Kind.MCP_SQLITE
    bike, polly = usable(records(Kind.MCP_SQLITE, path))
    assert (polly.text, polly.source, polly.key) == (MEMORIES[0][2], "mcp-local-memory/ann", "U2ESeh7V")
    assert (polly.facts, polly.tags) == (["Polly is a parrot", "Polly lives in Oslo"], ["pets", "home"])
    assert polly.created_at == "2025-01-02T03:04:05.678000+00:00"
    assert polly.metadata == {"mcp_updated_at": "2025-01-03T00:00:00.000Z", "origin_class": "assistant"}
    assert (bike.source, bike.created_at, bike.facts) == (
        "mcp-local-memory/bob",
        "2025-01-01T10:00:00.000000+00:00",
        [],
    )
    assert [one.source for one in usable(records(Kind.MCP_SQLITE, path, "old"))] == ["old/bob", "old/ann"]
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["memory.db", "notes.md"])
def test_an_unflushed_log_is_read_and_neither_file_is_changed(tmp_path, name):
    served = tmp_path / "served"
    served.mkdir()
    path = served / name
    with closing(database(path, f"PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; {SCHEMA}")) as connection:
        fill(connection)
        assert b"Polly" not in path.read_bytes()
        copied = tmp_path / "copied"
        shutil.copytree(served, copied)
        (copied / f"{name}-shm").unlink()
        link = tmp_path / "link.db"
        link.symlink_to(path)
        for one in (path, copied / name, link):
            before = [contents(served), contents(copied)]
            assert detect(one) is Kind.MCP_SQLITE
            assert len(usable(records(Kind.MCP_SQLITE, one))) == 2
            assert [contents(served), contents(copied)] == before
        (copied / f"{name}-wal").unlink()
        with pytest.raises(NotImportable, match="no table memories"):
            records(Kind.MCP_SQLITE, copied / name)


def test_an_open_transaction_is_not_part_of_the_copy(tmp_path):
    path = filled(tmp_path / "memory.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("DELETE FROM memories")
        connection.execute("INSERT INTO fact_vectors VALUES ('big', zeroblob(500000))")
        assert (tmp_path / "memory.db-journal").stat().st_size
        assert len(usable(records(Kind.MCP_SQLITE, path))) == 2


def test_unusable_rows_are_counted(tmp_path):
    memories = [*MEMORIES, ("empty", "ann", " ", None, None), ("late", "a/b", "Dated.", "soon", b"\xff")]
    memories += [("blob", "ann", b"\x00\xff", None, None), ("odd", "..", "a\0b\r\nc", 1_735_700_000, 1e999)]
    facts = [*FACTS, ("f3", "gone", "Lost", None), ("f4", None, "Lost", None), ("f5", "late", b"x", None)]
    path = filled(tmp_path / "memory.db", memories, facts, [*TAGS, ("t4", "gone", "x", None)])
    found = records(Kind.MCP_SQLITE, path)
    by_key = {one.key: one for one in usable(found)}
    assert set(by_key) == {"U2ESeh7V", "aaaaaaaa", "late", "odd"}
    assert (by_key["late"].source, by_key["odd"].source) == ("mcp-local-memory/a-b", "mcp-local-memory")
    assert (by_key["odd"].text, by_key["odd"].created_at) == ("ab\nc", "2025-01-01T02:53:20.000000+00:00")
    assert sorted(skipped(found)) == [
        ("blob", storable.NO_TEXT),
        ("empty", storable.NO_TEXT),
        ("fact f3", mcp_sqlite.LOST_FACT),
        ("fact f4", mcp_sqlite.LOST_FACT),
        ("tag t4", mcp_sqlite.LOST_FACT),
    ]
    assert altered(found) == [("late", storable.UNREADABLE_TIME), ("late", storable.UNUSABLE_FACTS)]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("CREATE TABLE notes (text TEXT)", "no table memories"),
        ("CREATE TABLE memories (id TEXT, text TEXT)", "no table memories"),
        ("CREATE TABLE x (id TEXT); CREATE VIEW memories AS SELECT id, id AS data FROM x", "no table memories"),
        ("CREATE VIRTUAL TABLE memories USING fts5(id, data)", "no table memories"),
        ("CREATE TABLE memories (id TEXT, data TEXT AS (id || 'x') STORED)", "no table memories"),
    ],
)
def test_a_database_without_its_tables_is_refused(tmp_path, schema, reason):
    path = tmp_path / "other.db"
    database(path, schema).close()
    with pytest.raises(NotImportable, match=reason):
        records(Kind.MCP_SQLITE, path)


def test_a_database_with_memories_only_is_enough(tmp_path):
    path = tmp_path / "memory.db"
    with closing(database(path, "CREATE TABLE memories (id, data); CREATE TABLE facts (id)")) as connection:
        connection.execute("INSERT INTO memories VALUES (7, 'Seven.'), ('\ud7ff', 'Other.')")
    assert [one.text for one in usable(records(Kind.MCP_SQLITE, path))] == ["Seven.", "Other."]


def test_a_file_that_is_no_database_or_changes_is_refused(tmp_path, monkeypatch):
    for name, content in (("a.db", b"text"), ("b.db", mcp_sqlite.MAGIC), ("c.db", mcp_sqlite.MAGIC + b"\xff" * 5000)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(NotImportable):
            records(Kind.MCP_SQLITE, tmp_path / name)
    with pytest.raises(NotImportable):
        records(Kind.MCP_SQLITE, tmp_path)
    path, copyfile = filled(tmp_path / "memory.db"), shutil.copyfile

    def copy_and_change(source: str, to: Path) -> None:
        copyfile(source, to)
        with Path(source).open("ab") as file:
            file.write(b"x")

    monkeypatch.setattr(shutil, "copyfile", copy_and_change)
    with pytest.raises(NotImportable, match="changes while it is read"):
        records(Kind.MCP_SQLITE, path)


def mangled(content: bytes, chance: random.Random) -> Iterator[bytes]:
    for _ in range(120):
        copy = bytearray(content)
        for _ in range(chance.randint(1, 8)):
            # More often in the pages of the schema and of the tables than among zeros.
            at = chance.choice([chance.randrange(len(copy)), 4096 * chance.randrange(len(copy) // 4096) + 7])
            copy[at : at + chance.choice([1, 2, 50])] = bytes([chance.randrange(256)]) * chance.choice([1, 2, 50])
        yield bytes(copy)


def test_damaged_databases_are_refused_or_give_storable_memories(tmp_path):
    content = filled(tmp_path / "memory.db").read_bytes()
    path = tmp_path / "mangled.db"
    refused = 0
    for one in mangled(content, random.Random(7)):
        path.write_bytes(one)
        try:
            found = records(Kind.MCP_SQLITE, path)
        except NotImportable:
            refused += 1
            continue
        for record in usable(found):
            assert isinstance(record, MemoryRecord)
            record.text.encode()
    assert refused >= 20


def test_the_database_is_imported_once_and_found_by_its_facts(service, tmp_path):
    path = filled(tmp_path / "memory.db")
    with Souvenir(service.url, namespace="local-memory") as client:
        first = import_file(client, path)
        again = import_file(client, path)
        [polly] = client.memories.list(tag=["pets"]).memories
        facts = [fact.text for fact in client.facts.list(memory_id=polly.id).facts]
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE memories SET data = 'The bike is blue.' WHERE id = 'aaaaaaaa'")
        changed = import_file(client, path)
    assert (first.kind, first.memories.imported, first.skipped, first.altered) == (Kind.MCP_SQLITE, 2, (), ())
    assert (again.imported, again.updated, again.unchanged) == (0, 0, 2)
    assert (changed.imported, changed.updated, changed.unchanged) == (0, 1, 1)
    assert (polly.source, polly.document_at) == ("mcp-local-memory/ann", "2025-01-02T03:04:05.678000+00:00")
    assert facts == ["Polly is a parrot", "Polly lives in Oslo"]
