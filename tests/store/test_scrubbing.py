"""Deleted data is in no byte of the database's files, however rows were moved; stored data is unchanged."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import apsw
import pytest

from souvenir.core.settings import Settings
from souvenir.store.sqlite import scrubbing
from souvenir.store.sqlite.connections import open_writer
from souvenir.store.sqlite.database import SqliteDatabase
from tests.store.stored import MODEL_ID, insert, problems, texts_of

PATIENCE_S = 60.0
WORD = re.compile(rb"zq[a-p]{16}")


def words_in(path: Path) -> set[str]:
    """Read the file directly; only while the database is not open in this process."""
    return {found.decode() for found in WORD.findall(path.read_bytes())}


class Churn:
    """Inserts and deletes rows of all sizes in a table, an index and a table without row ids."""

    def __init__(self, connection: apsw.Connection, seed: int) -> None:
        self.connection = connection
        self.random = random.Random(seed)
        self.living: dict[int, str] = {}
        self.dead: set[str] = set()
        self.last = 0
        connection.execute(
            "CREATE TABLE one (id INTEGER PRIMARY KEY, text TEXT, name TEXT UNIQUE);"
            "CREATE TABLE two (name TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID"
        )

    def word(self) -> str:
        return "zq" + "".join(self.random.choices("abcdefghijklmnop", k=16))

    def turn(self) -> None:
        """Run a transaction that inserts some rows and sometimes deletes some."""
        with self.connection:
            for _ in range(self.random.randrange(1, 20)):
                self._add()
            if self.random.random() < 0.2 and self.living:
                self._remove(self.random.sample(list(self.living), min(len(self.living), 20)))

    def _add(self) -> None:
        self.last += 1
        word = self.living[self.last] = self.word()
        repeats = self.random.choice([1, 2, 5, 20, 60, 400])
        self.connection.execute("INSERT INTO one VALUES (?, ?, ?)", (self.last, word * repeats, f"{word} name"))
        self.connection.execute("INSERT INTO two VALUES (?, ?)", (f"{word} key", word * (repeats % 7)))

    def _remove(self, ids: list[int]) -> None:
        for id_ in ids:
            word = self.living.pop(id_)
            self.dead.add(word)
            self.connection.execute("DELETE FROM one WHERE id = ?", (id_,))
            self.connection.execute("DELETE FROM two WHERE name = ?", (f"{word} key",))


@pytest.fixture
def churned(tmp_path: Path) -> Iterator[Churn]:
    connection = open_writer(tmp_path / "churned.db")
    connection.pragma("synchronous", "off")
    churn = Churn(connection, 8900)
    for _ in range(1_500):
        churn.turn()
    yield churn
    connection.close()


def scrub_all(connection: apsw.Connection, path: Path) -> int:
    parts, page = 0, 1
    following: int | None = page
    while following is not None:
        assert scrubbing.empty_log(connection, 1_000)
        following = scrubbing.scrub(connection, path, following)
        parts += 1
    return parts


def test_scrubbing_clears_deleted_rows_and_keeps_all_others(churned: Churn, tmp_path: Path):
    path = tmp_path / "churned.db"
    before = churned.connection.execute("SELECT * FROM one ORDER BY id").fetchall()
    assert scrub_all(churned.connection, path) > 1
    assert churned.connection.execute("PRAGMA integrity_check").get == "ok"
    assert churned.connection.execute("SELECT * FROM one ORDER BY id").fetchall() == before
    # What the connection had in its memory must not bring anything back.
    churned.connection.execute("UPDATE one SET text = text || 'x'")
    assert scrubbing.empty_log(churned.connection, 1_000)
    churned.connection.close()
    found = words_in(path)
    assert found & churned.dead == set()
    assert found == set(churned.living.values())


def test_deleted_words_remain_in_the_file_without_scrubbing(churned: Churn, tmp_path: Path):
    """Shows that scrubbing is needed: if this fails with a newer SQLite, scrubbing can be removed."""
    assert scrubbing.empty_log(churned.connection, 1_000)
    churned.connection.close()
    assert words_in(tmp_path / "churned.db") & churned.dead


def test_scrubbing_clears_free_pages(tmp_path: Path):
    path = tmp_path / "old.db"
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    churn = Churn(connection, 1)
    for _ in range(300):
        churn.turn()
    churn.dead |= set(churn.living.values())
    connection.execute("DROP TABLE one; DROP TABLE two")
    assert scrubbing.empty_log(connection, 1_000)
    left = connection.pragma("freelist_count")
    assert left > 500
    scrub_all(connection, path)
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    assert connection.pragma("freelist_count") == left
    connection.close()
    assert words_in(path) == set()


def test_closing_the_scrubbed_file_keeps_the_locks_of_the_process(churned: Churn, tmp_path: Path):
    """Other processes must still see the database as open."""
    path = tmp_path / "churned.db"
    assert scrubbing.empty_log(churned.connection, 1_000)
    scrubbing.scrub(churned.connection, path, 1)
    inode = path.stat().st_ino
    held = [line for line in Path("/proc/locks").read_text().splitlines() if f":{inode} " in line]
    assert any("POSIX" in line and "READ" in line for line in held)


@pytest.fixture
def database(settings: Settings) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase.open(settings, MODEL_ID)
    yield database
    database.close()


def test_reads_and_writes_run_during_scrubbing(database: SqliteDatabase):
    insert(database, *(f"text number {number}" for number in range(500)))
    stop = Event()

    def write() -> int:
        written = 0
        while not stop.is_set():
            written += len(insert(database, "beside"))
        return written

    def read() -> int:
        times = 0
        while not stop.is_set():
            assert texts_of(database)[:2] == ["text number 0", "text number 1"]
            times += 1
        return times

    with ThreadPoolExecutor(4) as callers:
        writing, reading = [callers.submit(write) for _ in range(2)], [callers.submit(read) for _ in range(2)]
        try:
            cleared = [database.clear_unused() for _ in range(5)]
        finally:
            stop.set()
        written = sum(one.result(PATIENCE_S) for one in writing)
        assert all(one.result(PATIENCE_S) for one in reading)
    assert any(cleared)
    assert len(texts_of(database)) == 500 + written
    assert problems(database) == []


def test_scrubbing_waits_a_limited_time_for_a_long_read(database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("souvenir.store.sqlite.database.LOG_WAIT_S", 0.5)
    insert(database, "before")
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM memories").get == 1
        insert(database, "after")
        assert not database.clear_unused()
        assert insert(database, "others write")
    assert database.clear_unused()
    assert database.bytes_on_disk[1] == 0
