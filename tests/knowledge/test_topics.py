"""Messages about the same subject are one topic, in one session or several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from souvenir.conversations.agents import Agents
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import AgentNotFound, TopicNotFound
from souvenir.core.settings import Settings
from souvenir.core.types import MessageRole, Scope
from souvenir.knowledge.clustering import (
    DOUBLING,
    FEW_SEGMENTS,
    SAME_TOPIC,
    average_link,
    clusters_of,
    least_similarity,
)
from souvenir.knowledge.segmentation import (
    FULL_BYTES,
    LEAST_UNIT,
    LEAST_WEIGHT,
    LONGEST,
    OF_OPENING,
    OF_USER,
    SEGMENT_COST,
    SESSION_PRIOR,
    SHORT_BYTES,
    Segment,
    Turn,
    segments_of,
)
from souvenir.knowledge.services import KnowledgeServices
from souvenir.knowledge.topic_assignment import read_segments
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import Removals
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.selection import Chooses
from tests.fake_embedder import FakeEmbedder

ANN = Scope("ann", "tester")

SAILING = ("Alice took the Albatross from Lisbon to Madeira", "Lisbon and Madeira again on the Albatross, says Alice")
LONG_SAILING = tuple(f"{text}, and the Albatross sails from Lisbon again" for text in SAILING)

BAKING = ("Boris bakes panettone with Greta in Milan", "Greta brought panettone from Milan for Boris")

LONG_BAKING = tuple(f"{text}, so Greta and Boris have panettone" for text in BAKING)


@pytest.fixture
def engine(settings: Settings) -> Iterator[MemoryEngine]:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        yield engine


@pytest.fixture
def graph(engine: MemoryEngine) -> Iterator[KnowledgeServices]:
    """What is derived agrees with what is stored at the end."""
    graph = KnowledgeServices.open(engine)
    yield graph
    graph.indexer.catch_up()
    assert list(engine.check()) == []


def say(engine: MemoryEngine, session: str, *texts: str) -> list[str]:
    drafts = [MessageDraft(MessageRole.USER, text, session_id=session) for text in texts]
    return [message.uid for message in Conversations(engine).add(ANN, drafts)]


def talk(engine: MemoryEngine) -> None:
    """Two sessions of each of two subjects."""
    for number in range(2):
        say(engine, f"sea{number}", *SAILING)
        say(engine, f"oven{number}", *BAKING)


def remove(engine: MemoryEngine, chooses: Chooses, name: str) -> None:
    removals = Removals(engine, on_jobs_gone=lambda: None)
    removals.start()
    removals.remove(ANN, chooses, name)
    removals.close()


def own_sessions(graph: KnowledgeServices, topic_id: int) -> set[str]:
    return {one.name for one in graph.topics.details(ANN, topic_id).sessions if one.is_primary}


def of_sessions(graph: KnowledgeServices) -> dict[frozenset[str], int]:
    found, total = graph.topics.page(ANN)
    assert len(found) == total
    return {frozenset(own_sessions(graph, one.topic.id)): one.topic.id for one in found}


def test_similar_sessions_are_one_topic_with_a_name_of_its_own(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    talk(engine)
    say(engine, "silent", "Hello")
    graph.indexer.catch_up()
    assert of_sessions(graph).keys() == {frozenset({"sea0", "sea1"}), frozenset({"oven0", "oven1"})}
    found, _ = graph.topics.page(ANN)
    for one in found:
        assert (one.topic.sessions, one.topic.messages, one.topic.named_by) == (2, 4, None)
    assert len({one.name for one in found}) == 2


def test_a_session_about_two_subjects_has_two_topics(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    say(engine, "both", *LONG_SAILING, *LONG_BAKING, *LONG_SAILING)
    say(engine, "oven", *LONG_BAKING, LONG_BAKING[0])
    graph.indexer.catch_up()
    found, total = graph.topics.page(ANN)
    assert total == 2
    by_messages = {one.topic.messages: graph.topics.details(ANN, one.topic.id) for one in found}
    sailing, baking = by_messages[4], by_messages[5]
    assert [(one.name, one.is_primary, one.messages) for one in sailing.sessions] == [("both", True, 4)]
    assert [(one.name, one.is_primary, one.messages) for one in baking.sessions] == [
        ("oven", True, 3),
        ("both", False, 2),
    ]
    assert {message.content for message, _ in sailing.messages} == {*LONG_SAILING}
    assert {message.content for message, _ in baking.messages} == {*LONG_BAKING}


def test_answers_and_short_messages_belong_to_the_segment_before(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    said = ((MessageRole.USER, LONG_SAILING[0]), (MessageRole.ASSISTANT, LONG_BAKING[0]), (MessageRole.USER, "Thanks!"))
    Conversations(engine).add(ANN, [MessageDraft(role, text, session_id="one") for role, text in said])
    graph.indexer.catch_up()
    [topic], _ = graph.topics.page(ANN)
    assert topic.topic.messages == 3


def test_a_topic_is_summarised_by_sentences_of_its_messages(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    uids = say(engine, "sea", f"Well. {SAILING[0]}. Is that so?", f"{SAILING[1]}.")
    graph.indexer.catch_up()
    [topic], _ = graph.topics.page(ANN)
    assert topic.summary == f"{SAILING[0]}. {SAILING[1]}."
    Conversations(engine).edit(ANN, uids[0], content="Alice went home to Lisbon in the end, without the others.")
    [topic], _ = graph.topics.page(ANN)
    assert topic.summary == f"{SAILING[1]}."
    graph.indexer.catch_up()
    [topic], _ = graph.topics.page(ANN)
    assert topic.summary == f"Alice went home to Lisbon in the end, without the others. {SAILING[1]}."
    remove(engine, Chooses.MESSAGE, uids[1])
    [topic], _ = graph.topics.page(ANN)
    assert topic.summary == "Alice went home to Lisbon in the end, without the others."
    assert graph.topics.describe(ANN, topic.topic.id, {"summary": "Trips at sea"}).summary == "Trips at sea"
    assert graph.topics.describe(ANN, topic.topic.id, {"summary": None}).summary == topic.summary


def test_messages_with_a_topic_that_the_policy_hides_are_not_quoted(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    flagged = MessageDraft(MessageRole.USER, f"{SAILING[0]}.", {"sensitive_topics": ["health"]}, session_id="sea")
    Conversations(engine).add(ANN, [flagged, MessageDraft(MessageRole.USER, f"{SAILING[1]}.", session_id="sea")])
    graph.indexer.catch_up()
    [topic], _ = graph.topics.page(ANN)
    assert topic.summary == f"{SAILING[0]}. {SAILING[1]}."
    Agents(engine).set_policy(ANN, {"hidden_topics": ["health"]})
    [topic], _ = graph.topics.page(ANN)
    assert topic.summary == f"{SAILING[1]}." == graph.topics.details(ANN, topic.topic.id).named.summary
    [_, message] = Conversations(engine).of_session(ANN, "sea", limit=2)[0]
    Conversations(engine).edit(ANN, message.uid, metadata={"sensitive_topics": ["health"]})
    named = graph.topics.details(ANN, topic.topic.id).named
    assert (named.name, named.summary) == ("", None)


def test_messages_of_a_running_session_are_assigned_again_when_they_are_indexed(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    say(engine, "sea0", *LONG_SAILING)
    say(engine, "sea1", "Hello")
    both = [MessageDraft(MessageRole.USER, text) for text in (*LONG_SAILING, *LONG_BAKING, *LONG_BAKING)]
    Conversations(engine).append(ANN, "sea1", both)
    graph.indexer.catch_up()
    without_vectors, _ = graph.topics.page(ANN)
    assert [one.topic.messages for one in without_vectors] == [9]
    Conversations(engine).index_pending(ANN)
    graph.indexer.catch_up()
    found, _ = graph.topics.page(ANN)
    assert [one.topic.messages for one in found] == [5, 4]
    assert [one.topic.sessions for one in found] == [2, 1]


def test_messages_discuss_a_topic_in_proportion_to_its_terms(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    talk(engine)
    say(engine, "sea0", "Lisbon")
    graph.indexer.catch_up()
    sea = of_sessions(graph)[frozenset({"sea0", "sea1"})]
    said = {message.content: relevance for message, relevance in graph.topics.details(ANN, sea).messages}
    assert said.keys() == {*SAILING, "Lisbon"}
    assert 0 < said["Lisbon"] < min(said[text] for text in SAILING) <= 1


def test_a_continued_topic_keeps_its_id_and_name(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    talk(engine)
    graph.indexer.catch_up()
    sea = of_sessions(graph)[frozenset({"sea0", "sea1"})]
    assert graph.topics.describe(ANN, sea, {"name": "Sailing"}).name == "Sailing"
    say(engine, "sea2", *SAILING)
    remove(engine, Chooses.SESSION, "sea0")
    graph.indexer.catch_up()
    assert of_sessions(graph)[frozenset({"sea1", "sea2"})] == sea
    assert graph.topics.details(ANN, sea).named.name == "Sailing"
    named = graph.topics.describe(ANN, sea, {"name": None, "summary": "Trips at sea"})
    assert named.name != "Sailing"
    assert (named.topic.summary, named.topic.named_by) == ("Trips at sea", "caller")


def test_a_deleted_concept_disappears_from_topic_names(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    talk(engine)
    graph.indexer.catch_up()
    sea = of_sessions(graph)[frozenset({"sea0", "sea1"})]
    terms = graph.topics.details(ANN, sea).named.terms[:2]
    assert len(terms) == 2
    for term in terms:
        graph.concepts.hide(ANN, term.concept_id)
        left = graph.topics.details(ANN, sea).named
        assert term.name not in left.name.split(", ")
        assert term.concept_id not in {one.concept_id for one in left.terms}


def test_a_topic_is_deleted_with_its_last_session(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    talk(engine)
    [message] = say(engine, "garden", "Zelda grows Dahlias")
    graph.indexer.catch_up()
    topics = of_sessions(graph)
    remove(engine, Chooses.SESSION, "oven0")
    remove(engine, Chooses.SESSION, "oven1")
    with pytest.raises(TopicNotFound):
        graph.topics.details(ANN, topics[frozenset({"oven0", "oven1"})])
    remove(engine, Chooses.MESSAGE, message)
    graph.indexer.catch_up()
    assert of_sessions(graph) == {frozenset({"sea0", "sea1"}): topics[frozenset({"sea0", "sea1"})]}


def test_agents_have_separate_topics_and_other_namespaces_have_none(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    talk(engine)
    graph.indexer.catch_up()
    sea = of_sessions(graph)[frozenset({"sea0", "sea1"})]
    with pytest.raises(AgentNotFound):
        graph.topics.page(Scope("bob"))
    Conversations(engine).add(Scope("bob"), [MessageDraft(MessageRole.USER, "Hello")])
    with pytest.raises(TopicNotFound):
        graph.topics.describe(Scope("bob"), sea, {"name": "Mine"})


def test_an_incremental_pass_equals_a_full_one(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    talk(engine)
    graph.indexer.catch_up()
    say(engine, "oven1", *SAILING, *SAILING)
    graph.indexer.catch_up()
    known = of_sessions(graph)
    again = KnowledgeServices.open(engine)
    say(engine, "sea0", "Hello")
    again.indexer.catch_up()
    assert of_sessions(again) == known


def test_long_sessions_are_divided_in_parts(
    monkeypatch: pytest.MonkeyPatch, engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    monkeypatch.setattr("souvenir.knowledge.topic_assignment.MESSAGES_AT_ONCE", 3)
    say(engine, "sea", *LONG_SAILING, *LONG_SAILING)
    graph.indexer.catch_up()
    [topic], _ = graph.topics.page(ANN)
    assert (topic.topic.sessions, topic.topic.messages) == (1, 4)


def naive(alike: np.ndarray, least: float) -> set[frozenset[int]]:
    """Average link as it is written: the two that are most alike are joined, and all means taken anew."""
    groups = [[item] for item in range(len(alike))]
    while len(groups) > 1:
        means = {
            (one, other): float(np.mean([alike[a, b] for a in groups[one] for b in groups[other]]))
            for one in range(len(groups))
            for other in range(one)
        }
        (one, other), mean = max(means.items(), key=lambda pair: pair[1])
        if mean < least:
            break
        groups[other] += groups.pop(one)
    return {frozenset(group) for group in groups}


@pytest.mark.parametrize("seed", range(5))
def test_nearest_neighbour_chains_equal_greedy_average_link(seed: int) -> None:
    points = np.abs(np.random.default_rng(seed).normal(size=(40, 3)))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    alike = points @ points.T
    into = average_link(alike.copy(), np.ones(40), 0.9)
    joined = {frozenset(np.flatnonzero(into == one).tolist()) for one in np.unique(into)}
    assert 1 < len(joined) < 40
    assert joined == naive(alike, 0.9)


def segment(vector: np.ndarray, terms: Sequence[int] = (), concept_ids: Sequence[int] = ()) -> Segment:
    [one] = segments_of([Turn(0, False, 100, 0, vector.astype(np.float32), tuple(terms), tuple(concept_ids))])
    return one


def random_segments(count: int, subjects: int, *, with_vectors: bool = True) -> tuple[list[Segment], list[int]]:
    """Return segments with their subjects; each has the direction and terms of its subject, with noise."""
    random = np.random.default_rng(3)
    directions = np.eye(subjects, 32) if with_vectors else np.zeros((subjects, 0))
    of_segment = random.integers(subjects, size=count).tolist()
    segments = []
    for subject in of_segment:
        vector = directions[subject] + 0.05 * random.normal(size=directions.shape[1])
        ids = np.unique(random.integers(30, size=25) + 1000 * subject)
        segments.append(segment(vector / max(np.linalg.norm(vector), 1), ids.tolist(), [subject]))
    return segments, of_segment


@pytest.mark.parametrize("with_vectors", [True, False])
def test_later_batches_join_existing_topics(monkeypatch: pytest.MonkeyPatch, with_vectors: bool) -> None:
    segments, subjects = random_segments(120, 4, with_vectors=with_vectors)
    for batch in (1_000, 50):
        monkeypatch.setattr("souvenir.knowledge.clustering.BATCH_SEGMENTS", batch)
        found = clusters_of(segments, range(120))
        assert len(found.mentions) == 4
        assert len(set(zip(subjects, found.topic_of, strict=True))) == 4


def test_topics_do_not_depend_on_the_numbers_of_terms() -> None:
    segments, _ = random_segments(60, 5)
    other = [replace(one, terms=7_000 - one.terms[::-1], counts=one.counts[::-1]) for one in segments]
    found, mirrored = clusters_of(segments, range(60)), clusters_of(other, range(60))
    assert (mirrored.topic_of, mirrored.relevance) == (found.topic_of, found.relevance)


def test_similar_segments_without_concepts_are_no_topic() -> None:
    unit = np.eye(2)
    segments = [segment(unit[0]), segment(unit[0]), segment(unit[1], concept_ids=[1]), segment(unit[1])]
    found = clusters_of(segments, range(4))
    assert (found.topic_of, found.mentions, found.topics_of) == ([-1, -1, 0, 0], [{1: OF_USER + OF_OPENING}], {1: 1})
    assert clusters_of([], []).topic_of == []


def test_shared_rare_terms_join_segments_of_unlike_meaning() -> None:
    units = np.eye(6)
    apart = [segment(unit, [index], [1]) for index, unit in enumerate(units)]
    joined = [segment(unit, [index // 2], [1]) for index, unit in enumerate(units)]
    assert clusters_of(apart, range(6)).topic_of == [0, 1, 2, 3, 4, 5]
    assert clusters_of(joined, range(6)).topic_of == [0, 0, 1, 1, 2, 2]


def test_segments_of_one_session_need_more_similarity() -> None:
    units = np.eye(8)
    units[1, :2] = 0.2, 0.98
    segments = [segment(unit, concept_ids=[1]) for unit in units]
    assert clusters_of(segments, range(8)).topic_of == [0, 0, 1, 2, 3, 4, 5, 6]
    assert clusters_of(segments, [0, 0, 1, 2, 3, 4, 5, 6]).topic_of == [0, 1, 2, 3, 4, 5, 6, 7]


def test_terms_of_a_segment_are_stems_without_function_words(engine: MemoryEngine) -> None:
    for session, text in (
        ("one", "The greenhouses, and why?"),
        ("two", "my Greenhouse"),
        ("three", "Why the two of us?"),
    ):
        say(engine, session, text)
    with engine.namespace(ANN) as (connection, _):
        one, two, three = [terms for [of] in read_segments(connection, [1, 2, 3]).values() for terms in [of.terms]]
    assert one.tolist() == two.tolist() != []
    assert three.tolist() == []


def test_openings_and_users_mention_more_than_answers() -> None:
    unit = np.ones(1, np.float32)
    said = ((False, (1, 2)), (True, (2, 3)), (False, (2,)))
    turns = [Turn(index, is_answer, 100, 0, unit, (), ids) for index, (is_answer, ids) in enumerate(said)]
    [one] = segments_of(turns)
    assert one.mentions == {1: 2 * OF_USER, 2: 3 * OF_USER + 1, 3: 1}
    assert OF_OPENING == OF_USER > 1


def best_segments(units: np.ndarray) -> float:
    """Return the greatest value of any segmentation, by trying all of them."""
    values = []
    for cuts in product((False, True), repeat=len(units) - 1):
        begins = [0, *(index for index, cut in enumerate(cuts, 1) if cut)]
        parts = [units[begin:end] for begin, end in zip(begins, [*begins[1:], len(units)], strict=True)]
        values.append(sum(float(np.linalg.norm(part.sum(axis=0))) - SEGMENT_COST for part in parts))
    return max(values)


@pytest.mark.parametrize("seed", range(5))
def test_segments_have_the_greatest_coherence_less_their_costs(seed: int) -> None:
    random = np.random.default_rng(seed)
    units, sizes = random.normal(size=(9, 3)), random.integers(SHORT_BYTES, 2 * FULL_BYTES, 9)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    turns = [
        Turn(index, False, int(size), 0, unit.astype(np.float32), (), ())
        for index, (unit, size) in enumerate(zip(units, sizes, strict=True))
    ]
    found = segments_of(turns)
    assert [one.first for one in found[1:]] == [one.last + 1 for one in found[:-1]]
    weights = LEAST_WEIGHT + np.minimum(sizes, FULL_BYTES)
    centred = units - weights @ units / (weights.sum() + SESSION_PRIOR * (LEAST_WEIGHT + FULL_BYTES))
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    centred *= (LEAST_UNIT + (1 - LEAST_UNIT) * np.minimum(sizes, FULL_BYTES) / FULL_BYTES)[:, None]
    value = sum(float(np.linalg.norm(centred[one.first : one.last + 1].sum(axis=0))) - SEGMENT_COST for one in found)
    assert value == pytest.approx(best_segments(centred), abs=0.01)


def test_subjects_are_told_apart_in_a_language_whose_messages_are_all_alike() -> None:
    units = np.concatenate([np.zeros((8, 3)), 0.25 * np.eye(8)], axis=1)
    units[:, 0], units[:4, 1], units[4:, 2] = 0.7, 0.35, 0.35
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    few = [Turn(index, False, 120, 0, unit.astype(np.float32), (), ()) for index, unit in enumerate(units[2:6])]
    assert [one.first for one in segments_of(few)] == [0, 2]
    segments = [segment(unit, concept_ids=[1]) for unit in units]
    assert clusters_of(segments, range(8)).topic_of == [0] * 4 + [1] * 4


@pytest.mark.parametrize(("size_bytes", "segments"), [(FULL_BYTES, 2), (SHORT_BYTES + 5, 1)])
def test_a_unit_with_a_short_opening_needs_more_to_be_a_segment(size_bytes: int, segments: int) -> None:
    one = np.array([1.0, 0.0, 0.0], np.float32)
    other = np.array([0.05, 1.0, 0.0], np.float32) / np.float32(np.sqrt(1.0025))
    turns = [Turn(0, False, 120, 0, one, (), ()), Turn(1, False, size_bytes, 1, other, (), ())]
    assert len(segments_of(turns)) == segments


def test_clusters_of_long_histories_need_more_similarity() -> None:
    few, many = SAME_TOPIC
    values = [least_similarity(segments) for segments in (0, 1, FEW_SEGMENTS, 2 * FEW_SEGMENTS, 10_000)]
    assert values == pytest.approx([few, few, few, few + DOUBLING, many])

    # Two of the segments have a cosine between the limits, the others none.
    def clusters(others: int) -> int:
        units = np.eye(others + 2)
        units[1, :2] = 0.3, 0.95
        segments = [segment(unit, concept_ids=[1]) for unit in units]
        return len(set(clusters_of(segments, range(len(segments))).topic_of))

    assert clusters(6) == 7
    assert clusters(120) == 122


def test_a_session_without_vectors_is_split_by_length_only() -> None:
    found = segments_of([Turn(index, False, 100, index, None, (), (1,)) for index in range(LONGEST + 1)])
    assert sum(one.messages for one in found) == LONGEST + 1
    assert len(found) == 2
