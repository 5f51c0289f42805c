"""A store whose id counter an import of an earlier release moved too far is found and repaired, and stays repaired."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from souvenir.command_line import main
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import StoreUnusable
from souvenir.core.ledger import Verdict
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope, SearchQuery
from souvenir.jobs.worker import Jobs
from souvenir.knowledge.services import KnowledgeServices
from souvenir.learning.undo import undo
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import EXTRACT
from souvenir.store.idempotency import Once
from souvenir.store.selection import Chooses
from souvenir.store.sqlite.renumbering import ID_GAP, MAX_COUNTED_ID
from souvenir.store.sqlite.restore import repair_ids, restore_offline
from tests.conversations.talk import draft
from tests.fake_embedder import FakeEmbedder
from tests.learning.ledgers import ANN, Applier, applied, decided, outcome, seen
from tests.memories.engine.verbs import DEFAULT, add, leap, stored, texts
from tests.memories.erasure.test_tombstones import erase

FOUND = "the id counter of memories was moved too far by an import; stop the service and run `python app.py repair-ids`"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def engine(settings: Settings) -> Iterator[MemoryEngine]:
    with closing(reopened(settings)) as opened:
        yield opened


def reopened(settings: Settings) -> MemoryEngine:
    return MemoryEngine.open(settings, FakeEmbedder())


def test_the_check_finds_a_counter_that_was_moved_too_far(engine: MemoryEngine):
    add(engine, "before")
    leap(engine, MAX_COUNTED_ID)
    assert list(engine.check()) == []
    add(engine, "the first one above")
    assert list(engine.check()) == [FOUND]


def test_a_counter_that_was_moved_too_far_is_found_when_its_memories_are_deleted(engine: MemoryEngine):
    leap(engine)
    engine.delete(DEFAULT, add(engine, "deleted"))
    assert list(engine.check()) == [FOUND]


def test_a_repair_renumbers_everything_that_names_a_memory(engine: MemoryEngine, settings: Settings):
    kept = add(engine, "stored before the leap")
    leap(engine)
    engine.delete(DEFAULT, add(engine, "deleted before the repair"))
    first = add(engine, "Ann lives in Oslo", scope=ANN, facts=("Oslo is her home", "Ann lives"), tags=("Home",))
    second = engine.supersede(ANN, add(engine, "Tea is green, they say", scope=ANN), text="The tea is green").new_id
    merged = engine.merge(ANN, [first, second], text="Ann lives in Oslo, and the tea is green", source="notes").id
    target = add(engine, "Ann has a red car", "proj/a", scope=ANN)
    once = Once.of("/memory/add", "the key of a request", {})
    [made_once] = engine.add_batch(ANN, [MemoryDraft("added once", "notes")], once=once)
    talk(engine)
    with closing(Jobs(engine, [Applier(engine, settings)], queue_max=9, retention_days=1, lane=EXTRACT)) as jobs:
        jobs.start()
        job_id = applied(jobs, [decided("Ann sold her car", Verdict.UPDATE, seen(engine, target))]).id
    made_by_job = outcome(engine, job_id)["new_id"]
    before = stored(engine, ANN)
    engine.close()
    done = repair_ids(settings)
    new = done.new_of_old
    assert {first, second, merged, target, made_by_job} <= new.keys()
    assert kept not in new
    assert sorted(new.values()) == list(range(kept + ID_GAP + 1, kept + ID_GAP + 1 + len(new)))
    assert left_of(settings, new) == []
    with closing(reopened(settings)) as again:
        after = stored(again, ANN)
        assert [(one.id, one.text, one.tags, one.facts) for one in after] == [
            (new.get(one.id, one.id), one.text, one.tags, one.facts) for one in before
        ]
        [both] = [one for one in after if one.id == new[merged]]
        assert both.metadata["source_memory_ids"] == [new[first], new[second]]
        assert {link.to_id for link in both.links} == {new[first], new[second]}
        assert [entry.action for entry in again.history(ANN, new[first]).entries] == ["add", "merged"]
        assert again.search(ANN, SearchQuery("Ann sold her car")).hits[0].memory.id == new[made_by_job]
        assert again.add_batch(ANN, [MemoryDraft("added once", "notes")], once=once) == [new[made_once]]
        with closing(Jobs(again, [Applier(again, settings)], queue_max=9, retention_days=1, lane=EXTRACT)) as jobs:
            assert undo(again, jobs, ANN, job_id).restored == (new[target],)
        assert add(again, "stored after the repair") == max(new.values()) + 1
        assert list(again.check()) == []


def talk(engine: MemoryEngine) -> None:
    """Memories of an agent: one whose mentions are indexed, and one that waits for that."""
    agent = Scope("agent")
    Conversations(engine).add(agent, [draft("Hello", session_id="one")])
    add(engine, "Dora moved to Lisbon", "talk", scope=agent)
    KnowledgeServices.open(engine).indexer.catch_up()
    add(engine, "Ann met Dora in Lisbon", "talk", scope=agent)


def left_of(settings: Settings, new_of_old: Mapping[int, int]) -> list[tuple[str, str]]:
    """Cells that still hold an old id, but for the map."""
    found: list[tuple[str, str]] = []
    with closing(apsw.Connection(str(settings.database_path))) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in {*tables} - {"renumbered_memories", "renumbered_memories_checksums", "vectors"}:
            for row in connection.execute(f"SELECT * FROM {table}"):
                numbers = {int(one) for cell in row for one in re.findall(r"\d+", str(cell))}
                found += [(table, str(row))] if numbers & new_of_old.keys() else []
    return found


def test_a_store_that_is_sound_is_left_alone(engine: MemoryEngine, settings: Settings):
    add(engine, "one")
    engine.close()
    before = settings.database_path.read_bytes()
    assert repair_ids(settings).backup is None
    assert settings.database_path.read_bytes() == before
    assert not settings.backup_dir.exists()


def test_a_repair_needs_a_store_that_is_there_and_not_in_use(engine: MemoryEngine, settings: Settings, tmp_path: Path):
    with pytest.raises(StoreUnusable):
        repair_ids(settings)
    with pytest.raises(StoreUnusable, match="does not exist"):
        repair_ids(Settings(data_dir=tmp_path / "elsewhere"))


def test_the_command_repairs_and_prints_the_map(
    engine: MemoryEngine, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    leap(engine)
    old = add(engine, "one")
    engine.close()
    monkeypatch.setenv("DATA_DIR", str(settings.data_dir))
    assert main(["repair-ids"]) == 0
    written = capsys.readouterr().out.splitlines()
    assert written[0] == f"{old} -> {ID_GAP + 1}"
    assert "1 memories" in written[1]
    assert "pre_repair_" in written[1]
    assert main(["repair-ids"]) == 0
    assert "need no repair" in capsys.readouterr().out
    with closing(reopened(settings)) as again:
        assert list(again.check()) == []
        assert [backup.reason for backup in again.backups()] == ["pre_repair"]


# --- restores ------------------------------------------------------------------------------------------------------


def test_a_backup_from_before_the_leap_is_restored_without_it(engine: MemoryEngine):
    add(engine, "before")
    backup = engine.back_up(reason="manual").name
    leap(engine)
    add(engine, "after")
    engine.restore(backup)
    assert add(engine, "next") == 1 + ID_GAP + 1
    assert list(engine.check()) == []


@pytest.mark.parametrize("offline", [False, True])
def test_a_backup_from_before_the_repair_gets_the_same_ids_again(
    engine: MemoryEngine, settings: Settings, offline: bool
):
    leap(engine)
    old = add(engine, "one")
    backup = engine.back_up(reason="manual").name
    engine.close()
    new = repair_ids(settings).new_of_old[old]
    with closing(reopened(settings)) as present:
        later = add(present, "stored after the repair")
        if not offline:
            present.restore(backup)
            assert [one.id for one in stored(present)] == [new]
    if offline:
        restore_offline(settings, backup)
    with closing(reopened(settings)) as restored:
        assert [one.id for one in stored(restored)] == [new]
        assert later < add(restored, "next") < MAX_COUNTED_ID
        assert list(restored.check()) == []


def test_a_store_that_is_affected_is_repaired_by_a_restore(engine: MemoryEngine):
    leap(engine)
    add(engine, "one")
    backup = engine.back_up(reason="manual").name
    later = add(engine, "two")
    engine.restore(backup)
    assert [one.id for one in stored(engine)] == [ID_GAP + 1]
    assert ID_GAP + 1 < add(engine, "next") < later
    assert list(engine.check()) == []


@pytest.mark.parametrize(("offline", "lost"), [(False, False), (True, False), (True, True)])
def test_no_backup_from_before_a_repair_brings_back_what_was_erased_after_it(
    engine: MemoryEngine, settings: Settings, offline: bool, lost: bool
):
    leap(engine)
    old = add(engine, "a secret", scope=ANN)
    add(engine, "another one", scope=ANN)
    backup = engine.back_up(reason="manual").name
    engine.close()
    new = repair_ids(settings).new_of_old[old]
    with closing(reopened(settings)) as present:
        erase(present, Chooses.MEMORY, new, ANN)
        present.back_up(reason="later")
        if not offline:
            present.restore(backup)
    if lost:
        settings.database_path.write_bytes(b"no database" * 1000)
    if offline:
        restore_offline(settings, backup)
    with closing(reopened(settings)) as restored:
        assert texts(restored, ANN) == ["another one"]
        assert list(restored.check()) == []
