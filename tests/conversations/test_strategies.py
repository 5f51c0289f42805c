"""Search over everything an agent has: by meaning, by words, by named concepts and by time."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from souvenir.conversations.agent_search import CONCEPT_CANDIDATES, AgentQuery, AgentSearch, AgentSearchResult
from souvenir.conversations.message_search import MessageHit
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import EmbeddingUnavailable, InvalidRequest
from souvenir.core.settings import Settings
from souvenir.core.types import (
    ClaimedBy,
    ClaimKind,
    FloatVector,
    Hit,
    MemoryDraft,
    MessageRole,
    RecordKind,
    SearchStrategy,
)
from souvenir.knowledge.concept_ranking import rarity
from souvenir.knowledge.recognition.extraction import mentions_in
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import claims
from souvenir.store.graph.claims import ClaimDraft
from tests.conversations.talk import ANN, NOON, at, draft, say
from tests.fake_embedder import FakeEmbedder


@pytest.fixture
def graph(engine: MemoryEngine) -> KnowledgeServices:
    return KnowledgeServices.open(engine)


@pytest.fixture
def travels(engine: MemoryEngine, conversations: Conversations, graph: KnowledgeServices) -> AgentSearch:
    """Camera and Lisbon are rare, Alice is not."""
    say(conversations, "we flew to Lisbon with Alice", session_id="s1", user="ann", created_at=at(0))
    say(conversations, "in Lisbon we bought a pinhole camera with Alice", session_id="s1", user="ann", created_at=at(1))
    say(conversations, "Alice likes the old pinhole camera", session_id="s2", user="ben", created_at=at(2))
    say(conversations, "did Alice call?", role=MessageRole.ASSISTANT, session_id="s2", user="cem", created_at=at(3))
    say(conversations, "nothing of it", session_id="s2", user="cem", created_at=at(4))
    engine.add(ANN, MemoryDraft("Alice keeps the pinhole camera in a box", "notes", document_at=at(5)))
    engine.add(ANN, MemoryDraft("a box of old letters", "notes", document_at=at(6)))
    graph.indexer.catch_up()
    return AgentSearch(engine, conversations)


def by(search: AgentSearch, text: str, strategy: SearchStrategy, **fields: Any) -> AgentSearchResult:
    return search.search(ANN, AgentQuery(text, strategy=strategy, **{"limit": 20, "now": at(60), **fields}))


def texts(found: AgentSearchResult) -> list[str]:
    return [hit.message.content if isinstance(hit, MessageHit) else hit.memory.text for hit in found.hits]


# --- by meaning, by words -----------------------------------------------------------------------------------------


def test_by_meaning_the_cosine_orders_each_kind_and_the_probability_both(travels: AgentSearch):
    found = by(travels, "the old pinhole camera of Alice", SearchStrategy.SEMANTIC)
    assert found.by == (SearchStrategy.SEMANTIC,)
    assert len(found.hits) == 7
    for kind in (Hit, MessageHit):
        cosines = [hit.parts.raw_score for hit in found.hits if isinstance(hit, kind)]
        assert cosines == sorted((hit.parts.similarity for hit in found.hits if isinstance(hit, kind)), reverse=True)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)


class WordsOnly(FakeEmbedder):
    """Cannot embed a question."""

    def embed_query(self, text: str) -> FloatVector:
        raise EmbeddingUnavailable("The model is gone")


def test_by_words_needs_no_model_and_every_result_contains_a_word(settings: Settings):
    with closing(MemoryEngine.open(settings, WordsOnly())) as engine:
        conversations = Conversations(engine)
        say(conversations, "the rowing boat is blue")
        say(conversations, "seven gulls")
        engine.add(ANN, MemoryDraft("a blue rowing boat", "notes"))
        engine.add(ANN, MemoryDraft("nine crabs", "notes"))
        search = AgentSearch(engine, conversations)
        found = by(search, "blue rowing boats", SearchStrategy.KEYWORD)
        assert sorted(texts(found)) == ["a blue rowing boat", "the rowing boat is blue"]
        assert (found.by, found.degraded, found.embedded) == ((SearchStrategy.KEYWORD,), (), False)
        assert [hit.similarity for hit in found.hits if isinstance(hit, MessageHit)] == [None]
        assert by(search, "ships", SearchStrategy.KEYWORD).hits == []
        usual = by(search, "blue rowing boats", SearchStrategy.AUTO)
        assert (usual.by, usual.degraded) == ((SearchStrategy.KEYWORD,), ("vector",))


def test_a_search_reports_its_strategies_and_the_mentioned_concepts(travels: AgentSearch):
    found = by(travels, "did Alice buy a pinhole camera in Lisbon?", SearchStrategy.AUTO)
    assert found.by == (SearchStrategy.SEMANTIC, SearchStrategy.KEYWORD)
    assert set(found.named) == {"Alice", "pinhole camera", "Lisbon"}
    mentioned = dict(zip(texts(found), map(set, found.mentioned), strict=True))
    assert mentioned["in Lisbon we bought a pinhole camera with Alice"] == {"Alice", "pinhole camera", "Lisbon"}
    assert mentioned["Alice keeps the pinhole camera in a box"] == {"Alice", "pinhole camera"}
    assert mentioned["nothing of it"] == set()
    assert SearchStrategy.TIME in by(travels, "what did Alice say yesterday?", SearchStrategy.AUTO).by


# --- by concept ---------------------------------------------------------------------------------------------------


def test_by_concept_the_most_and_the_rarest_come_first(travels: AgentSearch):
    found = by(travels, "ALICE'S pinhole cameras, lisbon?", SearchStrategy.CONCEPT)
    assert found.by == (SearchStrategy.CONCEPT, SearchStrategy.SEMANTIC, SearchStrategy.KEYWORD)
    assert texts(found)[0] == "in Lisbon we bought a pinhole camera with Alice"
    assert texts(found)[1] == "we flew to Lisbon with Alice"
    assert set(texts(found)[2:4]) == {"Alice likes the old pinhole camera", "Alice keeps the pinhole camera in a box"}
    assert texts(found)[4:] == ["did Alice call?"]
    assert by(travels, "crocodiles in Norway", SearchStrategy.CONCEPT).hits == []


def test_by_concept_ties_are_ordered_by_evidence(travels: AgentSearch):
    boxed = by(travels, "pinhole camera in a box", SearchStrategy.CONCEPT, kinds=frozenset({RecordKind.MEMORY}))
    assert texts(boxed)[0] == "Alice keeps the pinhole camera in a box"
    old = by(travels, "old pinhole camera", SearchStrategy.CONCEPT)
    assert texts(old)[0] == "Alice likes the old pinhole camera"
    assert len({hit.score for hit in old.hits}) == 1


def test_by_concept_applies_every_filter(travels: AgentSearch):
    def of(**fields: Any) -> list[str]:
        return texts(by(travels, "Alice", SearchStrategy.CONCEPT, **fields))

    remembered = "Alice keeps the pinhole camera in a box"
    assert set(of(user="ben")) == {"Alice likes the old pinhole camera", remembered}
    assert set(of(exclude_session_id="s1")) == {"Alice likes the old pinhole camera", "did Alice call?", remembered}
    assert set(of(session_id="s1", role=MessageRole.ASSISTANT)) == {remembered}
    assert set(of(since=at(3))) == {"did Alice call?", remembered}
    assert set(of(until=at(0))) == {"we flew to Lisbon with Alice"}
    assert of(session_id="none", kinds=frozenset({RecordKind.MESSAGE})) == []


def test_by_concept_filters_before_choosing_candidates(
    engine: MemoryEngine, conversations: Conversations, graph: KnowledgeServices
):
    say(conversations, "Alice at last", session_id="old", created_at=at(-9_000))
    conversations.add(ANN, [draft(f"Alice {n}", created_at=at(n)) for n in range(CONCEPT_CANDIDATES + 10)])
    graph.indexer.catch_up()
    search = AgentSearch(engine, conversations)
    assert texts(by(search, "Alice", SearchStrategy.CONCEPT, session_id="old")) == ["Alice at last"]
    asked = by(search, "what did we say on 2 May 2023 about Alice?", SearchStrategy.CONCEPT)
    assert texts(asked) == ["Alice at last"]


def test_by_concept_finds_results_without_a_query_vector(settings: Settings):
    with closing(MemoryEngine.open(settings, WordsOnly())) as engine:
        conversations, graph = Conversations(engine), KnowledgeServices.open(engine)
        say(conversations, "we flew to Lisbon with Alice")
        say(conversations, "Alice likes it", created_at=at(3))
        graph.indexer.catch_up()
        alice = graph.concepts.details(ANN, "Alice").concept
        claim = ClaimDraft(ClaimKind.NAME, alice.id, "Ms Liddell", ClaimedBy.CALLER)
        engine.write(ANN, lambda tx: claims.insert(tx.connection, tx.namespace_id, claim, tx.now))
        found = by(AgentSearch(engine, conversations), "Ms Liddell", SearchStrategy.CONCEPT)
        assert sorted(texts(found)) == ["Alice likes it", "we flew to Lisbon with Alice"]
        assert (found.named, found.degraded) == (("Ms Liddell",), ("vector",))


TALK = [
    "there Alice met Bob Lee in Lisbon",
    "in Lisbon a pinhole camera was bought by Bob Lee",
    "we took the pinhole camera to New York",
    "he was there, says Alice",
    "nothing at all",
    "we saw New York, Lisbon, the pinhole camera and Alice",
]


def test_by_concept_equals_the_reference_search(
    engine: MemoryEngine, conversations: Conversations, graph: KnowledgeServices
):
    conversations.add(ANN, [draft(text, created_at=at(n)) for n, text in enumerate(TALK)])
    graph.indexer.catch_up()
    search = AgentSearch(engine, conversations)
    for question in (
        "where is Alice?",
        "was it Lisbon?",
        "the pinhole camera of Bob Lee",
        "was Alice with Bob Lee in Lisbon?",
    ):
        found = by(search, question, SearchStrategy.CONCEPT)
        expected = slow_reference(question)
        assert {text: round(hit.score, 6) for text, hit in zip(texts(found), found.hits, strict=True)} == expected
        ranks = [expected[text] for text in texts(found)]
        assert ranks == sorted(ranks, reverse=True)


def slow_reference(question: str) -> dict[str, float]:
    keys = {text: {one.key for one in mentions_in(text, MessageRole.USER)} for text in TALK}
    read = sum(bool(found) for found in keys.values())
    named = {one.key for one in mentions_in(question, None)}
    weight = {key: rarity(sum(key in found for found in keys.values()), read) for key in named}
    return {
        text: round(sum(weight[key] for key in named & found) / len(named), 6)
        for text, found in keys.items()
        if named & found
    }


# --- by time ------------------------------------------------------------------------------------------------------


def test_by_time_alone_the_latest_come_first_of_both_kinds(travels: AgentSearch):
    found = by(travels, "what did I say on 8 May 2023?", SearchStrategy.TIME)
    assert texts(found) == [
        "a box of old letters",
        "Alice keeps the pinhole camera in a box",
        "nothing of it",
        "did Alice call?",
        "Alice likes the old pinhole camera",
        "in Lisbon we bought a pinhole camera with Alice",
        "we flew to Lisbon with Alice",
    ]
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert (found.by, found.embedded, found.relevance) == ((SearchStrategy.TIME,), False, 1.0)
    nothing = by(travels, "what did I say on 9 May 2022?", SearchStrategy.TIME)
    assert (nothing.hits, nothing.relevance) == ([], 0.0)


def test_by_time_ranks_by_the_other_words(travels: AgentSearch):
    found = by(travels, "the box yesterday", SearchStrategy.TIME, now=NOON + timedelta(days=1))
    assert texts(found)[0] in ("a box of old letters", "Alice keeps the pinhole camera in a box")
    assert found.by == (SearchStrategy.TIME, SearchStrategy.SEMANTIC, SearchStrategy.KEYWORD)
    assert by(travels, "the box yesterday", SearchStrategy.TIME, now=NOON + timedelta(days=3)).hits == []


def test_by_time_the_callers_limits_and_filters_take_precedence(travels: AgentSearch):
    may = "what was said on 8 May 2023?"
    early = by(travels, may, SearchStrategy.TIME, until=at(1))
    assert texts(early) == ["in Lisbon we bought a pinhole camera with Alice", "we flew to Lisbon with Alice"]
    of_ben = by(travels, may, SearchStrategy.TIME, user="ben", kinds=frozenset({RecordKind.MESSAGE}))
    assert texts(of_ben) == ["Alice likes the old pinhole camera"]
    others = by(travels, may, SearchStrategy.TIME, exclude_session_id="s2", since=at(1), limit=2)
    assert texts(others) == ["a box of old letters", "Alice keeps the pinhole camera in a box"]
    latest = by(travels, "the latest messages", SearchStrategy.TIME, limit=1)
    assert texts(latest) == ["a box of old letters"]


def test_by_time_requires_a_time(travels: AgentSearch):
    with pytest.raises(InvalidRequest, match="since"):
        by(travels, "the box", SearchStrategy.TIME)
