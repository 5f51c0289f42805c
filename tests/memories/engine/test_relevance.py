"""Relevance of results: in each mode, with each signal missing, and with the real model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from souvenir.conversations.message_search import MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import (
    EvidenceLevel,
    Filters,
    MessageRole,
    Scope,
    SearchQuery,
    SearchResult,
    SourceFilter,
    Weights,
)
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder
from souvenir.store.messages.messages import MessageDraft
from tests.memories.engine.conftest import BreakableEmbedder
from tests.memories.engine.verbs import DEFAULT, add

STRONG, WEAK, NONE = EvidenceLevel

TRIP, BAKERY = Scope("trip"), Scope("bakery")
TALK = """
Mara: I finally booked the ferry to Hvar, it leaves on the third of June.
Idris: Nice! I get seasick on every boat, so I would rather fly.
Mara: My sister Lena comes along. She wants to dive to the wreck near Vis.
Idris: Diving is not for me. I bought a second-hand telescope last week instead.
Mara: A telescope? What do you look at with it?
Idris: Saturn mostly. You can see the rings from my balcony in Split.
Mara: I broke my ankle playing volleyball in March, so no long hikes this summer.
Idris: Ouch. Did the doctor say how long it takes?
Mara: Six weeks in a cast, and then physiotherapy twice a week.
Idris: Take care. I am baking rye bread on Sunday, come over.
""".strip().splitlines()


def asked(engine: MemoryEngine, text: str, **options: object) -> SearchResult:
    return engine.search(DEFAULT, SearchQuery(text, **options))  # type: ignore[arg-type]


def test_without_hits_there_is_no_evidence(engine: MemoryEngine):
    nothing = asked(engine, "billing")
    assert (nothing.relevance, nothing.evidence, dict(nothing.signals)) == (0.0, NONE, {})
    add(engine, "billing runs on postgres", source="a")
    filtered = asked(engine, "billing", filters=Filters(sources=(SourceFilter("b"),)))
    assert (filtered.hits, filtered.relevance, filtered.evidence) == ((), 0.0, NONE)
    too_far = asked(engine, "billing or something else", hybrid=False, threshold=0.99)
    assert (too_far.hits, too_far.relevance, too_far.evidence) == ((), 0.0, NONE)


def test_one_memory_is_evidence_only_for_its_own_subject(engine: MemoryEngine):
    add(engine, "billing runs on postgres")
    said, other = asked(engine, "billing postgres"), asked(engine, "violin lessons")
    assert said.evidence is STRONG
    assert said.relevance > 0.6
    assert (other.evidence, len(other.hits)) == (NONE, 1)
    assert set(said.signals) == {"hit", "unknown", "covered", "other_name"}


@pytest.mark.parametrize("count", [1, 40])
def test_an_unknown_word_weighs_more_in_a_larger_store(engine: MemoryEngine, count: int):
    for number in range(count):
        add(engine, "postgres" if not number else f"other{number}")
    known, unknown = max(math.log((count - 1 + 0.5) / 1.5), 0.1), math.log((count + 0.5) / 0.5)
    found = asked(engine, "postgres zzyzx")
    share = unknown / (known + unknown)
    assert found.signals["unknown"] == pytest.approx(share * max(0.0, math.log(count / 20)))
    assert found.signals["covered"] == pytest.approx(found.hits[0].parts.lexical)


def test_a_memory_about_another_person_is_less_evidence(engine: MemoryEngine):
    for name in ("Ann", "Ben"):
        for number in range(3):
            add(engine, f"{name} sails boat {number}", source=name)
    filters = Filters(sources=(SourceFilter("Ben"),))
    said, other = (asked(engine, f"Where does {name} sail?", filters=filters) for name in ("Ben", "Ann"))
    assert (said.signals["other_name"], other.signals["other_name"]) == (0.0, 1.0)
    assert other.relevance < said.relevance
    assert asked(engine, "Where does Cem sail?", filters=filters).signals["other_name"] == 0.0


def test_names_that_the_caller_may_not_see_are_not_known(engine: MemoryEngine):
    for number in range(3):
        add(engine, f"Ann sails boat {number}", source="a")
    add(engine, "Ben sails a boat", source="b")
    seen = {"b": Scope(DEFAULT.namespace, sources=("b",)), "all": DEFAULT}
    filters = Filters(sources=(SourceFilter("b"),))
    found = {
        who: engine.search(scope, SearchQuery("Where does Ann sail?", filters=filters)) for who, scope in seen.items()
    }
    assert {who: one.signals["other_name"] for who, one in found.items()} == {"b": 0.0, "all": 1.0}


def test_relevance_is_judged_after_filtering(engine: MemoryEngine):
    add(engine, "billing runs on postgres", source="a")
    add(engine, "violin lessons on monday", source="b")
    everywhere = asked(engine, "billing postgres")
    elsewhere = asked(engine, "billing postgres", filters=Filters(sources=(SourceFilter("b"),)))
    assert (everywhere.evidence, elsewhere.evidence) == (STRONG, NONE)
    assert len(elsewhere.hits) == 1


def test_weights_of_the_caller_change_the_order_but_not_the_evidence(engine: MemoryEngine):
    for text in ("billing runs on postgres", "violin lessons on monday", "postgres moves in may"):
        add(engine, text)
    plain = asked(engine, "billing postgres")
    shifted = asked(engine, "billing postgres", weights=Weights(recency=1.0, confidence=1.0, vector=0.2))
    assert shifted.hits[0].parts.raw_score != plain.hits[0].parts.raw_score
    assert shifted.relevance == plain.relevance


def test_without_the_model_relevance_is_judged_by_words(engine: MemoryEngine, embedder: BreakableEmbedder):
    add(engine, "billing runs on postgres")
    embedder.broken = True
    said, other = asked(engine, "which postgres does billing use"), asked(engine, "violin lessons")
    assert said.degraded == ("vector",)
    assert set(said.signals) == {"unknown", "covered", "other_name"}
    assert said.relevance > other.relevance
    assert other.evidence is NONE


def test_a_query_unknown_to_the_model_is_judged_by_its_words(engine: MemoryEngine, embedder: BreakableEmbedder):
    add(engine, "billing runs on postgres")
    embedder.share = 0.0
    assert "hit" not in asked(engine, "billing postgres").signals


def test_a_search_by_meaning_alone_is_judged_by_the_cosine(engine: MemoryEngine):
    add(engine, "billing runs on postgres")
    said, other = (asked(engine, text, hybrid=False) for text in ("billing runs postgres", "violin lessons"))
    assert dict(said.signals) == pytest.approx({"hit": said.hits[0].parts.similarity})
    assert (said.evidence, other.evidence) == (STRONG, NONE)


def test_a_blank_query_is_judged_by_its_cosine(engine: MemoryEngine):
    add(engine, "billing runs on postgres")
    assert set(asked(engine, "\u200b").signals) == {"hit"}


def test_punctuation_that_no_text_holds_is_no_evidence(engine: MemoryEngine):
    add(engine, "billing runs on postgres")
    assert asked(engine, "???").evidence is NONE


# --- the real model ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversations]:
    """A talk of two people, and a chat of a user with an assistant."""
    embedder = OnnxEmbedder()
    folder: Path = tmp_path_factory.mktemp("data")
    with closing(embedder), closing(MemoryEngine.open(Settings(data_dir=folder), embedder)) as engine:
        made = Conversations(engine)
        at = datetime(2024, 5, 4, tzinfo=UTC)
        said = (line.split(": ", 1) for line in TALK)
        made.add(
            TRIP,
            [
                MessageDraft(MessageRole.USER, text, session_id="may", speaker=speaker, created_at=at)
                for speaker, text in said
            ],
        )
        made.add(
            BAKERY,
            [
                MessageDraft(MessageRole.USER, "My sourdough starter smells of acetone. What should I do?"),
                MessageDraft(MessageRole.ASSISTANT, "It is hungry. Feed it twice a day and keep it at 24 degrees."),
                MessageDraft(MessageRole.USER, "I open the bakery at six and sell about eighty loaves a day."),
                MessageDraft(MessageRole.ASSISTANT, "Then plan the last bake for half past four."),
            ],
        )
        yield made


@pytest.mark.parametrize(
    ("scope", "question", "expected"),
    [
        (TRIP, "When does Mara's ferry to Hvar leave?", {STRONG}),
        (TRIP, "What can Idris see with his telescope?", {STRONG}),
        (TRIP, "How did Mara break her ankle?", {STRONG}),
        (TRIP, "How did Idris break his ankle?", {WEAK, NONE}),
        (TRIP, "Which wreck does Idris's sister want to dive to?", {WEAK, NONE}),
        (TRIP, "Which database index speeds up range queries?", {NONE}),
        (TRIP, "What is the capital gains tax rate in Portugal?", {NONE}),
        (BAKERY, "What was wrong with my sourdough starter?", {STRONG}),
        (BAKERY, "How many loaves do I sell a day?", {STRONG}),
        (BAKERY, "Which chess opening did I lose with?", {NONE}),
    ],
)
def test_mentioned_subjects_have_strong_evidence_and_others_none(
    conversations: Conversations, scope: Scope, question: str, expected: set[EvidenceLevel]
):
    found = conversations.search(scope, MessageQuery(question))
    assert found.hits
    assert found.evidence in expected
