"""Topics group sessions about the same subject, independent of speaker and order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from souvenir.conversations.messages import Conversations
from souvenir.core.errors import AgentNotFound, TopicNotFound
from souvenir.core.settings import Settings
from souvenir.core.types import MessageRole, Scope
from souvenir.knowledge.clustering import SAME_TOPIC, Counted, average_link, clusters_of
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import Removals
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.selection import Chooses
from tests.fake_embedder import FakeEmbedder

ANN = Scope("ann", "tester")

SAILING = ("Alice took the Albatross from Lisbon to Madeira", "Lisbon and Madeira again on the Albatross, says Alice")
BAKING = ("Boris bakes Panettone with Greta in Milan", "Greta brought Panettone from Milan for Boris")


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
    return {one.name for one in graph.topics.details(ANN, topic_id).sessions if one.about.is_primary}


def of_sessions(graph: KnowledgeServices) -> dict[frozenset[str], int]:
    found, total = graph.topics.page(ANN)
    assert len(found) == total
    return {frozenset(own_sessions(graph, one.topic.id)): one.topic.id for one in found}


def test_similar_sessions_are_one_topic_named_by_its_best_terms(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    talk(engine)
    say(engine, "silent", "Hello")
    graph.indexer.catch_up()
    assert of_sessions(graph).keys() == {frozenset({"sea0", "sea1"}), frozenset({"oven0", "oven1"})}
    found, _ = graph.topics.page(ANN)
    for one in found:
        assert (one.topic.sessions, one.topic.messages, one.topic.named_by) == (2, 4, None)
        assert set(one.name.split(", ")) <= {term.name for term in one.terms}
    assert len({one.name for one in found}) == 2


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


def random_sessions(count: int, subjects: int) -> tuple[list[Counted], list[int]]:
    """Each about one subject, whose concepts no other subject has."""
    random = np.random.default_rng(3)
    of_session = random.integers(subjects, size=count).tolist()
    sessions = []
    for subject in of_session:
        ids, messages = np.unique(random.integers(30, size=25) + 1000 * subject, return_counts=True)
        sessions.append(Counted(ids.astype(np.int64), messages.astype(np.int64)))
    return sessions, of_session


def test_later_batches_join_existing_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions, subjects = random_sessions(120, 4)
    for batch in (1_000, 50):
        monkeypatch.setattr("souvenir.knowledge.clustering.BATCH_SESSIONS", batch)
        found = clusters_of(sessions)
        topics = {one.session: one.topic for one in found.memberships if one.is_primary}
        assert len(found.terms) == 4
        assert len({(subjects[session], topic) for session, topic in topics.items()}) == 4


def test_topics_do_not_depend_on_the_ids_of_concepts() -> None:
    sessions, _ = random_sessions(60, 5)
    other = [Counted(7_000 - one.concept_ids[::-1], one.messages[::-1]) for one in sessions]
    found, mirrored = clusters_of(sessions), clusters_of(other)
    assert mirrored.memberships == found.memberships
    for mine, theirs in zip(found.terms, mirrored.terms, strict=True):
        assert {(7_000 - id_, weight) for id_, weight in theirs} == set(mine)
    assert SAME_TOPIC > 0


def test_no_sessions_have_no_topics() -> None:
    assert clusters_of([]).terms == []
    nothing = Counted(np.empty(0, np.int64), np.empty(0, np.int64))
    assert clusters_of([nothing]).memberships == []
