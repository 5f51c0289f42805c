"""The database: opening, full disks, and traces of deleted data."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import apsw
import pytest

from souvenir.core.concurrency import deadline
from souvenir.core.errors import DeadlineExceeded, DiskFull, KeyTaken, Overloaded, ServiceClosing, Unavailable
from souvenir.core.passages import PassageAdded
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, Scope
from souvenir.store import namespaces
from souvenir.store.index_changes import IndexUpdate
from souvenir.store.memories import reads
from souvenir.store.sql import Connection
from souvenir.store.sqlite.database import READERS, SqliteDatabase
from souvenir.store.transaction import Transaction
from tests.store.conftest import OpenDatabase
from tests.store.stored import NOW, insert, nothing, problems, texts_of

LONG = "a long text that takes some pages of the database. " * 400


def on_the_writer(database: SqliteDatabase, work: Callable[[Any], object]) -> object:
    return database.write(Scope(), NOW, lambda tx: work(tx.connection), nothing)


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("secure_delete", 1),
        ("busy_timeout", 5_000),
        ("application_id", 0x534F5556),
    ],
)
def test_the_write_connection_syncs_every_commit(database: SqliteDatabase, pragma: str, value: object):
    assert on_the_writer(database, lambda connection: connection.pragma(pragma)) == value


def test_reading_connections_cannot_write(database: SqliteDatabase):
    with database.read() as connection, pytest.raises(apsw.ReadOnlyError):
        connection.execute("DELETE FROM meta")


def test_a_reader_sees_one_snapshot(database: SqliteDatabase):
    insert(database, "before")
    with database.read() as connection:
        seen = reads.counts(connection)
        insert(database, "after")
        assert reads.counts(connection) == seen
    assert texts_of(database) == ["before", "after"]


def test_reads_beyond_the_pool_are_refused_with_a_bounded_wait(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("souvenir.store.sqlite.reading.READER_WAIT_S", 0.01)
    with database.read(), database.read(), database.read(), database.read(), pytest.raises(Overloaded):
        texts_of(database)
    assert texts_of(database) == []


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


def test_a_read_ends_soon_after_its_deadline_and_its_connection_is_usable_afterwards(database: SqliteDatabase):
    for _ in range(2 * READERS):
        with deadline(0.01), pytest.raises(DeadlineExceeded), database.read() as connection:
            connection.execute(ENDLESS).fetchall()
    with database.read() as connection:
        assert connection.execute("SELECT 1").get == 1


def test_one_caller_leaves_a_connection_for_others(database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("souvenir.store.sqlite.reading.READER_WAIT_S", 0.01)
    with ExitStack() as held:
        held.enter_context(deadline(1_000.0, caller="greedy"))
        for _ in range(READERS - 1):
            held.enter_context(database.read())
        with pytest.raises(Overloaded), database.read():
            pass
        with deadline(1_000.0, caller="modest"), database.read() as connection:
            assert connection.execute("SELECT 1").get == 1


def test_a_connection_is_usable_after_a_failed_read(database: SqliteDatabase):
    insert(database, "text")

    def read_and_fail() -> None:
        with database.read() as connection:
            connection.execute("SELECT * FROM memories").fetchone()
            raise ZeroDivisionError

    for _ in range(8):
        with pytest.raises(ZeroDivisionError):
            read_and_fail()
    assert texts_of(database) == ["text"]


def test_a_database_error_of_a_read_is_wrapped_and_keeps_the_connection_usable(database: SqliteDatabase):
    insert(database, "text")
    for _ in range(8):
        with pytest.raises(Unavailable) as caught, database.read() as connection:
            connection.execute("SELECT * FROM no_such_table")
        assert isinstance(caught.value.__cause__, apsw.Error)
    assert texts_of(database) == ["text"]


def test_a_closed_database_refuses_reads_and_writes(open_database: OpenDatabase):
    database = open_database()
    insert(database, "text")
    database.close()
    with pytest.raises(ServiceClosing):
        insert(database, "more")
    with pytest.raises(ServiceClosing):
        texts_of(database)


def test_a_write_that_violates_a_constraint_is_rolled_back(database: SqliteDatabase):
    insert(database, "kept")
    told: list[IndexUpdate] = []

    def work(connection: Connection) -> None:
        connection.execute("UPDATE memories SET text = 'changed'")
        connection.execute("INSERT INTO vectors (passage_id, model_id, vector) VALUES (999, 'm', x'00')")

    with pytest.raises(Unavailable):
        database.write(Scope("new"), NOW, lambda tx: work(tx.connection), told.append)
    assert told == []
    assert texts_of(database) == ["kept"]
    with database.read() as connection:
        assert namespaces.named(connection, "new") is None
        assert reads.counts(connection).namespaces == 1
    assert problems(database) == []


def test_a_refused_write_is_rolled_back_completely(database: SqliteDatabase):
    def work(tx: Transaction) -> None:
        for text in ("one", "two"):
            tx.insert(MemoryDraft(text, "notes", key="k"), ())

    with pytest.raises(KeyTaken):
        database.write(Scope(), NOW, work, nothing)
    assert texts_of(database) == []


def test_index_changes_carry_the_sequence_number_of_their_write(database: SqliteDatabase):
    told: list[IndexUpdate] = []
    insert(database, "one", "two", apply=told.append)
    insert(database, "three", apply=told.append)
    assert [update.change_seq for update in told] == [1, 2]
    assert [
        [change.passage.text for change in update.changes if isinstance(change, PassageAdded)] for update in told
    ] == [["one", "two"], ["three"]]


class FullDisk:
    """Limits the database to its current size, which SQLite treats as a full disk."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        on_the_writer(database, lambda connection: connection.pragma("max_page_count", 1))

    def has_room_again(self) -> None:
        on_the_writer(self._database, lambda connection: connection.pragma("max_page_count", 1_000_000))


def test_writes_on_a_full_disk_are_rolled_back_and_later_ones_succeed(database: SqliteDatabase):
    before = ["first", "second"]
    insert(database, *before)
    told: list[IndexUpdate] = []
    disk = FullDisk(database)
    for _ in range(3):
        with pytest.raises(DiskFull, match="is full, so nothing was written"):
            insert(database, "small", LONG, LONG, apply=told.append)
        assert texts_of(database) == before
        assert problems(database) == []
    disk.has_room_again()
    insert(database, "small", LONG, apply=told.append)
    assert texts_of(database) == [*before, "small", LONG]
    assert [len(update.changes) for update in told] == [len(told[0].changes)]
    assert problems(database) == []


def test_on_a_full_disk_deleting_still_works(database: SqliteDatabase):
    ids = insert(database, LONG, "second")
    FullDisk(database)
    database.write(Scope(), NOW, lambda tx: tx.delete(ids[:1]), nothing)
    assert texts_of(database) == ["second"]


def test_concurrent_writes_on_a_full_disk_store_exactly_the_acknowledged_ones(database: SqliteDatabase):
    insert(database, "first")
    FullDisk(database)

    def write(number: int) -> str | None:
        text = f"text {number} " + ("small" if number % 2 else LONG)
        try:
            insert(database, text)
        except Unavailable:
            return None
        return text

    with ThreadPoolExecutor(8) as callers:
        answered = [text for text in callers.map(write, range(40)) if text is not None]
    assert len(answered) < 40
    assert sorted(texts_of(database)) == sorted(["first", *answered])
    assert problems(database) == []


def test_a_deleted_text_is_in_no_database_file(database: SqliteDatabase, settings: Settings):
    """Neither in rows, free pages or history, nor in the write-ahead log after a checkpoint."""
    canary, other = "zyzzyva", "quokka"
    [kept, gone] = insert(database, "a text that stays", f"the {canary} is seen", source=f"path/{other}")
    [long] = insert(database, f"{canary} " + LONG)

    def change(text: str) -> None:
        database.write(
            Scope(),
            NOW,
            lambda tx: tx.update(gone, MemoryPatch(text=text, metadata={"note": f"{canary} again"}), ()),
            nothing,
        )

    change(f"now the {canary} is gone")
    database.write(Scope(), NOW, lambda tx: tx.delete([gone, long]), nothing)
    checkpoint = apsw.Connection(str(settings.database_path))
    assert checkpoint.pragma("journal_mode") == "wal"
    checkpoint.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    checkpoint.close()
    files = sorted(path for path in settings.data_dir.iterdir() if path.name.startswith("souvenir.db"))
    assert settings.database_path in files
    assert [path.name for path in files if canary.encode() in path.read_bytes()] == []
    # The same search finds what was not deleted.
    assert other.encode() in settings.database_path.read_bytes()
    with database.read() as connection:
        rows = connection.execute(
            "SELECT action, before, after FROM history WHERE memory_id = ? ORDER BY id", (gone,)
        ).fetchall()
    assert rows == [("add", None, None), ("update", None, None), ("delete", None, None)]
    assert texts_of(database) == ["a text that stays"]
    assert kept != gone


def test_ids_are_never_reused(open_database: OpenDatabase):
    database = open_database()
    ids = insert(database, "one", "two", "three")
    database.write(Scope(), NOW, lambda tx: tx.delete(ids), nothing)
    database.close()
    assert insert(open_database(), "four")[0] > max(ids)
