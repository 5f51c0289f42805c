"""The entities and relations of the knowledge graph are concepts and relations of the agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from souvenir.api.agent_graph import json_graph
from souvenir.conversations.agents import Agents
from souvenir.core.errors import ConceptNotFound
from souvenir.core.timestamps import utc_now
from souvenir.core.types import ClaimedBy, MemoryPatch
from souvenir.knowledge.claim_types import ConceptPatch, ConceptStatement
from souvenir.knowledge.entities import Entity, Observations
from souvenir.knowledge.graph_export import graph_pieces
from souvenir.knowledge.knowledge_graph import KnowledgeGraph
from souvenir.store.graph.relations import EntityRelation
from tests.cases import for_all
from tests.knowledge.agent import ANN, Agent

LEE = Entity("Ann_Lee", "Person", ("Speaks Basque",))
ACME = Entity("acme", "company")
WORKS = EntityRelation("Ann_Lee", "acme", "works_at")


class Known(Agent):
    """An agent with a knowledge graph."""

    @property
    def entities(self) -> KnowledgeGraph:
        return self.graph.knowledge

    def store(self, *stored: Entity | EntityRelation) -> None:
        entities = [one for one in stored if isinstance(one, Entity)]
        self.entities.store(ANN, entities, [one for one in stored if isinstance(one, EntityRelation)])
        self.index()

    def id_of(self, name: str) -> int:
        self.index()
        return self.concept(name).id

    def kind_of(self, name: str) -> str:
        return self.concept(self.id_of(name)).kind

    def relations_of(self, name: str) -> list[tuple[str, str, str]]:
        found = self.graph.claims.relations(ANN, self.id_of(name))
        return [(one.concept.key, one.claim.text, one.other.key) for one in found]

    def memory_id(self, name: str) -> int:
        [entity] = self.graph.knowledge.open(ANN, [name]).entities
        assert entity.memory_id is not None
        return entity.memory_id


@pytest.fixture
def known(ann: Agent) -> Iterator[Known]:
    Agents(ann.engine).create(ANN)
    yield Known(ann.engine, ann.graph)
    ann.index()


@for_all("name", ["alice", "李雷", "سلمى", "нина", "New_York office", "the red thing", "2023-05-08"])
def test_an_entity_is_a_concept_of_its_type_in_any_script_and_case(known: Known, name: str):
    known.store(Entity(name, "Test Case", ("is seldom here",)))
    concept = known.details(name)
    assert (concept.concept.kind, concept.concept.owners) == ("test_case", 1)
    assert [one.key for one in concept.memories] == [name]


def test_a_type_and_a_name_without_letters_are_no_concepts(known: Known):
    known.store(LEE, Entity("?!", "sign"), EntityRelation("?!", "Ann_Lee", "marks"))
    assert sorted(one.key for one in known.listed()) == ["ann lee", "basque"]
    assert known.relations_of("ann lee") == []


def test_an_entity_without_a_type_has_a_recognised_kind(known: Known):
    known.store(Entity("alice", ""))
    assert known.kind_of("alice") == "person"
    known.engine.update(ANN, known.memory_id("alice"), MemoryPatch(metadata={"entity_type": "cat"}))
    assert known.kind_of("alice") == "cat"


def test_relations_of_entities_are_relations_of_their_concepts(known: Known):
    known.store(LEE, ACME, WORKS, EntityRelation("acme", "Globex", "Rivals"))
    assert known.relations_of("acme") == [("acme", "rivals", "globex"), ("ann lee", "works_at", "acme")]
    [rivals, works] = known.graph.claims.relations(ANN, known.id_of("acme"))
    assert (works.claim.made_by, works.claim.memory_id) == (ClaimedBy.CALLER, known.memory_id("Ann_Lee"))
    related = [*known.related("Ann_Lee", depth=2).values()][:2]
    steps = [(one.concept.key, one.relationship_type, one.outgoing, one.path) for one in related]
    assert steps == [("acme", "works_at", True, ()), ("globex", "rivals", True, ("acme",))]
    assert rivals.other.name == "Globex"


def test_the_type_and_the_relations_of_an_entity_that_the_policy_hides_are_not_shown(known: Known):
    clinic = Entity("Ann_Lee", "patient", ("Ann has a diagnosis of diabetes",))
    known.store(clinic, ACME, WORKS, EntityRelation("acme", "Ann_Lee", "insures"))
    assert (known.kind_of("ann lee"), len(known.relations_of("ann lee"))) == ("patient", 2)
    Agents(known.engine).set_policy(ANN, {"hidden_topics": ["health"]})
    assert known.kind_of("ann lee") == "person"
    assert known.relations_of("ann lee") == known.relations_of("acme") == []


def test_a_relation_to_an_entity_that_the_policy_hides_is_not_shown(known: Known):
    clinic = Entity("acme", "clinic", ("Treats depression",))
    known.store(LEE, clinic, WORKS, EntityRelation("Ann_Lee", "Globex", "left"))
    at = utc_now()
    linked = [("ann lee", "left", "globex"), ("ann lee", "works_at", "acme")]
    assert known.relations_of("ann lee") == linked
    Agents(known.engine).set_policy(ANN, {"hidden_topics": ["health"]})
    assert known.relations_of("ann lee") == linked[:1]
    assert known.relations_of("acme") == []
    for as_of in (None, at):
        reached = known.graph.concepts.related(ANN, "ann lee", as_of)[1]
        assert {one.relationship_type for one in reached} - {"co_occurs"} == {"left"}
    relations = json.loads(b"".join(graph_pieces(known.engine, ANN, json_graph)))["relations"]
    types = {one["properties"]["relationship_type"] for one in relations if one["type"] == "RELATES_TO"}
    assert types - {"co_occurs"} == {"left"}
    Agents(known.engine).set_policy(ANN, {"hidden_topics": []})
    assert known.relations_of("ann lee") == linked


def test_the_export_of_the_graph_lists_entities_and_relations_as_stated(known: Known):
    known.store(LEE, ACME, WORKS)
    document = json.loads(b"".join(graph_pieces(known.engine, ANN, json_graph)))
    concepts = {one["id"]: one["properties"] for one in document["nodes"] if one["label"] == "Concept"}
    [lee] = [one for one in concepts.values() if one["key"] == "ann lee"]
    assert (lee["kind"], lee["confidence"], lee["stated"]) == ("person", 1.0, ["kind"])
    assert lee["stated_aliases"] == ["Ann_Lee"]
    relations = [one for one in document["relations"] if one["type"] == "RELATES_TO"]
    [related] = [one for one in relations if one["properties"]["relationship_type"] == "works_at"]
    assert [concepts[related[end]]["key"] for end in ("from_id", "to_id")] == ["ann lee", "acme"]
    assert related["properties"]["strength"] == 1.0


def test_deleted_relations_and_entities_are_deleted_from_the_concepts(known: Known):
    likes = EntityRelation("Ann_Lee", "acme", "likes")
    known.store(LEE, ACME, WORKS, likes, EntityRelation("Ann_Lee", "Globex", "left"))
    before = known.id_of("ann lee")
    known.entities.delete_relations(ANN, [WORKS, EntityRelation("Ann_Lee", "Globex", "left")])
    assert known.relations_of("ann lee") == [("ann lee", "likes", "acme")]
    with pytest.raises(ConceptNotFound):
        known.id_of("Globex")
    known.entities.delete_entities(ANN, ["acme"])
    assert known.relations_of("ann lee") == []
    with pytest.raises(ConceptNotFound):
        known.id_of("acme")
    assert known.id_of("ann lee") == before


def test_an_entity_that_is_archived_or_leaves_the_graph_has_no_claims_until_it_is_back(known: Known):
    known.store(LEE, ACME, WORKS)
    memory_id = known.memory_id("acme")
    known.engine.archive(ANN, [memory_id])
    assert known.relations_of("ann lee") == []
    known.engine.update(ANN, memory_id, MemoryPatch(archived=False))
    assert known.relations_of("ann lee") == [("ann lee", "works_at", "acme")]
    known.engine.archive(ANN, [memory_id])
    known.entities.create_entities(ANN, [Entity("acme", "shop")])
    assert known.relations_of("ann lee") == [("ann lee", "works_at", "acme")]
    assert known.kind_of("acme") == "shop"
    known.engine.update(ANN, known.memory_id("acme"), MemoryPatch(source="notes"))
    assert known.relations_of("ann lee") == []


def test_a_type_or_an_observation_that_changes_keeps_the_concept(known: Known):
    known.store(LEE, ACME, WORKS)
    acme = known.id_of("acme")
    before = known.graph.claims.relations(ANN, acme)
    known.entities.add_observations(ANN, [Observations("acme", ("Makes anvils",))])
    assert known.id_of("acme") == acme
    assert known.graph.claims.relations(ANN, acme)[0].claim.id == before[0].claim.id


def test_the_statement_about_a_concept_precedes_that_of_an_entity(known: Known):
    known.store(ACME)
    concept = known.id_of("acme")
    known.graph.claims.update(ANN, concept, ConceptPatch(kind="shop"))
    known.entities.add_observations(ANN, [Observations("acme", ("Makes anvils",))])
    known.engine.update(ANN, known.memory_id("acme"), MemoryPatch(metadata={"entity_type": "factory"}))
    assert known.kind_of("acme") == "shop"
    known.graph.claims.update(ANN, concept, ConceptPatch(kind=""))
    assert known.kind_of("acme") == "factory"
    stated = known.graph.claims.state(ANN, [ConceptStatement(key="acme", kind="factory")], [])
    assert (stated.stated, stated.unchanged) == (1, 0)


def test_a_relation_is_deleted_from_both_by_the_route_of_the_concept(known: Known):
    in_other_words = EntityRelation("Ann_Lee", "acme", "Works At")
    known.store(LEE, ACME, WORKS, in_other_words, EntityRelation("Ann_Lee", "acme", "likes"))
    assert known.relations_of("acme") == [("ann lee", "likes", "acme"), ("ann lee", "works_at", "acme")]
    removed = known.graph.claims.unrelate(ANN, known.id_of("ann lee"), known.id_of("acme"), "works_at")
    assert len(removed) == 1
    assert known.relations_of("acme") == [("ann lee", "likes", "acme")]
    assert [one.relation_type for one in known.entities.read(ANN).relations] == ["likes"]


def test_a_concept_that_a_caller_deleted_stays_hidden(known: Known):
    known.store(LEE, ACME, WORKS)
    known.graph.concepts.hide(ANN, known.id_of("acme"))
    known.entities.add_observations(ANN, [Observations("acme", ("Makes anvils",))])
    assert known.relations_of("ann lee") == []
    with pytest.raises(ConceptNotFound):
        known.id_of("acme")
    assert known.entities.open(ANN, ["acme"]).relations == [WORKS]


def test_relations_follow_concepts_that_are_merged(known: Known):
    known.store(LEE, ACME, Entity("Nanny", "person"), WORKS, EntityRelation("Nanny", "acme", "owns"))
    known.graph.claims.update(ANN, known.id_of("ann lee"), ConceptPatch(aliases=("Nanny",)))
    assert known.relations_of("ann lee") == [("ann lee", "owns", "acme"), ("ann lee", "works_at", "acme")]


def test_entities_that_differ_in_case_are_one_concept(known: Known):
    known.store(Entity("Bob", "person"), Entity("bob", "cat"), ACME, EntityRelation("Bob", "bob", "has"))
    assert known.concept(known.id_of("BOB")).owners == 2
    assert known.relations_of("bob") == []
    assert len(known.entities.read(ANN).relations) == 1


def test_relations_are_dated_by_their_statement_not_by_the_indexer(known: Known):
    known.entities.store(ANN, [LEE, ACME], [WORKS])
    between = datetime.now(UTC)
    known.index()
    known.entities.create_relations(ANN, [EntityRelation("acme", "Ann_Lee", "pays")])
    pays, works = known.graph.claims.relations(ANN, known.id_of("acme"))
    assert works.claim.created_at < between < pays.claim.created_at


@for_all(
    "name, observations, description",
    [
        ("Ann_Lee", ("Speaks Basque", "Is a linguist of Bilbao"), "Ann Lee is a linguist of Bilbao"),
        ("Ada Lee", ("Ada Lee is a judge", "Runs"), "Ada Lee is a judge"),
        ("Amy Lee", ("Speaks Basque",), None),
    ],
)
def test_a_defining_observation_describes_the_concept(
    known: Known, name: str, observations: tuple[str, ...], description: str | None
):
    known.store(Entity(name, "person", observations))
    assert known.concept(name).description == description


def test_the_lines_of_a_replaced_profile_describe_the_concept(known: Known):
    known.store(Entity("Ann_Lee", "", ("Runs",)))
    known.engine.update(ANN, known.memory_id("Ann_Lee"), MemoryPatch(text="Ann Lee is a judge of Bilbao."))
    details = known.details(known.id_of("Ann Lee"))
    assert (details.concept.description, details.described_by) == ("Ann Lee is a judge of Bilbao.", "texts")


def test_a_message_with_the_id_of_an_entity_is_no_entity(known: Known):
    known.store(ACME)
    known.tell("We met Zoe in Oslo")
    assert known.rows("SELECT id FROM messages") == [(known.memory_id("acme"),)]
    assert known.concept("acme").owners == 1


def test_the_check_finds_a_claim_that_no_entity_states(known: Known):
    known.store(LEE, ACME, WORKS)
    known.execute("UPDATE claims SET text = 'owns' WHERE kind = 'relation'")
    expected = f"memory {known.memory_id('Ann_Lee')} states other claims about concepts than are stored of it"
    assert list(known.engine.check()) == [expected]
    known.execute("UPDATE claims SET text = 'works_at' WHERE kind = 'relation'")


def test_a_type_that_is_no_text_is_no_kind(known: Known):
    known.entities.store(ANN, [LEE, ACME], [WORKS])
    known.execute("UPDATE memories SET metadata = '{\"entity_type\": 7}' WHERE key = 'acme'")
    known.id_of("Ann_Lee")
    assert known.kind_of("acme") in {"name", "phrase"}
