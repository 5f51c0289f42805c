"""Undo restores every byte that a job changed, or changes nothing if newer data depends on the job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from souvenir.core.errors import Conflict, JobNotFound, SourceForbidden, UndoBlocked
from souvenir.core.ledger import FactStage, Phase, Verdict
from souvenir.core.types import FactsBy, MemoryPatch, Scope, SearchQuery
from souvenir.jobs.worker import Jobs
from souvenir.learning.undo import undo
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.fact_splitting import Split
from souvenir.memories.fact_writes import write_facts
from souvenir.store.admin.jobs import Job
from tests.learning.conftest import OpenLane, Remember
from tests.learning.dumps import dump, history
from tests.learning.ledgers import (
    ANN,
    SOURCE,
    Applier,
    applied,
    decided,
    extraction,
    fact,
    ledger,
    living,
    row_of,
    seen,
    submit,
)
from tests.memories.engine.verbs import add, memory

MAY = datetime(2023, 5, 8, 9, 30, tzinfo=UTC)


@pytest.fixture
def home(remember: Remember) -> int:
    owned: dict[str, Any] = {"facts": ("Oslo is her home", "Ann lives"), "tags": ("Home", "norway")}
    return remember("Ann lives in Oslo", key="home", metadata={"lang": "en"}, **owned)


@pytest.fixture
def car(remember: Remember) -> int:
    return remember("Ann has a red car", facts=("the car is red",), tags=("car",))


@pytest.fixture
def tea(engine: MemoryEngine, remember: Remember) -> int:
    """One with a past: it took another's place."""
    return engine.supersede(ANN, remember("Tea is green, they say"), text="The tea is green").new_id


def of_every_kind(engine: MemoryEngine, jobs: Jobs, home: int, car: int, tea: int) -> Job:
    rows = [
        decided("Ann lives in Bergen", Verdict.UPDATE, seen(engine, home)),
        decided(fact("Ann sold her car", at=MAY), Verdict.DELETE, seen(engine, car)),
        decided("The tea is black", Verdict.CONFLICT, seen(engine, tea)),
        replace(decided("The harbour opens at nine", Verdict.ADD), outcome={"related": [[tea, 0.6]]}),
        decided("Tea is green", Verdict.NOOP, seen(engine, tea)),
        decided("Ann lives in Tromso", Verdict.UPDATE, seen(engine, home)),
    ]
    return applied(jobs, rows)


def test_undoing_a_job_leaves_every_byte_as_it_was(engine: MemoryEngine, jobs: Jobs, home: int, car: int, tea: int):
    before, found = dump(engine), engine.search(ANN, SearchQuery("Ann tea harbour"))
    job = of_every_kind(engine, jobs, home, car, tea)
    assert dump(engine) != before
    undone = undo(engine, jobs, ANN, job.id)
    assert dump(engine) == before
    assert engine.search(ANN, SearchQuery("Ann tea harbour")) == found
    assert list(engine.check()) == []
    assert len(undone.removed) == 4
    assert undone.restored == (home, car)


def test_a_memory_split_since_is_undone_and_keeps_its_facts(engine: MemoryEngine, jobs: Jobs, home: int):
    job = applied(jobs, [decided("Ann lives in Bergen", Verdict.UPDATE, seen(engine, home))])
    new = memory(engine, row_of(engine, job.id).memory_id or 0, ANN)
    assert (new.tags, new.facts) == (("Home", "norway"), ())
    for one, facts in ((new, ("Bergen is her home",)), (memory(engine, home, ANN), ("Oslo it is", "Ann lives"))):
        assert write_facts(engine, ANN, one, Split(facts, FactsBy.MODEL)) is not None
    undone = undo(engine, jobs, ANN, job.id)
    assert (undone.removed, undone.restored) == ((new.id,), (home,))
    back = memory(engine, home, ANN)
    assert (back.tags, [fact.text for fact in back.facts]) == (("Home", "norway"), ["Oslo it is", "Ann lives"])
    assert not back.archived
    assert engine.search(ANN, SearchQuery("Oslo it is")).hits[0].facts[0].fact == back.facts[0]
    assert list(engine.check()) == []


def test_an_undone_job_keeps_its_texts_and_the_history_says_who_undid_it(
    engine: MemoryEngine, jobs: Jobs, home: int, car: int, tea: int
):
    job = of_every_kind(engine, jobs, home, car, tea)
    facts = [row.fact for row in ledger(engine, job.id)]
    undone = undo(engine, jobs, replace(ANN, actor="ben"), job.id, all_actors=True)
    rows = ledger(engine, job.id)
    assert [row.fact for row in rows] == facts
    assert {row.stage for row in rows} == {FactStage.UNDONE}
    assert extraction(engine, job.id).phase is Phase.UNDONE
    assert extraction(engine, job.id).transcript is not None
    last = history(engine)[-6:]
    assert last == [(one, "undo", "ben", job.id) for one in (*undone.removed, *undone.restored)]


def test_a_second_undo_is_refused(engine: MemoryEngine, jobs: Jobs, home: int):
    job = applied(jobs, [decided("Ann lives in Bergen", Verdict.UPDATE, seen(engine, home))])
    undo(engine, jobs, ANN, job.id)
    before = dump(engine)
    with pytest.raises(Conflict, match="undone already"):
        undo(engine, jobs, ANN, job.id)
    assert dump(engine) == before


@pytest.mark.parametrize("phase", [Phase.DECIDED, Phase.PROPOSING])
def test_a_job_that_is_not_finished_is_not_undone(
    engine: MemoryEngine, open_lane: OpenLane, applier: Applier, phase: Phase
):
    jobs = open_lane(applier, start=False)
    job = submit(jobs, [decided("The tea is green", Verdict.ADD)], phase=phase)
    with pytest.raises(Conflict, match="queued"):
        undo(engine, jobs, ANN, job.id)


def test_a_job_that_applied_nothing_is_not_undone(engine: MemoryEngine, jobs: Jobs, remember: Remember):
    ids = [remember(f"Violin number {number}") for number in range(3)]
    job = applied(jobs, [decided("sold", Verdict.DELETE, seen(engine, one)) for one in ids])
    with pytest.raises(Conflict, match="applied nothing"):
        undo(engine, jobs, ANN, job.id)


# --- what stands in the way ------------------------------------------------------------------------------------------

Later = Callable[[MemoryEngine, int, int], object]
"""Something that somebody does to the memory that was archived, or to the new one."""

LATER: dict[str, tuple[Later, str]] = {
    "a change of the new one": (
        lambda engine, old, new: engine.update(ANN, new, MemoryPatch(pinned=True)),
        "new update",
    ),
    "a new place of the new one": (
        lambda engine, old, new: engine.update(ANN, new, MemoryPatch(source="z")),
        "new update",
    ),
    "a successor of the new one": (lambda engine, old, new: engine.supersede(ANN, new, text="x"), "new superseded"),
    "a deletion of the new one": (lambda engine, old, new: engine.delete(ANN, new), "new delete"),
    "a deletion of the old one": (lambda engine, old, new: engine.delete(ANN, old), "old delete"),
    "a change of the old one": (
        lambda engine, old, new: engine.update(ANN, old, MemoryPatch(metadata={"a": 1})),
        "old update",
    ),
    "the archiving of the new one": (lambda engine, old, new: engine.archive(ANN, [new]), "new archive"),
    "a link to the new one": (lambda engine, old, new: linked(engine, new), "new linked by related_to"),
    "a link to the old one": (lambda engine, old, new: linked(engine, old), "old linked by related_to"),
    "another with its key": (lambda engine, old, new: taken(engine, new), "old its key taken"),
}


def changed(engine: MemoryEngine, memory_id: int, **fields: Any) -> None:
    engine.update(ANN, memory_id, MemoryPatch(**fields))


def linked(engine: MemoryEngine, to: int) -> None:
    other = add(engine, "Something else", "elsewhere", scope=ANN)
    engine.write(ANN, lambda tx: tx.link(other, to, "related_to"))


def taken(engine: MemoryEngine, new: int) -> None:
    engine.update(ANN, new, MemoryPatch(source="elsewhere"))
    add(engine, "Ann lives in Tromso", SOURCE, scope=ANN, key="home")


@pytest.mark.parametrize("name", LATER)
def test_a_job_with_newer_dependents_is_not_undone_and_the_error_names_them(
    engine: MemoryEngine, jobs: Jobs, home: int, name: str
):
    later, expected = LATER[name]
    rows = [decided("Ann lives in Bergen", Verdict.UPDATE, seen(engine, home)), decided("Tea is green", Verdict.ADD)]
    job = applied(jobs, rows)
    new = row_of(engine, job.id).memory_id or 0
    later(engine, home, new)
    before, rows_before = dump(engine), ledger(engine, job.id)
    with pytest.raises(UndoBlocked) as blocked:
        undo(engine, jobs, ANN, job.id)
    which, happened = expected.split(" ", 1)
    assert f"memory {home if which == 'old' else new} ({happened}" in blocked.value.message
    assert f"memory {row_of(engine, job.id, 2).memory_id} " not in blocked.value.message
    assert "undo that first" not in blocked.value.message
    assert dump(engine) == before
    assert ledger(engine, job.id) == rows_before


def test_a_job_that_another_one_built_on_is_undone_after_that_one(engine: MemoryEngine, jobs: Jobs, home: int):
    before = dump(engine)
    first = applied(jobs, [decided("Ann lives in Bergen", Verdict.UPDATE, seen(engine, home))])
    new = row_of(engine, first.id).memory_id or 0
    between = dump(engine)
    second = applied(jobs, [decided("Ann lives in Tromso", Verdict.UPDATE, seen(engine, new))])
    with pytest.raises(UndoBlocked, match=f"in job {second.id}"):
        undo(engine, jobs, ANN, first.id)
    undo(engine, jobs, ANN, second.id)
    assert dump(engine) == between
    undo(engine, jobs, ANN, first.id)
    assert dump(engine) == before


# --- who may -------------------------------------------------------------------------------------------------------


def test_a_job_of_another_actor_is_reported_as_missing(engine: MemoryEngine, jobs: Jobs):
    job = applied(jobs, [decided("Tea is green", Verdict.ADD)])
    before = dump(engine)
    for scope in (replace(ANN, actor="ben"), replace(ANN, sources=(SOURCE,)), Scope("other", "ann")):
        with pytest.raises(JobNotFound):
            undo(engine, jobs, scope, job.id)
    with pytest.raises(SourceForbidden):
        undo(engine, jobs, replace(ANN, sources=("elsewhere",)), job.id, all_actors=True)
    assert dump(engine) == before


def test_undone_facts_can_be_stored_again(engine: MemoryEngine, jobs: Jobs, home: int):
    undo(engine, jobs, ANN, applied(jobs, [decided("Ann lives in Bergen", Verdict.UPDATE, seen(engine, home))]).id)
    applied(jobs, [decided("Ann lives in Tromso", Verdict.UPDATE, seen(engine, home))])
    assert living(engine) == ["Ann lives in Tromso"]
    assert memory(engine, home, ANN).archived
