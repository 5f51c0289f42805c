"""Effects of one write on rows, passages, links and history that are not visible through the engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

import pytest

from souvenir.core.errors import InvalidRequest
from souvenir.core.passages import OwnerChanged, PassageAdded, PassageRemoved, PreparedPassage
from souvenir.core.types import AddAction, AddOutcome, Memory, MemoryDraft, MemoryPatch, PassageKind, Scope, SkipReason
from souvenir.index.analyser import Analyser
from souvenir.retrieval.preparation import PassageAnalyser, prepare
from souvenir.retrieval.profiles import PROFILES
from souvenir.store import namespaces
from souvenir.store.index_changes import IndexUpdate
from souvenir.store.memories import facts, reads
from souvenir.store.namespace_view import NamespaceView
from souvenir.store.sqlite.database import SqliteDatabase
from souvenir.store.transaction import Transaction
from tests.fake_embedder import FakeEmbedder
from tests.store.stored import MODEL_ID, NOW, insert, nothing, problems, texts_of

T = TypeVar("T")


def passages(text: str) -> list[PreparedPassage]:
    return prepare([text], FakeEmbedder(), PassageAnalyser(Analyser(), PROFILES))[0]


def write(database: SqliteDatabase, work: Callable[[Transaction], T]) -> T:
    return database.write(Scope(actor="ann"), NOW + timedelta(hours=1), work, nothing)


def blocked(database: SqliteDatabase, change: MemoryPatch | None) -> tuple[Memory, AddOutcome]:
    """An add whose blocker was changed or deleted before the add was written."""
    [memory_id] = insert(database, "blocker")
    blocker = write(database, lambda tx: tx.memory(memory_id))
    if change is None:
        write(database, lambda tx: tx.delete([memory_id]))
    else:
        write(database, lambda tx: tx.update(memory_id, change, passages(change.text or "")))
    draft = MemoryDraft("new", "notes")
    return blocker, write(database, lambda tx: tx.replace_blocker(draft, passages("new"), blocker, 0.95))


@pytest.mark.parametrize("change", [None, MemoryPatch(archived=True)], ids=["deleted", "archived"])
def test_a_blocker_deleted_before_the_write_is_not_superseded(database: SqliteDatabase, change: MemoryPatch | None):
    blocker, outcome = blocked(database, change)
    assert (outcome.action, outcome.blocker) == (AddAction.ADDED, None)
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM links").get == 0
    assert texts_of(database)[-1] == "new"
    assert problems(database) == []
    assert outcome.id != blocker.id


def test_a_blocker_pinned_before_the_write_is_kept(database: SqliteDatabase):
    blocker, outcome = blocked(database, MemoryPatch(pinned=True))
    assert (outcome.action, outcome.reason, outcome.id) == (AddAction.SKIPPED, SkipReason.PINNED_BLOCKER, None)
    assert outcome.blocker is not None
    assert (outcome.blocker.id, outcome.blocker.pinned) == (blocker.id, True)
    assert texts_of(database) == ["blocker"]


def test_a_blocker_changed_before_the_write_is_superseded_in_its_current_state(database: SqliteDatabase):
    _, outcome = blocked(database, MemoryPatch(text="blocker changed"))
    assert outcome.action is AddAction.SUPERSEDED
    assert outcome.blocker is not None
    assert outcome.blocker.text == "blocker changed"
    assert texts_of(database) == ["blocker changed", "new"]


def test_history_records_actor_time_and_both_states_of_every_change(database: SqliteDatabase):
    [memory_id] = insert(database, "first")
    write(database, lambda tx: tx.update(memory_id, MemoryPatch(text="second", pinned=True), passages("second")))
    old = write(database, lambda tx: tx.update(memory_id, MemoryPatch(pinned=False), ()))
    new = write(database, lambda tx: tx.supersede(old, MemoryDraft("third", "notes"), passages("third")))
    with database.read() as connection:
        rows = connection.execute("SELECT memory_id, action, actor, at, before, after FROM history ORDER BY id")
        history = [
            (id_, action, actor, before and json.loads(str(before))["text"], after and json.loads(str(after))["text"])
            for id_, action, actor, _, before, after in rows
        ]
    assert history == [
        (memory_id, "add", "anonymous", None, "first"),
        (memory_id, "update", "ann", "first", "second"),
        (memory_id, "update", "ann", "second", "second"),
        (memory_id, "superseded", "ann", "second", "second"),
        (new.id, "supersede", "ann", None, "third"),
    ]


def changes_of(database: SqliteDatabase, work: Callable[[Transaction], object]) -> list[type]:
    told: list[IndexUpdate] = []
    database.write(Scope(), NOW, work, told.append)
    return [type(change) for change in told[0].changes]


def test_index_changes_contain_only_what_changed(database: SqliteDatabase):
    [memory_id] = insert(database, "first")

    def patching(patch: MemoryPatch) -> list[type]:
        return changes_of(database, lambda tx: tx.update(memory_id, patch, passages(patch.text or "")))

    assert patching(MemoryPatch(pinned=True)) == []
    assert patching(MemoryPatch(metadata={"a": 1})) == []
    assert patching(MemoryPatch(text="first")) == []
    assert patching(MemoryPatch(source="b")) == [OwnerChanged]
    assert patching(MemoryPatch(archived=True)) == [OwnerChanged]
    assert patching(MemoryPatch(document_at=NOW - timedelta(days=1))) == [OwnerChanged]
    assert patching(MemoryPatch(text="second", source="c")) == [PassageRemoved, PassageAdded]
    assert changes_of(database, lambda tx: tx.delete([memory_id])) == [PassageRemoved]
    assert problems(database) == []


def test_an_upsert_without_a_key_writes_nothing(database: SqliteDatabase):
    with pytest.raises(InvalidRequest):
        write(database, lambda tx: tx.upsert(MemoryDraft("text", "notes"), passages("text")))
    assert texts_of(database) == []


def test_vectors_are_read_as_stored(database: SqliteDatabase):
    insert(database, "first", "second of two")
    with database.read() as connection:
        namespace = namespaces.named(connection, "default")
        assert namespace is not None
        view = NamespaceView(connection, namespace.id, PassageKind.MEMORY, MODEL_ID, FakeEmbedder.dim)
        found = {passage.text: embedding.vector for passage, embedding in view.passages(None)}
    for text, vector in found.items():
        assert vector.tolist() == passages(text)[0].embedding.vector.tolist()
    assert set(found) == {"first", "second of two"}


SPOILED = {
    "UPDATE memories SET text = 'other'": "is not part of its memory's text",
    "UPDATE passages SET source = 'other'": "does not say what its memory says",
    "UPDATE passages SET occurred_at = 0": "does not say what its memory says",
    "DELETE FROM vectors": "has no vector",
    "UPDATE vectors SET model_id = 'other'": "has the vector of another model",
    "UPDATE vectors SET vector = x'00' WHERE passage_id = 1": "has a vector of another length",
    "DELETE FROM passages": "has no passage",
    "UPDATE passages SET owner_id = 77 WHERE id = 1": "belongs to no memory of its namespace",
    "DELETE FROM memories WHERE id = 1": "still holds text",
    "UPDATE sqlite_sequence SET seq = 0": "counts below its greatest id",
}


@pytest.mark.parametrize("statement", SPOILED)
def test_the_check_reports_every_broken_rule(database: SqliteDatabase, statement: str):
    insert(database, "first", "second")
    assert problems(database) == []
    database.write(Scope(), NOW, lambda tx: tx.connection.execute(statement), nothing)
    assert any(SPOILED[statement] in problem for problem in problems(database))


_ELSEWHERE = (
    "INSERT INTO namespaces (name, created_at, changed_at) VALUES ('b', 0, 0); "
    "UPDATE {} SET namespace_id = (SELECT max(id) FROM namespaces)"
)
SPOILED_FACTS = {
    "UPDATE facts SET text = 'other'": "passage 2 is not part of a fact of its memory",
    "DELETE FROM facts": "passage 2 is not part of a fact of its memory",
    "UPDATE facts SET memory_id = 2": "passage 2 is not part of a fact of its memory",
    "UPDATE passages SET fact_id = NULL WHERE fact_id = 1": "passage 2 is not part of its memory's text",
    "UPDATE passages SET source = 'other' WHERE fact_id = 1": "passage 2 does not say what its memory says",
    "DELETE FROM passages WHERE fact_id = 1": "fact 1 has no passage and says something else",
    "UPDATE passages SET fact_id = 2 WHERE fact_id = 1": "fact 2 has no passage and says something else than its "
    "memory, or has one and says the same",
    "DELETE FROM passages WHERE fact_id IS NULL AND owner_id = 1": "memory 1 has no passage",
    _ELSEWHERE.format("facts"): "fact 1 lies in another namespace",
    _ELSEWHERE.format("memory_tags"): "a tag of memory 1 lies in another namespace",
    _ELSEWHERE.format("unsplit"): "memory 1 waits to be split in another namespace",
    "UPDATE sqlite_sequence SET seq = 0 WHERE name = 'facts'": "facts counts below its greatest id",
}


@pytest.mark.parametrize("statement", SPOILED_FACTS)
def test_the_check_reports_every_broken_rule_of_facts_and_tags(database: SqliteDatabase, statement: str):
    draft = MemoryDraft("first", "notes", facts=("one fact", "first"), tags=("tag",))
    of_fact = [replace(one, fact="one fact") for one in passages("one fact")]
    first = write(database, lambda tx: tx.insert(draft, [*passages("first"), *of_fact]))
    insert(database, "second")
    write(database, lambda tx: facts.enqueue(tx.connection, tx.namespace_id, first.id, tx.now))
    assert problems(database) == []
    write(database, lambda tx: tx.connection.execute(statement).fetchall())
    assert any(SPOILED_FACTS[statement] in problem for problem in problems(database)), problems(database)


def test_a_memory_is_read_with_all_written_fields(database: SqliteDatabase):
    draft = MemoryDraft("text", "s", {"é": [1, None]}, key="k", document_at=NOW - timedelta(days=400), pinned=True)
    written = write(database, lambda tx: tx.insert(draft, passages("text")))
    with database.read() as connection:
        namespace = namespaces.named(connection, "default")
        assert namespace is not None
        found = reads.memories(connection, namespace, [written.id])[written.id]
    assert found == replace(written, metadata={"é": [1, None]})
    assert found.occurred_at == draft.document_at
