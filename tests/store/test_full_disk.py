"""A full disk is called full, nothing is lost by it, and what frees space still works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from souvenir.core.errors import BackupDamaged, DiskFull, StoreUnusable
from souvenir.core.settings import Settings
from souvenir.store.sqlite import disk_space
from souvenir.store.sqlite.database import SqliteDatabase
from souvenir.store.sqlite.disk_space import RESERVE_BYTES
from souvenir.store.sqlite.restore import restore_offline
from tests.small_disk import fill, small_disk
from tests.store.stored import MODEL_ID, NOW, insert, problems, texts_of

TEXTS = [f"memory {number} " * 40 for number in range(200)]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(disk_space, "RESERVE_BYTES", RESERVE_BYTES)
    with small_disk(tmp_path / "disk", mib=48) as folder:
        yield folder


@pytest.fixture
def small(disk: Path) -> Settings:
    return Settings(data_dir=disk / "data")


def test_a_restore_on_a_full_disk_says_so_and_changes_nothing(disk: Path, small: Settings):
    with closing(SqliteDatabase.open(small, MODEL_ID)) as database:
        insert(database, *TEXTS)
        name = database.back_up(reason="manual", now=NOW).name
        insert(database, "later")
        filler = fill(disk, leave=200_000)
        with pytest.raises(DiskFull, match=r"The restore failed because the disk is full: about .* MiB are free"):
            database.restore(name, now=NOW, switched=lambda: None)
        assert texts_of(database) == [*TEXTS, "later"]
    with pytest.raises(StoreUnusable, match="The restore failed because the disk is full") as refused:
        restore_offline(small, name)
    assert not isinstance(refused.value, BackupDamaged)
    filler.unlink()
    with closing(SqliteDatabase.open(small, MODEL_ID)) as database:
        assert texts_of(database) == [*TEXTS, "later"]
        database.restore(name, now=NOW, switched=lambda: None)
        assert texts_of(database) == TEXTS
        assert problems(database) == []


def test_a_backup_on_a_full_disk_names_the_bytes_and_leaves_no_files(disk: Path, small: Settings):
    with closing(SqliteDatabase.open(small, MODEL_ID)) as database:
        insert(database, *TEXTS)
        fill(disk, leave=200_000)
        with pytest.raises(DiskFull, match=f"The backup failed .* needed in {small.data_dir} and 0.2 MiB are free"):
            database.back_up(reason="manual", now=NOW)
        assert list(small.backup_dir.iterdir()) == []
