"""Snapshots of indexes on folders and disks that fail: searches go on, operators are warned, no leftovers stay."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from souvenir.core.settings import Settings
from souvenir.core.types import Filters
from souvenir.index.snapshot import Origin
from souvenir.store.sqlite.database import SqliteDatabase
from tests.fake_embedder import FakeEmbedder
from tests.index.access import failing_reads, replaced_by_a_file, unreadable
from tests.index.shelf import Shelf

pytestmark = pytest.mark.usefixtures("unfiltered_logs", "unsampled")

TEXTS = [f"note {number} about the garden and plan{number}" for number in range(30)]
Fault = Callable[[Path], AbstractContextManager[None]]
FAULTS = [unreadable, replaced_by_a_file, failing_reads]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path / "data")
    yield shelf
    shelf.close()


@pytest.fixture
def stored(shelf: Shelf) -> Shelf:
    """A store with a written snapshot that no registry has loaded."""
    shelf.add(*TEXTS)
    shelf.index()
    shelf.snapshot()
    shelf.new_registry()
    return shelf


def files(shelf: Shelf) -> set[str]:
    return {path.name for path in shelf.index_dir.iterdir()}


def codes(shelf: Shelf) -> set[str]:
    return {warning.code for warning in shelf.database.warnings.current()}


def nearest_text(shelf: Shelf, text: str) -> int | None:
    found = shelf.index().nearest(FakeEmbedder().embed_documents([text]), filters=Filters())
    return None if found is None else found[0]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_an_index_whose_folder_cannot_be_read_is_built_from_the_database(stored: Shelf, fault: Fault):
    with fault(stored.index_dir):
        assert nearest_text(stored, TEXTS[7]) is not None
        assert stored.problems() == []
        [warning] = stored.database.warnings.current()
        assert warning.code == "index_unreadable"
        assert str(stored.index_dir) in warning.message
    # Between two writes, as the maintenance does.
    stored.snapshot()
    assert codes(stored) == set()
    stored.new_registry()
    assert stored.problems() == []
    assert stored.analyser.texts == 0


@pytest.mark.parametrize("fault", [unreadable, replaced_by_a_file], ids=lambda fault: fault.__name__)
def test_an_index_whose_folder_cannot_be_written_is_kept_in_memory_until_it_can(shelf: Shelf, fault: Fault):
    shelf.add(*TEXTS)
    shelf.index_dir.mkdir()
    with fault(shelf.index_dir):
        shelf.index()
        shelf.registry.write_snapshots(all_changed=True)
        assert codes(shelf) >= {"index_unwritable"}
        assert shelf.problems() == []
    shelf.registry.write_snapshots(all_changed=False)
    assert codes(shelf) == set()
    shelf.registry.write_snapshots(all_changed=True)
    assert len(files(shelf)) == 1


def test_the_warnings_of_a_folder_are_cleared_without_a_snapshot_to_write(stored: Shelf):
    with unreadable(stored.index_dir):
        stored.index()
        assert codes(stored) == {"index_unreadable"}
        stored.registry.drop(*stored.registry.loaded())
        stored.registry.write_snapshots(all_changed=False)
        assert codes(stored) == {"index_unreadable"}
    stored.registry.write_snapshots(all_changed=False)
    assert codes(stored) == set()
    assert len(files(stored)) == 1


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_store_opens_while_its_index_folder_cannot_be_read(tmp_path: Path, fault: Fault):
    settings = Settings(data_dir=tmp_path / "data")
    settings.index_dir.mkdir(parents=True)
    for _ in ("without a database", "with one"):
        with fault(settings.index_dir):
            SqliteDatabase.open(settings, FakeEmbedder.model_id).close()
        assert settings.database_path.stat().st_size > 0


def test_a_store_opens_while_the_files_of_its_index_folder_cannot_be_examined(tmp_path: Path):
    settings = Settings(data_dir=tmp_path / "data")
    settings.index_dir.mkdir(parents=True)
    (settings.index_dir / "1.index.partial").write_bytes(b"")
    with unreadable(settings.index_dir):
        settings.index_dir.chmod(0o400)
        SqliteDatabase.open(settings, FakeEmbedder.model_id).close()
    assert settings.database_path.stat().st_size > 0


def test_a_sweep_of_an_unreadable_folder_reports_that_deleted_data_may_be_left(stored: Shelf):
    namespace_id = stored.namespace_id()
    with unreadable(stored.index_dir):
        assert not stored.sweep({namespace_id})
        assert codes(stored) == {"index_unwritable"}
        stored.registry.forget(namespace_id)
    assert len(files(stored)) == 1
    assert stored.sweep({namespace_id})
    assert files(stored) == set()


def test_a_failed_write_leaves_the_former_snapshot_and_nothing_else(stored: Shelf):
    stored.add("a new one")
    stored.index()
    before = {name: (stored.index_dir / name).read_bytes() for name in files(stored)}
    blocking = stored.index_dir / f"{stored.namespace_id()}.index.partial"
    (blocking / "inside").mkdir(parents=True)
    stored.snapshot()
    assert codes(stored) == {"index_unwritable"}
    (blocking / "inside").rmdir()
    blocking.rmdir()
    assert {name: (stored.index_dir / name).read_bytes() for name in files(stored)} == before
    stored.snapshot()
    assert codes(stored) == set()
    stored.new_registry()
    assert stored.problems() == []
    assert stored.analyser.texts == 0


@pytest.mark.parametrize("renamed", [False, True])
def test_a_kill_around_the_rename_leaves_a_snapshot_of_one_state(
    stored: Shelf, monkeypatch: pytest.MonkeyPatch, renamed: bool
):
    stored.add("a new one")
    stored.index()
    replace = os.replace

    class Killed(BaseException):
        pass

    def die(source: Path, target: Path) -> None:
        if renamed:
            replace(source, target)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", die)
        with pytest.raises(Killed):
            stored.registry.write_snapshots(all_changed=True)
    stored.new_registry()
    with capture_logs() as logs:
        assert stored.problems() == []
    assert logs == [], "a kill is no damage"
    assert stored.analyser.texts == (0 if renamed else 1)
    assert stored.sweep()
    assert len(files(stored)) == 1


def test_a_failed_rename_leaves_the_former_snapshot(stored: Shelf, monkeypatch: pytest.MonkeyPatch):
    stored.add("a new one")
    stored.index()
    before = {name: (stored.index_dir / name).read_bytes() for name in files(stored)}

    def fail(_: Path, target: Path) -> None:
        raise OSError(5, "Input/output error", str(target))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        stored.snapshot()
    assert {name: (stored.index_dir / name).read_bytes() for name in files(stored)} == before
    [warning] = stored.database.warnings.current()
    assert warning.code == "index_unwritable"
    assert "Input/output error" in warning.message
    stored.snapshot()
    assert (len(files(stored)), codes(stored)) == (1, set())


def test_files_of_a_former_layout_are_removed(stored: Shelf):
    namespace_id = stored.namespace_id()
    for suffix in ("faiss", "tokens", "npz", "json", "json.partial"):
        (stored.index_dir / f"{namespace_id}.{suffix}").write_bytes(b"x")
    # Concepts had an index.
    snapshot = stored.index_dir / f"{namespace_id}.index"
    snapshot.with_name(f"{namespace_id}-concept.index").write_bytes(snapshot.read_bytes())
    assert stored.sweep()
    assert files(stored) == {f"{namespace_id}.index"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data" / "index"
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a file system is not allowed here")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("free_pages", [0, 1, 4, 8])
def test_a_write_on_a_full_disk_leaves_no_partial_files(small_disk: Path, shelf: Shelf, free_pages: int):
    assert shelf.index_dir == small_disk
    shelf.add(*TEXTS)
    shelf.index()
    (small_disk / "filler").write_bytes(bytes((64 - free_pages) * 4096))
    shelf.snapshot()
    assert files(shelf) == {"filler"}
    [warning] = shelf.database.warnings.current()
    assert warning.code == "index_unwritable"
    assert "free some disk space" in warning.message
    (small_disk / "filler").unlink()
    shelf.snapshot()
    assert (len(files(shelf)), codes(shelf)) == (1, set())
    shelf.new_registry()
    assert shelf.problems() == []
    assert shelf.analyser.texts == 0


@pytest.mark.parametrize(("field", "level"), [("model_id", "warning"), ("analyser", "info"), ("layout", "info")])
def test_a_snapshot_of_another_origin_is_deleted_when_it_is_refused(stored: Shelf, field: str, level: str):
    stored.new_registry(origin=Origin(**{**asdict(stored.origin), field: "another"}))
    with capture_logs() as logs:
        stored.index()
    [line] = [line for line in logs if line["event"] == "index_snapshot_stale"]
    assert (line["log_level"], line["reason"]) == (level, f"made with another {field}")
    assert files(stored) == set()
