"""Backups are complete, verified, counted and uniquely named, whatever happens during their creation."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from threading import Event

import apsw
import pytest

from souvenir.core.errors import BackupDamaged, BackupNotFound, InvalidRequest, Unavailable
from souvenir.core.files import sha256_of
from souvenir.core.settings import Settings
from souvenir.store.sqlite.database import SqliteDatabase
from souvenir.store.sqlite.schema import SCHEMA_VERSION
from tests.store.conftest import OpenDatabase
from tests.store.stored import NOW, insert, problems, texts_of

PATIENCE_S = 60.0


def names_of(database: SqliteDatabase) -> list[str]:
    return [backup.name for backup in database.backups.all()]


def switched() -> None:
    return None


def test_a_manifest_describes_the_content_of_its_backup(database: SqliteDatabase, settings: Settings):
    insert(database, "one", "two " * 200, now=NOW)
    backup = database.back_up(reason="manual", now=NOW)
    assert backup.name == "manual_20240301_120000_123456"
    folder = settings.backup_dir / backup.name
    assert json.loads((folder / "manifest.json").read_text()) == {
        "name": backup.name,
        "reason": "manual",
        "created_at": NOW.isoformat(),
        "sha256": sha256_of(folder / "souvenir.db"),
        "bytes": (folder / "souvenir.db").stat().st_size,
        "memories": 2,
        "passages": 3,
        "namespaces": 1,
        "schema_version": SCHEMA_VERSION,
        "sequence": 1,
        "state": backup.state,
    }
    assert database.backups.all() == [backup]
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "souvenir.db"]


def test_backups_made_during_writes_contain_only_whole_transactions(
    database: SqliteDatabase, open_database: OpenDatabase, tmp_path: Path
):
    stop = Event()

    def write(writer: int) -> int:
        written = 0
        while not stop.is_set():
            insert(database, f"writer {writer} pair {written} left", f"writer {writer} pair {written} right")
            written += 1
        return written

    with ThreadPoolExecutor(3) as writers:
        writing = [writers.submit(write, writer) for writer in range(3)]
        try:
            backups = [database.back_up(reason="busy", now=NOW) for _ in range(4)]
        finally:
            stop.set()
        written = sum(future.result(PATIENCE_S) for future in writing)
    assert len({backup.name for backup in backups}) == 4
    assert [backup.memories for backup in backups] == sorted(backup.memories for backup in backups)
    assert backups[-1].memories <= 2 * written == len(texts_of(database))
    for number, backup in enumerate(backups):
        folder = tmp_path / f"copy{number}"
        folder.mkdir()
        shutil.copyfile(database.backups.verify(backup.name), folder / "souvenir.db")
        copy = open_database(data_dir=folder)
        assert problems(copy) == []
        texts = texts_of(copy)
        assert len(texts) == backup.memories
        assert {text.removesuffix(" left") for text in texts[::2]} == {
            text.removesuffix(" right") for text in texts[1::2]
        }


def test_backups_made_in_the_same_microsecond_have_unique_names(open_database: OpenDatabase):
    database = open_database(max_backups=50)
    with ThreadPoolExecutor(4) as callers:
        made = list(callers.map(lambda _: database.back_up(reason="manual", now=NOW).name, range(12)))
    assert sorted(made) == sorted(
        ["manual_20240301_120000_123456"] + [f"manual_20240301_120000_123456_{n}" for n in range(2, 13)]
    )
    assert sorted(names_of(database)) == sorted(made)


def test_the_name_of_an_evicted_backup_is_not_used_again_within_its_second(open_database: OpenDatabase):
    database = open_database(max_backups=1)
    made = []
    for at in range(4):
        made.append(database.back_up(reason="pre_import", now=NOW + timedelta(microseconds=at)).name)
        database.backups.evict()
    assert made == sorted(set(made))
    assert names_of(database) == made[-1:]


def test_backups_with_names_of_earlier_versions_are_listed_in_order(database: SqliteDatabase, settings: Settings):
    old = "manual_20240301_120000"
    (settings.backup_dir / database.back_up(reason="manual", now=NOW).name).rename(settings.backup_dir / old)
    new = database.back_up(reason="manual", now=NOW + timedelta(microseconds=1)).name
    assert names_of(database) == [new, old]
    assert database.backups.verify(old).exists()


def test_eviction_keeps_the_newest_backups(open_database: OpenDatabase, settings: Settings):
    database = open_database(max_backups=3)
    made = [database.back_up(reason="manual", now=NOW + timedelta(seconds=at)).name for at in range(5)]
    assert names_of(database) == made[:1:-1]
    assert sorted(path.name for path in settings.backup_dir.iterdir()) == made[2:]


def test_backups_triggered_by_writers_evict_only_each_other(open_database: OpenDatabase):
    database = open_database(max_backups=2)
    reasons = ["manual", "scheduled", *("snapshot", "pre_import", "pre_delete") * 3]
    made = [database.back_up(reason=reason, now=NOW + timedelta(hours=at)).name for at, reason in enumerate(reasons)]
    assert sorted(names_of(database)) == sorted([*made[:2], *made[-2:]])


def test_a_backup_just_made_is_kept_even_if_the_clock_went_back(open_database: OpenDatabase):
    database = open_database(max_backups=2)
    late = [database.back_up(reason="manual", now=NOW + timedelta(days=at)).name for at in (8, 9)]
    early = database.back_up(reason="manual", now=NOW).name
    assert names_of(database) == [early, late[1]]
    assert database.backups.verify(early).exists()


def test_backups_from_a_clock_that_was_ahead_are_evicted_before_later_ones(open_database: OpenDatabase):
    database = open_database(max_backups=2)
    ahead = [database.back_up(reason="manual", now=NOW + timedelta(days=365)).name for _ in range(2)]
    made = [database.back_up(reason="manual", now=NOW + timedelta(hours=hour)).name for hour in range(3)]
    assert names_of(database) == [made[2], made[1]]
    assert not set(ahead) & set(names_of(database))


def test_backups_of_earlier_versions_come_first_and_by_their_time(open_database: OpenDatabase, settings: Settings):
    database = open_database(max_backups=5)
    old = [database.back_up(reason="manual", now=NOW + timedelta(hours=hour)).name for hour in (2, 1, 400)]
    for name in old:
        manifest = settings.backup_dir / name / "manifest.json"
        stated = json.loads(manifest.read_text())
        del stated["sequence"], stated["state"]
        manifest.write_text(json.dumps(stated))
    new = database.back_up(reason="manual", now=NOW).name
    assert names_of(database) == [new, old[2], old[0], old[1]]


def test_a_rewritten_backup_keeps_its_place(database: SqliteDatabase):
    old, new = (database.back_up(reason="manual", now=NOW).name for _ in range(2))
    database.backups.rewrite(old, lambda _: None)
    assert names_of(database) == [new, old]
    assert [backup.sequence for backup in database.backups.all()] == [2, 1]


def test_a_backup_that_could_not_be_rewritten_because_of_the_disk_is_not_called_damaged(database: SqliteDatabase):
    name = database.back_up(reason="manual", now=NOW).name

    def fail(path: Path) -> None:
        """As SQLite does when it ended the transaction after an error: the rollback fails too."""
        with closing(apsw.Connection(str(path))) as copy, copy:
            copy.execute("ROLLBACK")
            raise apsw.IOError("disk I/O error")

    with pytest.raises(Unavailable) as caught:
        database.backups.rewrite(name, fail)
    assert not isinstance(caught.value, BackupDamaged)
    database.backups.verify(name)


def test_concurrent_evictions_remove_each_backup_once(open_database: OpenDatabase):
    database = open_database(max_backups=1)
    with ThreadPoolExecutor(4) as callers:
        made = list(
            callers.map(lambda at: database.back_up(reason="manual", now=NOW + timedelta(hours=at)).name, range(12))
        )
    assert len(set(made)) == 12
    database.backups.evict()
    [left] = database.backups.all()
    assert left.sequence == 12


def test_names_freed_by_eviction_are_reused_without_a_clash(open_database: OpenDatabase):
    database = open_database(max_backups=1)
    with ThreadPoolExecutor(6) as callers:
        made = list(callers.map(lambda _: database.back_up(reason="manual", now=NOW).name, range(60)))
    assert len(made) == 60
    database.backups.evict()
    [left] = names_of(database)
    assert database.backups.verify(left).exists()


@pytest.mark.parametrize("reason", ["", "a" * 51, "../up", "a/b", "a b", ".hidden", "a\0"])
def test_a_reason_that_is_invalid_in_a_folder_name_is_refused(
    database: SqliteDatabase, settings: Settings, reason: str
):
    with pytest.raises(InvalidRequest):
        database.back_up(reason=reason, now=NOW)
    assert not settings.backup_dir.exists() or list(settings.backup_dir.iterdir()) == []


def test_a_backup_that_cannot_be_written_leaves_no_files_and_raises(database: SqliteDatabase, settings: Settings):
    settings.backup_dir.touch()
    with pytest.raises(Unavailable):
        database.back_up(reason="manual", now=NOW)
    settings.backup_dir.unlink()
    assert database.back_up(reason="manual", now=NOW).name in names_of(database)


def test_partial_backups_of_a_crash_are_removed_at_the_next_start(open_database: OpenDatabase, settings: Settings):
    database = open_database()
    name = database.back_up(reason="manual", now=NOW).name
    database.close()
    half = settings.backup_dir / ".manual_20240301_120001.partial"
    shutil.copytree(settings.backup_dir / name, half)
    (half / "manifest.json").unlink()
    leftovers = [settings.data_dir / f"souvenir.db.{suffix}" for suffix in ("restoring", "restoring-wal", "replaced")]
    for path in leftovers:
        path.write_bytes(b"half")
    database = open_database()
    assert [path.name for path in settings.backup_dir.iterdir()] == [name]
    assert names_of(database) == [name]
    assert not any(path.exists() for path in leftovers)


def test_a_renamed_backup_has_its_new_name(database: SqliteDatabase, settings: Settings):
    insert(database, "text")
    name = database.back_up(reason="manual", now=NOW).name
    shutil.copytree(settings.backup_dir / name, settings.backup_dir / "keep-this")
    shutil.rmtree(settings.backup_dir / name)
    assert names_of(database) == ["keep-this"]
    assert database.backups.verify("keep-this") == settings.backup_dir / "keep-this" / "souvenir.db"


def test_a_backup_of_a_backup_folder_is_evicted_by_its_own_name(open_database: OpenDatabase, settings: Settings):
    database = open_database(max_backups=1)
    name = database.back_up(reason="manual", now=NOW).name
    shutil.copytree(settings.backup_dir / name, settings.backup_dir / "copy")
    newest = database.back_up(reason="manual", now=NOW + timedelta(days=1)).name
    assert names_of(database) == [newest]


def damaged_byte(folder: Path) -> None:
    content = bytearray((folder / "souvenir.db").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "souvenir.db").write_bytes(content)


def truncated(folder: Path) -> None:
    content = (folder / "souvenir.db").read_bytes()
    (folder / "souvenir.db").write_bytes(content[:-4096])


def without_database(folder: Path) -> None:
    (folder / "souvenir.db").unlink()


def without_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def with_manifest(text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "manifest.json").write_text(text)

    return write


def changed(statement: str) -> Callable[[Path], None]:
    """Make a backup with a valid manifest of a database that cannot be restored."""

    def change(folder: Path) -> None:
        connection = apsw.Connection(str(folder / "souvenir.db"))
        connection.execute(statement)
        connection.close()
        restate(folder)

    return change


def restate(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"] = sha256_of(folder / "souvenir.db")
    (folder / "manifest.json").write_text(json.dumps(manifest))


def damaged_before_it_was_written_down(folder: Path) -> None:
    content = bytearray((folder / "souvenir.db").read_bytes())
    content[4096:8192] = bytes(4096)
    (folder / "souvenir.db").write_bytes(content)
    restate(folder)


UNUSABLE = {
    "a flipped bit": (damaged_byte, "its database is not the file that was written"),
    "a truncated file": (truncated, "its database is not the file that was written"),
    "no database": (without_database, "its database is not the file that was written"),
    "no manifest": (without_manifest, "its manifest cannot be read"),
    "a manifest that is garbage": (with_manifest("\x00{"), "its manifest cannot be read"),
    "a manifest that is a list": (with_manifest("[]"), "its manifest cannot be read"),
    "a manifest of other fields": (with_manifest('{"name": "x"}'), "its manifest cannot be read"),
    "damaged pages": (damaged_before_it_was_written_down, "damaged"),
    "a newer schema": (changed(f"PRAGMA user_version = {SCHEMA_VERSION + 1}"), "schema version"),
    "another program": (changed("PRAGMA application_id = 1"), "another program"),
    "another model": (changed("UPDATE meta SET value = 'other@2' WHERE key = 'model_id'"), "made by other@2"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_unusable_backup_is_refused_and_the_store_is_unchanged(
    open_database: OpenDatabase, settings: Settings, case: str
):
    spoil, reason = UNUSABLE[case]
    database = open_database()
    insert(database, "then")
    name = database.back_up(reason="manual", now=NOW).name
    spoil(settings.backup_dir / name)
    insert(database, "now")
    told: list[bool] = []
    with pytest.raises(BackupDamaged) as caught:
        database.restore(name, now=NOW, switched=lambda: told.append(True))
    assert reason in caught.value.message
    assert repr(name) in caught.value.message
    assert "nothing was changed" in caught.value.message
    assert told == []
    assert texts_of(database) == ["then", "now"]
    insert(database, "later")
    assert problems(database) == []
    assert sorted(path.name for path in settings.data_dir.iterdir() if "restor" in path.name) == []
    database.close()
    assert texts_of(open_database()) == ["then", "now", "later"]


@pytest.mark.parametrize("name", ["missing", "", ".", "..", "../data", "manual_20240301_120000/../other", "/etc"])
def test_only_backups_of_the_folder_can_be_restored(database: SqliteDatabase, name: str):
    insert(database, "text")
    database.back_up(reason="manual", now=NOW)
    with pytest.raises(BackupNotFound):
        database.restore(name, now=NOW, switched=switched)
    assert texts_of(database) == ["text"]


def test_a_restore_backs_up_the_current_state_and_can_be_reverted(database: SqliteDatabase):
    insert(database, "then")
    name = database.back_up(reason="manual", now=NOW).name
    insert(database, "now")
    before = database.restore(name, now=NOW, switched=switched)
    assert before.reason == "pre_restore"
    assert texts_of(database) == ["then"]
    assert sorted(names_of(database)) == sorted([name, before.name])
    database.restore(before.name, now=NOW, switched=switched)
    assert texts_of(database) == ["then", "now"]
    assert problems(database) == []


def test_a_restore_evicts_neither_its_source_nor_its_new_backup(open_database: OpenDatabase):
    database = open_database(max_backups=1)
    name = database.back_up(reason="manual", now=NOW).name
    before = database.restore(name, now=NOW + timedelta(days=1), switched=switched).name
    assert names_of(database) == [before, name]


def test_ids_are_not_reused_after_a_restore(open_database: OpenDatabase):
    database = open_database()
    empty = database.back_up(reason="empty", now=NOW).name
    given = insert(database, "one", "two")
    name = database.back_up(reason="manual", now=NOW).name
    given += insert(database, "three")
    for backup in (name, empty, name):
        database.restore(backup, now=NOW, switched=switched)
        new = insert(database, "new")
        assert new[0] > max(given)
        given += new
    database.close()
    assert insert(open_database(), "newest")[0] > max(given)


def test_a_restored_database_has_a_new_history(open_database: OpenDatabase):
    database = open_database()
    name = database.back_up(reason="manual", now=NOW).name
    seen = {database.history_id}
    for _ in range(2):
        database.restore(name, now=NOW, switched=switched)
        seen.add(database.history_id)
    assert len(seen) == 3
    database.close()
    assert open_database().history_id in seen


def test_the_callback_of_a_restore_runs_before_the_restored_database_is_read(database: SqliteDatabase):
    insert(database, "then")
    name = database.back_up(reason="manual", now=NOW).name
    insert(database, "now")
    reading = Event()
    with ThreadPoolExecutor(1) as reader:

        def read() -> list[str]:
            reading.set()
            return texts_of(database)

        started = []

        def tell() -> None:
            started.append(reader.submit(read))
            assert reading.wait(PATIENCE_S)
            assert not started[0].done()

        database.restore(name, now=NOW, switched=tell)
        assert started[0].result(PATIENCE_S) == ["then"]


def test_reads_and_writes_during_a_restore_wait_and_succeed(open_database: OpenDatabase):
    database = open_database(max_backups=3)
    insert(database, "base")
    name = database.back_up(reason="manual", now=NOW).name
    stop = Event()

    def write() -> list[int]:
        ids: list[int] = []
        while not stop.is_set():
            ids += insert(database, "beside")
        return ids

    def read() -> int:
        times = 0
        while not stop.is_set():
            texts = texts_of(database)
            assert texts[0] == "base"
            assert set(texts[1:]) <= {"beside"}
            times += 1
        return times

    with ThreadPoolExecutor(5) as callers:
        writing, reading = [callers.submit(write) for _ in range(2)], [callers.submit(read) for _ in range(3)]
        try:
            for at in range(6):
                database.restore(name, now=NOW + timedelta(minutes=at), switched=switched)
        finally:
            stop.set()
        ids = [id_ for future in writing for id_ in future.result(PATIENCE_S)]
        assert all(future.result(PATIENCE_S) > 0 for future in reading)
    assert len(set(ids)) == len(ids)
    assert problems(database) == []


def test_automatic_backups_are_evicted_before_named_ones(open_database: OpenDatabase):
    database = open_database(max_backups=3)
    precious = database.back_up(reason="precious", now=NOW).name
    automatic = [database.back_up(reason="pre_restore", now=NOW + timedelta(hours=hour)).name for hour in range(1, 6)]
    assert set(names_of(database)) == {precious, *automatic[-2:]}
