"""Indexes are loaded from snapshots or the database, receive every write, and are dropped when memory is short."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from structlog.testing import capture_logs

from souvenir.core import array_file
from souvenir.core.errors import Unavailable
from souvenir.core.passages import Embedding, PassageAdded
from souvenir.core.types import Filters, MemoryPatch
from souvenir.index import registry as registry_module
from souvenir.index.cross_check import sample_of
from souvenir.index.index_key import IndexKey
from souvenir.index.namespace import NamespaceIndex
from souvenir.index.passage_view import PassageView
from souvenir.index.registry import IndexRegistry
from souvenir.index.snapshot import Origin, SnapshotFiles
from tests.fake_embedder import FakeEmbedder
from tests.index.shelf import NO_LIMIT, NOW, RULES, Shelf
from tests.thoroughness import sampled

pytestmark = pytest.mark.usefixtures("unfiltered_logs", "unsampled")

PATIENCE_S = 60.0
TEXTS = [f"note {number} about the garden and plan{number}" for number in range(30)]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path / "data")
    yield shelf
    shelf.close()


def nearest_text(shelf: Shelf, text: str, namespace: str = "default") -> int | None:
    found = shelf.index(namespace).nearest(FakeEmbedder().embed_documents([text]), filters=Filters())
    return None if found is None else found[0]


def test_an_index_is_built_from_the_stored_passages_and_vectors(shelf: Shelf):
    ids = shelf.add(*TEXTS)
    assert len(shelf.index()) == len(TEXTS)
    assert shelf.analyser.texts == len(TEXTS)
    assert shelf.problems() == []
    assert nearest_text(shelf, TEXTS[7]) == ids[7]


def test_concurrent_requests_load_an_index_once(shelf: Shelf):
    shelf.add(*TEXTS)
    with ThreadPoolExecutor(8) as callers:
        found = list(callers.map(lambda _: shelf.index(), range(16)))
    assert all(index is found[0] for index in found)
    assert shelf.loads == 1
    assert shelf.analyser.texts == len(TEXTS)


def test_a_write_does_not_load_the_index_of_its_namespace(shelf: Shelf):
    shelf.add(*TEXTS)
    assert shelf.registry.loaded() == {}


def test_a_loaded_index_receives_every_write(shelf: Shelf):
    ids = shelf.add(*TEXTS)
    index = shelf.index()
    shelf.add("a new one")
    shelf.change(ids[0], MemoryPatch(text="changed text"))
    shelf.change(ids[1], MemoryPatch(source="elsewhere", archived=True))
    shelf.change(ids[2], MemoryPatch(document_at=NOW - timedelta(days=9)))
    shelf.delete(ids[3:6])
    assert shelf.index() is index
    assert len(index) == len(TEXTS) + 1 - 3
    assert shelf.problems() == []


def test_no_write_during_a_load_is_lost(shelf: Shelf):
    """A write is included in the load, applied after it, or both; never neither."""
    shelf.add(*TEXTS)
    stop = Event()

    def write(writer: int) -> int:
        number = 0
        while not stop.is_set():
            [one, other] = shelf.add(f"writer {writer} note {number}", f"writer {writer} other {number}")
            shelf.change(one, MemoryPatch(text=f"writer {writer} changed {number}", archived=number % 2 == 0))
            shelf.change(other, MemoryPatch(source=f"moved/{writer}"))
            if number % 3 == 0:
                shelf.delete([one])
            number += 1
        return number

    with ThreadPoolExecutor(5) as threads:
        writing = [threads.submit(write, writer) for writer in range(3)]
        try:
            for _ in range(12):
                shelf.new_registry()
                loading = [threads.submit(shelf.index) for _ in range(2)]
                assert loading[0].result(PATIENCE_S) is loading[1].result(PATIENCE_S)
                assert shelf.problems() == []
        finally:
            stop.set()
        assert all(future.result(PATIENCE_S) > 0 for future in writing)
    assert shelf.problems() == []


def test_loading_a_snapshot_analyses_no_text(shelf: Shelf):
    ids = shelf.add(*TEXTS)
    shelf.index()
    shelf.snapshot()
    shelf.new_registry()
    assert nearest_text(shelf, TEXTS[9]) == ids[9]
    assert shelf.analyser.texts == 0
    assert shelf.problems() == []


def test_a_stale_snapshot_is_updated_with_later_changes(shelf: Shelf):
    ids = shelf.add(*TEXTS)
    shelf.index()
    shelf.snapshot()
    shelf.new_registry()
    shelf.add("a new one", "another new one")
    shelf.change(ids[0], MemoryPatch(text="changed text"))
    shelf.change(ids[1], MemoryPatch(source="elsewhere", archived=True))
    shelf.delete(ids[3:6])
    assert shelf.problems() == []
    assert shelf.analyser.texts == 3
    assert shelf.registry.loaded() != {}


def test_an_updated_snapshot_is_written_again(shelf: Shelf):
    shelf.add(*TEXTS)
    shelf.index()
    shelf.snapshot()
    shelf.new_registry()
    shelf.add("a new one")
    shelf.index()
    shelf.snapshot()
    shelf.new_registry()
    assert shelf.problems() == []
    assert shelf.analyser.texts == 0


def test_an_unchanged_index_is_not_written_again(shelf: Shelf):
    shelf.add(*TEXTS)
    shelf.index()
    shelf.snapshot()
    [snapshot] = shelf.index_dir.glob("*.index")
    written = snapshot.stat().st_mtime_ns
    shelf.snapshot()
    assert snapshot.stat().st_mtime_ns == written


@pytest.mark.parametrize("rows_changed", [4, 5])
def test_a_running_service_writes_an_index_after_enough_changes(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, rows_changed: int
):
    monkeypatch.setattr(registry_module, "SNAPSHOT_MIN_CHANGES", 5)
    shelf.add(*TEXTS)
    shelf.index()
    shelf.snapshot()
    [snapshot] = shelf.index_dir.glob("*.index")
    written = snapshot.read_bytes()
    shelf.add(*(f"new {number}" for number in range(rows_changed)))
    shelf.database.between_writes(lambda: shelf.registry.write_snapshots(all_changed=False))
    assert (snapshot.read_bytes() != written) == (rows_changed >= 5)


@pytest.mark.parametrize("field", ["model_id", "analyser"])
def test_a_snapshot_of_another_origin_is_not_used(shelf: Shelf, field: str):
    shelf.add(*TEXTS)
    shelf.index()
    shelf.snapshot()
    shelf.new_registry(origin=Origin(**{**asdict(shelf.origin), field: "another"}))
    with capture_logs() as logs:
        assert shelf.problems() == []
    assert shelf.analyser.texts == len(TEXTS)
    [line] = [line for line in logs if line["event"] == "index_snapshot_stale"]
    assert line["reason"] == f"made with another {field}"


def test_a_snapshot_of_a_later_state_than_the_database_has_is_not_used(shelf: Shelf):
    """The folder of the database was restored by hand, that of the indexes was not."""
    shelf.add(*TEXTS)
    shelf.index()
    shelf.snapshot()
    shelf.new_registry()
    shelf.database.write_rows(lambda connection: connection.execute("UPDATE generations SET id = id || 'other'"))
    with capture_logs() as logs:
        assert shelf.problems() == []
    assert shelf.analyser.texts == len(TEXTS)
    assert [line["event"] for line in logs] == ["index_snapshot_stale"]


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def fill_with_garbage(path: Path) -> None:
    path.write_bytes(np.random.default_rng(3).bytes(5000))


def write_other_json(path: Path) -> None:
    path.write_text('[{"change_seq": 1}]')


def make_a_folder_of_it(path: Path) -> None:
    path.unlink()
    path.mkdir()


FLIPPED_EVERY = sampled(1009, 101)
SPOILERS = [flip_a_byte, truncate, empty, fill_with_garbage, write_other_json, make_a_folder_of_it, Path.unlink]


@pytest.mark.parametrize("spoil", SPOILERS, ids=lambda spoil: spoil.__name__)
def test_a_damaged_snapshot_is_rebuilt_and_logged(shelf: Shelf, spoil):
    shelf.add(*TEXTS)
    shelf.index()
    shelf.snapshot()
    spoil(shelf.index_dir / f"{shelf.namespace_id()}.index")
    shelf.new_registry()
    with capture_logs() as logs:
        assert shelf.problems() == []
    assert shelf.analyser.texts == len(TEXTS)
    if spoil is Path.unlink:
        assert logs == []
    else:
        [line] = logs
        assert (line["event"], line["log_level"], line["action"]) == ("index_snapshot_damaged", "warning", "rebuilding")


def test_a_flipped_byte_of_a_snapshot_is_found_or_is_padding(shelf: Shelf):
    shelf.add(*TEXTS)
    shelf.index()
    shelf.snapshot()
    path = shelf.index_dir / f"{shelf.namespace_id()}.index"
    content = path.read_bytes()
    used = 0
    for at in range(0, len(content), FLIPPED_EVERY):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
        shelf.new_registry()
        assert shelf.problems() == []
        used += shelf.analyser.texts == 0
    # Between two arrays there are at most 63 bytes.
    assert used < len(content) / FLIPPED_EVERY / 3


def test_swapped_snapshots_of_two_namespaces_are_not_used(shelf: Shelf):
    names = ("default", "ann")
    for name in names:
        shelf.add(*TEXTS, f"only in {name}", namespace=name)
        shelf.index(name)
    shelf.snapshot()
    paths = [shelf.index_dir / f"{shelf.namespace_id(name)}.index" for name in names]
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, reversed(contents), strict=True):
        path.write_bytes(content)
    shelf.new_registry()
    with capture_logs() as logs:
        assert [shelf.problems(name) for name in names] == [[], []]
    assert [line["event"] for line in logs if line["event"].startswith("index_")] == ["index_repaired"] * 2
    assert shelf.analyser.texts == 2 * (len(TEXTS) + 1)


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of all snapshots are left in their files."""
    monkeypatch.setattr(array_file, "LARGE_FROM_BYTES", 1)


@pytest.mark.usefixtures("all_large")
def test_an_index_that_is_partly_in_its_file_receives_every_write(shelf: Shelf):
    ids = shelf.add(*TEXTS)
    shelf.index()
    sizes = list[int]()
    for number in range(3):
        shelf.snapshot()
        sizes.append(shelf.index().nbytes)
        if number == 1:
            shelf.new_registry()
        shelf.add(f"a new one {number}", f"another new one {number}")
        shelf.change(ids[number], MemoryPatch(text=f"changed text {number}"))
        shelf.delete(ids[3 + 2 * number : 5 + 2 * number])
        assert shelf.problems() == []
        assert nearest_text(shelf, f"changed text {number}") == ids[number]
    shelf.snapshot()
    assert sizes[0] / 1.3 < shelf.index().nbytes < sizes[0] * 1.3
    shelf.new_registry()
    assert shelf.problems() == []


@pytest.mark.usefixtures("all_large")
def test_damage_of_what_is_left_in_the_file_is_found_after_the_start(shelf: Shelf):
    shelf.add(*TEXTS)
    shelf.index()
    shelf.snapshot()
    path = shelf.index_dir / f"{shelf.namespace_id()}.index"
    vectors = shelf.index().vectors.rows(None).tobytes()
    content = path.read_bytes()
    at = content.index(vectors)
    # The other rows are not sampled.
    shelf.add(*(f"later note {number}" for number in range(200)))
    shelf.new_registry()
    path.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
    index, key = shelf.index(), shelf.key()
    assert shelf.analyser.texts > 0
    with shelf.open_view(key) as view:
        found = shelf.registry.suspicions(key, view)
        assert found is not None
        with capture_logs():
            shelf.database.between_writes(lambda: shelf.registry.verify(key, found, view))
    [warning] = shelf.database.warnings.current()
    assert "does not hold the vectors that were written" in warning.message
    assert not path.exists()
    assert shelf.index() is not index
    assert shelf.problems() == []


@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize("loaded_before", [True, False])
def test_an_index_whose_file_cannot_be_read_any_more_is_built_again(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, loaded_before: bool
):
    shelf.add(*TEXTS)
    shelf.index()
    shelf.snapshot()
    shelf.new_registry()

    def fail(*_: object) -> int:
        raise OSError(5, "Input/output error")

    with capture_logs(), monkeypatch.context() as patch:
        patch.setattr(registry_module, "sample_of", sample_of)
        if loaded_before:
            index, key = shelf.index(), shelf.key()
            patch.setattr("os.preadv", fail)
            with pytest.raises(Unavailable, match="cannot be read"):
                nearest_text(shelf, TEXTS[7])
            with shelf.open_view(key) as view:
                found = shelf.registry.suspicions(key, view)
                assert found is not None
                shelf.database.between_writes(lambda: shelf.registry.verify(key, found, view))
            assert shelf.index() is not index
        patch.setattr("os.preadv", fail)
        assert nearest_text(shelf, TEXTS[7]) is not None
    [warning] = shelf.database.warnings.current()
    assert "cannot be read (Input/output error)" in warning.message
    assert shelf.problems() == []


def test_dropped_indexes_are_the_least_recently_used_and_reload_from_snapshots(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(registry_module, "SNAPSHOT_EXCESS", 1.0)
    names = [f"agent{number}" for number in range(5)]
    for name in names:
        shelf.add(*TEXTS, f"{name} was here", namespace=name)
    size = shelf.index(names[0]).nbytes
    shelf.new_registry(max_bytes=3 * size + size // 2)
    for name in (*names, names[2]):
        shelf.index(name)
    too_much = shelf.registry.over_budget
    shelf.shrink()
    assert (too_much, shelf.registry.over_budget) == (True, False)
    assert set(shelf.registry.loaded()) == {shelf.key(name) for name in (names[2], names[3], names[4])}
    analysed = shelf.analyser.texts
    for name in names:
        assert nearest_text(shelf, f"{name} was here", name) is not None
        assert shelf.problems(name) == []
    assert shelf.analyser.texts == analysed


@pytest.mark.parametrize("many", [4, 40])
def test_far_beyond_the_budget_only_small_indexes_are_dropped_without_a_snapshot(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, many: int
):
    monkeypatch.setattr(registry_module, "SNAPSHOT_MIN_CHANGES", 10)
    names = [f"agent{number}" for number in range(many)]
    for name in names:
        shelf.add(*TEXTS[:2], f"{name} was here", namespace=name)
    shelf.add(*[f"{text} again" for text in TEXTS], *TEXTS, namespace="large")
    shelf.new_registry(max_bytes=1)
    for name in ("large", *names):
        shelf.index(name)
    shelf.shrink()
    assert set(shelf.registry.loaded()) == {shelf.key(names[-1])}
    assert [(shelf.index_dir / f"{shelf.key(name).snapshot_name}.index").exists() for name in ("large", names[0])] == [
        True,
        False,
    ]
    for name in names:
        assert nearest_text(shelf, f"{name} was here", name) is not None
        assert shelf.problems(name) == []


def test_the_most_recently_used_index_is_never_dropped(shelf: Shelf):
    for name in ("default", "ann"):
        shelf.add(*TEXTS, namespace=name)
    shelf.new_registry(max_bytes=0)
    for name in ("default", "ann"):
        shelf.index(name)
    shelf.shrink()
    assert set(shelf.registry.loaded()) == {shelf.key("ann")}
    assert not shelf.registry.over_budget


def test_a_reloaded_index_contains_writes_made_while_it_was_dropped(shelf: Shelf):
    shelf.add(*TEXTS)
    shelf.add("elsewhere", namespace="ann")
    shelf.new_registry(max_bytes=0)
    for name in ("default", "ann"):
        shelf.index(name)
    shelf.shrink()
    [new] = shelf.add("an entirely different statement")
    assert nearest_text(shelf, "an entirely different statement") == new
    assert shelf.problems() == []


def test_an_index_that_fails_to_apply_a_write_is_rebuilt(shelf: Shelf):
    shelf.add(*TEXTS)
    index = shelf.index()
    with shelf.open_view(shelf.key()) as view:
        passage, embedding = next(iter(view.passages(None)))
    bad = PassageAdded(replace(passage, id=9999), Embedding(embedding.vector[:3]), [["term"]])
    with capture_logs() as logs:
        shelf.database.between_writes(lambda: shelf.registry.apply(shelf.namespace_id(), [bad], 1))
    assert [line["event"] for line in logs] == ["index_update_failed"]
    assert shelf.registry.loaded() == {}
    assert shelf.index() is not index
    assert shelf.problems() == []


def test_a_write_with_many_removals_reloads_the_index(shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry_module, "SNAPSHOT_MIN_CHANGES", 5)
    ids = shelf.add(*TEXTS)
    index = shelf.index()
    shelf.delete(ids[:7])
    assert shelf.index() is index
    shelf.delete(ids[7:20])
    assert shelf.index() is not index
    assert shelf.problems() == []


def test_a_failed_load_fails_all_waiting_callers_and_is_retried_by_the_next(shelf: Shelf):
    shelf.add(*TEXTS)
    key = shelf.key()
    failures, inside, go_on = [True], Event(), Event()

    @contextmanager
    def open_view(key: IndexKey) -> Iterator[PassageView]:
        with shelf.open_view(key) as view:
            if failures:
                failures.pop()
                inside.set()
                assert go_on.wait(PATIENCE_S)
                raise OSError("the disk is gone")
            yield view

    registry = IndexRegistry(
        open_view,
        SnapshotFiles(shelf.index_dir, shelf.origin, shelf.database.warnings),
        shelf.analyser,
        dim=FakeEmbedder.dim,
        token_space=None,
        rules=RULES,
        max_bytes=NO_LIMIT,
        committed=lambda: shelf.database.committed,
        on_load=lambda: None,
    )
    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(registry.get, key, 0)
        assert inside.wait(PATIENCE_S)
        second = callers.submit(registry.get, key, 0)
        go_on.set()
        with pytest.raises(OSError, match="the disk is gone"):
            first.result(PATIENCE_S)
        failure = second.exception(PATIENCE_S)
        # None if it came so late that it loaded by itself.
        assert failure is None or (isinstance(failure, Unavailable) and isinstance(failure.__cause__, OSError))
    assert isinstance(registry.get(key, 0), NamespaceIndex)
    assert len(registry.get(key, 0)) == len(TEXTS)
