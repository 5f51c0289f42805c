"""The import of the reference service's data folder: by command, offline, with its vectors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import faiss
import numpy as np
import pytest

from souvenir.api.transfer_lines import ReadAs
from souvenir.core.errors import InvalidRequest
from souvenir.core.settings import Settings
from souvenir.core.types import FloatVector, Scope, SearchQuery
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import IMPORT_FOLDER
from souvenir.store.rows import select
from souvenir.transfer.folder_import import ACTOR, FolderImportHandler, FolderOrder, _lines, import_folder
from souvenir.transfer.import_job import ImportOrder
from souvenir.transfer.reference_store import read
from souvenir.transfer.spool import Spools
from tests.fake_embedder import FakeEmbedder
from tests.memories.engine.verbs import stored
from tests.transfer.stores import drain, in_pieces

AT = "2023-05-08T09:30:00+00:00"
TEXTS = ["Ann plays the violin", "Ben bakes bread", "Cleo climbs rocks", "Ann plays the viola"]
LONG = " ".join(f"word{number}" for number in range(300))
NAMESPACE = Scope("brought")


class Counting(FakeEmbedder):
    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        self.embedded += texts
        return super().embed_documents(texts)


def vectors_of(texts: Sequence[str]) -> FloatVector:
    return FakeEmbedder().embed_documents(texts)


def records(**of_last: Any) -> list[dict[str, Any]]:
    """Memories as the reference keeps them; the last has more fields."""
    held = [{"id": place, "text": text, "source": "notes", "timestamp": AT} for place, text in enumerate(TEXTS)]
    held[-1] |= of_last
    return held


def flat(vectors: FloatVector) -> Any:
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index


def folder(path: Path, metadata: Any = None, index: Any = None, config: Mapping[str, Any] | None = None) -> Path:
    path.mkdir(exist_ok=True)
    (path / "metadata.json").write_text(json.dumps(records() if metadata is None else metadata), encoding="utf-8")
    faiss.write_index(flat(vectors_of(TEXTS)) if index is None else index, str(path / "index.faiss"))
    if config is not None:
        (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


class Imported:
    """One store, into which folders are imported."""

    def __init__(self, data_dir: Path) -> None:
        self.settings = Settings(data_dir=data_dir)
        self.said: list[str] = []
        self.embedded: list[str] = []

    def __call__(self, path: Path, **order: Any) -> str:
        embedder = Counting()
        said: list[str] = []
        import_folder(
            self.settings, embedder, FolderOrder(path, "brought", **order), ReadAs(), model_spec=None, say=said.append
        )
        self.embedded = embedder.embedded
        return "\n".join(said)

    def open(self) -> MemoryEngine:
        return MemoryEngine.open(self.settings, FakeEmbedder())

    def memories(self) -> list[Any]:
        with closing(self.open()) as engine:
            assert list(engine.check()) == []
            # In the order of the folder: the memory with the id 0 is stored last.
            found = stored(engine, NAMESPACE)
            return sorted(found, key=lambda it: TEXTS.index(it.text) if it.text in TEXTS else len(TEXTS))


@pytest.fixture
def imported(tmp_path: Path) -> Imported:
    return Imported(tmp_path / "data")


def is_empty(imported: Imported) -> bool:
    return not imported.settings.database_path.exists() or not imported.memories()


def test_memories_come_with_their_times_fields_and_links(imported: Imported, tmp_path: Path):
    more = {
        "updated_at": "2023-06-01T00:00:00+00:00",
        "category": "fact",
        "metadata": {"nested": {"a": 1}},
        "supersedes": 0,
        "pinned": True,
        "author": "ana",
        "links": [{"to_id": 1, "type": "related_to", "created_at": AT}, {"to_id": 9, "type": "related_to"}],
    }
    held = records(**more)
    held[0] |= {"archived": True, "superseded_by": 3}
    said = imported(folder(tmp_path / "old", held))
    assert "4 memories imported, 0 were there already" in said
    assert "2 links made, 1 not" in said
    found = {one.text: one for one in imported.memories()}
    last = found[TEXTS[3]]
    assert [one.created_at.isoformat() for one in found.values()] == [AT] * 4
    assert last.updated_at.isoformat() == more["updated_at"]
    assert (last.pinned, last.source) == (True, "notes")
    assert {**last.metadata, "import_id": ""} == {
        "category": "fact",
        "nested": {"a": 1},
        "author": "ana",
        "import_id": "",
    }
    assert (found[TEXTS[0]].archived, found[TEXTS[0]].superseded_by) == (True, last.id)
    assert {(it.type, it.to_id) for it in last.links} == {
        ("supersedes", found[TEXTS[0]].id),
        ("related_to", found[TEXTS[1]].id),
    }


def hnsw(vectors: FloatVector) -> Any:
    index = faiss.IndexHNSWFlat(vectors.shape[1], 8, faiss.METRIC_INNER_PRODUCT)
    index.add(vectors)
    return index


def l2(vectors: FloatVector) -> Any:
    index = faiss.IndexFlatL2(vectors.shape[1])
    index.add(vectors)
    return index


@pytest.mark.parametrize("index_of", [flat, l2, hnsw])
def test_vectors_of_the_same_model_are_used(imported: Imported, tmp_path: Path, index_of):
    texts = [f"text number{number}" for number in range(300)]
    # A small difference, as between two builds of a model, shows whose vectors are stored.
    made = vectors_of(texts) + np.float32(0.001)
    held = [{"id": place, "text": text, "source": "s", "timestamp": AT} for place, text in enumerate(texts)]
    said = imported(folder(tmp_path / "old", held, index_of(made), {"model": "fake", "dim": 256}))
    assert "300 stored vectors are those of fake@1 and are used" in said
    assert len(imported.embedded) == 64
    with closing(imported.open()) as engine, engine.namespace(NAMESPACE) as (connection, _):
        rows = select(connection, bytes, "SELECT vector FROM vectors ORDER BY passage_id")
        vectors = np.array([np.frombuffer(row, np.float32) for row in rows])
        made = np.roll(made, -1, axis=0)  # the memory with the id 0 is stored last
        np.testing.assert_allclose(vectors, made / np.linalg.norm(made, axis=1, keepdims=True), atol=1e-6)
        assert [hit.memory.text for hit in engine.search(NAMESPACE, SearchQuery("number17", 1)).hits] == [texts[17]]


def test_vectors_are_assigned_by_the_ids_of_the_index(imported: Imported, tmp_path: Path):
    held = [{**one, "id": 10 * one["id"] + 5} for one in records()]
    index = faiss.IndexIDMap(faiss.IndexFlatIP(256))
    index.add_with_ids(vectors_of(TEXTS[::-1]), np.array([35, 25, 15, 5]))
    assert "4 stored vectors are those of" in imported(folder(tmp_path / "old", held, index))
    assert [one.id for one in imported.memories()] == [5, 15, 25, 35]
    other = faiss.IndexIDMap(faiss.IndexFlatIP(256))
    other.add_with_ids(vectors_of(TEXTS), np.arange(4))
    said = imported(folder(tmp_path / "other", held, other), dry_run=True)
    assert "embedded again: the ids in the index are not those of the memories" in said


def test_a_long_text_is_embedded_again(imported: Imported, tmp_path: Path):
    texts = [*TEXTS[:3], LONG]
    held = [{"text": text, "source": "s", "created_at": ""} for text in texts]
    imported(folder(tmp_path / "old", held, flat(vectors_of(texts))))
    assert len([text for text in imported.embedded if text not in TEXTS]) > 1
    assert LONG not in imported.embedded
    with closing(imported.open()) as engine:
        assert engine.search(NAMESPACE, SearchQuery("word299", 1)).hits[0].memory.text == LONG


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"config": {"model_name": "sentence-transformers/all-mpnet-base-v2"}}, "they were made by sentence-tr"),
        ({"index": flat(np.ones((4, 8), np.float32))}, "they have the dimension 8"),
        ({"index": flat(vectors_of(TEXTS[::-1]))}, "of 4 texts that were embedded"),
        ({"index": flat(np.zeros((4, 256), np.float32))}, "the index has vectors without a direction"),
        (
            {"metadata": [{**one, "id": one["id"] + 1} for one in records()]},
            "the ids of the memories are not their pos",
        ),
    ],
)
def test_other_vectors_are_not_used_and_the_reason_is_said(imported: Imported, tmp_path: Path, change, reason):
    said = imported(folder(tmp_path / "old", **change))
    assert f"The stored vectors are not used, and the texts are embedded again: {reason}" in said
    assert len(imported.memories()) == 4
    assert set(TEXTS) <= set(imported.embedded)


def test_a_second_import_adds_nothing_and_a_grown_folder_its_new_memories(imported: Imported, tmp_path: Path):
    path = folder(tmp_path / "old")
    imported(path)
    before = imported.memories()
    assert "0 of them are new in the namespace 'brought', 4 were imported before" in imported(path)
    assert imported.memories() == before
    # The reference renumbered after a delete, and got a copy of a text.
    held = [*records()[1:], {"text": "Dan dives", "source": "notes", "timestamp": AT}, records()[1]]
    held = [{**one, "id": place} for place, one in enumerate(held)]
    held[3]["links"] = [{"to_id": 0, "type": "related_to", "created_at": AT}]
    said = imported(folder(path, held, flat(vectors_of([one["text"] for one in held]))))
    assert "2 memories imported, 3 were there already" in said
    found = {one.text: one for one in imported.memories()}
    assert [it.to_id for it in found["Dan dives"].links] == [before[1].id]


def test_only_the_memory_with_the_id_0_gets_another_id(imported: Imported, tmp_path: Path):
    said = imported(folder(tmp_path / "old"))
    assert "1 memories have another id than before" in said
    with closing(imported.open()) as engine:
        ids = {memory.text: memory.id for memory in stored(engine, NAMESPACE)}
    assert ids == {TEXTS[0]: 4, TEXTS[1]: 1, TEXTS[2]: 2, TEXTS[3]: 3}


def test_changed_and_archived_memories_are_not_imported_again(imported: Imported, tmp_path: Path):
    path = folder(tmp_path / "old")
    imported(path)
    with closing(imported.open()) as engine:
        first, second, *_ = stored(engine, NAMESPACE)
        engine.supersede(NAMESPACE, first.id, text="Ann plays the cello")
        engine.archive(NAMESPACE, [second.id])
    assert "0 of them are new" in imported(path)


def test_a_dry_run_stores_nothing(imported: Imported, tmp_path: Path):
    held = records()
    held[1]["source"] = "x" * 501
    said = imported(folder(tmp_path / "old", held), dry_run=True)
    assert "4 of them are new" in said
    assert "Memory 1 cannot be stored: source: " in said
    assert is_empty(imported)


def whole(path: Path) -> bytes:
    return path.read_bytes()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda old: (old / "metadata.json").write_bytes(whole(old / "metadata.json")[:-20]), "not complete JSON"),
        (lambda old: (old / "metadata.json").write_bytes(b'["\xff"]'), "not complete JSON in UTF-8"),
        (lambda old: (old / "metadata.json").write_text('[{"source": "s"}]'), "4 vectors and metadata.json 1 memories"),
        (lambda old: (old / "metadata.json").write_text(json.dumps([*records()[1:], {}])), "memory 3 .* has no text"),
        (lambda old: (old / "metadata.json").write_text("7"), "not a list of memories"),
        (lambda old: (old / "metadata.json").write_text(json.dumps([records()[0]] * 4)), "two memories have the id 0"),
        (lambda old: (old / "index.faiss").write_bytes(whole(old / "index.faiss")[:-20]), "not a complete FAISS index"),
        (lambda old: (old / "index.faiss").write_bytes(b""), "not a complete FAISS index"),
        (lambda old: (old / "config.json").write_text("{"), "not complete JSON"),
        (lambda old: (old / "metadata.json").unlink(), "has neither metadata.json nor"),
    ],
)
def test_a_damaged_folder_is_refused_and_nothing_is_stored(imported: Imported, tmp_path: Path, damage, sentence):
    path = folder(tmp_path / "old")
    damage(path)
    with pytest.raises(InvalidRequest, match=sentence):
        imported(path)
    assert is_empty(imported)


def test_texts_of_a_folder_with_an_unusable_index_are_imported_on_request(imported: Imported, tmp_path: Path):
    path = folder(tmp_path / "old")
    (path / "index.faiss").write_bytes(b"")
    assert "4 memories imported" in imported(path, embed=True)


@pytest.mark.parametrize("keyed", [False, True])
def test_other_shapes_of_the_metadata_are_read(imported: Imported, tmp_path: Path, keyed: bool):
    metadata: Any = {str(one.pop("id")): one for one in records()} if keyed else {"memories": records()}
    imported(folder(tmp_path / "old", metadata))
    assert [one.text for one in imported.memories()] == TEXTS


def test_a_sqlite_table_is_read(imported: Imported, tmp_path: Path):
    path = tmp_path / "old"
    path.mkdir()
    with closing(apsw.Connection(str(path / "memories.db"))) as connection:
        connection.execute("CREATE TABLE other (x)")
        connection.execute(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY, content TEXT, source TEXT, created_at REAL, metadata TEXT, "
            "archived INTEGER, embedding BLOB)"
        )
        rows = [
            (number, text, "notes", 1683538200.0, '{"category": "fact"}', number == 3, vector.tobytes())
            for number, (text, vector) in enumerate(zip(TEXTS, vectors_of(TEXTS), strict=True), 3)
        ]
        connection.executemany("INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    said = imported(path)
    assert "4 stored vectors are those of" in said
    found = imported.memories()
    assert [(one.id, one.text, one.archived) for one in found] == [
        (number, text, number == 3) for number, text in enumerate(TEXTS, 3)
    ]
    assert (found[0].metadata["category"], found[0].created_at.isoformat()) == ("fact", AT)
    (path / "memories.db").write_bytes((path / "memories.db").read_bytes()[:3000])
    with pytest.raises(InvalidRequest, match="cannot be imported"):
        imported(path)


@pytest.mark.parametrize("as_lines", [True, False])
def test_points_of_qdrant_are_read(imported: Imported, tmp_path: Path, as_lines: bool):
    points: list[dict[str, Any]] = [
        {
            "id": f"5c56c793-69f3-4fbf-87e6-c4bf54c28c2{place}",
            "vector": {"dense": vector.tolist()} if place else vector.tolist(),
            "payload": {"text": text, "source": "notes", "created_at": AT, "category": "fact\u2028"},
        }
        for place, (text, vector) in enumerate(zip(TEXTS, vectors_of(TEXTS), strict=True))
    ]
    points[1]["payload"]["links"] = [{"to_id": points[0]["id"], "type": "related_to", "created_at": AT}]
    path = tmp_path / "points.json"
    path.write_text(
        "\n".join(json.dumps(point, ensure_ascii=False) for point in points)
        if as_lines
        else json.dumps({"result": {"points": points}})
    )
    assert "4 stored vectors are those of" in imported(path)
    first, second, *_ = imported.memories()
    assert (second.text, second.metadata["category"]) == (TEXTS[1], "fact\u2028")
    assert [it.to_id for it in second.links] == [first.id]


def test_two_stores_in_one_folder_are_not_chosen_from(imported: Imported, tmp_path: Path):
    path = folder(tmp_path / "old")
    (path / "points.jsonl").write_text("{}")
    with pytest.raises(InvalidRequest, match=r"has metadata.json, points.jsonl; name the file that is current"):
        imported(path)
    assert "4 memories imported" in imported(path / "metadata.json")


def test_an_import_that_was_interrupted_is_finished_by_the_next(imported: Imported, tmp_path: Path):
    held = records(links=[{"to_id": 0, "type": "related_to", "created_at": AT}])
    path = folder(tmp_path / "old", held)
    lines = _lines(read(path))
    with closing(imported.open()) as engine:
        spools = Spools(engine, imported.settings.import_dir, max_bytes=10**6)
        handler = FolderImportHandler(engine, spools, ReadAs())
        with closing(Jobs(engine, [handler], queue_max=1, retention_days=1.0, lane=IMPORT_FOLDER)) as jobs:
            spool = drain(spools.receive(in_pieces(b"\n".join(lines)), ACTOR))
            parameters = ImportOrder(by_admin=True, skip_imported=True).parameters(spool)
            with spools.until_submitted(spool.job_id):
                jobs.submit(IMPORT_FOLDER, Scope("brought", ACTOR), parameters, job_id=spool.job_id)
    said = imported(path)
    assert "0 memories imported, 4 were there already" in said
    assert "0 links made, 0 not" in said
    found = imported.memories()
    assert [one.text for one in found] == TEXTS
    assert [it.to_id for it in found[3].links] == [found[0].id]
    assert list(imported.settings.import_dir.iterdir()) == []
