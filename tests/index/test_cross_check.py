"""An index that disagrees with the database is found by a sample of its rows, rebuilt, and operators are warned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, Scope, SearchQuery
from souvenir.index.cross_check import NEWEST_SHARE, SAMPLED_ROWS, sample_of
from souvenir.memories.engine import MemoryEngine
from souvenir.store.sql import Connection
from souvenir.store.sqlite.connections import open_writer
from tests.fake_embedder import FakeEmbedder

PATIENCE_S = 60.0
NEWEST_ROWS = int(NEWEST_SHARE * SAMPLED_ROWS)
TEXTS = [f"note {number} about the garden and plan{number}" for number in range(40)]


def open_engine(folder: Path) -> MemoryEngine:
    return MemoryEngine.open(Settings(data_dir=folder, snapshot_interval_s=3600), FakeEmbedder())


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[MemoryEngine]:
    with closing(open_engine(tmp_path)) as engine:
        engine.add_batch(Scope(), [MemoryDraft(text, "notes") for text in TEXTS])
        engine.warm_up()
        yield engine


def repairs(engine: MemoryEngine) -> list[str]:
    warnings = engine.warnings.current()
    return [warning.message for warning in warnings if warning.code == "index_repaired"]


def found(engine: MemoryEngine, text: str) -> int:
    return engine.search(Scope(), SearchQuery(text)).hits[0].memory.id


def give_other_texts(connection: Connection) -> None:
    connection.execute("UPDATE passages SET text = 'another history told ' || id")


def change_a_vector_of_all(connection: Connection) -> None:
    vector = np.zeros(FakeEmbedder.dim, dtype=np.float32)
    vector[3] = 1.0
    connection.execute("UPDATE vectors SET vector = ?", (vector.tobytes(),))


def change_sources(connection: Connection) -> None:
    connection.execute("UPDATE passages SET source = 'elsewhere'")
    connection.execute("UPDATE memories SET source = 'elsewhere'")


def archive(connection: Connection) -> None:
    connection.execute("UPDATE passages SET archived = 1")
    connection.execute("UPDATE memories SET archived = 1")


def delete_one(connection: Connection) -> None:
    connection.execute("DELETE FROM passages WHERE id = (SELECT min(id) FROM passages)")


def insert_one(connection: Connection) -> None:
    columns = "namespace_id, kind, owner_id, ordinal, text, profile, source, occurred_at, archived, dated"
    connection.execute(
        f"INSERT INTO passages ({columns}) SELECT namespace_id, kind, owner_id, 9, 'an extra one', profile, source, "
        "occurred_at, archived, dated FROM passages WHERE id = 1"
    )
    connection.execute(
        "INSERT INTO vectors (passage_id, model_id, vector, tokens) SELECT last_insert_rowid(), model_id, vector, "
        "tokens FROM vectors WHERE passage_id = 1"
    )


DIFFERENCES: dict[Callable[[Connection], None], str] = {
    give_other_texts: "other terms",
    change_a_vector_of_all: "another vector",
    change_sources: "other attributes",
    archive: "other attributes",
    delete_one: "39 passages stored, 40 indexed",
    insert_one: "41 passages stored, 40 indexed",
}


@pytest.mark.parametrize("change", DIFFERENCES, ids=lambda change: change.__name__)
def test_a_loaded_index_that_disagrees_is_rebuilt_and_reported(
    engine: MemoryEngine, tmp_path: Path, change: Callable[[Connection], None]
):
    engine.snapshot()
    engine.models.cross_check()
    assert repairs(engine) == []
    engine.write_rows(change)
    engine.models.cross_check()
    [message] = repairs(engine)
    assert "namespace 'default'" in message
    assert DIFFERENCES[change] in message or "is not stored" in message
    assert list((tmp_path / "index").iterdir()) == []
    assert engine.models.serving.registry.loaded() == {}
    engine.warm_up()
    assert [problem for problem in engine.check() if "index of namespace" in problem] == []
    engine.models.cross_check()
    assert repairs(engine) == [message]


@pytest.mark.parametrize("change", [give_other_texts, change_a_vector_of_all], ids=lambda change: change.__name__)
def test_a_snapshot_that_disagrees_is_deleted_and_rebuilt_when_it_is_loaded(
    engine: MemoryEngine, tmp_path: Path, change: Callable[[Connection], None]
):
    engine.close()
    assert len(list((tmp_path / "index").iterdir())) == 1
    with closing(open_writer(tmp_path / "souvenir.db")) as connection:
        change(connection)
    with closing(open_engine(tmp_path)) as again:
        assert repairs(again) == []
        again.warm_up()
        [message] = repairs(again)
        assert DIFFERENCES[change] in message
        assert [problem for problem in again.check() if "index of namespace" in problem] == []
    with closing(open_engine(tmp_path)) as third:
        third.warm_up()
        assert repairs(third) == []


def test_rows_of_another_history_at_the_end_of_a_large_index_are_found(engine: MemoryEngine):
    """A copy put back by hand gives the ids of lost memories to new ones."""
    engine.add_batch(Scope(), [MemoryDraft(f"entry {number}", "notes") for number in range(2_000)])
    engine.write_rows(
        lambda connection: connection.execute(
            "UPDATE passages SET text = 'something else' WHERE id = (SELECT max(id) FROM passages)"
        )
    )
    engine.models.cross_check()
    assert "other terms" in repairs(engine)[0]


def test_a_passage_without_a_vector_is_no_disagreement_once_it_was_left_out(engine: MemoryEngine):
    engine.write_rows(lambda connection: connection.execute("DELETE FROM vectors WHERE passage_id = 1"))
    engine.models.cross_check()
    [message] = repairs(engine)
    engine.warm_up()
    engine.models.cross_check()
    assert repairs(engine) == [message]
    assert len(engine.models.serving.registry.loaded()) == 1


def test_writes_meanwhile_are_no_disagreement(engine: MemoryEngine):
    stop = Event()

    def write(writer: int) -> int:
        number = 0
        while not stop.is_set():
            [one] = engine.add_batch(Scope(), [MemoryDraft(f"writer {writer} note {number}", "notes")])
            engine.update(Scope(), one, MemoryPatch(text=f"writer {writer} changed {number}", source="moved"))
            if number % 2:
                engine.delete(Scope(), one)
            number += 1
        return number

    with ThreadPoolExecutor(3) as threads:
        writing = [threads.submit(write, writer) for writer in range(3)]
        try:
            for _ in range(60):
                engine.models.cross_check()
        finally:
            stop.set()
        assert all(future.result(PATIENCE_S) > 0 for future in writing)
    assert repairs(engine) == []
    assert engine.check() == []


@pytest.mark.parametrize("count", [0, 1, NEWEST_ROWS, SAMPLED_ROWS, 1000])
def test_a_sample_has_the_newest_rows_and_a_bound(count: int):
    ids = np.arange(count, 0, -1, dtype=np.int64)
    sample = sample_of(ids)
    assert len(sample) == len(set(sample)) == min(count, SAMPLED_ROWS)
    assert set(sample) >= set(range(max(1, count - NEWEST_ROWS + 1), count + 1))


class AnotherEmbedder(FakeEmbedder):
    model_id = "another@1"


def test_a_model_that_is_expected_leaves_the_snapshots_of_the_present_one(engine: MemoryEngine, tmp_path: Path):
    engine.snapshot()
    before = {path.name: path.read_bytes() for path in (tmp_path / "index").iterdir()}
    assert len(before) == 1
    engine.models.expect(AnotherEmbedder(), "by a test")
    assert {path.name: path.read_bytes() for path in (tmp_path / "index").iterdir()} == before
    engine.models.dismiss()
