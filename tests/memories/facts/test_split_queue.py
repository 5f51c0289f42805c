"""Splitting in the background: queueing, effects and exclusions."""

from __future__ import annotations

from threading import Event

import pytest

from souvenir.core.errors import LLMPromptTooLong, LLMRefused, LLMRejected, LLMUnavailable
from souvenir.core.types import FactsBy, JsonObject, Memory, MemoryDraft, MemoryPatch, Scope
from souvenir.jobs import worker
from souvenir.memories import split_queue
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.facts import Facts
from souvenir.models.llm.prompts import Prompt
from souvenir.models.llm.provider import LLMProvider
from souvenir.store.admin.jobs import SPLIT, Job, JobStatus
from tests.jobs.handlers import PATIENCE_S
from tests.memories.engine.verbs import ANN, DEFAULT, add, memory
from tests.memories.facts.conftest import OpenFacts, model, writes
from tests.memories.facts.test_facts import FACTS, TEXT, said, split, waiting

OTHER = "Ana leads the team that runs Heron. She lives in Lisbon and speaks Portuguese with her colleagues there."
AWAY = model(lambda prompt: LLMUnavailable("It is away"))
EVERYTHING: JsonObject = {"waiting_only": False, "source": "", "limit": None}


def every_sentence(prompt: Prompt) -> JsonObject:
    return {"facts": [f"{line}!" for line in prompt.user.splitlines()[1:-1]]}


def jobs_of(facts: Facts, scope: Scope = DEFAULT) -> list[Job]:
    found, _ = facts.queue.jobs.list(scope, all_actors=True, kind=SPLIT, limit=100)
    return list(found)


def run(facts: Facts, parameters: JsonObject = EVERYTHING, scope: Scope = DEFAULT) -> Job:
    facts.queue.jobs.start()
    return facts.queue.jobs.wait(facts.queue.jobs.submit(SPLIT, scope, parameters).id, PATIENCE_S)


def left_waiting(engine: MemoryEngine, text: str = TEXT) -> Memory:
    outcome = split(engine, MemoryDraft(text, "notes", split=True))
    assert outcome.pending
    return outcome.memory


def test_queued_memories_are_split_when_the_model_is_back(engine: MemoryEngine, open_facts: OpenFacts):
    answered = Event()

    def answer(prompt: Prompt) -> JsonObject:
        answered.set()
        return {"facts": list(FACTS)}

    open_facts(AWAY)
    before = left_waiting(engine)
    facts = open_facts(model(answer))
    facts.start()
    assert answered.wait(PATIENCE_S)
    [job] = jobs_of(facts)
    done = facts.queue.jobs.wait(job.id, PATIENCE_S)
    assert done.result == {"split": 1, "by_model": 1, "by_sentences": 0, "changed": 0, "has_more": False}
    after = memory(engine, before.id)
    assert (said(after), after.updated_at, waiting(engine)) == (list(FACTS), before.updated_at, [])
    assert {fact.made_by for fact in after.facts} == {FactsBy.MODEL}
    assert list(engine.check()) == []


def test_memories_queued_during_a_job_start_another_one(engine: MemoryEngine, open_facts: OpenFacts):
    answered = Event()

    def answer(prompt: Prompt) -> JsonObject:
        answered.set()
        return {"facts": list(FACTS)}

    facts = open_facts(model(answer), facts_timeout_s=0)
    facts.start()
    split(engine)
    assert answered.wait(PATIENCE_S)
    [job] = jobs_of(facts)
    assert facts.queue.jobs.wait(job.id, PATIENCE_S).status is JobStatus.COMPLETED
    assert waiting(engine) == []


def test_each_namespace_has_one_job_at_a_time(engine: MemoryEngine, open_facts: OpenFacts):
    facts = open_facts(AWAY)
    for _ in range(2):
        left_waiting(engine)
    split(engine, scope=ANN)
    for _ in range(2):
        facts.queue.submit_jobs()
    assert [len(jobs_of(facts, scope)) for scope in (DEFAULT, ANN)] == [1, 1]


def test_a_namespace_backs_off_after_a_failed_job(
    engine: MemoryEngine, open_facts: OpenFacts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(worker, "RETRY_PAUSES_S", (0.0,))
    facts = open_facts(AWAY)
    before = left_waiting(engine)
    facts.queue.submit_jobs()
    facts.queue.jobs.start()
    [job] = jobs_of(facts)
    failed = facts.queue.jobs.wait(job.id, PATIENCE_S)
    assert (failed.status, failed.failure) == (JobStatus.FAILED, "It is away")
    assert (waiting(engine), memory(engine, before.id).facts) == ([before.id], before.facts)
    facts.queue.submit_jobs()
    assert len(jobs_of(facts)) == 1
    monkeypatch.setattr(split_queue, "BACK_OFF_S", -1.0)
    facts.queue.submit_jobs()
    assert len(jobs_of(facts)) == 2


def test_wrong_settings_fail_the_job_at_once(engine: MemoryEngine, open_facts: OpenFacts):
    open_facts(AWAY)
    left_waiting(engine)
    job = run(open_facts(model(lambda prompt: LLMRejected("Correct the key"))))
    assert (job.status, job.failure, len(waiting(engine))) == (JobStatus.FAILED, "Correct the key", 1)


@pytest.mark.parametrize("error", [LLMRefused("It declined"), LLMPromptTooLong("It reads less")])
def test_a_text_rejected_by_the_model_is_split_into_sentences_permanently(
    engine: MemoryEngine, open_facts: OpenFacts, error
):
    open_facts(AWAY)
    before = left_waiting(engine)
    job = run(open_facts(model(lambda prompt: error)))
    assert job.result is not None
    assert (job.result["by_sentences"], waiting(engine)) == (1, [])
    assert memory(engine, before.id).facts == before.facts


@pytest.mark.parametrize("provider", [None, writes()], ids=["no model", "a model that says nothing"])
def test_a_memory_without_a_usable_answer_is_split_into_sentences(
    engine: MemoryEngine, open_facts: OpenFacts, provider: LLMProvider | None
):
    open_facts(AWAY)
    before = left_waiting(engine)
    engine.update(DEFAULT, before.id, MemoryPatch(text=OTHER))
    run(open_facts(provider))
    assert (said(memory(engine, before.id))[-1], waiting(engine)) == (OTHER, [])


def test_a_memory_that_times_out_does_not_block_the_others(
    engine: MemoryEngine, open_facts: OpenFacts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(worker, "RETRY_PAUSES_S", (0.0,))
    open_facts(AWAY)
    first, slow, last = (left_waiting(engine, f"{TEXT} It is {word}.").id for word in ("one", "two", "three"))

    def answer(prompt: Prompt) -> object:
        return LLMUnavailable("It is late") if "is two" in prompt.user else every_sentence(prompt)

    job = run(open_facts(model(answer)))
    assert (job.status, job.failure, job.done) == (JobStatus.FAILED, "It is late", 2)
    assert waiting(engine) == [slow]
    assert [{fact.made_by for fact in memory(engine, id_).facts} for id_ in (first, last)] == [{FactsBy.MODEL}] * 2


def test_a_memory_changed_during_a_job_is_left_for_the_next_one(engine: MemoryEngine, open_facts: OpenFacts):
    open_facts(AWAY)
    before = left_waiting(engine)

    def answer(prompt: Prompt) -> JsonObject:
        engine.update(DEFAULT, before.id, MemoryPatch(text=OTHER))
        return {"facts": list(FACTS)}

    job = run(open_facts(model(answer)))
    assert job.result is not None
    assert (job.result["split"], job.result["changed"]) == (0, 1)
    assert (memory(engine, before.id).facts, waiting(engine)) == ((), [before.id])


def test_facts_given_by_a_caller_during_a_job_are_kept(engine: MemoryEngine, open_facts: OpenFacts):
    open_facts(AWAY)
    before = left_waiting(engine)

    def answer(prompt: Prompt) -> JsonObject:
        engine.update(DEFAULT, before.id, MemoryPatch(facts=("mine",)))
        return {"facts": list(FACTS)}

    job = run(open_facts(model(answer)))
    assert job.result is not None
    assert (job.result["split"], job.result["changed"]) == (0, 1)
    assert (said(memory(engine, before.id)), waiting(engine)) == (["mine"], [])


def test_a_requested_job_splits_memories_without_facts(engine: MemoryEngine, open_facts: OpenFacts):
    facts = open_facts(model(every_sentence))
    open_facts(AWAY)
    left_waiting(engine)
    plain, archived = add(engine, TEXT, "proj/a"), add(engine, TEXT, "proj/a", archived=True)
    others = add(engine, TEXT, "other"), add(engine, TEXT, "proj/a", scope=ANN)
    mine = add(engine, TEXT, "proj/a", facts=("mine",))
    job = run(facts, {**EVERYTHING, "source": "proj/"})
    assert job.result == {"split": 1, "by_model": 1, "by_sentences": 0, "changed": 0, "has_more": False}
    assert said(memory(engine, plain)) == [f"{TEXT}!"]
    assert said(memory(engine, mine)) == ["mine"]
    assert not memory(engine, archived).facts
    assert not memory(engine, others[0]).facts
    assert not memory(engine, others[1], ANN).facts
    rest = run(facts)
    assert rest.result is not None
    assert rest.result["split"] == 2


def test_a_job_splits_a_limited_number_at_once(engine: MemoryEngine, open_facts: OpenFacts):
    for number in range(3):
        add(engine, f"{TEXT} It is number {number}.")
    facts = open_facts(model(every_sentence))
    results = [run(facts, {**EVERYTHING, "limit": 2}).result or {} for _ in range(2)]
    assert [(one["split"], one["has_more"]) for one in results] == [(2, True), (1, False)]


def test_only_memories_visible_to_the_key_reach_the_model(engine: MemoryEngine, open_facts: OpenFacts):
    seen, hidden = add(engine, TEXT, "mine/a"), add(engine, OTHER, "theirs")
    asked = model(every_sentence)
    run(open_facts(asked), scope=Scope(sources=("mine",)))
    assert [bool(memory(engine, id_).facts) for id_ in (seen, hidden)] == [True, False]
    assert asked.count("split") == 1


def test_a_split_job_resumes_where_it_stopped(engine: MemoryEngine, open_facts: OpenFacts):
    for text in (TEXT, OTHER):
        add(engine, text)
    reached, go_on = Event(), Event()

    def slow(prompt: Prompt) -> object:
        if OTHER in prompt.user:
            reached.set()
            assert go_on.wait(PATIENCE_S)
            return LLMUnavailable("It is away")
        return every_sentence(prompt)

    first = open_facts(model(slow))
    first.queue.jobs.start()
    job = first.queue.jobs.submit(SPLIT, DEFAULT, EVERYTHING)
    assert reached.wait(PATIENCE_S)
    go_on.set()
    first.close()
    asked = model(every_sentence)
    second = open_facts(asked)
    second.queue.jobs.start()
    done = second.queue.jobs.wait(job.id, PATIENCE_S)
    assert (done.result or {})["by_model"] == 2
    assert asked.count("split") == 1
