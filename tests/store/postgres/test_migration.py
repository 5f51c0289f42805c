"""A store moves to PostgreSQL and back with every row and id, whatever interrupts it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from souvenir.command_line import main
from souvenir.core.errors import EmbeddingUnavailable, InvalidRequest, StoreUnusable
from souvenir.core.settings import Settings
from souvenir.core.types import FloatVector, MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store import meta
from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.sqlite import generations
from souvenir.store.sqlite.locks import lock_folder
from souvenir.transfer import migration_rows
from souvenir.transfer.migration import Migration, is_same, is_url, migrate_store
from souvenir.transfer.migration_postgres import PostgresStore
from souvenir.transfer.migration_rows import Row, Table, tables
from souvenir.transfer.migration_stores import SqliteStore
from tests.fake_embedder import FakeEmbedder
from tests.killing import lines_until_killed
from tests.store.damage import overwrite
from tests.store.postgres.moved_stores import (
    answers_of,
    connected,
    fill_empty_tables,
    make_store,
    move,
    rows_of,
    settings_of,
)
from tests.thoroughness import THOROUGH, sampled

PROCESS = "tests.store.postgres.migrating_process"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored") / "data"
    make_store(folder)
    return folder


@pytest.fixture
def source(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "source"))


@pytest.fixture
def url(server_address: str) -> str:
    """An empty database of its own."""
    with psycopg.connect(server_address, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS moved WITH (FORCE)")
        connection.execute("CREATE DATABASE moved")
    return server_address.replace("/postgres?", "/moved?")


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration_rows, "FIRST_PAGE_ROWS", 2)
    monkeypatch.setattr(migration_rows, "MAX_PAGE_ROWS", 2)


class Interrupted(Exception):
    """What a test raises in the middle of a migration."""


def interrupt_after(monkeypatch: pytest.MonkeyPatch, inserts: int) -> None:
    """Let a migration fail in the transaction of a page."""
    left = [inserts]

    def interrupted(original: Any) -> Any:
        def insert(self: Any, table: Table, rows: Sequence[Row]) -> None:
            original(self, table, rows)
            left[0] -= 1
            if not left[0]:
                raise Interrupted

        return insert

    for kind in (PostgresStore, SqliteStore):
        monkeypatch.setattr(kind, "insert", interrupted(kind.insert))


def has_rows(url: str) -> bool:
    with connected(url) as raw:
        return any(table.last_key(PostgresConnection(raw)) for table in tables() if table.name != "meta")


def require_served(place: str) -> None:
    if is_url(place):
        with connected(place) as raw:
            meta.require_no_migration(PostgresConnection(raw))
    else:
        MemoryEngine.open(settings_of(place), FakeEmbedder()).close()


# --- there and back ------------------------------------------------------------------------------------------------


def test_a_store_answers_and_exports_the_same_in_postgresql_and_back(source: Path, url: str, tmp_path: Path):
    before = answers_of(str(source), tmp_path)
    said = move(source, url, searches=20)
    assert "20 searches have the same answers in both" in said
    assert any(line.startswith("memories: ") and line.endswith("rows are the same in both") for line in said)
    assert answers_of(url, tmp_path) == before
    back = tmp_path / "back"
    move(url, back)
    assert answers_of(str(back), tmp_path) == before
    assert answers_of(str(source), tmp_path) == before


def test_every_table_checksum_and_counter_comes_back(source: Path, url: str, tmp_path: Path):
    fill_empty_tables(source)
    before = rows_of(source)
    assert all(before[table.name] for table in tables())
    move(source, url)
    move(url, tmp_path / "back")
    assert rows_of(tmp_path / "back") == before


def test_ids_are_never_given_again(source: Path, url: str, tmp_path: Path):
    with closing(MemoryEngine.open(settings_of(str(source)), FakeEmbedder())) as engine:
        used = [engine.add(Scope(), MemoryDraft("to be deleted", "x")).id for _ in range(3)]
        engine.delete_many(Scope(), [id_ for id_ in used if id_])
    move(source, url)
    for place in (url, str(tmp_path / "back")):
        if place != url:
            move(url, place)
        with closing(MemoryEngine.open(settings_of(place, tmp_path), FakeEmbedder())) as engine:
            new = engine.add(Scope(), MemoryDraft("new", "x")).id
            assert new == max(id_ for id_ in used if id_) + 1
            engine.delete(Scope(), new)
            used.append(new)


def test_writes_after_a_migration_have_their_events_and_usage(source: Path, url: str, tmp_path: Path):
    def event_count(raw: psycopg.Connection[Any]) -> int:
        [number] = raw.execute("SELECT count(*) FROM events").fetchone() or (0,)
        return int(number)

    move(source, url)
    with connected(url) as raw:
        before = event_count(raw)
        with closing(MemoryEngine.open(settings_of(url, tmp_path), FakeEmbedder())) as engine:
            engine.add(Scope(), MemoryDraft("new", "x"))
        assert event_count(raw) == before + 1


def test_the_target_has_a_history_of_its_own(source: Path, url: str, tmp_path: Path):
    histories = set()
    for place in (str(source), url, str(tmp_path / "back")):
        if place != str(source):
            move(source if place == url else url, place)
        with (
            closing(MemoryEngine.open(settings_of(place, tmp_path), FakeEmbedder())) as engine,
            engine.namespace(Scope()) as (connection, _),
        ):
            histories.add(generations.history_id(connection))
    assert len(histories) == 3


# --- interrupted ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to_postgres", [True, False], ids=["to PostgreSQL", "to SQLite"])
@pytest.mark.usefixtures("small_pages")
def test_a_migration_that_fails_between_rows_goes_on(
    source: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to_postgres: bool
):
    before, back = rows_of(source), tmp_path / "back"
    if not to_postgres:
        move(source, url)
    places = (str(source), url) if to_postgres else (url, str(back))
    for inserts in (1, 2, 30, 120) if THOROUGH else (1, 30):
        with monkeypatch.context() as patch:
            interrupt_after(patch, inserts)
            with pytest.raises(Interrupted):
                move(*places)
        with pytest.raises(StoreUnusable, match="unfinished target"):
            require_served(places[1])
    said = move(*places)
    assert said[0].endswith("is the unfinished target of this migration, which goes on")
    if to_postgres:
        move(url, back)
    assert rows_of(back) == before


@pytest.mark.parametrize("to_postgres", [True, False], ids=["to PostgreSQL", "to SQLite"])
def test_a_migration_that_is_killed_again_and_again_goes_on(source: Path, url: str, tmp_path: Path, to_postgres: bool):
    before, back, chance = rows_of(source), tmp_path / "back", random.Random(8900)
    if not to_postgres:
        move(source, url)
    places = (str(source), url) if to_postgres else (url, str(back))
    for _ in range(sampled(2, 3)):
        assert lines_until_killed(PROCESS, *places, lines=chance.randint(2, 60))
    move(*places)
    if to_postgres:
        move(url, back)
    assert rows_of(back) == before


@pytest.mark.usefixtures("small_pages")
def test_a_target_of_an_earlier_state_or_another_store_is_refused(
    source: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    other = Path(shutil.copytree(source, tmp_path / "other"))
    with monkeypatch.context() as patch:
        interrupt_after(patch, 40)
        with pytest.raises(Interrupted):
            move(source, url)
    with closing(MemoryEngine.open(settings_of(str(other)), FakeEmbedder())) as engine:
        engine.add(Scope(), MemoryDraft("written since", "x"))
    with pytest.raises(StoreUnusable, match="of another store, or the source was used since"):
        move(other, url)
    with pytest.raises(StoreUnusable, match="unfinished target of a migration"):
        move(url, tmp_path / "back")


@pytest.mark.usefixtures("small_pages")
def test_a_changed_row_of_the_target_is_found(source: Path, url: str, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        interrupt_after(patch, 150)
        with pytest.raises(Interrupted):
            move(source, url)
    with connected(url) as raw:
        raw.execute("UPDATE namespaces SET changed_at = changed_at + 1 WHERE name = 'cem'")
    with pytest.raises(StoreUnusable, match=r"The target differs from the source at namespaces \d"):
        move(source, url)
    with pytest.raises(StoreUnusable, match="unfinished target"):
        require_served(url)


# --- refused -------------------------------------------------------------------------------------------------------


def test_places_of_one_kind_are_refused(source: Path, url: str, tmp_path: Path):
    for places in ((source, tmp_path / "other"), (url, url)):
        with pytest.raises(InvalidRequest, match="both places are of one kind"):
            move(*places)


def test_a_target_with_rows_is_refused(source: Path, url: str, tmp_path: Path):
    move(source, url)
    with pytest.raises(StoreUnusable, match="is not empty: there are rows in"):
        move(source, url)
    other = Path(shutil.copytree(source, tmp_path / "other"))
    with pytest.raises(StoreUnusable, match="is not empty: there are rows in"):
        move(url, other)
    Settings(data_dir=other).database_path.unlink()
    with pytest.raises(StoreUnusable, match="name an empty folder"):
        move(url, other)


def test_a_database_that_a_service_used_but_never_filled_is_a_target(source: Path, url: str, tmp_path: Path):
    before = rows_of(source)
    MemoryEngine.open(settings_of(url, tmp_path), FakeEmbedder()).close()
    move(source, url)
    back = tmp_path / "back"
    MemoryEngine.open(settings_of(str(back)), FakeEmbedder()).close()
    move(url, back)
    assert rows_of(back) == before


def test_stores_in_use_are_refused(source: Path, url: str, tmp_path: Path):
    with lock_folder(source), pytest.raises(StoreUnusable, match="Another process uses"):
        move(source, url)
    with (
        closing(MemoryEngine.open(settings_of(url, tmp_path), FakeEmbedder())),
        pytest.raises(StoreUnusable, match="1 services use the database 'moved'"),
    ):
        move(source, url)
    with connected(url) as raw:
        raw.execute("UPDATE replicas SET seen_at = 0")
        raw.execute("INSERT INTO replicas VALUES ('one', 9000000000000000)")
    with pytest.raises(StoreUnusable, match="1 services use"):
        move(url, tmp_path / "back")


def test_a_source_that_is_missing_or_damaged_is_refused(source: Path, url: str, tmp_path: Path):
    with pytest.raises(StoreUnusable, match="does not exist"):
        move(tmp_path / "missing", url)
    overwrite(Settings(data_dir=source).database_path, "memories", "text", "'changed'", where="id = 2")
    with pytest.raises(StoreUnusable, match=r"is not as it was written.*check --repair"):
        move(source, url)
    assert not has_rows(url)


def test_unfinished_imports_are_refused(source: Path, url: str):
    with closing(MemoryEngine.open(settings_of(str(source)), FakeEmbedder())) as engine:
        engine.write_rows(lambda connection: connection.execute("UPDATE jobs SET kind = 'import'"))
    with pytest.raises(StoreUnusable, match=r"1 unfinished imports of .* cannot be moved"):
        move(source, url)


@pytest.mark.parametrize(
    ("draft", "named"),
    [
        (MemoryDraft("a\0b", "notes"), r"text of memories \d+"),
        (MemoryDraft("plain", "notes", {"key": "a\0b"}), r"metadata of memories \d+"),
    ],
)
def test_texts_with_nul_are_named_before_anything_is_copied(source: Path, url: str, draft: MemoryDraft, named: str):
    with closing(MemoryEngine.open(settings_of(str(source)), FakeEmbedder())) as engine:
        stored = engine.add(Scope(), draft).id
        engine.add(Scope(), MemoryDraft("plain", "notes", {"key": "a\\u0000b"}))
    assert stored is not None
    with pytest.raises(StoreUnusable, match=f"cannot store NUL characters, which are in .*{named}"):
        move(source, url)
    assert not has_rows(url)
    with closing(MemoryEngine.open(settings_of(str(source)), FakeEmbedder())) as engine:
        engine.delete(Scope(), stored)
    move(source, url)


# --- searches ------------------------------------------------------------------------------------------------------


class Unsteady(FakeEmbedder):
    """Its vectors of queries are others each time."""

    dice = np.random.default_rng(0)

    def embed_query(self, text: str) -> FloatVector:
        vector = self.dice.normal(size=self.dim).astype(np.float32)
        return vector / np.float32(np.linalg.norm(vector))


class Broken(FakeEmbedder):
    def load(self) -> None:
        raise EmbeddingUnavailable("The model is gone")


def test_searches_with_other_answers_are_reported(source: Path, url: str):
    with pytest.raises(StoreUnusable, match=r"All rows are the same, but .* of 20 searches have other answers"):
        migrate_store(Settings(), Migration(str(source), url, 20), print, lambda _: Unsteady())


def test_searches_are_not_compared_without_the_model_of_the_vectors(
    source: Path, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    said: list[str] = []

    migrate_store(Settings(), Migration(str(source), url, 20), said.append, lambda _: Broken())
    assert said[-1] == "Searches were not compared, because the embedding model cannot be used: The model is gone"
    assert main(["migrate", "--from", url, "--to", str(tmp_path / "back")]) == 0
    assert "Searches were not compared: the vectors were made by fake@1" in capsys.readouterr().out
    assert main(["migrate", "--from", url, "--to", str(tmp_path / "back")]) == 1
    assert "is not empty" in capsys.readouterr().err


def test_answers_are_the_same_up_to_rounding_and_ties_with_the_last():
    answer = [(1, 0.9), (2, 0.5), (3, 0.1)]
    assert is_same(answer, [(1, 0.90001), (2, 0.5), (4, 0.1)])
    assert not is_same(answer, [(1, 0.91), (2, 0.5), (3, 0.1)])
    assert not is_same(answer, [(1, 0.9), (4, 0.5), (3, 0.1)])
    assert not is_same(answer, answer[:2])
    assert is_same([], [])
