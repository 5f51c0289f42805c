"""The import of each kind of line, including ids, keys, links and sources."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from souvenir.core.errors import Overloaded, PayloadTooLarge, Unavailable
from souvenir.core.types import FactsBy, Link, Memory, MemoryDraft, Scope, SearchQuery
from souvenir.store.admin import transfers
from souvenir.transfer.import_job import ImportHandler, ImportOrder, Strategy
from souvenir.transfer.spool import Spools
from tests.memories.engine.verbs import add, memory, stored, texts
from tests.thoroughness import sampled
from tests.transfer.stores import DEFAULT, PATIENCE_S, Store, drain, in_pieces, lines_of, ndjson, open_store

MAY = datetime(2023, 5, 8, 9, 30, tzinfo=UTC)
AT = "2023-05-08T09:30:00.000000+00:00"
HEADER = {"_header": True, "count": 1, "version": "4.0.0"}


def line(text: str, source: str = "notes", **fields: Any) -> dict[str, Any]:
    return {"text": text, "source": source, "created_at": AT, "updated_at": AT, **fields}


def only(store: Store) -> Memory:
    [found] = stored(store.engine)
    return found


def link(store: Store, from_id: int, to_id: int) -> None:
    made = Link(from_id, to_id, "related_to", MAY)
    store.engine.write(DEFAULT, lambda tx: transfers.insert_link(tx.connection, made))


def test_a_line_of_the_reference_service_is_stored_with_its_times_and_its_fields(store: Store):
    fields = {"category": "decision", "document_at": "2023-01-02", "pinned": True, "entity_key": "k", "is_latest": True}
    report = store.import_(ndjson(HEADER, line("Ann plays the violin", custom_fields=fields)))
    assert (report["imported"], report["errors"]) == (1, [])
    found = only(store)
    assert (found.created_at, found.updated_at, found.pinned, found.key) == (MAY, MAY, True, "k")
    assert found.document_at == datetime(2023, 1, 2, tzinfo=UTC)
    assert found.metadata == {"category": "decision"}


def test_a_line_without_times_is_of_now(store: Store):
    store.import_(ndjson({"text": "Ann", "source": "notes"}))
    assert only(store).created_at > MAY


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (b"{", "Invalid JSON"),
        (b"[1]", "an object"),
        (b'{"source": "notes"}', "text: Field required"),
        (b'{"text": "", "source": "notes"}', "text: "),
        (json.dumps(line("x" * 50_001)).encode(), "text: "),
        (json.dumps(line("x", source="")).encode(), "source: "),
        (json.dumps(line("x", created_at="yesterday")).encode(), "created_at: "),
        (json.dumps(line("x", document_at=7)).encode(), "document_at: "),
        (json.dumps(line("a\0b")).encode(), "NUL"),
        (json.dumps(line("x", custom_fields={"a": "b" * 70_000})).encode(), "custom_fields: "),
        (b'{"text": "x", "source": "\xff"}', "Invalid JSON"),
        (json.dumps(line("x", id="seven")).encode(), "id: "),
        (json.dumps(line("x", links=[{"to_id": 1}])).encode(), "links.0."),
        (b"[" * 100_000, ""),
    ],
)
def test_a_bad_line_is_an_error_of_that_line_alone(store: Store, bad: bytes, error: str):
    report = store.import_(ndjson(HEADER, line("before")) + bad + b"\n\n" + ndjson(line("after")))
    assert texts(store.engine) == ["before", "after"]
    [reported] = report["errors"]
    assert reported["line"] == 3
    assert error in reported["error"]
    assert report["error_count"] == 1


def test_an_error_does_not_repeat_the_text(store: Store):
    report = store.import_(ndjson(line("a secret " * 10_000), {"text": ["a secret"], "source": "s"}))
    assert report["error_count"] == 2
    assert "secret" not in json.dumps(report)


def test_a_line_that_is_too_long_is_skipped_without_being_held(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("souvenir.transfer.spool.MAX_LINE_BYTES", 1000)
    report = store.import_(ndjson(line("x" * 5_000), line("short"), line("y" * 900, custom_fields={})))
    assert [error["line"] for error in report["errors"]] == [1, 3]
    assert texts(store.engine) == ["short"]


def test_many_errors_are_counted_and_the_first_thousand_named(store: Store):
    report = store.import_(b"{\n" * 1_200)
    assert (report["error_count"], len(report["errors"])) == (1_200, 1_000)


def test_an_empty_file_is_an_import_of_nothing(store: Store):
    report = store.import_(b"")
    assert (report["imported"], report["error_count"], report["backup"]) == (0, 0, None)


def test_a_backup_is_made_first_unless_nobody_wants_one(store: Store):
    add(store.engine, "before")
    report = store.import_(ndjson(line("after")), back_up=True)
    [backup] = store.engine.backups()
    assert (report["backup"], backup.reason, backup.memories) == (backup.name, "pre_import", 1)


@pytest.mark.parametrize("strategy", [Strategy.ADD, Strategy.SMART])
@pytest.mark.parametrize(
    "body",
    [
        b"{\n" * 200,
        b"\n" * 200,
        ndjson(HEADER),
        ndjson(line("x", custom_fields={"entity_key": "taken"}), line("x", custom_fields={"entity_key": "taken"})),
    ],
)
def test_an_import_that_stores_nothing_makes_no_backup(store: Store, strategy: Strategy, body: bytes):
    add(store.engine, "x", "notes", key="taken")
    report = store.import_(body, strategy=strategy, back_up=True)
    assert (report["imported"], report["updated"], report["backup"]) == (0, 0, None)
    assert store.engine.backups() == []


@pytest.mark.parametrize("strategy", [Strategy.ADD, Strategy.SMART])
def test_a_backup_is_made_once_before_the_first_line_that_is_stored(store: Store, strategy: Strategy):
    add(store.engine, "before")
    lines = [line(f"{number} {'abcdefgh'[number % 8] * 20}") for number in range(100)]
    report = store.import_(b"{\n" * 5_000 + ndjson(*lines), strategy=strategy, back_up=True)
    [backup] = store.engine.backups()
    assert (report["backup"], backup.memories, report["error_count"]) == (backup.name, 1, 5_000)
    assert report["imported"] + report["updated"] + report["skipped"] == 100
    assert [error["line"] for error in report["errors"]] == list(range(1, 1_001))


# --- links -------------------------------------------------------------------------------------------------------


def test_links_and_merged_sources_lead_to_the_new_ids(store: Store, other: Store):
    first, second = add(store.engine, "Ann plays the violin"), add(store.engine, "Ben bakes bread")
    merged = store.engine.merge(DEFAULT, [first, second], text="Ann plays and Ben bakes", source="notes").id
    link(store, second, first)
    add(other.engine, "somebody was here before")
    report = other.import_(store.export(history=True))
    assert (report["imported"], report["links"], report["links_dropped"]) == (3, 3, 0)
    new = {found.text: found for found in stored(other.engine)}
    ann, ben, both = new["Ann plays the violin"], new["Ben bakes bread"], new["Ann plays and Ben bakes"]
    assert both.id != merged
    assert both.metadata == {"source_memory_ids": [ann.id, ben.id]}
    assert [it.to_id for it in both.links] == [ann.id, ben.id]
    assert [(it.to_id, it.created_at) for it in ben.links] == [(ann.id, MAY)]
    assert ann.superseded_by == both.id
    states = [entry["after"]["metadata"] for entry in lines_of(other.export(history=True))[-1]["history"]]
    assert states == [{"source_memory_ids": [ann.id, ben.id]}] * 2
    assert list(other.engine.check()) == []


def test_a_link_to_what_is_not_in_the_file_is_dropped_and_counted(store: Store):
    add(store.engine, "not meant by the file")
    links = [{"to_id": 1, "type": "related_to", "created_at": AT}, {"to_id": 9, "type": "related_to", "created_at": AT}]
    report = store.import_(ndjson(line("eight", id=8, links=links), line("nine", id=9), line("no id", links=links)))
    assert (report["links"], report["links_dropped"]) == (1, 3)
    assert [it.to_id for it in memory(store.engine, 8).links] == [9]


# --- keys, history, sources ----------------------------------------------------------------------------------------


def test_a_key_that_is_taken_is_an_error_with_add_and_an_update_with_smart(store: Store):
    held = add(store.engine, "the plan is A", "notes", key="plan", metadata={"kept": 1})
    plan_b = line("the plan is B", key="plan", id=50, custom_fields={"new": 2})
    report = store.import_(ndjson(plan_b))
    assert (report["imported"], report["error_count"]) == (0, 1)
    report = store.smart(ndjson(plan_b))
    assert (report["updated"], report["error_count"]) == (1, 0)
    assert (only(store).id, only(store).text) == (held, "the plan is B")
    assert only(store).metadata == {"kept": 1, "new": 2}
    assert store.smart(ndjson(plan_b))["skipped"] == 1


def test_history_comes_along_with_its_actors_and_times_and_without_it_there_is_one_entry(store: Store, other: Store):
    changed = store.engine.add(Scope(actor="ann"), MemoryDraft("first", "notes")).id
    assert changed is not None
    store.engine.supersede(Scope(actor="ben"), changed, text="second")
    left = lines_of(store.export(history=True))
    assert [entry["actor"] for entry in left[1]["history"]] == ["ann", "ben"]
    other.import_(store.export(history=True), Scope("with", "the importer"))
    other.import_(store.export(), Scope("without", "the importer"))
    for came, line_left in zip(lines_of(other.export(Scope("with"), history=True))[1:], left[1:], strict=True):
        *brought, own = came["history"]
        assert brought == [{**entry, "imported": True} for entry in line_left["history"]]
        assert (own["action"], own["actor"], own["imported"]) == ("import", "the importer", False)
    entries = [it["history"] for it in lines_of(other.export(Scope("without"), history=True))[1:]]
    assert [[(it["action"], it["actor"], it["before"]) for it in one] for one in entries] == [
        [("import", "the importer", None)],
        [("import", "the importer", None)],
    ]


def test_sources_are_put_elsewhere_by_path(store: Store, other: Store):
    for source in ("proj/a", "proj/a/b", "proj/ab"):
        add(store.engine, f"a text of {source}", source)
    other.remapped(store.export(history=True), "proj/a", "new")
    assert [found.source for found in stored(other.engine)] == ["new", "new/b", "proj/ab"]
    named = [it["history"][0]["after"]["source"] for it in lines_of(other.export(history=True))[1:]]
    assert named == ["new", "new/b", "proj/ab"]


def test_a_namespace_can_be_copied_into_another_of_the_same_store(store: Store):
    first = add(store.engine, "Ann plays the violin")
    store.engine.supersede(DEFAULT, first, text="Ann plays the viola")
    ann = Scope("ann")
    assert store.import_(store.export(), ann)["imported"] == 2
    copies = stored(store.engine, ann)
    assert [found.text for found in copies] == texts(store.engine)
    assert [found.superseded_by for found in copies] == [copies[1].id, None]
    assert list(store.engine.check()) == []


# --- smart ---------------------------------------------------------------------------------------------------------

FIVE = "ann plays violin every morning"
NEARLY = "ann plays violin every evening"
"""Shares four of five words: a cosine of 0.8."""


def test_smart_skips_what_is_there_and_adds_what_is_new(store: Store):
    add(store.engine, FIVE)
    report = store.smart(ndjson(line(FIVE, "elsewhere"), line("ben bakes bread"), line("ben bakes bread", id=70)))
    assert (report["imported"], report["skipped"], report["updated"]) == (1, 2, 0)
    assert texts(store.engine) == [FIVE, "ben bakes bread"]


def test_smart_lets_the_newer_of_two_nearly_equal_texts_win(store: Store):
    held = add(store.engine, FIVE)
    assert store.smart(ndjson(line(NEARLY)))["skipped"] == 1
    assert texts(store.engine) == [FIVE]
    newer = line(NEARLY, created_at="2100-01-01T00:00:00Z", document_at="2023-01-01")
    assert store.smart(ndjson(newer))["updated"] == 1
    changed = only(store)
    assert (changed.id, changed.text, changed.created_at.year) == (held, NEARLY, 2100)
    assert changed.document_at == datetime(2023, 1, 1, tzinfo=UTC)
    assert store.smart(ndjson(line(FIVE, created_at="2050-01-01T00:00:00Z")))["skipped"] == 1
    assert list(store.engine.check()) == []


def test_smart_leaves_pinned_memories_alone(store: Store):
    add(store.engine, FIVE, pinned=True)
    assert store.smart(ndjson(line(NEARLY, created_at="2100-01-01T00:00:00Z")))["skipped"] == 1
    assert texts(store.engine) == [FIVE]


def test_a_second_smart_import_of_the_same_file_changes_nothing(store: Store, other: Store):
    first = add(store.engine, FIVE, key="k")
    store.engine.supersede(DEFAULT, first, text="ann plays the drums")
    ben, bread = add(store.engine, "ben bakes bread"), add(store.engine, "bread needs flour")
    store.engine.merge(DEFAULT, [ben, bread], text="ben needs flour for bread", source="notes")
    assert other.smart(store.export(history=True))["imported"] == 5
    before = other.export(history=True)
    report = other.smart(store.export(history=True))
    assert (report["skipped"], report["imported"], report["updated"], report["links"]) == (5, 0, 0, 0)
    assert other.export(history=True).partition(b"\n")[2] == before.partition(b"\n")[2]


# --- spools --------------------------------------------------------------------------------------------------------


def spools_in(store: Store) -> list[str]:
    return [path.name for path in store.spools.path("x").parent.iterdir()]


def test_the_spool_is_gone_when_the_import_is_done(store: Store):
    store.import_(ndjson(line("done")))
    store.jobs.close()
    assert spools_in(store) == []


def test_the_spool_is_gone_when_the_import_failed(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(transfers, "remember_ids", None)
    job = store.jobs.wait(store.submit(ndjson(line("fails"))).id, PATIENCE_S)
    store.jobs.close()
    assert (job.status, spools_in(store), texts(store.engine)) == ("failed", [], [])


def test_the_spool_is_gone_when_a_waiting_import_is_cancelled(tmp_path: Path):
    with open_store(tmp_path, start=False) as store:
        kept, cancelled = store.submit(ndjson(line("kept"))), store.submit(ndjson(line("cancelled")))
        assert len(spools_in(store)) == 2
        store.jobs.cancel(DEFAULT, cancelled.id)
        assert spools_in(store) == [f"{kept.id}.ndjson"]
        store.jobs.start()
        store.jobs.wait(kept.id, PATIENCE_S)
        assert texts(store.engine) == ["kept"]


def test_an_import_that_no_job_can_be_made_for_leaves_nothing(tmp_path: Path):
    with open_store(tmp_path, start=False) as store:
        for _ in range(3):
            store.submit(b"")
        with pytest.raises(Overloaded):
            store.submit(ndjson(line("too many jobs")))
        assert len(spools_in(store)) == 3


def test_only_so_many_bodies_may_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("souvenir.transfer.spool.MAX_SPOOLS", 2)
    with open_store(tmp_path, start=False) as store:
        store.submit(b"")
        store.submit(b"")
        with pytest.raises(Overloaded):
            store.submit(b"")


def test_a_start_removes_what_no_unfinished_job_owns(tmp_path: Path):
    with open_store(tmp_path, start=False) as store:
        kept = store.submit(ndjson(line("kept")))
        for name in ("a" * 32 + ".ndjson", "b" * 32 + ".arriving"):
            (store.spools.path("x").parent / name).write_text("left by a crash")
    with open_store(tmp_path, start=False) as store:
        assert spools_in(store) == [f"{kept.id}.ndjson"]
        store.jobs.start()
        store.jobs.wait(kept.id, PATIENCE_S)
        assert texts(store.engine) == ["kept"]


def test_a_body_that_breaks_off_or_is_too_large_leaves_nothing(store: Store, tmp_path: Path):
    async def broken() -> AsyncIterator[bytes]:
        yield b"the beginning"
        raise ConnectionError

    with pytest.raises(Unavailable):
        drain(store.spools.receive(broken(), DEFAULT.actor))
    small = Spools(store.engine, tmp_path / "small", max_bytes=10)
    with pytest.raises(PayloadTooLarge):
        drain(small.receive(in_pieces(b"x" * 11), DEFAULT.actor))
    assert spools_in(store) + list((tmp_path / "small").iterdir()) == []


def test_a_folder_of_imports_that_cannot_be_made_is_unavailable_and_named(store: Store, tmp_path: Path):
    (tmp_path / "taken").touch()
    spools = Spools(store.engine, tmp_path / "taken", max_bytes=10)
    with pytest.raises(Unavailable, match=r"The folder .*taken cannot be made or read \(File exists\); give it to"):
        drain(spools.receive(in_pieces(b"x"), DEFAULT.actor))
    spools.sweep()
    (tmp_path / "taken").unlink()
    assert drain(spools.receive(in_pieces(b"x"), DEFAULT.actor)).line_count == 1


def test_a_body_is_never_held_in_memory(store: Store):
    """Many times the limit arrives in pieces; what is held is one line, one piece to be written, and the report."""
    size = sampled(30, 60) * 1024 * 1024
    piece = (b"[" + b"x" * 65_000 + b"\n") * 16

    async def body() -> AsyncIterator[bytes]:
        for _ in range(size // len(piece)):
            yield bytes(piece)

    tracemalloc.start()
    try:
        spool = drain(store.spools.receive(body(), DEFAULT.actor))
        with store.spools.until_submitted(spool.job_id):
            parameters = ImportOrder(back_up=False).parameters(spool)
            store.jobs.submit(ImportHandler.kind, DEFAULT, parameters, job_id=spool.job_id)
        job = store.jobs.wait(spool.job_id, PATIENCE_S)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert job.result is not None
    assert job.result["error_count"] == spool.line_count == size // len(piece) * 16
    assert peak < 12 * 1024 * 1024


# --- tags and facts ------------------------------------------------------------------------------------------------

FACT = {"text": "Ann owns a violin", "made_by": "model", "created_at": AT}


def test_tags_and_facts_come_with_who_made_them_and_when(store: Store):
    owned: dict[str, Any] = {"tags": ["Music", "music", "a b"], "facts": [FACT, {"text": "Ann plays"}]}
    assert store.import_(ndjson(line("Ann plays the violin", **owned)))["errors"] == []
    found = only(store)
    assert found.tags == ("a b", "Music")
    assert [(fact.text, fact.made_by, fact.created_at) for fact in found.facts] == [
        ("Ann owns a violin", FactsBy.MODEL, MAY),
        ("Ann plays", FactsBy.CALLER, MAY),
    ]
    [hit] = store.engine.search(DEFAULT, SearchQuery("who owns one")).hits
    assert hit.facts[0].fact.text == "Ann owns a violin"
    assert list(store.engine.check()) == []


def test_a_line_of_an_export_without_tags_and_facts_has_none(store: Store):
    store.import_(ndjson({**HEADER, "version": "4.0.0"}, line("Ann", custom_fields={"tags": ["x"], "facts": 7})))
    found = only(store)
    assert (found.tags, found.facts, found.metadata) == ((), (), {"tags": ["x"], "facts": 7})


@pytest.mark.parametrize(
    "owned",
    [
        {"tags": [" "]},
        {"tags": "work"},
        {"tags": [str(number) for number in range(51)]},
        {"facts": ["plain"]},
        {"facts": [{"text": ""}]},
        {"facts": [{**FACT, "made_by": "nobody"}]},
        {"facts": [FACT] * 1_001},
        {"history": [{"action": "add", "actor": "a", "at": AT, "after": {"text": "x", "source": "s", "tags": [""]}}]},
    ],
)
def test_tags_and_facts_that_cannot_be_used_are_an_error_of_their_line(store: Store, owned: dict[str, Any]):
    report = store.import_(ndjson(line("before"), line("Ann", **owned), line("after")))
    assert texts(store.engine) == ["before", "after"]
    assert [error["line"] for error in report["errors"]] == [2]


def test_facts_of_a_line_are_screened_like_its_text(store: Store):
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    past = {"text": "Ann", "source": "notes", "facts": [{"text": f"her token is {secret}"}]}
    history = [{"action": "add", "actor": "a", "at": AT, "before": None, "after": past}]
    store.import_(ndjson(line("Ann has a token", facts=[{**FACT, "text": f"it is {secret}"}], history=history)))
    [fact] = only(store).facts
    assert fact.text.startswith("it is [")
    assert (fact.made_by, fact.created_at) == (FactsBy.MODEL, MAY)
    assert only(store).metadata["sensitive_data"] == ["github_token"]
    assert secret.encode() not in store.export(history=True)


def test_the_past_of_a_line_shows_its_facts_and_tags_of_then(store: Store):
    past = {"text": "Ann", "source": "notes", "tags": ["old"], "facts": [{"text": "Ann was here"}]}
    history = [{"action": "add", "actor": "a", "at": AT, "before": None, "after": past}]
    store.import_(ndjson(line("Ann", history=history, tags=["new"])))
    then = store.engine.memory(DEFAULT, only(store).id, MAY)
    assert (then.tags, [(fact.id, fact.text, fact.created_at) for fact in then.facts]) == (
        ("old",),
        [(0, "Ann was here", MAY)],
    )


def test_smart_joins_tags_and_takes_facts_with_their_text(store: Store):
    kept = add(store.engine, "Ann plays the violin", key="k", tags=("a",), facts=("Ann plays",))
    known = line("Ann plays the violin", key="k", tags=["B"])
    assert store.smart(ndjson(known))["updated"] == 1
    after = memory(store.engine, kept)
    assert (after.tags, [fact.text for fact in after.facts]) == (("a", "B"), ["Ann plays"])
    assert store.smart(ndjson(known))["skipped"] == 1
    assert store.smart(ndjson(line("Ann sold the violin", key="k", facts=[FACT])))["updated"] == 1
    after = memory(store.engine, kept)
    assert (after.tags, [(fact.text, fact.made_by) for fact in after.facts]) == (
        ("a", "B"),
        [("Ann owns a violin", FactsBy.MODEL)],
    )
    assert list(store.engine.check()) == []


def test_a_line_that_would_bring_too_many_tags_is_an_error_of_that_line(store: Store):
    add(store.engine, "Ann", key="k", tags=tuple(f"tag {number}" for number in range(50)))
    report = store.smart(ndjson(line("Ann sings", key="k", tags=["one more"]), line("another text")))
    assert [error["line"] for error in report["errors"]] == [1]
    assert texts(store.engine) == ["Ann", "another text"]
