"""Search through the engine: exact at any size, filtered first, with degraded arms reported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from threading import Semaphore

import pytest

from souvenir.core.errors import SearchUnavailable
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments
from souvenir.core.types import (
    Filters,
    Fusion,
    MemoryDraft,
    MemoryPatch,
    Profile,
    SearchQuery,
    SourceFilter,
    SourceMatch,
    Weights,
)
from souvenir.index.analyser import Analyser, QueryWord
from souvenir.index.namespace import NamespaceIndex
from souvenir.memories.engine import MemoryEngine
from souvenir.retrieval.preparation import PassageAnalyser
from souvenir.retrieval.profiles import PROFILES
from souvenir.retrieval.recall import CANDIDATE_COUNT, Recall
from souvenir.retrieval.scoring import Scoring
from tests.index.shelf import RULES
from tests.memories.engine.conftest import BreakableEmbedder, OpenEngine
from tests.memories.engine.verbs import DEFAULT, add, stored
from tests.reference.agreement import assert_equals_reference
from tests.reference.search import ReferenceSearch
from tests.thoroughness import sampled

MAY = datetime(2023, 5, 8, tzinfo=UTC)
NOW = MAY + timedelta(days=1000)
WORDS = "garden bread violin harbour winter teacher engine mountain letter river".split()


def words(number: int) -> str:
    """Return some words that depend on the number, and a unique one."""
    return " ".join(WORDS[number // divisor % 10] for divisor in (1, 7, 13, 29)) + f" note{number}"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryEngine]:
    """More memories than the candidates of either arm."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("large"))
    with closing(MemoryEngine.open(settings, BreakableEmbedder())) as engine:
        drafts = [
            MemoryDraft(
                words(number),
                f"s{number % 7}/p{number % 3}",
                {"n": number % 11},
                document_at=MAY + timedelta(hours=number),
                archived=number % 17 == 0,
            )
            for number in range(3 * CANDIDATE_COUNT)
        ]
        engine.add_batch(DEFAULT, drafts)
        yield engine


LARGE_QUERIES = ("violin harbour note77", "winter", "mountan river")
FILTERS = {
    "none": Filters(),
    "archived too": Filters(include_archived=True),
    "a few sources": Filters(sources=(SourceFilter("s3/p1"), SourceFilter("s4", SourceMatch.PATH))),
    "part of a source": Filters(sources=(SourceFilter("/p2", SourceMatch.SUBSTRING),)),
    "a span of time": Filters(since=MAY + timedelta(hours=100), until=MAY + timedelta(hours=180)),
    "metadata": Filters(metadata={"n": 5}),
    "everything": Filters((SourceFilter("s2"),), MAY + timedelta(hours=50), None, {"n": 4}, True),
    "nothing": Filters(metadata={"n": "5"}),
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("hybrid", [True, False])
def test_the_first_hits_of_a_large_namespace_equal_those_of_the_slow_search(
    large: MemoryEngine, name: str, hybrid: bool
):
    reference = ReferenceSearch(BreakableEmbedder(), Analyser())
    passages = reference.passages.of_memories(stored(large))
    for text in LARGE_QUERIES if name == "none" else LARGE_QUERIES[: sampled(1, 3)]:
        for threshold in (None, 0.31):
            query = SearchQuery(text, 10, hybrid, FILTERS[name], threshold=threshold, now=NOW)
            result = large.search(DEFAULT, query)
            expected = reference.rank(passages, query, NOW)
            assert_equals_reference(result, expected, 10)
            assert name != "nothing" or result.hits == ()


def test_neighbouring_memories_share_their_words(engine: MemoryEngine):
    """Two interleaved talks with long and archived texts, and memories without a given date."""
    long = " ".join(words(number) for number in range(40))
    drafts = [
        MemoryDraft(
            f"{long} end{number}" if number % 10 == 9 else words(number),
            "a/b" if number % 3 == 0 else "a",
            document_at=None if number % 8 == 7 else MAY,
            archived=number % 7 == 3,
        )
        for number in range(40)
    ]
    ids = engine.add_batch(DEFAULT, drafts)
    for number in (0, 6, 9, 20):  # the order stays that of the ids, whenever a text was written
        engine.update(DEFAULT, ids[number], MemoryPatch(text=f"{words(number)} note{number + 1}"))
    reference = ReferenceSearch(BreakableEmbedder(), Analyser())
    passages = reference.passages.of_memories(stored(engine))
    for number in range(40):
        query = SearchQuery(f"note{number} end{number} garden", 50, now=NOW)
        assert_equals_reference(engine.search(DEFAULT, query), reference.rank(passages, query, NOW), 50)


def test_a_search_can_return_more_hits_than_candidates(large: MemoryEngine):
    query = SearchQuery("violin", top_k=2 * CANDIDATE_COUNT, now=NOW)
    reference = ReferenceSearch(BreakableEmbedder(), Analyser())
    expected = reference.rank(reference.passages.of_memories(stored(large)), query, NOW)
    result = large.search(DEFAULT, query)
    assert len(result.hits) == 2 * CANDIDATE_COUNT
    assert {hit.memory.id for hit in result.hits[:50]} == {hit.owner_id for hit in expected[:50]}


def test_a_long_memory_does_not_displace_all_others(engine: MemoryEngine):
    long = " ".join("violin." for _ in range(CANDIDATE_COUNT * 128))
    [first, *others] = [add(engine, long), *(add(engine, f"violin and {word}") for word in WORDS[:4])]
    assert engine.stats(DEFAULT).passages > CANDIDATE_COUNT + 4
    for query in (SearchQuery("violin", 5), SearchQuery("violin", 5, hybrid=False)):
        ids = [hit.memory.id for hit in engine.search(DEFAULT, query).hits]
        assert ids[0] == first
        assert sorted(ids) == [first, *others]


def test_a_long_text_is_found_by_its_last_sentence(engine: MemoryEngine):
    long = " ".join(f"Sentence {number} speaks of nothing in particular." for number in range(80))
    wanted = add(engine, f"{long} Ann keeps the spare key under the fig tree.")
    for number in range(20):
        add(engine, words(number))
    for hybrid in (True, False):
        [hit] = engine.search(DEFAULT, SearchQuery("spare key fig tree", 1, hybrid)).hits
        assert hit.memory.id == wanted
        assert hit.parts.profile is Profile.DOC


@pytest.mark.parametrize(("tokens", "profile"), [(59, Profile.FACT), (60, Profile.DOC), (300, Profile.DOC)])
def test_a_memory_is_scored_by_its_profile(engine: MemoryEngine, tokens: int, profile: Profile):
    add(engine, " ".join(["violin"] * tokens))
    [hit] = engine.search(DEFAULT, SearchQuery("violin", explain=True)).hits
    assert hit.parts.profile is profile
    [term] = hit.parts.terms
    k1 = PROFILES[profile].k1
    # Every passage is as long as the average one, or nearly.
    assert term.weight == pytest.approx(term.tf * (k1 + 1) / (term.tf + k1), rel=0.05)


@pytest.mark.parametrize(
    "wanted",
    [
        {"a": 1},
        {"a": 1.5},
        {"a": "1"},
        {"a": True},
        {"a": None},
        {"a": "é🎻"},
        {"a": [1, "é"]},
        {"a": {"é": "ü", "deep": [{"x": None}]}},
        {"": "empty"},
        {"a b.c$[0]": "odd"},
        {"a": 2**60},
    ],
)
def test_metadata_filters_match_exact_values(engine: MemoryEngine, wanted: dict[str, object]):
    held = add(engine, "violin", metadata={**wanted, "more": 1})
    values = [1, 1.5, "1", True, False, None, "", [], {}, [1], "e"]
    for value in values:
        if {"a": value} != wanted or type(value) is not type(wanted["a"]):
            add(engine, "violin", metadata={"a": value})
    add(engine, "violin")
    found = engine.search(DEFAULT, SearchQuery("violin", 50, filters=Filters(metadata=wanted))).hits
    assert [hit.memory.id for hit in found] == [held]


def test_the_order_of_keys_in_a_metadata_object_does_not_matter(engine: MemoryEngine):
    held = add(engine, "violin", metadata={"a": {"x": 1, "y": 2}})
    found = engine.search(DEFAULT, SearchQuery("violin", filters=Filters(metadata={"a": {"y": 2, "x": 1}}))).hits
    assert [hit.memory.id for hit in found] == [held]


@pytest.mark.parametrize("pattern", ["a_b", "a%", "a*", "a[b]", "A", "é", "a'b", 'a"b'])
def test_characters_in_a_source_pattern_are_literal(engine: MemoryEngine, pattern: str):
    held = add(engine, "violin", f"{pattern}/x")
    add(engine, "violin", "axb/x")
    for match in SourceMatch:
        filters = Filters((SourceFilter(pattern, match),))
        assert [hit.memory.id for hit in engine.search(DEFAULT, SearchQuery("violin", filters=filters)).hits] == [held]
        assert engine.count(DEFAULT, SourceFilter(pattern, match)) == 1


def test_without_the_embedder_the_search_is_degraded_to_words(engine: MemoryEngine, embedder: BreakableEmbedder):
    wanted = add(engine, "the violin in the harbour")
    add(engine, "bread")
    embedder.broken = True
    result = engine.search(DEFAULT, SearchQuery("violin", threshold=0.99))
    assert result.degraded == ("vector",)
    assert [hit.memory.id for hit in result.hits] == [wanted]
    assert (result.hits[0].parts.dense, result.hits[0].parts.vector_rank) == (0.0, None)
    assert engine.search(DEFAULT, SearchQuery("nothing of this")).hits == ()
    embedder.broken = False
    assert engine.search(DEFAULT, SearchQuery("violin")).degraded == ()


@pytest.mark.parametrize(("share", "counts"), [(0.0, False), (0.59, False), (0.6, True), (1.0, True)])
def test_a_query_unknown_to_the_model_is_ranked_by_its_words(
    engine: MemoryEngine, embedder: BreakableEmbedder, share: float, counts: bool
):
    wanted = add(engine, "violin " + words(0))
    add(engine, "bread")
    embedder.share = share
    [hit, *_] = engine.search(DEFAULT, SearchQuery("violin")).hits
    assert hit.memory.id == wanted
    assert hit.parts.dense > 0
    assert hit.parts.parts == pytest.approx({"lexical": hit.parts.lexical, "dense": 1.3 * hit.parts.dense * counts})
    assert hit.parts.vector_rank == (1 if counts else None)
    result = engine.search(DEFAULT, SearchQuery("violin", threshold=0.99))
    assert ([hit.memory.id for hit in result.hits], result.degraded) == ([wanted], ())
    assert engine.search(DEFAULT, SearchQuery("violin", threshold=0.99, hybrid=False)).hits == ()
    [hit, *_] = engine.search(DEFAULT, SearchQuery("violin", hybrid=False)).hits
    assert hit.parts.raw_score == hit.parts.similarity > 0


def test_a_search_is_refused_if_no_arm_can_run(engine: MemoryEngine, embedder: BreakableEmbedder):
    add(engine, "violin")
    embedder.broken = True
    with pytest.raises(SearchUnavailable):
        engine.search(DEFAULT, SearchQuery("violin", hybrid=False))


class BrokenAnalyser(Analyser):
    def query_words(self, text: str) -> list[QueryWord]:
        raise ZeroDivisionError


def test_without_the_analyser_the_search_is_degraded_to_meaning(embedder: BreakableEmbedder):
    index = NamespaceIndex(embedder.dim, RULES, Analyser().terms)
    analyser = PassageAnalyser(BrokenAnalyser(), PROFILES)
    recall = Recall(index, embedder, Scoring(PROFILES), analyser, Fusion.SUM, Semaphore(1), Instruments())
    found = recall.find(SearchQuery("violin"), None, NOW)
    assert found.result({}).degraded == ("lexical",)
    embedder.broken = True
    with pytest.raises(SearchUnavailable):
        recall.find(SearchQuery("violin"), None, NOW)


def test_a_query_without_words_is_not_degraded(engine: MemoryEngine):
    add(engine, "violin")
    result = engine.search(DEFAULT, SearchQuery("?!"))
    assert (result.degraded, len(result.hits)) == ((), 1)


def test_the_parts_of_an_explained_score_add_up(engine: MemoryEngine):
    for number in range(60):
        add(engine, words(number), document_at=NOW - timedelta(days=number))
    weights = Weights(vector=0.6, recency=0.2, confidence=0.1)
    result = engine.search(DEFAULT, SearchQuery("violin gardn note7 zzyzx", 8, weights=weights, now=NOW, explain=True))
    assert dict(result.repairs) == {"gardn": "garden"}
    assert len(result.hits) == 8
    for hit in result.hits:
        assert set(hit.parts.parts) == {"lexical", "dense", "recency", "confidence"}
        assert sum(hit.parts.parts.values()) == pytest.approx(hit.parts.raw_score)
        total = sum(term.idf for term in hit.parts.terms)
        lexical = sum(term.idf * term.weight for term in hit.parts.terms) / total
        assert hit.parts.lexical == pytest.approx(lexical, abs=1e-6)
        assert hit.parts.parts["lexical"] == pytest.approx(0.4 / 0.3 * lexical, abs=1e-5)
        assert hit.parts.parts["dense"] == pytest.approx(0.6 / 0.7 * 1.3 * hit.parts.dense)
    assert result.candidates_considered == 60
    best = max(result.hits, key=lambda hit: hit.parts.lexical)
    assert result.lexical_candidates[0].memory_id == best.memory.id
    assert len(result.vector_candidates) <= 3 * 8


def test_a_setting_selects_reciprocal_rank_fusion(open_engine: OpenEngine):
    engine = open_engine(search_fusion=Fusion.RRF)
    ids = [add(engine, text) for text in ("violin violin harbour", "violin bread winter garden", "mountain river")]
    hits = engine.search(DEFAULT, SearchQuery("violin")).hits
    for hit in hits:
        expected = 0.7 / (60 + (hit.parts.vector_rank or 0))
        if hit.parts.lexical_rank is not None:
            expected += 0.3 / (60 + hit.parts.lexical_rank)
        assert hit.parts.raw_score == hit.parts.rrf_score == pytest.approx(expected)
    assert [hit.memory.id for hit in hits] == ids
    assert [hit.parts.lexical_rank for hit in hits] == [1, 2, None]


def test_a_blank_text_of_an_earlier_version_is_kept_and_never_ranked(engine: MemoryEngine):
    add(engine, " \u200b\n")
    text = add(engine, "The garden needs water.")
    for hybrid in (True, False):
        found = engine.search(DEFAULT, SearchQuery("water", hybrid=hybrid))
        assert [hit.memory.id for hit in found.hits] == [text]
    assert len(stored(engine)) == 2
    assert engine.check() == []
