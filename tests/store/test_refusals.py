"""Databases on which the service refuses to start: each with a sentence that says what to do, and without changes."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from structlog.testing import capture_logs

from souvenir.core.errors import BackupNotFound, StoreUnusable, Unavailable
from souvenir.core.settings import Settings
from souvenir.store.sqlite import database as database_module
from souvenir.store.sqlite.database import SqliteDatabase
from souvenir.store.sqlite.restore import restore_offline
from souvenir.store.sqlite.schema import SCHEMA_VERSION
from tests.store.conftest import OpenDatabase
from tests.store.stored import MODEL_ID, NOW, insert, problems, texts_of

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [f"memory {number}: " + "what somebody said. " * 60 for number in range(12)]


@pytest.fixture
def path(open_database: OpenDatabase, settings: Settings) -> Path:
    """A closed database with some pages and without a backup."""
    database = open_database()
    insert(database, *TEXTS)
    database.close()
    return settings.database_path


def back_up(open_database: OpenDatabase) -> str:
    database = open_database()
    database.back_up(reason="older", now=NOW.replace(year=2020))
    newest = database.back_up(reason="manual", now=NOW).name
    database.close()
    return newest


def flip_header(content: bytearray) -> None:
    content[:16] = b"not a database!!"


def flip_a_page(content: bytearray) -> None:
    content[2 * 4096 : 3 * 4096] = random.Random(1).randbytes(4096)


def truncate(content: bytearray) -> None:
    del content[len(content) // 2 :]


def garbage(content: bytearray) -> None:
    content[:] = random.Random(2).randbytes(len(content))


DAMAGES = [flip_header, flip_a_page, truncate, garbage]


def damage(path: Path, how: Callable[[bytearray], None]) -> bytes:
    content = bytearray(path.read_bytes())
    how(content)
    path.write_bytes(content)
    return bytes(content)


def refusal(open_database: OpenDatabase, **changes: object) -> str:
    """Return the error sentence of opening the database, which must be repeatable."""
    with pytest.raises(StoreUnusable) as caught:
        open_database(**changes)
    with pytest.raises(StoreUnusable) as again:
        open_database(**changes)
    assert again.value.message == caught.value.message
    return caught.value.message


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_database_is_refused_and_not_changed(
    open_database: OpenDatabase, path: Path, how: Callable[[bytearray], None]
):
    content = damage(path, how)
    message = refusal(open_database)
    assert str(path) in message
    assert f"there is no backup in {path.parent / 'backups'}" in message
    assert path.read_bytes() == content


@pytest.mark.parametrize("how", DAMAGES)
def test_the_refusal_of_a_damaged_database_names_the_restore_command(
    open_database: OpenDatabase, settings: Settings, path: Path, how: Callable[[bytearray], None]
):
    name = back_up(open_database)
    content = damage(path, how)
    message = refusal(open_database)
    assert f"`python app.py restore {name}`" in message
    kept = restore_offline(settings, name).kept
    assert content in [file.read_bytes() for file in kept]
    database = open_database()
    assert texts_of(database) == TEXTS
    assert problems(database) == []


def test_a_database_with_any_damaged_page_is_refused_or_reads_correctly(open_database: OpenDatabase, path: Path):
    sound = path.read_bytes()
    refused = 0
    for page in range(len(sound) // 4096):
        content = bytearray(sound)
        content[page * 4096 : (page + 1) * 4096] = random.Random(page).randbytes(4096)
        path.write_bytes(content)
        try:
            database = open_database()
        except StoreUnusable:
            refused += 1
            assert path.read_bytes() == content
            continue
        assert texts_of(database) == TEXTS
        database.close()
    assert refused >= len(sound) // 4096 - 1


def test_a_large_database_is_checked_after_the_start_and_refuses_writes_if_it_is_damaged(
    open_database: OpenDatabase, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(database_module, "CHECKED_AT_START_BYTES", 0)
    name = back_up(open_database)
    sound = path.read_bytes()
    database = open_database()
    database.check_for_damage()
    assert database.warnings.current() == ()
    insert(database, "still written")
    database.close()
    connection = apsw.Connection(str(path))
    page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'history'").get
    connection.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = random.Random(1).randbytes(4096)
    path.write_bytes(content)
    database = open_database()
    assert database.warnings.current() == ()
    database.check_for_damage()
    [warning] = database.warnings.current()
    assert warning.code == "database_damaged"
    assert f"`python app.py restore {name}`" in warning.message
    with pytest.raises(Unavailable, match="is damaged"):
        insert(database, "refused")
    assert texts_of(database) == [*TEXTS, "still written"]
    database.close()
    path.write_bytes(sound)


@pytest.mark.usefixtures("unfiltered_logs")
def test_a_check_of_a_large_database_ends_when_the_service_closes(
    open_database: OpenDatabase, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(database_module, "CHECKED_AT_START_BYTES", 0)
    database = open_database()
    stop = database.stop_checking
    monkeypatch.setattr(database_module, "require_sound", lambda connection, _: interrupted(connection, stop))
    with capture_logs() as logs:
        database.check_for_damage()
    assert [line["event"] for line in logs] == ["check_interrupted"]
    assert database.warnings.current() == ()
    assert texts_of(database) == TEXTS
    database.close()


def interrupted(connection: apsw.Connection, stop: Callable[[], None]) -> None:
    """Run a statement that takes long, and is asked to stop while it runs."""

    def stop_once(*numbers: Any) -> Any:
        [number] = numbers
        if number == 5:
            stop()
        return number

    connection.create_scalar_function("stop_once", stop_once, 1)
    rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)"
    assert connection.execute(f"{rows} SELECT max(stop_once(i)) FROM n").get


def test_a_newer_schema_is_refused_and_not_changed(open_database: OpenDatabase, path: Path):
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", SCHEMA_VERSION + 1)
    connection.close()
    content = path.read_bytes()
    message = refusal(open_database)
    assert f"schema version {SCHEMA_VERSION + 1} and this release knows {SCHEMA_VERSION}" in message
    assert "start the newer release" in message
    assert path.read_bytes() == content


@pytest.mark.parametrize("version", [0, 1, 99])
def test_a_database_of_another_program_is_refused_and_not_changed(
    open_database: OpenDatabase, settings: Settings, version: int
):
    settings.data_dir.mkdir()
    connection = apsw.Connection(str(settings.database_path))
    connection.execute("CREATE TABLE theirs (id INTEGER); INSERT INTO theirs VALUES (1)")
    connection.pragma("user_version", version)
    connection.close()
    content = settings.database_path.read_bytes()
    assert "another program" in refusal(open_database)
    assert settings.database_path.read_bytes() == content


@pytest.mark.parametrize("emptied", [False, True])
def test_a_missing_database_is_refused_if_backups_exist(
    open_database: OpenDatabase, settings: Settings, path: Path, emptied: bool
):
    name = back_up(open_database)
    path.unlink()
    if emptied:
        path.touch()
    message = refusal(open_database)
    assert "is missing although" in message
    assert f"`python app.py restore {name}`" in message
    assert not path.exists() or not path.stat().st_size
    restore_offline(settings, name)
    assert texts_of(open_database()) == TEXTS


def test_a_missing_database_is_refused_if_index_snapshots_exist(
    open_database: OpenDatabase, settings: Settings, path: Path
):
    path.write_bytes(b"")
    settings.index_dir.mkdir()
    (settings.index_dir / "1.index").write_bytes(b"")
    message = refusal(open_database)
    assert "is missing although" in message
    assert "there is no backup in" in message


def test_an_empty_folder_is_a_new_database(open_database: OpenDatabase, settings: Settings):
    settings.data_dir.mkdir()
    settings.database_path.touch()
    assert texts_of(open_database()) == []


@pytest.mark.parametrize("here", [True, False], ids=["same process", "other process"])
def test_a_second_service_on_the_same_folder_is_refused(database: SqliteDatabase, settings: Settings, here: bool):
    insert(database, "text")
    if here:
        with pytest.raises(StoreUnusable, match="Another process uses DATA_DIR"):
            SqliteDatabase.open(settings, MODEL_ID)
    else:
        program = (
            "import sys; from pathlib import Path; from souvenir.core.settings import Settings; "
            "from souvenir.store.sqlite.database import SqliteDatabase; "
            "SqliteDatabase.open(Settings(data_dir=Path(sys.argv[1])), 'fake@1')"
        )
        other = subprocess.run(
            [sys.executable, "-c", program, settings.data_dir],
            cwd=ROOT,
            capture_output=True,
            check=False,
            text=True,
            timeout=60,
        )
        assert other.returncode != 0
        assert "StoreUnusable: Another process uses DATA_DIR" in other.stderr
    with pytest.raises(StoreUnusable, match="Another process uses DATA_DIR"):
        restore_offline(settings, "any")
    assert texts_of(database) == ["text"]


def test_the_folder_lock_is_released_after_closing_and_after_a_refusal(open_database: OpenDatabase, path: Path):
    content = path.read_bytes()
    damage(path, garbage)
    refusal(open_database)
    path.write_bytes(content)
    open_database().close()
    assert texts_of(open_database()) == TEXTS


def test_another_embedding_model_is_refused_with_both_names(open_database: OpenDatabase, path: Path):
    message = refusal(open_database, model_id="other@2")
    assert f"made by {MODEL_ID} and EMBED_MODEL is other@2" in message
    assert "set EMBED_MODEL back" in message
    assert texts_of(open_database()) == TEXTS


def test_a_database_without_vectors_accepts_another_embedding_model(open_database: OpenDatabase):
    open_database().close()
    database = open_database(model_id="other@2")
    insert(database, "text")
    assert problems(database) == []


def test_a_folder_that_cannot_be_made_is_refused(open_database: OpenDatabase, tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnusable, match="cannot be written"):
        open_database(data_dir=tmp_path / "file" / "data")


def test_restoring_offline_a_backup_that_does_not_exist_changes_nothing(settings: Settings, path: Path):
    content = path.read_bytes()
    with pytest.raises(BackupNotFound):
        restore_offline(settings, "manual_20200101_000000")
    assert path.read_bytes() == content


@pytest.mark.parametrize("reason", ["empty", "full"])
def test_ids_are_not_reused_after_an_offline_restore(open_database: OpenDatabase, settings: Settings, reason: str):
    """Even if the backup was made before the first memory was stored."""
    database = open_database()
    names = {"empty": database.back_up(reason="empty", now=NOW).name}
    given = insert(database, "one", "two")
    names["full"] = database.back_up(reason="full", now=NOW).name
    given += insert(database, "three")
    database.close()
    damage(settings.database_path, garbage)
    restore_offline(settings, names[reason])
    database = open_database()
    assert texts_of(database) == ([] if reason == "empty" else ["one", "two"])
    assert insert(database, "new")[0] > max(given)
    assert problems(database) == []
