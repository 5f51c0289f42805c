"""Guard rules that no decision can break, enforced when a ledger is applied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from souvenir.core.ledger import FactStage, Phase, Verdict
from souvenir.core.types import MemoryPatch, OriginClass
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import JobStatus
from tests.learning.conftest import Remember
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
    outcome,
    row_of,
    seen,
)
from tests.memories.engine.verbs import memory, stored

PROTECTED: list[tuple[dict[str, Any], OriginClass]] = [
    ({"pinned": True}, OriginClass.USER),
    ({"metadata": {"protected": True}}, OriginClass.USER),
    ({"origin_class": OriginClass.DOCUMENT}, OriginClass.TOOL),
]


@pytest.mark.parametrize(("fields", "origin"), PROTECTED, ids=["pinned", "protected", "more trusted"])
def test_a_protected_memory_is_neither_updated_nor_deleted(
    engine: MemoryEngine, jobs: Jobs, remember: Remember, fields: dict[str, Any], origin: OriginClass
):
    ids = [remember(text, **fields) for text in ("Ann lives in Oslo", "Ann has a red car")]
    before = [memory(engine, one, ANN) for one in ids]
    said = fact("The cabin was sold", origin=origin)
    rows = [
        decided(said, Verdict.UPDATE, seen(engine, ids[0]), text="Ann lives nowhere"),
        decided(said, Verdict.DELETE, seen(engine, ids[1])),
    ]
    job = applied(jobs, rows)
    assert [memory(engine, one, ANN) for one in ids] == before
    assert living(engine)[2:] == ["The cabin was sold"]
    first, second = ledger(engine, job.id)
    assert (first.outcome["action"], first.outcome["conflicts_with"], first.outcome["reason"]) == (
        "conflict",
        ids[0],
        "protected",
    )
    assert second.stage is FactStage.SKIPPED
    assert (second.outcome["action"], second.outcome["reason"], second.outcome["old_id"]) == (
        "skipped",
        "protected",
        ids[1],
    )


def test_an_update_by_a_more_trusted_fact_does_not_raise_the_trust_of_the_memory(
    engine: MemoryEngine, jobs: Jobs, remember: Remember
):
    old = remember("Ann lives in Oslo", origin_class=OriginClass.INFERRED)
    job = applied(jobs, [decided("Ann lives in Bergen", Verdict.UPDATE, seen(engine, old))])
    assert memory(engine, row_of(engine, job.id).memory_id or 0, ANN).origin_class is OriginClass.INFERRED


def test_a_job_changes_nothing_outside_its_source(
    engine: MemoryEngine, jobs: Jobs, applier: Applier, remember: Remember
):
    outside = [remember("Ann lives in Oslo", "proj/ab"), remember("Ann has a red car", "proj")]
    before = stored(engine, ANN)
    versions = [seen(engine, one) for one in outside]
    applier.redecide = lambda rows: rows
    job = applied(
        jobs, [decided(f"Fact {one}", verdict, one) for one in versions for verdict in (Verdict.UPDATE, Verdict.DELETE)]
    )
    assert stored(engine, ANN)[:2] == before
    assert {one.source for one in stored(engine, ANN)[2:]} == {SOURCE}
    assert [row.outcome["action"] for row in ledger(engine, job.id)] == ["add", "add", "add", "add"]


def test_a_job_without_a_source_covers_the_namespace_and_adds_to_a_separate_source(
    engine: MemoryEngine, jobs: Jobs, remember: Remember
):
    old = remember("Ann lives in Oslo", "anywhere")
    rows = [decided("Ann lives in Bergen", Verdict.UPDATE, seen(engine, old)), decided("The tea is green", Verdict.ADD)]
    applied(jobs, rows, source="")
    assert [(one.text, one.source) for one in stored(engine, ANN) if not one.archived] == [
        ("Ann lives in Bergen", "anywhere"),
        ("The tea is green", "extract"),
    ]


def test_a_job_has_the_write_permissions_of_its_caller(engine: MemoryEngine, jobs: Jobs):
    job = applied(jobs, [decided("The tea is green", Verdict.ADD)], scope=replace(ANN, sources=("proj/b",)))
    assert job.status is JobStatus.FAILED
    assert job.error is not None
    assert "proj/a" in job.error
    assert stored(engine, ANN) == []


# --- two facts about one memory --------------------------------------------------------------------------------------


def test_the_second_update_of_a_memory_is_stored_in_addition_to_the_first(
    engine: MemoryEngine, jobs: Jobs, remember: Remember
):
    old = remember("The budget is 5000")
    rows = [decided(f"The budget is {number}", Verdict.UPDATE, seen(engine, old)) for number in (6000, 7000)]
    job = applied(jobs, rows)
    first, second = ledger(engine, job.id)
    assert living(engine) == ["The budget is 6000", "The budget is 7000"]
    assert (second.outcome["conflicts_with"], second.outcome["reason"]) == (first.memory_id, "changed_first")


def test_a_memory_that_a_fact_updated_is_not_deleted_by_the_next(engine: MemoryEngine, jobs: Jobs, remember: Remember):
    old = remember("The budget is 5000")
    job = applied(
        jobs,
        [
            decided("The budget is 6000", Verdict.UPDATE, seen(engine, old)),
            decided("There is no budget", Verdict.DELETE, seen(engine, old)),
        ],
    )
    assert living(engine) == ["The budget is 6000"]
    assert outcome(engine, job.id, 2)["reason"] == "changed_first"


def test_an_update_of_a_memory_deleted_by_another_fact_is_added(engine: MemoryEngine, jobs: Jobs, remember: Remember):
    old = remember("The budget is 5000")
    rows = [
        decided("There is no budget", Verdict.DELETE, seen(engine, old)),
        decided("The budget is 6000", Verdict.UPDATE, seen(engine, old)),
        decided("The budget is 7000", Verdict.CONFLICT, seen(engine, old)),
    ]
    job = applied(jobs, rows)
    assert living(engine) == ["The budget is 6000", "The budget is 7000"]
    assert [row.outcome["action"] for row in ledger(engine, job.id)] == ["delete", "add", "add"]


# --- the cap ---------------------------------------------------------------------------------------------------------


def many(remember: Remember, count: int) -> list[int]:
    return [remember(f"Number {number} of the violins stands in hall {number}") for number in range(count)]


def test_deletions_up_to_the_limit_are_applied(engine: MemoryEngine, jobs: Jobs, remember: Remember):
    ids = many(remember, 2)
    applied(jobs, [decided(f"violin {one} was sold", Verdict.DELETE, seen(engine, one)) for one in ids])
    assert living(engine) == []


@pytest.mark.parametrize("text", [None, "sold", "All of that is to be ignored from now on and for good"])
def test_nothing_is_applied_above_the_limit_of_removals(
    engine: MemoryEngine, jobs: Jobs, applier: Applier, remember: Remember, text: str | None
):
    """An update that keeps little of a memory removes it as a deletion does."""
    ids = many(remember, 3)
    before = stored(engine, ANN)
    verdict = Verdict.DELETE if text is None else Verdict.UPDATE
    rows = [decided("The tea is green", Verdict.ADD)]
    rows += [decided(f"violin {one} was sold", verdict, seen(engine, one), text=text) for one in ids]
    job = applied(jobs, rows)
    assert job.result == {"approval": "required"}
    assert applier.applied[job.id].removing == (2, 3, 4)
    assert stored(engine, ANN) == before
    assert extraction(engine, job.id).phase is Phase.DECIDED
    assert {row.stage for row in ledger(engine, job.id)} == {FactStage.DECIDED}


def test_updates_that_keep_the_content_do_not_count_as_removals(engine: MemoryEngine, jobs: Jobs, remember: Remember):
    ids = many(remember, 5)
    texts = {one: memory(engine, one, ANN).text.replace("stands", "stood") + " until May" for one in ids}
    job = applied(jobs, [decided(texts[one], Verdict.UPDATE, seen(engine, one)) for one in ids])
    assert job.result == {"rows": 5}
    assert living(engine) == list(texts.values())


def test_protected_memories_do_not_count_as_removals(engine: MemoryEngine, jobs: Jobs, remember: Remember):
    ids = [remember(f"Number {number}", pinned=number > 1) for number in range(6)]
    job = applied(jobs, [decided(f"sold {one}", Verdict.DELETE, seen(engine, one)) for one in ids])
    assert [row.stage for row in ledger(engine, job.id)] == [FactStage.APPLIED] * 2 + [FactStage.SKIPPED] * 4


def test_the_ledger_after_a_new_decision_waits_for_approval(
    engine: MemoryEngine, jobs: Jobs, applier: Applier, remember: Remember
):
    ids = many(remember, 3)
    shown = [seen(engine, one) for one in ids]
    engine.update(ANN, ids[0], MemoryPatch(metadata={"lang": "en"}))
    applier.redecide = lambda rows: [
        replace(row, decision=replace(row.decision, target=seen(engine, ids[0]), asked=2))
        for row in rows
        if row.decision
    ]
    job = applied(jobs, [decided("sold", Verdict.DELETE, one) for one in shown])
    assert job.result == {"approval": "required"}
    assert [row.decision.asked for row in ledger(engine, job.id) if row.decision] == [2, 1, 1]
