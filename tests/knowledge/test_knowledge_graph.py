"""The knowledge graph equals the reference server's after any operations, and each entity is a memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from souvenir.conversations.agents import Agents
from souvenir.core.errors import EntityNotFound, InvalidRequest, MemoryPinned, SourceForbidden
from souvenir.core.types import FactsBy, Memory, MemoryPatch, Scope, SearchQuery
from souvenir.knowledge.entities import Entity, Graph, Observations, Page
from souvenir.knowledge.knowledge_graph import KnowledgeGraph
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph.relations import ENTITY_SOURCE, EntityRelation
from tests.knowledge.reference import ReferenceGraph

DEFAULT = Scope()
ANN = Entity("Ann_Lee", "person", ("Speaks Basque", "Runs"))
ACME = Entity("Acme", "company")
WORKS = EntityRelation("Ann_Lee", "Acme", "works_at")


@pytest.fixture
def graph(engine: MemoryEngine) -> KnowledgeGraph:
    return KnowledgeGraph(engine)


def plain(found: Graph) -> tuple[list[Entity], set[EntityRelation]]:
    assert len(set(found.relations)) == len(found.relations)
    return [replace(one, memory_id=None) for one in found.entities], set(found.relations)


def memory_of(engine: MemoryEngine, name: str, scope: Scope = DEFAULT) -> Memory:
    [found] = [one for one in engine.page(scope, offset=0, limit=100).memories if one.key == name and not one.archived]
    return engine.get(scope, [found.id])[found.id]


NAMES = st.sampled_from(["Ann", "ann", "Bob_Lee", "Ça", "x/y"])
SAID = st.lists(st.sampled_from(["Runs", "runs", "Has two\nlines", "Ann", "ÇA va"]), max_size=3).map(tuple)
ENTITIES = st.lists(st.builds(Entity, NAMES, st.sampled_from(["person", "", "Ort"]), SAID), max_size=3)
RELATIONS = st.lists(st.builds(EntityRelation, NAMES, NAMES, st.sampled_from(["knows", "Knows"])), max_size=3)
OBSERVATIONS = st.lists(st.builds(Observations, NAMES, SAID), max_size=3)


ALIKE: dict[str, st.SearchStrategy[Any]] = {
    "create_entities": ENTITIES,
    "create_relations": RELATIONS,
    "delete_entities": st.lists(NAMES, max_size=2),
    "delete_observations": OBSERVATIONS,
    "delete_relations": RELATIONS,
}
"""Verbs with the same arguments and results as those of the reference."""


class GraphMachine(RuleBasedStateMachine):
    """Every verb in any order, compared with the reference; each run has an agent of its own."""

    def __init__(self, engine: MemoryEngine, services: KnowledgeServices, scope: Scope) -> None:
        super().__init__()
        self.engine, self.scope = engine, scope
        Agents(engine).create(scope)
        self.graph, self.indexer = services.knowledge, services.indexer
        self.reference = ReferenceGraph()

    @rule(verb=st.sampled_from([*ALIKE]), data=st.data())
    def call(self, verb: str, data: st.DataObject) -> None:
        given = data.draw(ALIKE[verb])
        assert getattr(self.graph, verb)(self.scope, given) == getattr(self.reference, verb)(given)

    @rule(entities=ENTITIES, relations=RELATIONS)
    def store(self, entities: list[Entity], relations: list[EntityRelation]) -> None:
        self.graph.store(self.scope, entities, relations)
        for one in entities:
            self.reference.create_entities([one])
            self.reference.add_observations([Observations(one.name, one.observations)])
        self.reference.create_relations(relations)

    @rule(observations=OBSERVATIONS)
    def add_observations(self, observations: list[Observations]) -> None:
        try:
            expected = self.reference.add_observations(observations)
        except LookupError:
            with pytest.raises(EntityNotFound):
                self.graph.add_observations(self.scope, observations)
        else:
            assert self.graph.add_observations(self.scope, observations) == expected

    @rule(query=st.sampled_from(["ann", "RUNS", "ça", "two\nlines", ""]))
    def search(self, query: str) -> None:
        expected = self.reference.search(query)
        found = self.graph.search(self.scope, query)
        # Without a match the reference finds nothing, and the graph what is near by meaning.
        assert not expected[0] or by_name(plain(found)) == by_name(expected)

    @rule(names=st.lists(NAMES, max_size=3))
    def open(self, names: list[str]) -> None:
        assert by_name(plain(self.graph.open(self.scope, names))) == by_name(self.reference.open(names))

    @rule(limit=st.integers(1, 3))
    def read_in_parts(self, limit: int) -> None:
        entities: list[Entity] = []
        relations: list[EntityRelation] = []
        offset: int | None = 0
        while offset is not None:
            part = self.graph.read(self.scope, Page(offset=offset, limit=limit))
            entities, relations, offset = [*entities, *part.entities], [*relations, *part.relations], part.next_offset
        assert by_name(plain(Graph(entities, relations))) == by_name(self.reference.read())

    @rule()
    def index(self) -> None:
        self.indexer.catch_up()

    @invariant()
    def holds_what_the_reference_holds(self) -> None:
        assert by_name(plain(self.graph.read(self.scope))) == by_name(self.reference.read())


def by_name(found: tuple[list[Entity], set[EntityRelation]]) -> tuple[list[Entity], set[EntityRelation]]:
    """A name that a relation gave has its place since then, so the order of entities can differ."""
    return sorted(found[0], key=lambda one: one.name), found[1]


def test_the_graph_equals_the_reference_after_any_operations(engine: MemoryEngine):
    """The concepts and claims of its entities are those of a graph that is indexed at once."""
    runs, services = count(), KnowledgeServices.open(engine)
    run_state_machine_as_test(
        lambda: GraphMachine(engine, services, Scope(namespace=f"run-{next(runs)}")),  # type: ignore[arg-type]  # calls it
        settings=hypothesis_settings(max_examples=12, stateful_step_count=15, deadline=None),
    )
    services.indexer.catch_up()
    assert list(engine.check()) == []


def test_an_entity_is_a_memory_that_search_finds(engine: MemoryEngine, graph: KnowledgeGraph):
    graph.create_entities(DEFAULT, [ANN, ACME])
    graph.add_observations(DEFAULT, [Observations("Acme", ("Makes anvils",))])
    memory = memory_of(engine, "Ann_Lee")
    assert (memory.text, memory.source) == ("Ann Lee (person)\nSpeaks Basque\nRuns", ENTITY_SOURCE)
    assert [(fact.text, fact.made_by) for fact in memory.facts] == [(one, FactsBy.CALLER) for one in ANN.observations]
    for query, name in (("Who speaks Basque?", "Ann_Lee"), ("anvils", "Acme"), ("Lee", "Ann_Lee")):
        assert engine.search(DEFAULT, SearchQuery(query)).hits[0].memory.key == name


def test_concurrent_changes_of_an_entity_are_retried_and_lose_nothing(engine: MemoryEngine, graph: KnowledgeGraph):
    graph.create_entities(DEFAULT, [ANN])
    memory = memory_of(engine, "Ann_Lee")
    said = [f"Said {number}" for number in range(10)]

    def change(text: str) -> object:
        engine.update(DEFAULT, memory.id, MemoryPatch(metadata={text: True}))
        return graph.add_observations(DEFAULT, [Observations("Ann_Lee", (text,))])

    with ThreadPoolExecutor(10) as pool:
        assert [*pool.map(change, said)] == [[Observations("Ann_Lee", (text,))] for text in said]
    found = memory_of(engine, "Ann_Lee")
    assert {*said} <= {*found.metadata}
    assert {fact.text for fact in found.facts} == {*ANN.observations, *said}


def test_deleting_an_entity_deletes_its_history_and_relations(engine: MemoryEngine, graph: KnowledgeGraph):
    graph.store(DEFAULT, [ANN, ACME], [WORKS, EntityRelation("Bob", "Ann_Lee", "knows")])
    engine.supersede(DEFAULT, memory_of(engine, "Ann_Lee").id, text="Ann Lee (person)\nSpeaks Spanish")
    assert plain(graph.read(DEFAULT))[1] == {WORKS, EntityRelation("Bob", "Ann_Lee", "knows")}
    graph.delete_entities(DEFAULT, ["Ann_Lee", "nobody"])
    assert plain(graph.read(DEFAULT)) == ([ACME], set())
    assert [one.key for one in engine.page(DEFAULT, offset=0, limit=10).memories] == ["Acme"]
    assert engine.search(DEFAULT, SearchQuery("Basque Spanish")).evidence == "none"


def test_a_pinned_entity_is_changed_but_not_deleted(engine: MemoryEngine, graph: KnowledgeGraph):
    graph.create_entities(DEFAULT, [ANN, ACME])
    engine.update(DEFAULT, memory_of(engine, "Ann_Lee").id, MemoryPatch(pinned=True))
    graph.add_observations(DEFAULT, [Observations("Ann_Lee", ("Swims",))])
    with pytest.raises(MemoryPinned):
        graph.delete_entities(DEFAULT, ["Acme", "Ann_Lee"])
    assert [one.name for one in graph.read(DEFAULT).entities] == ["Ann_Lee", "Acme"]


def test_a_name_used_only_in_relations_is_no_entity_until_it_is_created(engine: MemoryEngine, graph: KnowledgeGraph):
    graph.create_relations(DEFAULT, [WORKS])
    assert plain(graph.read(DEFAULT)) == ([], {WORKS})
    with pytest.raises(EntityNotFound, match="Ann_Lee"):
        graph.add_observations(DEFAULT, [Observations("Ann_Lee", ("Swims",))])
    assert graph.create_entities(DEFAULT, [ANN]) == [ANN]
    assert plain(graph.open(DEFAULT, ["Ann_Lee", "Acme"])) == ([ANN], {WORKS})
    graph.delete_relations(DEFAULT, [WORKS])
    assert [one.key for one in engine.page(DEFAULT, offset=0, limit=10).memories] == ["Ann_Lee"]


def test_the_lines_of_a_replaced_profile_become_observations(engine: MemoryEngine, graph: KnowledgeGraph):
    graph.create_entities(DEFAULT, [ANN])
    memory = memory_of(engine, "Ann_Lee")
    engine.update(DEFAULT, memory.id, MemoryPatch(text="Ann Lee (person)\nSpeaks Basque\n\nSwims now"))
    assert plain(graph.read(DEFAULT))[0] == [replace(ANN, observations=("Speaks Basque", "Swims now"))]
    engine.update(DEFAULT, memory.id, MemoryPatch(facts=("Ann speaks", "Ann swims"), facts_by=FactsBy.MODEL))
    assert graph.read(DEFAULT).entities[0].observations == ("Speaks Basque", "Swims now")
    graph.add_observations(DEFAULT, [Observations("Ann_Lee", ("Runs",))])
    assert graph.read(DEFAULT).entities[0].observations == ("Speaks Basque", "Swims now", "Runs")
    assert memory_of(engine, "Ann_Lee").text == "Ann Lee (person)\nSpeaks Basque\nSwims now\nRuns"


def test_archiving_or_deleting_a_memory_keeps_the_graph_consistent(engine: MemoryEngine, graph: KnowledgeGraph):
    graph.store(DEFAULT, [ANN, ACME], [WORKS])
    engine.archive(DEFAULT, [memory_of(engine, "Acme").id])
    assert plain(graph.read(DEFAULT)) == ([ANN], set())
    assert graph.create_entities(DEFAULT, [ACME]) == [ACME]
    assert plain(graph.read(DEFAULT)) == ([ANN, ACME], {WORKS})
    engine.delete(DEFAULT, memory_of(engine, "Ann_Lee").id)
    assert plain(graph.read(DEFAULT)) == ([ACME], set())


def test_a_long_profile_is_truncated_and_all_observations_are_kept(engine: MemoryEngine, graph: KnowledgeGraph):
    said = tuple(f"Observation number {number} of a long life" for number in range(100))
    graph.create_entities(DEFAULT, [Entity("Methuselah", "person", said)])
    before = memory_of(engine, "Methuselah").text
    assert before.endswith("\n…")
    graph.add_observations(DEFAULT, [Observations("Methuselah", ("Rests",))])
    assert memory_of(engine, "Methuselah").text == before
    assert graph.read(DEFAULT).entities[0].observations == (*said, "Rests")


def test_a_query_that_no_entity_contains_is_searched_by_meaning(engine: MemoryEngine, graph: KnowledgeGraph):
    graph.store(DEFAULT, [ANN, Entity("Bob", "person", ("Likes tea with lemon",))], [WORKS])
    assert graph.search(DEFAULT, "lemon tea").entities[0].name == "Bob"
    assert plain(graph.search(DEFAULT, "quantum chromodynamics")) == ([], set())
    assert [one.name for one in graph.search(DEFAULT, "basque").entities] == ["Ann_Lee"]
    assert graph.search(DEFAULT, "basque").relations == [WORKS]


def test_a_limited_key_has_its_own_graph_below_its_first_source(graph: KnowledgeGraph):
    mine, yours = Scope(sources=("proj/a", "proj/b")), Scope(sources=("proj/b",))
    graph.store(DEFAULT, [ANN], [])
    graph.store(mine, [ACME], [WORKS])
    assert plain(graph.read(yours)) == ([], set())
    assert plain(graph.read(Scope(sources=("entities",)))) == ([ANN], set())
    graph.delete_entities(yours, ["Acme", "Ann_Lee"])
    assert plain(graph.read(mine)) == ([ACME], {WORKS})
    with pytest.raises(SourceForbidden):
        graph.create_entities(Scope(sources=()), [ANN])
    assert graph.read(Scope(namespace="another")) == Graph()


def test_redacted_observations_are_noted_and_recognised_again(engine: MemoryEngine, graph: KnowledgeGraph):
    secret = "Her key is sk-proj-4f9c2a7d6b1e4f9c2a7d6b1e4f9c2a7d6b1e4f9c2a7d6b1e"
    [made] = graph.create_entities(DEFAULT, [replace(ANN, observations=(secret, "Runs"))])
    assert made.observations[0] != secret
    assert graph.add_observations(DEFAULT, [Observations("Ann_Lee", (secret, "Swims"))])[0].contents == ("Swims",)
    memory = memory_of(engine, "Ann_Lee")
    assert "sk-proj" not in memory.text
    assert memory.metadata["sensitive_data"]
    graph.delete_observations(DEFAULT, [Observations("Ann_Lee", (secret,))])
    assert graph.read(DEFAULT).entities[0].observations == ("Runs", "Swims")
    for refused in (
        lambda: graph.create_entities(DEFAULT, [replace(ANN, name=secret)]),
        lambda: graph.create_relations(DEFAULT, [EntityRelation("Ann_Lee", "Acme", secret)]),
        lambda: graph.create_entities(DEFAULT, [replace(ANN, name="  ")]),
    ):
        with pytest.raises(InvalidRequest):
            refused()
