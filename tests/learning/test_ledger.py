"""Operations on a finished extraction: approve it, commit selected items, run it again, compare runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from souvenir.core.errors import (
    Conflict,
    ExtractQueueFull,
    InvalidRequest,
    JobNotFound,
    MemoryNotFound,
    NothingToDo,
    SourceForbidden,
)
from souvenir.core.ledger import FactStage, Phase, Verdict
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryPatch, OriginClass, Scope
from souvenir.learning.choices import ChosenAction, chosen
from souvenir.learning.extraction import Extraction
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.provider import LLMProvider
from souvenir.store.admin.jobs import Job, JobStatus
from souvenir.store.learning import extractions
from tests.learning.conftest import Remember
from tests.learning.dumps import dump
from tests.learning.ledgers import (
    ANN,
    PATIENCE_S,
    SOURCE,
    decided,
    extraction,
    fact,
    ledger,
    living,
    row_of,
    seen,
    submit,
)
from tests.learning.pipeline import OpenExtraction
from tests.learning.scripted_model import about, model
from tests.memories.engine.verbs import add, memory

KEY_ID = "AKIA" + "IOSFODNN7EXAMPLE"
GUIDANCE = {
    "max_facts": 30,
    "max_fact_chars": 500,
    "similar_text_chars": 280,
    "fallback_max_facts": 5,
    "keep_all": False,
    "always_remember": [],
    "never_remember": [],
    "custom_instructions": "",
}
OPTIONS: dict[str, Any] = {"mode": "llm", "guidance": GUIDANCE, "debug": False}


@pytest.fixture
def learning(open_extraction: OpenExtraction) -> Extraction:
    return open_extraction(model(), extract_max_deletes=2)


def done(learning: Extraction, job: Job) -> Job:
    finished = learning.jobs.wait(job.id, PATIENCE_S)
    assert finished.status is JobStatus.COMPLETED, finished.error
    return finished


def violins(remember: Remember) -> list[int]:
    return [remember(f"Number {number} of the violins stands in hall {number}") for number in range(4)]


def waiting(learning: Extraction, engine: MemoryEngine, ids: list[int]) -> Job:
    """A job that would delete more than it may."""
    rows = [decided(f"violin {one} was sold", Verdict.DELETE, seen(engine, one)) for one in ids]
    job = done(learning, submit(learning.jobs, [*rows, decided("Tea is green", Verdict.ADD)], **OPTIONS))
    assert job.result is not None
    assert (job.result["approval"], job.result["removing"]) == ("required", list(range(1, len(ids) + 1)))
    return job


# --- approval --------------------------------------------------------------------------------------------------------


def test_an_approved_job_applies_everything_once(learning: Extraction, engine: MemoryEngine, remember: Remember):
    ids = violins(remember)
    before = dump(engine)
    job = waiting(learning, engine, ids)
    assert dump(engine) == before
    learning.ledger.approve(ANN, job.id)
    again = done(learning, job)
    assert again.result is not None
    assert (again.result["deleted_count"], again.result["stored_count"]) == (4, 1)
    assert living(engine) == ["Tea is green"]
    with pytest.raises(Conflict, match="does not wait"):
        learning.ledger.approve(ANN, job.id)
    learning.ledger.undo(ANN, job.id)
    assert dump(engine) == before


def test_an_approval_does_not_cover_later_decisions(
    open_extraction: OpenExtraction, engine: MemoryEngine, remember: Remember
):
    """Memories that changed after the approval are asked about again, and what then is to be removed wants another."""
    learning = open_extraction(model(decide=about("DELETE")), extract_max_deletes=2, start=False)
    learning.start()
    ids = violins(remember)
    job = waiting(learning, engine, ids)
    for one in ids:
        engine.update(ANN, one, MemoryPatch(metadata={"lang": "en"}))
    learning.ledger.approve(ANN, job.id)
    again = done(learning, job)
    assert again.result is not None
    assert again.result["approval"] == "required"
    assert len(living(engine)) == 4


def test_an_approval_skips_committed_facts(open_extraction: OpenExtraction, engine: MemoryEngine, remember: Remember):
    provider = model()
    learning = open_extraction(provider, extract_max_deletes=2)
    job = waiting(learning, engine, violins(remember))
    commit = done(
        learning, learning.ledger.commit(ANN, [ChosenAction(Verdict.DELETE, job_id=job.id, ordinal=1)], SOURCE)
    )
    learning.ledger.approve(ANN, job.id)
    again = done(learning, job)
    assert again.result is not None
    assert (again.result["deleted_count"], again.result["skipped_count"], provider.asked) == (3, 1, [])
    first = row_of(engine, job.id)
    assert (first.stage, first.outcome["reason"], first.outcome["committed"]) == (
        FactStage.SKIPPED,
        "committed",
        commit.id,
    )
    assert living(engine) == ["Tea is green"]
    learning.ledger.undo(ANN, job.id)
    assert len(living(engine)) == 3


def test_an_undone_commit_is_approved_with_the_rest(
    open_extraction: OpenExtraction, engine: MemoryEngine, remember: Remember
):
    learning = open_extraction(model(), extract_max_deletes=2)
    ids = violins(remember)
    job = waiting(learning, engine, ids)
    add = ChosenAction(Verdict.ADD, job_id=job.id, ordinal=len(ids) + 1)
    commit = done(learning, learning.ledger.commit(ANN, [add], SOURCE))
    learning.ledger.undo(ANN, commit.id)
    learning.ledger.approve(ANN, job.id)
    done(learning, job)
    assert living(engine) == ["Tea is green"]


@pytest.mark.parametrize("provider", [model(), None])
def test_an_approved_job_applies_only_the_decisions_that_were_shown(
    open_extraction: OpenExtraction, engine: MemoryEngine, remember: Remember, provider: LLMProvider | None
):
    """A changed memory is decided about anew, with a model or without one, and that wants another approval."""
    ids = violins(remember)
    job = waiting(open_extraction(model(), extract_max_deletes=2), engine, ids)
    learning = open_extraction(provider, extract_max_deletes=2)
    engine.update(ANN, ids[0], MemoryPatch(metadata={"lang": "en"}))
    before = dump(engine)
    learning.ledger.approve(ANN, job.id)
    again = done(learning, job)
    assert again.result is not None
    assert (again.result["approval"], again.result["removing"]) == ("required", [2, 3, 4])
    assert dump(engine) == before
    shown = learning.result_of(again)
    assert shown is not None
    assert shown["actions"][0]["action"] == ("add" if provider else "fallback_add")
    learning.ledger.approve(ANN, job.id)
    done(learning, job)
    assert living(engine) == ["Number 0 of the violins stands in hall 0", "violin 1 was sold", "Tea is green"]


def test_an_interrupted_new_decision_is_not_approved(learning: Extraction, engine: MemoryEngine, remember: Remember):
    rows = [decided("The violin was sold", Verdict.DELETE, seen(engine, violins(remember)[0]), asked=2)]
    job = done(learning, submit(learning.jobs, rows, approved=[[1, 1]], **OPTIONS))
    assert job.result is not None
    assert job.result["approval"] == "required"
    assert len(living(engine)) == 4


def test_approval_requires_access_to_the_job_and_its_source(
    learning: Extraction, engine: MemoryEngine, remember: Remember
):
    job = waiting(learning, engine, violins(remember))
    with pytest.raises(JobNotFound):
        learning.ledger.approve(replace(ANN, actor="ben"), job.id)
    with pytest.raises(SourceForbidden):
        learning.ledger.approve(replace(ANN, sources=("elsewhere",)), job.id, all_actors=True)
    assert len(living(engine)) == 4


def test_an_approval_waits_outside_of_a_full_queue(
    open_extraction: OpenExtraction, engine: MemoryEngine, remember: Remember
):
    learning = open_extraction(model(), extract_max_deletes=2, extract_queue_max=1)
    job = waiting(learning, engine, violins(remember))
    learning.close()
    submit(learning.jobs, [])
    with pytest.raises(ExtractQueueFull):
        learning.ledger.approve(ANN, job.id)
    assert extractions_options(engine, job.id) == OPTIONS


def extractions_options(engine: MemoryEngine, job_id: str) -> dict[str, object]:
    return dict(extraction(engine, job_id).options)


# --- commit ----------------------------------------------------------------------------------------------------------


def dry_run(learning: Extraction, engine: MemoryEngine, remember: Remember) -> tuple[Job, int]:
    old = remember("Ann lives in Oslo", origin_class=OriginClass.TOOL)
    rows = [
        decided(
            fact("Ann lives in Bergen", origin=OriginClass.TOOL), Verdict.UPDATE, seen(engine, old), text="In Bergen"
        ),
        decided("Tea is green", Verdict.ADD),
        decided("The sea is blue", Verdict.ADD),
    ]
    job = done(learning, submit(learning.jobs, rows, dry_run=True, **OPTIONS))
    assert living(engine) == ["Ann lives in Oslo"]
    return job, old


def test_a_commit_applies_the_chosen_decisions_of_a_dry_run(
    learning: Extraction, engine: MemoryEngine, remember: Remember
):
    planned, old = dry_run(learning, engine, remember)
    before = dump(engine)
    actions = [
        ChosenAction(Verdict.UPDATE, job_id=planned.id, ordinal=1, target_id=old),
        ChosenAction(Verdict.ADD, "Tea is very green", job_id=planned.id, ordinal=2),
    ]
    job = done(learning, learning.ledger.commit(ANN, actions, SOURCE))
    assert living(engine) == ["In Bergen", "Tea is very green"]
    new = memory(engine, row_of(engine, job.id, 0).memory_id or 0, ANN)
    assert new.origin_class is OriginClass.TOOL
    assert [row.outcome.get("committed") for row in ledger(engine, planned.id)] == [job.id, job.id, None]
    assert extraction(engine, planned.id).phase is Phase.DECIDED
    learning.ledger.undo(ANN, job.id)
    assert dump(engine) == before


def test_a_fact_is_committed_once_unless_the_commit_was_undone(
    learning: Extraction, engine: MemoryEngine, remember: Remember
):
    planned, _ = dry_run(learning, engine, remember)
    action = ChosenAction(Verdict.ADD, job_id=planned.id, ordinal=2)
    with pytest.raises(Conflict, match="chosen twice"):
        learning.ledger.commit(ANN, [action, action], SOURCE)
    first = done(learning, learning.ledger.commit(ANN, [action], SOURCE))
    with pytest.raises(Conflict, match=f"committed by job '{first.id}'"):
        learning.ledger.commit(ANN, [action], SOURCE)
    learning.ledger.undo(ANN, first.id)
    done(learning, learning.ledger.commit(ANN, [action], SOURCE))
    assert living(engine) == ["Ann lives in Oslo", "Tea is green"]


def test_a_committed_text_is_redacted(learning: Extraction, engine: MemoryEngine):
    old = add(engine, "The key is lost", SOURCE, scope=ANN)
    actions = [
        ChosenAction(Verdict.ADD, f"The key is {KEY_ID}"),
        ChosenAction(Verdict.UPDATE, f"The new key is {KEY_ID}", old),
    ]
    job = done(learning, learning.ledger.commit(ANN, actions, SOURCE))
    assert living(engine) == ["The key is [AWS_KEY_REDACTED]", "The new key is [AWS_KEY_REDACTED]"]
    assert KEY_ID not in str(ledger(engine, job.id))
    assert KEY_ID not in str(learning.result_of(job))


@pytest.mark.sqlite_only(reason="counts statements with SQLite's trace")
def test_a_ledger_is_read_once_for_many_chosen_facts(learning: Extraction, engine: MemoryEngine):
    rows = [decided(f"Box {number} holds {number} books", Verdict.ADD) for number in range(200)]
    planned = done(learning, submit(learning.jobs, rows, dry_run=True, **OPTIONS))
    read: list[str] = []
    with engine.namespace(ANN) as (connection, _):
        tracing: Any = connection
        tracing.exec_trace = lambda _, sql, __: not read.append(sql)  # type: ignore[func-returns-value]  # True
        actions = [ChosenAction(Verdict.ADD, job_id=planned.id, ordinal=number) for number in range(1, 201)]
        assert len(chosen(connection, ANN, SOURCE, actions).rows) == 200
        tracing.exec_trace = None
    assert len([sql for sql in read if "extraction_facts" in sql]) == 1


def test_a_commit_does_not_overwrite_a_memory_changed_since_the_dry_run(
    learning: Extraction, engine: MemoryEngine, remember: Remember
):
    planned, old = dry_run(learning, engine, remember)
    engine.update(ANN, old, MemoryPatch(text="Ann lives in Tromso"))
    done(learning, learning.ledger.commit(ANN, [ChosenAction(Verdict.UPDATE, job_id=planned.id, ordinal=1)], SOURCE))
    assert "Ann lives in Tromso" in living(engine)


def test_actions_written_by_the_caller_obey_the_same_rules(
    learning: Extraction, engine: MemoryEngine, remember: Remember
):
    ids = [remember("Ann lives in Oslo"), remember("Ann has a red car"), remember("Ann is tall", pinned=True)]
    actions = [
        ChosenAction(Verdict.UPDATE, "Ann lives in Bergen", ids[0]),
        ChosenAction(Verdict.DELETE, target_id=ids[1]),
        ChosenAction(Verdict.DELETE, target_id=ids[2]),
    ]
    job = done(learning, learning.ledger.commit(ANN, actions, SOURCE))
    assert living(engine) == ["Ann is tall", "Ann lives in Bergen"]
    assert [row.stage for row in ledger(engine, job.id)] == [FactStage.APPLIED, FactStage.APPLIED, FactStage.SKIPPED]


def test_a_commit_with_an_invalid_action_names_it_and_changes_nothing(
    learning: Extraction, engine: MemoryEngine, remember: Remember
):
    planned, _ = dry_run(learning, engine, remember)
    outside = remember("Elsewhere", "elsewhere")
    before, count = dump(engine), learning.jobs.list(ANN, limit=1)[1]
    refused: list[tuple[list[ChosenAction], type[Exception]]] = [
        ([], NothingToDo),
        ([ChosenAction(Verdict.DELETE, target_id=outside)], MemoryNotFound),
        ([ChosenAction(Verdict.UPDATE, "x", 10**6)], MemoryNotFound),
        ([ChosenAction(Verdict.DELETE)], InvalidRequest),
        ([ChosenAction(Verdict.ADD, " ")], InvalidRequest),
        ([ChosenAction(Verdict.ADD, job_id=planned.id, ordinal=9)], Conflict),
        ([ChosenAction(Verdict.ADD, job_id="none", ordinal=1)], JobNotFound),
    ]
    for actions, error in refused:
        with pytest.raises(error):
            learning.ledger.commit(ANN, actions, SOURCE)
    with pytest.raises(Conflict, match="of the source"):
        learning.ledger.commit(ANN, [ChosenAction(Verdict.ADD, job_id=planned.id, ordinal=2)], "proj/b")
    with pytest.raises(SourceForbidden):
        learning.ledger.commit(replace(ANN, sources=("proj/b",)), [ChosenAction(Verdict.ADD, "x")], SOURCE)
    assert dump(engine) == before
    assert learning.jobs.list(ANN, limit=1)[1] == count


# --- again, with another model ---------------------------------------------------------------------------------------


def test_a_rerun_asks_another_model_about_the_same_transcript_and_changes_nothing(
    engine: MemoryEngine, settings: Settings, remember: Remember
):
    remember("Ann lives in Oslo now")
    asked: list[str | None] = []

    def named(chosen: Settings) -> LLMProvider:
        asked.append(chosen.extract_model)
        return model(decide=about("DELETE"))

    learning = Extraction(engine, model(decide=about("UPDATE")), settings, named=named)
    learning.start()
    try:
        said = "user: Ann lives in Bergen now\n\nuser: The sea is very blue today"
        first = submit(learning.jobs, [], phase=Phase.PROPOSING, transcript=said, dry_run=True, **OPTIONS)
        done(learning, first)
        before = dump(engine)
        second = done(learning, learning.ledger.rerun(ANN, first.id, model="other-9"))
        assert asked == ["other-9"]
        assert dump(engine) == before
        assert extraction(engine, second.id).options["rerun_of"] == first.id
        difference = learning.ledger.diff(ANN, first.id, second.id)
        assert [[row.fact.text for row in pair if row.fact] for pair in difference.decided_otherwise] == [
            ["Ann lives in Bergen now"] * 2
        ]
        assert difference.only_first == difference.only_second == ()
        assert living(engine) == ["Ann lives in Oslo now"]
    finally:
        learning.close()


def test_a_rerun_of_a_forgotten_transcript_is_refused(learning: Extraction, engine: MemoryEngine, remember: Remember):
    old = remember("Ann lives in Oslo")
    job = done(
        learning, submit(learning.jobs, [decided("Ann lives in Bergen", Verdict.UPDATE, seen(engine, old))], **OPTIONS)
    )
    engine.delete(ANN, old)
    with pytest.raises(Conflict, match="not kept any more"):
        learning.ledger.rerun(ANN, job.id)
    with pytest.raises(JobNotFound):
        learning.ledger.rerun(Scope("other"), job.id)


def test_the_difference_of_two_ledgers_lists_facts_of_only_one(learning: Extraction, engine: MemoryEngine):
    same, mine = decided("Tea is green", Verdict.ADD), decided("The sea is blue", Verdict.ADD)
    theirs = decided("Ann has a red car", Verdict.ADD)
    first = submit(learning.jobs, [same, mine], dry_run=True, **OPTIONS)
    second = submit(learning.jobs, [theirs, same], dry_run=True, **OPTIONS)
    done(learning, first)
    done(learning, second)
    difference = learning.ledger.diff(ANN, first.id, second.id)
    assert [(one.ordinal, other.ordinal) for one, other in difference.agreed] == [(1, 2)]
    assert [row.fact for row in difference.only_first] == [mine.fact]
    assert [row.fact for row in difference.only_second] == [theirs.fact]
    engine.write_rows(lambda connection: extractions.forget_transcripts(connection, ANN.namespace))
    assert learning.ledger.diff(ANN, first.id, second.id).agreed == ()
