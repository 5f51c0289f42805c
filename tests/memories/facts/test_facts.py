"""Memories with their facts: storing, changes of the text, and search."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from threading import Event

import pytest

from souvenir.core.errors import Conflict, LLMRejected, LLMUnavailable, MemoryNotFound, SourceForbidden
from souvenir.core.settings import Settings
from souvenir.core.types import FactsBy, FactsOutcome, JsonObject, Memory, MemoryDraft, MemoryPatch, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.fact_splitting import given
from souvenir.memories.facts import IN_THE_BACKGROUND, Facts
from souvenir.models.llm.prompts import Prompt
from souvenir.models.llm.provider import provider_of
from souvenir.store.idempotency import Once
from souvenir.store.memories import facts
from tests.memories.engine.verbs import DEFAULT, add, memory, stored
from tests.memories.facts.conftest import OpenFacts, model, writes
from tests.vendors.llm import LLMVendor, says

TEXT = (
    "Mira prefers TypeScript for the backend of Heron. It runs in strict mode with ESLint, "
    "and is deployed on AWS Lambda with Node.js 18."
)
FACTS = ("Mira prefers TypeScript for Heron", "Heron is deployed on AWS Lambda", "Heron uses Node.js 18")
SPLIT = MemoryDraft(TEXT, "notes", split=True)


def said(found: Memory) -> list[str]:
    return [fact.text for fact in found.facts]


def split(engine: MemoryEngine, draft: MemoryDraft = SPLIT, scope: Scope = DEFAULT) -> FactsOutcome:
    """Store a memory with a request to split it."""
    added = engine.add(scope, draft)
    assert added.id is not None
    outcome = engine.facts.outcome(scope, added.id, added.split_failure)
    assert outcome is not None
    return outcome


def plain(engine: MemoryEngine) -> Memory:
    """Store a memory without facts."""
    return memory(engine, add(engine, TEXT))


def waiting(engine: MemoryEngine) -> list[int]:
    with engine.namespace(DEFAULT) as (connection, namespace):
        assert namespace is not None
        return facts.next_to_split(connection, namespace, source=None, waiting_only=True, after_id=0, limit=100)


def test_a_memory_is_stored_with_the_facts_of_the_model(engine: MemoryEngine, open_facts: OpenFacts):
    open_facts(writes(*FACTS))
    outcome = split(engine, replace(SPLIT, tags=("Heron",)))
    assert (outcome.made_by, outcome.pending) == (FactsBy.MODEL, False)
    found = memory(engine, outcome.memory.id)
    assert (found.text, found.tags, said(found)) == (TEXT, ("Heron",), list(FACTS))
    assert len(stored(engine)) == 1
    [hit] = engine.search(DEFAULT, SearchQuery(FACTS[2])).hits
    assert (hit.memory.id, hit.facts[0].fact.text) == (found.id, FACTS[2])
    assert list(engine.check()) == []


def test_facts_of_a_caller_need_no_model(engine: MemoryEngine, open_facts: OpenFacts):
    asked = writes(*FACTS)
    open_facts(asked)
    found = split(engine, replace(SPLIT, facts=given(["Mine", " mine ", "Yours"]).facts)).memory
    assert [(fact.text, fact.made_by) for fact in found.facts] == [
        ("Mine", FactsBy.CALLER),
        ("Yours", FactsBy.CALLER),
    ]
    assert asked.asked == []


def test_a_memory_is_split_only_on_request(engine: MemoryEngine, open_facts: OpenFacts):
    asked = writes(*FACTS)
    open_facts(asked)
    engine.add(DEFAULT, MemoryDraft(TEXT, "notes"))
    assert stored(engine)[0].facts == ()
    assert (asked.asked, waiting(engine)) == ([], [])


@pytest.mark.parametrize("error", [LLMUnavailable("It is away"), LLMRejected("Correct the key")])
def test_sentences_are_the_facts_while_the_model_is_unavailable(engine: MemoryEngine, open_facts: OpenFacts, error):
    open_facts(model(lambda prompt: error))
    outcome = split(engine)
    assert outcome.made_by is FactsBy.SENTENCES
    assert (outcome.pending, outcome.failure) == (True, error.message)
    assert said(outcome.memory) == ["Mira prefers TypeScript for the backend of Heron.", TEXT]
    assert waiting(engine) == [outcome.memory.id]


def test_a_write_does_not_wait_for_a_slow_model(engine: MemoryEngine):
    vendor = LLMVendor()
    vendor.start()
    vendor.replies.append(says({"facts": FACTS}, waits=True))
    settings = Settings(**vendor.settings("openai", facts_timeout_s=0.2))
    provider = provider_of(settings)
    assert provider is not None
    with closing(provider), closing(Facts(engine, provider, settings)) as engine.facts:
        outcome = split(engine)
    vendor.go_on.set()
    vendor.stop()
    assert (outcome.made_by, waiting(engine)) == (FactsBy.SENTENCES, [outcome.memory.id])


def test_with_a_timeout_of_zero_splitting_happens_in_the_background(engine: MemoryEngine, open_facts: OpenFacts):
    asked = writes(*FACTS)
    open_facts(asked, facts_timeout_s=0)
    outcome = split(engine)
    assert (outcome.pending, outcome.failure, asked.asked) == (True, IN_THE_BACKGROUND, [])


def test_no_more_than_half_of_the_writes_wait_for_the_model(engine: MemoryEngine, open_facts: OpenFacts):
    asked, answer = Event(), Event()

    def slow(prompt: Prompt) -> JsonObject:
        asked.set()
        assert answer.wait(30)
        return {"facts": list(FACTS)}

    open_facts(model(slow), max_writes=2)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(split, engine)
        assert asked.wait(30)
        second = split(engine)
        answer.set()
        assert [first.result(30).made_by, second.made_by] == [FactsBy.MODEL, FactsBy.SENTENCES]


def test_a_repeated_request_does_not_call_the_model(engine: MemoryEngine, open_facts: OpenFacts):
    asked = writes(*FACTS)
    open_facts(asked)
    once = Once.of("add_memory", "key", {"text": TEXT})
    ids = {engine.add(DEFAULT, SPLIT, once=once).id for _ in range(2)}
    assert (len(ids), len(stored(engine)), asked.count("split")) == (1, 1, 1)


def test_a_forbidden_write_does_not_reach_the_model(engine: MemoryEngine, open_facts: OpenFacts):
    asked = writes(*FACTS)
    open_facts(asked)
    with pytest.raises(SourceForbidden):
        engine.add(Scope(sources=("mine",)), SPLIT)
    assert asked.asked == []


def test_secrets_reach_neither_the_model_nor_the_facts(engine: MemoryEngine, open_facts: OpenFacts):
    secret = "sk-ant-api03-" + "Ab1" * 31
    asked = writes(f"The key of Heron is {secret}", "Heron has a key")
    open_facts(asked)
    text = f"Heron has the key {secret}. It is deployed on AWS Lambda with Node.js 18."
    found = split(engine, replace(SPLIT, text=text)).memory
    assert secret not in asked.asked[0].user
    assert not any(secret in text for text in (found.text, *said(found)))
    assert "Heron has a key" in said(found)


def test_a_new_text_gets_new_facts_and_unchanged_ones_keep_their_ids(engine: MemoryEngine, open_facts: OpenFacts):
    answers = iter([FACTS, (FACTS[0], FACTS[1], "Heron uses Node.js 20")])
    open_facts(model(lambda prompt: {"facts": list(next(answers))}))
    before = split(engine).memory
    changed = engine.update(DEFAULT, before.id, MemoryPatch(text=TEXT.replace("18", "20"), split=True))
    after = changed.memory
    assert said(after) == [FACTS[0], FACTS[1], "Heron uses Node.js 20"]
    assert [fact.id for fact in after.facts[:2]] == [fact.id for fact in before.facts[:2]]
    assert after.facts[2].id > before.facts[2].id
    assert not engine.search(DEFAULT, SearchQuery("18", hybrid=True)).hits[0].facts
    assert list(engine.check()) == []


def test_an_unchanged_text_is_not_split_again(engine: MemoryEngine, open_facts: OpenFacts):
    asked = writes(*FACTS)
    open_facts(asked)
    before = split(engine).memory
    after = engine.update(DEFAULT, before.id, MemoryPatch(text=TEXT, add_tags=("new",), split=True)).memory
    assert (after.tags, after.facts, asked.count("split")) == (("new",), before.facts, 1)


def test_a_new_text_of_a_split_memory_is_queued(engine: MemoryEngine, open_facts: OpenFacts):
    open_facts(writes(*FACTS))
    before = split(engine).memory
    changed = engine.update(DEFAULT, before.id, MemoryPatch(text="Something else is said. It is quite new."))
    assert (changed.memory.facts, changed.pending) == ((), True)
    assert waiting(engine) == [before.id]


def test_tags_alone_need_no_model(engine: MemoryEngine, open_facts: OpenFacts):
    asked = writes(*FACTS)
    open_facts(asked)
    before = plain(engine)
    after = engine.update(DEFAULT, before.id, MemoryPatch(tags=("a", "B"), split=True)).memory
    assert (after.tags, after.facts, asked.asked, waiting(engine)) == (("a", "B"), (), [], [])


def test_facts_of_a_caller_replace_the_others(engine: MemoryEngine, open_facts: OpenFacts):
    open_facts(writes(*FACTS))
    before = split(engine).memory
    after = engine.update(DEFAULT, before.id, MemoryPatch(facts=(FACTS[1], "New"))).memory
    assert said(after) == [FACTS[1], "New"]
    assert after.facts[0] == before.facts[1]
    assert engine.update(DEFAULT, before.id, MemoryPatch(facts=())).memory.facts == ()
    assert waiting(engine) == []


def test_a_missing_memory_does_not_call_the_model(engine: MemoryEngine, open_facts: OpenFacts):
    asked = writes(*FACTS)
    facts = open_facts(asked)
    hidden = plain(engine).id
    change: Callable[[Scope, int], object]
    for change in (
        lambda scope, id_: engine.update(scope, id_, MemoryPatch(text=TEXT, split=True)),
        facts.split_again,
    ):
        with pytest.raises(MemoryNotFound):
            change(DEFAULT, 77)
        with pytest.raises(MemoryNotFound):
            change(Scope(sources=("mine",)), hidden)
    assert asked.asked == []


def test_a_memory_is_split_again_in_its_current_state(engine: MemoryEngine, open_facts: OpenFacts):
    found = plain(engine)
    again = open_facts(writes(*FACTS)).split_again(DEFAULT, found.id)
    assert (said(again.memory), again.pending) == (list(FACTS), False)
    assert again.memory.updated_at == found.updated_at


def test_facts_are_kept_while_the_model_is_unavailable(engine: MemoryEngine, open_facts: OpenFacts):
    open_facts(writes(*FACTS))
    found = split(engine).memory
    again = open_facts(model(lambda prompt: LLMUnavailable("It is away"))).split_again(DEFAULT, found.id)
    assert (said(again.memory), again.pending, again.failure) == (list(FACTS), True, "It is away")
    assert waiting(engine) == [found.id]


def test_a_memory_changed_during_a_model_call_is_split_again(engine: MemoryEngine, open_facts: OpenFacts):
    found = plain(engine)
    texts = iter(["Heron runs in strict mode. It uses ESLint, and it is deployed on AWS Lambda.", None])

    def answer(prompt: Prompt) -> JsonObject:
        if text := next(texts):
            engine.update(DEFAULT, found.id, MemoryPatch(text=text))
        return {"facts": ["Heron uses ESLint"]}

    asked = model(answer)
    assert said(open_facts(asked).split_again(DEFAULT, found.id).memory) == ["Heron uses ESLint"]
    assert asked.count("split") == 2


def test_a_memory_that_keeps_changing_is_a_conflict(engine: MemoryEngine, open_facts: OpenFacts):
    found = plain(engine)
    texts = iter(f"{TEXT} And it is version {number}." for number in range(9))

    def answer(prompt: Prompt) -> JsonObject:
        engine.update(DEFAULT, found.id, MemoryPatch(text=next(texts)))
        return {"facts": ["Heron uses ESLint"]}

    with pytest.raises(Conflict, match="again and again"):
        open_facts(model(answer)).split_again(DEFAULT, found.id)
    assert memory(engine, found.id).facts == ()
