"""Edge cases of the engine's operations: permissions, collisions, and the state after a refusal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from souvenir.core.background import Maintenance
from souvenir.core.errors import (
    Conflict,
    EmbeddingUnavailable,
    InvalidRequest,
    KeyTaken,
    MemoryArchived,
    MemoryNotFound,
    MemoryPinned,
    NothingToDo,
    ServiceClosing,
    SouvenirError,
)
from souvenir.core.settings import Settings
from souvenir.core.types import (
    AddAction,
    Filters,
    MemoryDraft,
    MemoryPatch,
    OnDuplicate,
    Scope,
    SearchQuery,
    SourceFilter,
)
from souvenir.memories.engine import MemoryEngine
from souvenir.store.sql import Connection
from tests.memories.engine.conftest import BreakableEmbedder, OpenEngine
from tests.memories.engine.verbs import ANN, DEFAULT, add, memory, stored, texts

FILES_ONLY = pytest.mark.sqlite_only(reason="backups are of files")

MAY = datetime(2023, 5, 8, 9, 30, tzinfo=UTC)


def test_an_added_memory_is_returned_unchanged(engine: MemoryEngine):
    draft = MemoryDraft(
        "日本語 🎻 Zoë's\r\n\ttext “quoted” \u202eright to left",
        "päth/with space",
        {"n": 1, "x": 1.5, "deep": {"é": [None, True, "ü"]}},
        key="k",
        document_at=MAY + timedelta(microseconds=1),
        pinned=True,
    )
    before = datetime.now(UTC)
    outcome = engine.add(DEFAULT, draft)
    assert outcome.action is AddAction.ADDED
    assert outcome.id is not None
    found = memory(engine, outcome.id)
    assert (found.text, found.source, found.metadata, found.key) == (draft.text, draft.source, draft.metadata, "k")
    assert (found.document_at, found.pinned, found.archived) == (draft.document_at, True, False)
    assert before <= found.created_at == found.updated_at <= datetime.now(UTC)
    assert (found.links, found.previous_text, found.superseded_by) == ((), None, None)
    assert list(engine.check()) == []


# --- namespaces ----------------------------------------------------------------------------------------------------

OF_ANOTHER_NAMESPACE: dict[str, Callable[[MemoryEngine, int], object]] = {
    "patch": lambda engine, id_: engine.update(ANN, id_, MemoryPatch(text="stolen")),
    "supersede": lambda engine, id_: engine.supersede(ANN, id_, text="stolen"),
    "merge": lambda engine, id_: engine.merge(ANN, [id_, add(engine, "own", scope=ANN)], text="m", source="s"),
    "delete": lambda engine, id_: engine.delete(ANN, id_, force=True),
}


@pytest.mark.parametrize("verb", OF_ANOTHER_NAMESPACE)
def test_a_memory_of_another_namespace_is_not_found_and_not_changed(engine: MemoryEngine, verb: str):
    memory_id = add(engine, "mine")
    before = memory(engine, memory_id)
    with pytest.raises(MemoryNotFound) as caught:
        OF_ANOTHER_NAMESPACE[verb](engine, memory_id)
    assert caught.value.memory_id == memory_id
    assert stored(engine) == [before]
    assert list(engine.check()) == []


def test_bulk_operations_do_not_change_other_namespaces(engine: MemoryEngine):
    memory_id = add(engine, "mine", "shared/source")
    before = memory(engine, memory_id)
    assert engine.archive(ANN, [memory_id]) == 0
    assert engine.delete_many(ANN, [memory_id]).missing_ids == (memory_id,)
    assert engine.delete_by_source(ANN, SourceFilter("shared")).deleted_ids == ()
    assert engine.get(ANN, [memory_id]) == {}
    assert engine.search(ANN, SearchQuery("mine")).hits == ()
    assert (engine.count(ANN), engine.count(DEFAULT)) == (0, 1)
    assert engine.nearest(ANN, "mine") is None
    assert engine.add(ANN, MemoryDraft("mine", "s"), on_duplicate=OnDuplicate.SKIP).action is AddAction.ADDED
    assert stored(engine) == [before]


def test_keys_of_different_namespaces_are_independent(engine: MemoryEngine):
    one = add(engine, "one", key="k")
    other = add(engine, "other", key="k", scope=ANN)
    [outcome] = engine.upsert(ANN, [MemoryDraft("changed", "notes", key="k")])
    assert (outcome.id, outcome.created) == (other, False)
    assert memory(engine, one).text == "one"


def test_reading_an_unknown_namespace_does_not_create_it(engine: MemoryEngine):
    nobody = Scope("nobody")
    assert engine.search(nobody, SearchQuery("x")).hits == ()
    assert engine.get(nobody, [1]) == {}
    assert engine.page(nobody, offset=0, limit=5).total == engine.count(nobody) == 0
    assert engine.nearest(nobody, "x") is None
    assert engine.stats(nobody).created_at is None
    for refused in (
        lambda: engine.delete(nobody, 1),
        lambda: engine.update(nobody, 1, MemoryPatch(text="x")),
        lambda: engine.supersede(nobody, 1, text="x"),
    ):
        with pytest.raises(MemoryNotFound):
            refused()
    assert engine.stats(nobody).created_at is None


# --- patch ---------------------------------------------------------------------------------------------------------


def test_an_empty_patch_is_refused(engine: MemoryEngine):
    with pytest.raises(NothingToDo):
        engine.update(DEFAULT, add(engine, "text"), MemoryPatch())


def test_a_patch_changes_only_the_given_fields(engine: MemoryEngine):
    memory_id = add(engine, "text", metadata={"keep": 1, "drop": 2, "change": 3}, document_at=MAY)
    before = memory(engine, memory_id)
    after = engine.update(DEFAULT, memory_id, MemoryPatch(metadata={"drop": None, "change": 4, "new": 5})).memory
    assert after.metadata == {"keep": 1, "change": 4, "new": 5}
    assert (after.text, after.source, after.document_at) == (before.text, before.source, MAY)
    assert after.created_at == before.created_at < after.updated_at
    assert memory(engine, memory_id) == after
    assert engine.update(DEFAULT, memory_id, MemoryPatch(remove_document_at=True)).memory.document_at is None


def test_a_memory_is_found_by_its_new_text_and_not_by_the_old_one(engine: MemoryEngine):
    memory_id = add(engine, "the harbour in winter")
    engine.update(DEFAULT, memory_id, MemoryPatch(text="a violin lesson"))
    [hit] = engine.search(DEFAULT, SearchQuery("violin")).hits
    assert hit.parts.lexical > 0
    [hit] = engine.search(DEFAULT, SearchQuery("harbour")).hits
    assert (hit.parts.lexical, hit.parts.similarity) == (0, 0)
    assert list(engine.check()) == []


def test_a_patch_with_the_same_text_keeps_its_passages(engine: MemoryEngine):
    memory_id = add(engine, "violin")
    [before] = engine.search(DEFAULT, SearchQuery("violin")).hits
    engine.update(DEFAULT, memory_id, MemoryPatch(text="violin", source="moved"))
    [after] = engine.search(DEFAULT, SearchQuery("violin", filters=Filters((SourceFilter("moved"),)))).hits
    assert after.parts.passage_id == before.parts.passage_id


def test_a_moved_archived_or_redated_memory_is_filtered_by_its_current_fields(engine: MemoryEngine):
    memory_id = add(engine, "violin", "a")

    def found(**filters: object) -> bool:
        return bool(engine.search(DEFAULT, SearchQuery("violin", filters=Filters(**filters))).hits)  # type: ignore[arg-type]

    engine.update(DEFAULT, memory_id, MemoryPatch(source="b"))
    assert (found(sources=(SourceFilter("a"),)), found(sources=(SourceFilter("b"),))) == (False, True)
    engine.update(DEFAULT, memory_id, MemoryPatch(document_at=MAY))
    assert (found(until=MAY), found(since=MAY), found(since=MAY + timedelta(microseconds=1))) == (True, True, False)
    engine.update(DEFAULT, memory_id, MemoryPatch(remove_document_at=True))
    assert found(until=MAY) is False
    engine.update(DEFAULT, memory_id, MemoryPatch(archived=True))
    assert (found(), found(include_archived=True)) == (False, True)
    engine.update(DEFAULT, memory_id, MemoryPatch(archived=False))
    assert found()
    assert list(engine.check()) == []


# --- pinned, archived ----------------------------------------------------------------------------------------------


def test_a_pinned_memory_is_deleted_only_by_force(engine: MemoryEngine):
    pinned, other = add(engine, "pinned", pinned=True), add(engine, "other")
    with pytest.raises(MemoryPinned):
        engine.delete(DEFAULT, pinned)
    outcome = engine.delete_many(DEFAULT, [pinned, other, 999, pinned])
    assert (outcome.deleted_ids, outcome.missing_ids, outcome.skipped_pinned) == ((other,), (999,), (pinned,))
    assert engine.delete_by_source(DEFAULT, SourceFilter("notes")).deleted_ids == ()
    assert texts(engine) == ["pinned"]
    assert engine.delete(DEFAULT, pinned, force=True) == "pinned"
    assert texts(engine) == []


@pytest.mark.parametrize(("field", "error"), [("pinned", MemoryPinned), ("archived", MemoryArchived)])
def test_a_pinned_or_archived_memory_is_not_replaced(engine: MemoryEngine, field: str, error: type[Conflict]):
    guarded = add(engine, "guarded", pinned=field == "pinned", archived=field == "archived")
    other = add(engine, "other")
    before = stored(engine)
    with pytest.raises(error):
        engine.supersede(DEFAULT, guarded, text="new")
    with pytest.raises(error):
        engine.merge(DEFAULT, [other, guarded], text="new", source="notes")
    assert stored(engine) == before
    assert list(engine.check()) == []


def test_archiving_skips_what_is_missing_or_archived_already(engine: MemoryEngine):
    ids = [add(engine, f"text {number}") for number in range(3)]
    assert engine.archive(DEFAULT, [ids[0], 999, ids[0]]) == 1
    assert engine.archive(DEFAULT, ids) == 2
    assert engine.archive(DEFAULT, []) == 0
    assert [found.archived for found in stored(engine)] == [True] * 3


# --- keys ----------------------------------------------------------------------------------------------------------


def test_a_key_belongs_to_one_active_memory_of_a_source(engine: MemoryEngine):
    first = add(engine, "first", key="k")
    add(engine, "elsewhere", "other", key="k")
    with pytest.raises(KeyTaken) as caught:
        add(engine, "second", key="k")
    assert (caught.value.source, caught.value.key, caught.value.memory_id) == ("notes", "k", first)
    with pytest.raises(KeyTaken):
        engine.add_batch(DEFAULT, [MemoryDraft("a", "notes"), MemoryDraft("b", "notes", key="k")])
    with pytest.raises(KeyTaken):
        engine.add_batch(DEFAULT, [MemoryDraft("a", "new", key="j"), MemoryDraft("b", "new", key="j")])
    assert texts(engine) == ["first", "elsewhere"]


def test_an_archived_memory_releases_its_key_until_it_is_free_again(engine: MemoryEngine):
    first = add(engine, "first", key="k")
    engine.archive(DEFAULT, [first])
    second = add(engine, "second", key="k")
    with pytest.raises(KeyTaken):
        engine.update(DEFAULT, first, MemoryPatch(archived=False))
    engine.delete(DEFAULT, second)
    assert engine.update(DEFAULT, first, MemoryPatch(archived=False)).memory.archived is False


def test_a_memory_does_not_move_to_a_source_where_its_key_is_taken(engine: MemoryEngine):
    add(engine, "first", "a", key="k")
    second = add(engine, "second", "b", key="k")
    with pytest.raises(KeyTaken):
        engine.update(DEFAULT, second, MemoryPatch(source="a"))
    assert memory(engine, second).source == "b"


def test_an_upsert_changes_the_active_memory_of_its_key_or_stores_a_new_one(engine: MemoryEngine):
    drafts = [MemoryDraft(f"text {number}", "notes", {f"m{number}": number}, key="k") for number in range(3)]
    outcomes = engine.upsert(DEFAULT, drafts[:2])
    assert [outcome.created for outcome in outcomes] == [True, False]
    assert outcomes[0].id == outcomes[1].id
    found = memory(engine, outcomes[0].id)
    assert (found.text, found.metadata) == ("text 1", {"m0": 0, "m1": 1})
    engine.archive(DEFAULT, [found.id])
    [again] = engine.upsert(DEFAULT, drafts[2:])
    assert again.created
    assert again.id > found.id


def test_an_upsert_without_a_key_is_refused_and_stores_nothing(engine: MemoryEngine):
    with pytest.raises(InvalidRequest):
        engine.upsert(DEFAULT, [MemoryDraft("a", "notes", key="k"), MemoryDraft("b", "notes")])
    assert texts(engine) == []


def test_a_superseding_memory_inherits_key_source_and_metadata(engine: MemoryEngine):
    old = add(engine, "old", metadata={"a": 1, "b": 2}, key="k")
    new = memory(engine, engine.supersede(DEFAULT, old, text="new", metadata={"b": 3}).new_id)
    assert (new.key, new.source, new.metadata) == ("k", "notes", {"a": 1, "b": 3})
    assert engine.upsert(DEFAULT, [MemoryDraft("newer", "notes", key="k")])[0].id == new.id


# --- failures, opening and closing ---------------------------------------------------------------------------------

WRITES: dict[str, Callable[[MemoryEngine, int], object]] = {
    "add": lambda engine, _: engine.add(DEFAULT, MemoryDraft("new", "notes")),
    "add unless there": lambda engine, _: engine.add(DEFAULT, MemoryDraft("n", "notes"), on_duplicate=OnDuplicate.SKIP),
    "add batch": lambda engine, _: engine.add_batch(DEFAULT, [MemoryDraft("new", "notes")] * 2),
    "upsert": lambda engine, _: engine.upsert(DEFAULT, [MemoryDraft("new", "notes", key="k")]),
    "patch": lambda engine, id_: engine.update(DEFAULT, id_, MemoryPatch(text="new", source="new")),
    "supersede": lambda engine, id_: engine.supersede(DEFAULT, id_, text="new"),
    "merge": lambda engine, id_: engine.merge(DEFAULT, [id_, id_ + 1], text="new", source="notes"),
}


@pytest.mark.parametrize("verb", WRITES)
def test_a_write_whose_text_cannot_be_embedded_changes_nothing(
    engine: MemoryEngine, embedder: BreakableEmbedder, verb: str
):
    memory_id = add(engine, "one")
    add(engine, "two")
    before = stored(engine)
    embedder.broken = True
    with pytest.raises(EmbeddingUnavailable):
        WRITES[verb](engine, memory_id)
    embedder.broken = False
    assert stored(engine) == before
    assert list(engine.check()) == []
    WRITES[verb](engine, memory_id)
    assert stored(engine) != before
    assert list(engine.check()) == []


def test_writes_without_a_text_need_no_embedder(engine: MemoryEngine, embedder: BreakableEmbedder):
    memory_id = add(engine, "one")
    embedder.broken = True
    engine.update(DEFAULT, memory_id, MemoryPatch(source="moved", pinned=True))
    assert engine.archive(DEFAULT, [memory_id]) == 1
    engine.delete(DEFAULT, memory_id, force=True)
    assert list(engine.check()) == []


def run(connection: Connection, statement: str, parameters: tuple[bytes, ...]) -> None:
    connection.execute(statement, parameters)


def test_the_check_reports_differences_between_index_and_database(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
):
    # The background check, which a loaded index asks for, would drop the index as soon as it differs.
    monkeypatch.setattr(Maintenance, "ask", lambda _: None)
    engine = open_engine()
    add(engine, "violin")
    engine.search(DEFAULT, SearchQuery("violin"))
    assert list(engine.check()) == []
    changes: list[tuple[str, tuple[bytes, ...]]] = [
        ("UPDATE passages SET archived = 1", ()),
        ("UPDATE vectors SET vector = ?", (bytes(4 * 256),)),
    ]
    if not engine.is_shared:  # an index may be behind commits of other replicas
        changes.append(("UPDATE namespaces SET change_seq = 99", ()))
    for statement, parameters in changes:
        before = len(engine.check())
        engine.write_rows(partial(run, statement=statement, parameters=parameters))
        assert len(engine.check()) > before


@pytest.mark.parametrize(
    "verb",
    [
        *("get", "search", "add", "snapshot", "check"),
        *(pytest.param(verb, marks=FILES_ONLY) for verb in ("back_up", "restore")),
    ],
)
def test_a_closed_engine_refuses_requests_and_close_is_idempotent(engine: MemoryEngine, verb: str):
    add(engine, "text")
    name = engine.back_up(reason="manual").name if engine.keeps_backups else "none"
    engine.close()
    engine.close()
    verbs: dict[str, Callable[[], object]] = {
        "get": lambda: engine.get(DEFAULT, [1]),
        "search": lambda: engine.search(DEFAULT, SearchQuery("text")),
        "add": lambda: engine.add(DEFAULT, MemoryDraft("new", "notes")),
        "back_up": lambda: engine.back_up(reason="manual"),
        "restore": lambda: engine.restore(name),
        "snapshot": engine.snapshot,
        "check": engine.check,
    }
    with pytest.raises(ServiceClosing):
        verbs[verb]()


def test_an_engine_closes_even_if_snapshots_cannot_be_written(open_engine: OpenEngine, settings: Settings):
    engine = open_engine()
    add(engine, "violin")
    engine.search(DEFAULT, SearchQuery("violin"))
    settings.index_dir.touch()
    engine.close()
    settings.index_dir.unlink()
    engine = open_engine()
    assert texts(engine) == ["violin"]


def test_searches_return_the_same_after_a_restart(open_engine: OpenEngine):
    engine = open_engine()
    for number in range(40):
        add(engine, f"note {number} of garden{number % 5}", f"s{number % 3}", archived=number % 7 == 0)
    queries = [SearchQuery("garden3 note 8"), SearchQuery("garden1", hybrid=False), SearchQuery("gardn4")]

    def answers(engine: MemoryEngine) -> list[list[tuple[int, float]]]:
        return [[(hit.memory.id, hit.score) for hit in engine.search(DEFAULT, query).hits] for query in queries]

    before = answers(engine)
    engine.close()
    engine = open_engine()
    assert answers(engine) == before
    assert list(engine.check()) == []


def test_stats_and_readiness_count_the_stored_memories(open_engine: OpenEngine):
    engine = open_engine()
    engine.warm_up()
    assert engine.readiness().ready
    add(engine, "one " * 200)
    add(engine, "two", scope=ANN)
    stats = engine.stats(DEFAULT)
    assert (stats.memories, stats.passages, stats.dim, stats.model_id, stats.backups) == (1, 2, 256, "fake@1", 0)
    if engine.keeps_backups:
        engine.back_up(reason="manual")
        assert engine.stats(DEFAULT).backups == 1
    engine.close()
    engine = open_engine()
    engine.warm_up()
    readiness = engine.readiness()
    assert (readiness.ready, readiness.index_count, readiness.record_count) == (True, 1, 1)
    assert engine.stats(DEFAULT).index_bytes > 0


def test_every_refusal_is_one_sentence_that_names_no_library(engine: MemoryEngine):
    memory_id = add(engine, "text", key="k", pinned=True)
    refusals: list[Callable[[], object]] = [
        lambda: engine.update(DEFAULT, 999, MemoryPatch(text="x")),
        lambda: engine.delete(DEFAULT, memory_id),
        lambda: add(engine, "again", key="k"),
        lambda: engine.update(DEFAULT, memory_id, MemoryPatch()),
    ]
    if engine.keeps_backups:
        refusals += [lambda: engine.restore("nothing"), lambda: engine.back_up(reason="../x")]
    for refused in refusals:
        with pytest.raises(SouvenirError) as caught:
            refused()
        assert 400 <= caught.value.status < 500
        assert caught.value.message
        assert "\n" not in caught.value.message
        assert "apsw" not in caught.value.message
