"""Decisions are applied once and atomically, or not at all; concurrent changes are never overwritten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from souvenir.core.ledger import DecidedBy, FactStage, Phase, Seen, Verdict
from souvenir.core.types import LinkType, MemoryPatch, OriginClass, SearchQuery
from souvenir.jobs.worker import Jobs
from souvenir.learning.application import MAX_ROUNDS
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.links import Links
from souvenir.store.admin.jobs import JobStatus
from tests.learning.conftest import OpenLane, Remember
from tests.learning.ledgers import (
    ANN,
    PATIENCE_S,
    SOURCE,
    Applier,
    Rows,
    applied,
    decided,
    extraction,
    fact,
    ledger,
    living,
    outcome,
    row_of,
    seen,
    submit,
)
from tests.memories.engine.verbs import memory, stored

MAY = datetime(2023, 5, 8, 9, 30, tzinfo=UTC)


def last_action(engine: MemoryEngine, memory_id: int) -> tuple[str, str | None]:
    with engine.namespace(ANN) as (connection, _):
        row: Any = connection.execute(
            "SELECT action, job_id FROM history WHERE memory_id = ? ORDER BY id DESC LIMIT 1", (memory_id,)
        ).fetchone()
    return row[0], row[1]


def test_an_added_fact_is_found_and_says_where_it_comes_from(engine: MemoryEngine, jobs: Jobs):
    said = fact("The harbour office opens at nine", origin=OriginClass.ASSISTANT, at=MAY)
    job = applied(jobs, [decided(said, Verdict.ADD)])
    [row] = ledger(engine, job.id)
    assert (job.status, row.stage) == (JobStatus.COMPLETED, FactStage.APPLIED)
    assert extraction(engine, job.id).phase is Phase.APPLIED
    assert row.memory_id is not None
    new = memory(engine, row.memory_id, ANN)
    assert (new.text, new.source, new.document_at) == (said.text, SOURCE, MAY)
    assert new.origin_class is OriginClass.ASSISTANT
    assert new.metadata == {"category": "detail", "extract_source": "proj/a", "extraction_job_id": job.id}
    assert row.outcome == {"action": "add", "text": said.text, "id": new.id, "links": []}
    assert last_action(engine, new.id) == ("add", job.id)
    assert [hit.memory.id for hit in engine.search(ANN, SearchQuery("harbour office")).hits] == [new.id]


def test_a_fact_without_a_time_of_its_own_has_that_of_its_conversation(engine: MemoryEngine, jobs: Jobs):
    job = applied(jobs, [decided("The office moved to the harbour", Verdict.ADD)], document_at=MAY)
    assert memory(engine, row_of(engine, job.id).memory_id or 0, ANN).document_at == MAY


def test_an_update_supersedes_its_memory_and_keeps_key_and_metadata(
    engine: MemoryEngine, jobs: Jobs, remember: Remember
):
    old = remember(
        "Ann lives in Oslo", f"{SOURCE}/people", key="home", metadata={"lang": "en", "sensitive_data": ["x"]}
    )
    before = memory(engine, old, ANN)
    said = fact("Ann moved to Bergen", at=MAY, origin=OriginClass.USER)
    job = applied(jobs, [decided(said, Verdict.UPDATE, seen(engine, old), text="Ann lives in Bergen, not Oslo")])
    [row] = ledger(engine, job.id)
    new, archived = memory(engine, row.memory_id or 0, ANN), memory(engine, old, ANN)
    assert (new.text, new.key, new.source) == ("Ann lives in Bergen, not Oslo", "home", f"{SOURCE}/people")
    assert new.metadata == {"lang": "en", "category": "detail", "extract_source": "proj/a", "extraction_job_id": job.id}
    assert (archived.archived, archived.superseded_by, archived.valid_to) == (True, new.id, MAY)
    assert archived.text == before.text
    assert (row.outcome["action"], row.outcome["old_id"], row.outcome["new_id"]) == ("update", old, new.id)
    assert last_action(engine, old) == ("superseded", job.id)


def test_a_deleted_memory_is_archived_and_can_still_be_read(engine: MemoryEngine, jobs: Jobs, remember: Remember):
    old = remember("Ann has a red car")
    job = applied(jobs, [decided(fact("Ann sold her car", at=MAY), Verdict.DELETE, seen(engine, old))])
    gone = memory(engine, old, ANN)
    assert (gone.archived, gone.valid_to, gone.text) == (True, MAY, "Ann has a red car")
    assert outcome(engine, job.id)["action"] == "delete"
    assert last_action(engine, old) == ("retracted", job.id)


def test_a_conflict_is_stored_in_addition_to_its_memory_and_linked(
    engine: MemoryEngine, jobs: Jobs, remember: Remember
):
    old = remember("The tea is green")
    job = applied(jobs, [decided("The tea is black", Verdict.CONFLICT, seen(engine, old))])
    [row] = ledger(engine, job.id)
    new = memory(engine, row.memory_id or 0, ANN)
    assert [(link.type, link.to_id) for link in new.links] == [("conflicts_with", old)]
    assert (row.outcome["action"], row.outcome["conflicts_with"]) == ("conflict", old)
    assert not memory(engine, old, ANN).archived


def test_a_known_fact_writes_nothing_and_the_ledger_names_its_memory(
    engine: MemoryEngine, jobs: Jobs, remember: Remember
):
    old = remember("The tea is green")
    before = memory(engine, old, ANN)
    job = applied(jobs, [decided("Tea is green", Verdict.NOOP, seen(engine, old))])
    assert stored(engine, ANN) == [before]
    assert outcome(engine, job.id) == {"action": "noop", "text": "Tea is green", "existing_id": old}


def test_a_new_memory_is_linked_to_related_memories(engine: MemoryEngine, jobs: Jobs, remember: Remember):
    near = [remember(f"Tea number {number}") for number in range(5)]
    other = remember("Tea elsewhere", "elsewhere")
    engine.archive(ANN, [near[0]])
    row = replace(
        decided("Tea is drunk at five", Verdict.ADD), outcome={"related": [[one, 0.7] for one in [other, *near]]}
    )
    job = applied(jobs, [row])
    assert outcome(engine, job.id)["links"] == near[1:4]
    new = memory(engine, row_of(engine, job.id).memory_id or 0, ANN)
    assert [(link.type, link.to_id) for link in new.links] == [("related_to", one) for one in near[1:4]]


def test_a_search_follows_links_of_users_and_not_those_of_an_extraction(
    engine: MemoryEngine, jobs: Jobs, remember: Remember
):
    near, other = remember("Tea is green"), remember("Tea is black")
    row = replace(decided("Tea is drunk at five", Verdict.ADD), outcome={"related": [[near, 0.7], [other, 0.7]]})
    new = row_of(engine, applied(jobs, [row]).id).memory_id or 0
    assert len(memory(engine, new, ANN).links) == 2

    def supported() -> set[int]:
        hits = engine.search(ANN, SearchQuery("tea", link_weight=1.0)).hits
        return {hit.memory.id for hit in hits if hit.support is not None}

    assert supported() == set()
    Links(engine).add(ANN, near, other, LinkType.RELATED_TO)
    assert supported() == {near, other}
    Links(engine).add(ANN, new, other, LinkType.CAUSED_BY)
    assert supported() == {near, other, new}


def test_a_fact_added_without_a_decision_is_marked(engine: MemoryEngine, jobs: Jobs):
    job = applied(jobs, [decided("We always ship on Friday", Verdict.ADD, by=DecidedBy.FALLBACK)])
    assert outcome(engine, job.id)["action"] == "fallback_add"


def test_rows_that_ended_earlier_stay_unchanged(engine: MemoryEngine, jobs: Jobs):
    ended = replace(decided("recalled text", Verdict.ADD), stage=FactStage.SKIPPED, outcome={"action": "skipped"})
    job = applied(jobs, [ended, decided("The tea is green", Verdict.ADD)])
    assert row_of(engine, job.id, 1) == replace(ended, ordinal=1)
    assert living(engine) == ["The tea is green"]


def test_a_job_that_was_applied_is_not_applied_again(engine: MemoryEngine, jobs: Jobs, applier: Applier):
    job = applied(jobs, [decided("The tea is green", Verdict.ADD)])
    once = ledger(engine, job.id)
    again = applied(jobs, [decided("The tea is green", Verdict.ADD)], phase=Phase.APPLIED)
    assert living(engine) == ["The tea is green"]
    assert [row.stage for row in applier.applied[again.id].rows] == [FactStage.DECIDED]
    assert ledger(engine, job.id) == once


# --- what changed meanwhile ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", [Verdict.UPDATE, Verdict.DELETE, Verdict.CONFLICT])
def test_a_concurrently_changed_memory_is_decided_again_and_never_overwritten(
    engine: MemoryEngine, jobs: Jobs, applier: Applier, remember: Remember, verdict: Verdict
):
    old = remember("Ann lives in Oslo")
    as_shown = seen(engine, old)
    engine.update(ANN, old, MemoryPatch(text="Ann lives in Tromso"))
    asked: list[list[int]] = []

    def redecide(rows: Rows) -> Rows:
        asked.append([row.ordinal for row in rows])
        assert living(engine) == ["Ann lives in Tromso"], "nothing was written"
        return [replace(row, decision=decided("", Verdict.ADD, asked=2).decision) for row in rows]

    applier.redecide = redecide
    rows = [decided("The tea is green", Verdict.ADD), decided("Ann lives in Bergen", verdict, as_shown)]
    job = applied(jobs, rows)
    assert asked == [[2]]
    assert living(engine) == ["Ann lives in Tromso", "The tea is green", "Ann lives in Bergen"]
    decision = row_of(engine, job.id, 2).decision
    assert decision is not None
    assert decision.asked == 2


def test_a_known_fact_stays_known_after_changes_of_its_memory(engine: MemoryEngine, jobs: Jobs, remember: Remember):
    old = remember("Ann lives in Oslo")
    as_shown = seen(engine, old)
    engine.update(ANN, old, MemoryPatch(text="Ann lives in Tromso"))
    job = applied(jobs, [decided("Ann lives in Oslo", Verdict.NOOP, as_shown)])
    assert outcome(engine, job.id)["action"] == "noop"
    assert living(engine) == ["Ann lives in Tromso"]


def restless(engine: MemoryEngine, memory_id: int, rounds: list[int]) -> Callable[[Rows], Rows]:
    """A model that is shown a memory which somebody changes as soon as it was shown."""

    def redecide(rows: Rows) -> Rows:
        rounds.append(len(rounds) + 1)
        as_shown = seen(engine, memory_id)
        engine.update(ANN, memory_id, MemoryPatch(metadata={"round": len(rounds)}))
        return [replace(row, decision=replace(row.decision, target=as_shown)) for row in rows if row.decision]

    return redecide


@pytest.mark.parametrize("verdict", [Verdict.UPDATE, Verdict.DELETE])
def test_a_fact_whose_memory_keeps_changing_is_stored_as_an_additional_memory(
    engine: MemoryEngine, jobs: Jobs, applier: Applier, remember: Remember, verdict: Verdict
):
    old = remember("Ann lives in Oslo")
    rounds: list[int] = []
    applier.redecide = restless(engine, old, rounds)
    job = applied(jobs, [decided("Her flat is in Bergen", verdict, Seen(old, 0), text="Ann lives in Bergen")])
    assert len(rounds) == MAX_ROUNDS
    assert living(engine) == ["Ann lives in Oslo", "Her flat is in Bergen"]
    assert outcome(engine, job.id)["conflicts_with"] == old
    assert outcome(engine, job.id)["reason"] == "changed_meanwhile"


def test_a_known_fact_whose_memory_keeps_changing_is_skipped(
    engine: MemoryEngine, jobs: Jobs, applier: Applier, remember: Remember
):
    old = remember("Ann lives in Oslo")
    applier.redecide = restless(engine, old, [])
    job = applied(jobs, [decided("Ann lives in Oslo", Verdict.UPDATE, Seen(old, 0))])
    assert living(engine) == ["Ann lives in Oslo"]
    assert row_of(engine, job.id).stage is FactStage.SKIPPED
    assert outcome(engine, job.id)["reason"] == "nothing_new"


@pytest.mark.parametrize("verdict", [Verdict.UPDATE, Verdict.CONFLICT, Verdict.DELETE])
def test_a_fact_does_not_restore_a_concurrently_deleted_memory(
    engine: MemoryEngine, jobs: Jobs, remember: Remember, verdict: Verdict
):
    old = remember("The code of the door is 4711")
    as_shown = seen(engine, old)
    engine.delete(ANN, old)
    rows = [
        decided("The code of the door is 4711, said Ann", verdict, as_shown),
        decided("The tea is green", Verdict.ADD),
    ]
    job = applied(jobs, rows)
    assert living(engine) == ["The tea is green"]
    row = row_of(engine, job.id)
    assert (row.stage, row.fact, row.decision) == (FactStage.SKIPPED, None, None)
    assert row.outcome == {"action": "skipped", "reason": "forgotten"}
    assert extraction(engine, job.id).transcript is None


def test_deleting_a_memory_deletes_its_waiting_fact(
    engine: MemoryEngine, open_lane: OpenLane, applier: Applier, remember: Remember
):
    jobs = open_lane(applier, start=False)
    old = remember("The code of the door is 4711")
    job = submit(jobs, [decided("The code is 4711", Verdict.UPDATE, seen(engine, old))])
    engine.delete(ANN, old)
    jobs.start()
    assert jobs.wait(job.id, PATIENCE_S).status is JobStatus.COMPLETED
    assert stored(engine, ANN) == []
    assert row_of(engine, job.id).fact is None
    assert extraction(engine, job.id).transcript is None


def test_a_second_decision_that_ends_a_fact_is_kept(
    engine: MemoryEngine, jobs: Jobs, applier: Applier, remember: Remember
):
    old = remember("Ann lives in Oslo")
    applier.redecide = lambda rows: [replace(row, stage=FactStage.SKIPPED, outcome={"reason": "x"}) for row in rows]
    job = applied(jobs, [decided("Ann lives in Bergen", Verdict.UPDATE, Seen(old, 0))])
    assert (row_of(engine, job.id).stage, outcome(engine, job.id)) == (FactStage.SKIPPED, {"reason": "x"})
    assert living(engine) == ["Ann lives in Oslo"]


# --- what cannot be stored -------------------------------------------------------------------------------------------


def test_a_fact_without_text_fails_alone(engine: MemoryEngine, jobs: Jobs, remember: Remember):
    old = remember("The tea is green")
    job = applied(
        jobs, [decided("  ", Verdict.UPDATE, seen(engine, old), text=" "), decided("Tea is black", Verdict.ADD)]
    )
    assert row_of(engine, job.id).stage is FactStage.FAILED
    assert outcome(engine, job.id)["error"] == "there is no text in it"
    assert living(engine) == ["The tea is green", "Tea is black"]


def test_a_concurrently_taken_key_is_not_overwritten(
    engine: MemoryEngine, jobs: Jobs, applier: Applier, remember: Remember
):
    old = remember("Ann lives in Oslo", key="home")
    as_shown = seen(engine, old)
    engine.archive(ANN, [old])
    taker = remember("Ann lives in Tromso", key="home")
    applier.redecide = lambda rows: rows
    job = applied(jobs, [decided("Ann lives in Bergen", Verdict.UPDATE, as_shown)])
    assert outcome(engine, job.id)["action"] == "add"
    assert memory(engine, taker, ANN).key == "home"
