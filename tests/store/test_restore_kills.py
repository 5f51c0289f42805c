"""A restore that ends at any of its renames and syncs leaves the old state, complete with its log, or the restored one.

A process is killed, or one call fails as on a broken disk. Afterwards the store opens, and the same restore works.
The long form goes through all calls, a sample through every fifth one, from a first one that is drawn at random.
"""

from __future__ import annotations

import errno
import os
import shutil
import traceback
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

import pytest

from souvenir.core.errors import SouvenirError, StoreUnusable
from souvenir.core.settings import Settings
from souvenir.core.types import Role, Scope
from souvenir.store import tombstones
from souvenir.store.admin import keys
from souvenir.store.admin.keys import ApiKey
from souvenir.store.pending_removals import Removable, Target
from souvenir.store.sqlite.database import SqliteDatabase
from souvenir.store.sqlite.restore import INTENT, STAGED, restore_offline, sibling
from tests.store.stored import MODEL_ID, NOW, insert, problems, texts_of
from tests.thoroughness import sampled

CALLS = ("replace", "rename", "link", "unlink", "fsync")
KILLED, FAILED = 17, 18
STEP = sampled(5, 1)
OLD = [f"old {number}" for number in range(8)]
NEW = [f"acknowledged {number}" for number in range(8)]


def in_child(work: Callable[[], None]) -> int:
    """Run the work in a process that ends without closing anything; return its exit code."""
    if (child := os.fork()) == 0:
        code = 1
        try:
            work()
            code = 0
        except SouvenirError:
            code = FAILED
        except Exception:  # noqa: BLE001 - the exit code tells the parent
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill() -> None:
    os._exit(KILLED)


def fail() -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def at_call(number: int, happens: Callable[[], None]) -> None:
    """From now on count the calls that change a folder or sync, and let something happen instead of the chosen one."""
    left = number

    def counted(call: Callable[..., None]) -> Callable[..., None]:
        def wrapped(*arguments: object, **options: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                happens()
            call(*arguments, **options)

        return wrapped

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))


@pytest.fixture
def backup(settings: Settings) -> str:
    """A store that was killed with acknowledged writes in its log, and the name of a backup from before them.

    One of the memories of the backup was erased since, and there is a key.
    """

    def write() -> None:
        database = SqliteDatabase.open(settings, MODEL_ID)
        [erased, *_] = insert(database, "erased", *OLD)
        database.back_up(reason="manual", now=NOW)
        key = ApiKey("k", "k", None, "hash", "mem_", Role.ADMIN, None, (), NOW)
        database.write_rows(lambda connection: keys.put(connection, key))
        database.write_rows(lambda one: tombstones.create(one, [Target(Removable.MEMORY, erased)], NOW))
        database.write(Scope(), NOW, lambda tx: tx.delete([erased]), lambda _: None)
        insert(database, *NEW)

    assert in_child(write) == 0
    assert sibling(settings.database_path, "-wal").stat().st_size > 0
    [folder] = settings.backup_dir.iterdir()
    return folder.name


def restore_online(settings: Settings, name: str) -> None:
    with closing(SqliteDatabase.open(settings, MODEL_ID)) as database:
        database.restore(name, now=NOW, switched=lambda: None)


def offline(settings: Settings, name: str) -> None:
    restore_offline(settings, name)


def restore_until(number: int, settings: Settings, name: str) -> None:
    """Restore offline, and be killed at this call."""
    at_call(number, kill)
    offline(settings, name)


def require_whole(settings: Settings, *, may_be_old: bool) -> bool:
    """Require one of the two states, complete; return whether it is the restored one."""
    with closing(SqliteDatabase.open(settings, MODEL_ID)) as database:
        texts = texts_of(database)
        assert texts == OLD or (may_be_old and texts == OLD + NEW)
        with database.read() as connection:
            assert [key.id for key in keys.all_keys(connection)] == ["k"]
            assert [row.owner_id for row in tombstones.read(connection)] == [1]
        assert problems(database) == []
    names = {path.name for path in settings.data_dir.iterdir() if ".replaced-" not in path.name}
    assert names <= {"souvenir.db", "souvenir.db.commit", "souvenir.db.reserve", "souvenir.lock", "backups"}
    return texts == OLD


@pytest.mark.parametrize("happens", [kill, fail])
@pytest.mark.parametrize("restore", [offline, restore_online])
def test_a_restore_that_ends_at_any_rename_or_sync_leaves_a_whole_store(
    settings: Settings,
    backup: str,
    tmp_path: Path,
    restore: Callable[[Settings, str], None],
    happens: Callable[[], None],
):
    outcomes = []
    for number in count(Random().randint(1, STEP), STEP):
        copy = Settings(data_dir=tmp_path / f"at_{number}")
        shutil.copytree(settings.data_dir, copy.data_dir)

        def interrupted(copy: Settings = copy, number: int = number) -> None:
            at_call(number, happens)
            restore(copy, backup)

        code = in_child(interrupted)
        assert code in (0, KILLED if happens is kill else FAILED)
        outcomes.append(require_whole(copy, may_be_old=code != 0))
        if restore is restore_online and code == FAILED:
            assert not outcomes[-1], "a restore that failed changed the store"
        restore(copy, backup)
        assert require_whole(copy, may_be_old=False)
        shutil.rmtree(copy.data_dir)
        if code == 0 and outcomes[-2:] == [True, True]:
            break
    assert outcomes.count(False) >= 3 // STEP
    if restore is offline or happens is kill:
        assert outcomes == sorted(outcomes), "the restore has one point of no return"


def test_the_end_of_an_offline_restore_may_be_interrupted_at_any_call_too(
    settings: Settings, backup: str, tmp_path: Path
):
    """The process that finishes it is killed at each of its calls, and the next one finishes it."""
    base = Settings(data_dir=tmp_path / "base")
    for number in count(1):
        shutil.copytree(settings.data_dir, base.data_dir)
        assert in_child(partial(restore_until, number, base, backup)) == KILLED
        if sibling(base.database_path, INTENT).exists():
            break
        shutil.rmtree(base.data_dir)
    for number in count(Random().randint(1, STEP), STEP):
        copy = Settings(data_dir=tmp_path / f"at_{number}")
        shutil.copytree(base.data_dir, copy.data_dir)

        def opened(copy: Settings = copy, number: int = number) -> None:
            at_call(number, kill)
            SqliteDatabase.open(copy, MODEL_ID)

        code = in_child(opened)
        assert require_whole(copy, may_be_old=False)
        kept = sorted(path.name.partition(".replaced-")[0] for path in copy.data_dir.glob("*.replaced-*"))
        assert kept == ["souvenir.db", "souvenir.db-shm", "souvenir.db-wal"]
        shutil.rmtree(copy.data_dir)
        if code == 0:
            break
    assert number > 6


def test_a_damaged_intent_file_is_no_obstacle(settings: Settings, backup: str):
    for number in count(1):
        in_child(partial(restore_until, number, settings, backup))
        if sibling(settings.database_path, INTENT).exists():
            break
    sibling(settings.database_path, INTENT).write_bytes(b"\0" * 40)
    assert require_whole(settings, may_be_old=False)


def test_the_files_that_an_interrupted_copy_left_are_not_taken_for_those_of_the_next_one(
    settings: Settings, backup: str
):
    """A journal of a killed attempt would be rolled back into the copy of the next one."""
    sibling(settings.database_path, f"{STAGED}-journal").write_bytes(os.urandom(4096))
    offline(settings, backup)
    assert not sibling(settings.database_path, f"{STAGED}-journal").exists()
    assert require_whole(settings, may_be_old=False)


@pytest.mark.parametrize("after", ["start", "restore"])
def test_a_second_process_is_refused_even_if_the_lock_file_was_deleted(settings: Settings, backup: str, after: str):
    """The lock of the database file holds, also after a restore put another file in its place."""
    opened, said = os.pipe()
    until, go = os.pipe()
    if (child := os.fork()) == 0:
        try:
            database = SqliteDatabase.open(settings, MODEL_ID)
            if after == "restore":
                database.restore(backup, now=NOW, switched=lambda: None)
            os.write(said, b".")
            os.close(go)
            os.read(until, 1)
        finally:
            os._exit(0)
    try:
        os.close(until)
        assert os.read(opened, 1) == b"."
        (settings.data_dir / "souvenir.lock").unlink()
        for refused in (lambda: SqliteDatabase.open(settings, MODEL_ID), lambda: offline(settings, backup)):
            with pytest.raises(StoreUnusable, match="Another process uses"):
                refused()
            (settings.data_dir / "souvenir.lock").unlink()
    finally:
        os.close(go)
        os.waitpid(child, 0)
    with closing(SqliteDatabase.open(settings, MODEL_ID)) as database:
        assert texts_of(database) == (OLD if after == "restore" else OLD + NEW)


def test_the_lock_of_the_database_file_leaves_the_locks_of_sqlite(settings: Settings, backup: str):
    with closing(SqliteDatabase.open(settings, MODEL_ID)) as database:
        database.restore(backup, now=NOW, switched=lambda: None)
        insert(database, "text")
        inode = settings.database_path.stat().st_ino
        held = [line.split()[1:4] for line in Path("/proc/locks").read_text().splitlines() if f":{inode} " in line]
    assert ["FLOCK", "ADVISORY", "WRITE"] in held
    assert ["POSIX", "ADVISORY", "READ"] in held
