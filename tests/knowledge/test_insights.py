"""Insights: figures computed from stored data, and sentences about the notable ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from souvenir.conversations.messages import Conversations
from souvenir.core.errors import AgentNotFound, ConceptNotFound
from souvenir.core.settings import Settings
from souvenir.core.types import MessageRole, Scope
from souvenir.knowledge.insights import EARLIEST, LATEST
from souvenir.knowledge.neighbourhoods import History, Shift
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph.mentions import month_of
from souvenir.store.messages.messages import MessageDraft
from tests.fake_embedder import FakeEmbedder

ANN = Scope("ann", "tester")
MONDAY = datetime(2024, 1, 1, 9, 5, tzinfo=UTC)


@pytest.fixture
def engine(settings: Settings) -> Iterator[MemoryEngine]:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        yield engine


@pytest.fixture
def graph(engine: MemoryEngine) -> KnowledgeServices:
    return KnowledgeServices.open(engine)


def say(
    engine: MemoryEngine, at: datetime, *texts: str, session: str = "s", role: MessageRole = MessageRole.USER
) -> None:
    drafts = [
        MessageDraft(role, text, session_id=session, created_at=at + timedelta(minutes=minute), user="cleo")
        for minute, text in enumerate(texts)
    ]
    Conversations(engine).add(ANN, drafts)


def names(shifts: Sequence[Shift]) -> dict[str, tuple[int, int]]:
    return {one.neighbour.name: (one.before, one.after) for one in shifts}


def test_usage_is_counted_by_calendar_unit_within_the_period(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    say(engine, MONDAY, "Hello", "Again")
    say(engine, MONDAY, "Hi", role=MessageRole.ASSISTANT)
    say(engine, MONDAY + timedelta(days=31, hours=3), "Back", session="t")
    found = graph.insights.of_agent(ANN)
    monday, thursday = (datetime(2024, month, 1, tzinfo=UTC) for month in (1, 2))
    both = Counter({MessageRole.USER: 2, MessageRole.ASSISTANT: 1})
    back = Counter({MessageRole.USER: 1})
    assert found.usage.days == {monday: both, thursday: back}
    assert found.usage.weeks == {monday: both, thursday - timedelta(days=3): back}
    assert found.usage.months == {monday: both, thursday: back}
    assert (found.usage.hours[9], found.usage.hours[12], sum(found.usage.hours)) == (3, 1, 4)
    assert found.usage.weekdays == [3, 0, 0, 1, 0, 0, 0]
    later = graph.insights.of_agent(ANN, since=thursday)
    assert later.usage.days == {thursday: back}
    assert later.sessions.count == 1


def test_sessions_have_lengths_in_messages_and_minutes(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    for number in range(1, 11):
        say(engine, MONDAY, *(["Hello"] * number), session=f"s{number}")
    sessions = graph.insights.of_agent(ANN).sessions
    assert (sessions.count, sessions.messages, sessions.minutes) == (10, (5.5, 9.1), (4.5, 8.1))


def test_the_network_links_concepts_that_co_occur(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    say(engine, MONDAY, *["Alice met Boris"] * 3, "Greta met Alice", "Zelda slept", "Hello", "Hello again")
    graph.indexer.catch_up()
    network = graph.insights.of_agent(ANN).network
    assert (network.nodes, network.edges) == (4, 2)
    assert network.density == pytest.approx(2 / 6)
    assert next((pair.one.name, pair.other.name, pair.together) for pair in network.strongest) == ("Alice", "Boris", 3)
    assert next((one.name, degree) for one, degree in network.most_connected) == ("Alice", 2)
    assert all(0 <= pair.strength <= 1 for pair in network.strongest)


def history(engine: MemoryEngine, graph: KnowledgeServices, split: datetime | None = None) -> History:
    with engine.namespace(ANN) as (connection, _):
        [(alice,)] = connection.execute("SELECT id FROM concepts WHERE key = 'alice'")
    return graph.neighbourhoods.history(ANN, alice, EARLIEST, LATEST, split)


def test_the_history_of_a_concept_lists_gained_and_lost_neighbours(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    april = MONDAY + timedelta(days=91)
    say(engine, MONDAY, *["Alice met Boris"] * 3, "Alice met Greta", *["Alice met Zelda"] * 2)
    say(engine, april, *["Alice met Greta"] * 3, *["Alice met Lisbon"] * 2, "Alice met Zelda", "Alice met Milan")
    graph.indexer.catch_up()
    found = history(engine, graph)
    assert [(one.month, one.owners) for one in found.months] == [(month_of(MONDAY), 6), (month_of(april), 7)]
    assert [(one.name, together) for one, together in found.months[0].neighbours] == [
        ("Boris", 3),
        ("Zelda", 2),
        ("Greta", 1),
    ]
    changed = found.changed
    assert changed.month == month_of(april)
    assert names(changed.gained) == {"Lisbon": (0, 2)}
    assert names(changed.lost) == {"Boris": (3, 0)}
    assert names(changed.stronger) == {"Greta": (1, 3)}
    assert names(changed.weaker) == {"Zelda": (2, 1)}
    assert history(engine, graph, MONDAY).changed.gained == []


def test_a_concept_of_one_month_has_not_changed_and_a_missing_one_has_no_history(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    say(engine, MONDAY, "Alice met Boris")
    graph.indexer.catch_up()
    assert history(engine, graph).changed.month is None
    with pytest.raises(ConceptNotFound):
        graph.neighbourhoods.history(ANN, 999, EARLIEST, LATEST)
    with pytest.raises(AgentNotFound):
        graph.insights.of_agent(Scope("nobody"))


def test_notable_facts_are_deterministic_sentences(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    say(engine, MONDAY, *["Alice met Boris in Lisbon"] * 2, "Hello")
    say(engine, MONDAY + timedelta(days=91), "Greta met Alice in Oslo", "Hello again", session="t")
    graph.indexer.catch_up()
    said = graph.insights.of_agent(ANN).sentences
    assert said[0] == "5 messages in 2 sessions with 1 user, from 2024-01-01 to 2024-04-01, and 0 memories."
    assert any(one.startswith("Most said about: ") for one in said)
    [new] = [one for one in said if one.startswith("New since 2024-03-02: ")]
    assert "Greta (1)" in new
    assert "Boris" not in new
    assert any(one.startswith(("1 topic; ", "2 topics; ")) for one in said)
    assert graph.insights.of_agent(ANN, since=MONDAY).sentences == said


def test_an_agent_without_messages_has_no_insights(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    say(engine, MONDAY, "Hello")
    found = graph.insights.of_agent(ANN, since=LATEST)
    assert (found.sessions.count, found.sessions.messages, found.usage.days) == (0, None, {})
    assert (found.network.nodes, found.network.density) == (0, 0.0)
