"""An index whose snapshot is behind catches up by the log of index changes, and only by it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from souvenir.core.passages import PassageRemoved
from souvenir.core.types import MemoryPatch, PassageKind
from souvenir.index import registry
from souvenir.store import check, index_changes
from tests.index.shelf import NOW, Shelf

pytestmark = pytest.mark.usefixtures("unfiltered_logs", "unsampled")

TEXTS = [f"note {number} about the garden and plan{number}" for number in range(30)]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path / "data")
    yield shelf
    shelf.close()


def snapshot_of(shelf: Shelf) -> bytes:
    """Write a snapshot of the present state and return the content of its file."""
    shelf.index()
    shelf.snapshot()
    return path_of(shelf).read_bytes()


def path_of(shelf: Shelf) -> Path:
    return shelf.index_dir / f"{shelf.namespace_id()}.index"


def write_at_random(shelf: Shelf, dice: random.Random, ids: list[int]) -> int:
    """Run one write of any kind; return the number of texts that it added."""
    number = dice.randrange(1_000_000)
    one = dice.choice(ids)
    match dice.randrange(6):
        case 0:
            count = dice.randint(1, 4)
            ids += shelf.add(*(f"new {number} {part}" for part in range(count)))
            return count
        case 1:
            shelf.change(one, MemoryPatch(text=f"changed {number}"))
            return 1
        case 2:
            shelf.change(one, MemoryPatch(source=f"moved/{number}", archived=number % 2 == 0))
        case 3:
            shelf.change(one, MemoryPatch(document_at=NOW - timedelta(days=number % 900)))
        case 4:
            shelf.change(one, MemoryPatch(add_tags=(f"tag {number}",)))
        case _:
            gone = dice.sample(ids, min(len(ids) - 1, dice.randint(1, 3)))
            shelf.delete(gone)
            ids[:] = [id_ for id_ in ids if id_ not in gone]
    return 0


@pytest.mark.parametrize("seed", range(6))
def test_an_index_catches_up_from_every_earlier_snapshot(shelf: Shelf, seed: int):
    dice = random.Random(seed)
    ids = shelf.add(*TEXTS)
    added, kept = 0, list[tuple[int, bytes]]()
    for _ in range(12):
        kept.append((added, snapshot_of(shelf)))
        for _ in range(dice.randrange(4)):
            added += write_at_random(shelf, dice, ids)
    for added_before, content in kept:
        shelf.new_registry()
        path_of(shelf).write_bytes(content)
        with capture_logs() as logs:
            assert shelf.problems() == []
        assert shelf.analyser.texts <= added - added_before
        assert logs == []


def test_an_index_that_is_further_behind_than_the_log_is_built_again(shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(index_changes, "KEPT_WRITES", 4)
    monkeypatch.setattr(index_changes, "TRIM_EVERY", 2)
    shelf.add(*TEXTS)
    old = snapshot_of(shelf)
    for number in range(4):
        shelf.add(f"first {number}")
    recent = snapshot_of(shelf)
    for number in range(4):
        shelf.add(f"second {number}")
    for content, analysed in ((old, len(TEXTS) + 8), (recent, 4)):
        shelf.new_registry()
        path_of(shelf).write_bytes(content)
        assert shelf.problems() == []
        assert shelf.analyser.texts == analysed
    with shelf.database.read() as connection:
        [numbers] = connection.execute("SELECT min(change_seq), max(change_seq), count(*) FROM index_changes")
    assert numbers == (5, 9, 5)


def test_writes_of_other_kinds_do_not_outdate_a_snapshot(shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(index_changes, "KEPT_WRITES", 4)
    monkeypatch.setattr(index_changes, "TRIM_EVERY", 2)
    shelf.add(*TEXTS)
    snapshot_of(shelf)
    gone, namespace_id = [PassageRemoved(999, PassageKind.MESSAGE)], shelf.namespace_id()
    for _ in range(20):
        shelf.database.write_rows(lambda connection: index_changes.append(connection, namespace_id, gone, None))
    shelf.new_registry()
    assert shelf.problems() == []
    assert shelf.analyser.texts == 0


def test_an_index_of_which_many_rows_were_removed_is_built_again(shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "SNAPSHOT_MIN_CHANGES", 5)
    ids = shelf.add(*TEXTS)
    content = snapshot_of(shelf)
    for removed, analysed in ((7, 0), (3, len(TEXTS) - 7 - 3)):
        shelf.delete(ids[:removed])
        del ids[:removed]
        shelf.new_registry()
        path_of(shelf).write_bytes(content)
        assert shelf.problems() == []
        assert shelf.analyser.texts == analysed


@pytest.mark.parametrize(
    "damage", ["passage_ids = replace(passage_ids, '3', '7')", "owner_ids = CAST(x'5bff5d' AS TEXT)"]
)
def test_a_damaged_entry_is_not_used(shelf: Shelf, damage: str):
    shelf.add(*TEXTS)
    content = snapshot_of(shelf)
    shelf.add("a new one")
    shelf.database.write_rows(lambda connection: connection.execute(f"UPDATE index_changes SET {damage}"))
    shelf.new_registry()
    path_of(shelf).write_bytes(content)
    with capture_logs() as logs:
        assert shelf.problems() == []
    assert shelf.analyser.texts == len(TEXTS) + 1
    assert [line["event"] for line in logs] == ["index_changes_damaged", "index_too_old"]


def test_all_snapshots_are_outdated_by_changes_without_entries(shelf: Shelf):
    shelf.add(*TEXTS)
    snapshot_of(shelf)
    shelf.database.write_rows(index_changes.distrust)
    shelf.new_registry()
    assert shelf.problems() == []
    assert shelf.analyser.texts == len(TEXTS)


def test_the_log_of_a_deleted_namespace_is_deleted(shelf: Shelf):
    shelf.add(*TEXTS)
    shelf.add("another", namespace="ann")
    gone = shelf.namespace_id()
    shelf.database.write_rows(lambda connection: connection.execute("DELETE FROM namespaces WHERE id = ?", (gone,)))
    with shelf.database.read() as connection:
        assert list(connection.execute("SELECT DISTINCT namespace_id FROM index_changes")) == [
            (shelf.namespace_id("ann"),)
        ]


def test_a_lost_entry_is_noticed(shelf: Shelf):
    """Were an entry lost, the number of passages would differ, or the ids would."""
    ids = shelf.add(*TEXTS)
    content = snapshot_of(shelf)
    shelf.add("a new one")
    shelf.delete(ids[:1])
    shelf.database.write_rows(lambda connection: connection.execute("DELETE FROM index_changes"))
    shelf.new_registry()
    path_of(shelf).write_bytes(content)
    assert shelf.problems() == []
    assert [warning.code for warning in shelf.database.warnings.current()] == ["index_repaired"]


def test_the_check_finds_entries_of_writes_that_never_were(shelf: Shelf):
    shelf.add(*TEXTS)
    shelf.database.write_rows(
        lambda connection: connection.execute("INSERT INTO index_changes VALUES (?, 9, 'memory', '[]', '[]', 0)", (1,))
    )
    with shelf.database.read() as connection:
        assert check.problems(connection) == [
            f"the log of index changes of namespace {shelf.namespace_id()} goes on after its last write"
        ]
