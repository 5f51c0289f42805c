"""Concepts of an agent in answers: names, counts, mentions, descriptions and relations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from souvenir.conversations.messages import Conversations
from souvenir.core.errors import AgentNotFound, ConceptNotFound, Conflict, NotFound, NothingToDo
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MessageRole, Scope
from souvenir.knowledge import concept_ranking
from souvenir.knowledge.claim_types import ConceptPatch, ConceptStatement
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import mentions
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.transaction import Transaction
from tests.fake_embedder import FakeEmbedder

ANN = Scope("ann", "tester")
OTHERS = tuple(f"I met {name}" for name in ("Emil", "Fritz", "Greta", "Hanna", "Ivo", "Jonas"))
"""So that nothing else is in everything."""


@pytest.fixture
def engine(settings: Settings) -> Iterator[MemoryEngine]:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        yield engine


@pytest.fixture
def graph(engine: MemoryEngine) -> Iterator[KnowledgeServices]:
    """What is derived agrees with what is stored at the end."""
    graph = KnowledgeServices.open(engine)
    yield graph
    assert list(engine.check()) == []


def tell(engine: MemoryEngine, graph: KnowledgeServices, *texts: str, agent: Scope = ANN, **more: Any) -> None:
    """Say these to the agent, one month after the other, and let them be read."""
    drafts = [
        MessageDraft(MessageRole.USER, text, created_at=datetime(2024, 1 + number % 5, 1, tzinfo=UTC), **more)
        for number, text in enumerate(texts)
    ]
    Conversations(engine).add(agent, drafts)
    graph.indexer.catch_up()


def state(
    engine: MemoryEngine, key: str, kind: str, text: str, *, other: str | None = None, by: str = "caller"
) -> None:
    """Claim something of the concept of a key."""

    def work(tx: Transaction) -> None:
        tx.connection.execute(
            "INSERT INTO claims (namespace_id, kind, concept_id, other_id, text, confidence, made_by, created_at) "
            "SELECT namespace_id, ?, id, (SELECT id FROM concepts WHERE key = ?), ?, 0.9, ?, 0 FROM concepts "
            "WHERE key = ?",
            (kind, other, text, by, key),
        )

    engine.write(ANN, work)


def stand_for(engine: MemoryEngine, graph: KnowledgeServices, spelling: str, root: str) -> None:
    """Let one key be another spelling of the other."""
    state(engine, spelling, "alias", spelling.title(), other=root)
    find = "SELECT id FROM concepts WHERE key = ?"
    engine.write(ANN, lambda tx: mentions.queue_matching(tx.connection, [tx.connection.execute(find, (spelling,)).get]))
    graph.indexer.catch_up()


def test_a_concept_is_shown_by_its_most_used_form_with_its_counts_and_times(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    tell(engine, graph, "I met Zoë", "Zoë and Boris came", "We saw Zoe")
    concept = graph.concepts.details(ANN, "ZOE").concept
    assert (concept.key, concept.name, concept.kind, concept.owners) == ("zoe", "Zoë", "person", 3)
    assert concept.aliases == ("Zoe",)
    assert (concept.first_at, concept.last_at) == (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC))


def test_another_spelling_is_shown_as_its_root_and_counted_with_it(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    tell(engine, graph, "I met Boris", "We saw Zeppo in Lisbon", "I met Zeppo", *OTHERS)
    before = graph.concepts.page(ANN)[1]
    stand_for(engine, graph, "zeppo", "boris")
    found, total = graph.concepts.page(ANN)
    boris = graph.concepts.details(ANN, "zeppo").concept
    assert total == before - 1 == len(found)
    assert (boris.name, boris.owners, boris.aliases) == ("Boris", 3, ("Zeppo",))
    assert found[0] == boris


def test_a_topic_with_a_term_of_another_spelling_is_named_by_its_root(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    tell(engine, graph, "We saw Zeppo in Lisbon", "I met Zeppo again")
    engine.add(ANN, MemoryDraft("I met Boris", "talk"))
    graph.indexer.catch_up()
    stand_for(engine, graph, "zeppo", "boris")
    [topic], _ = graph.topics.page(ANN)
    assert "Boris" in {term.name for term in topic.terms}
    assert "Zeppo" not in topic.name


@pytest.mark.parametrize(
    ("texts", "short", "long"),
    [
        (["Melanie called", "I had lunch with Mel"], "mel", "melanie"),
        (["I had lunch with Mel", "Melanie called", "We saw Melanie Smith in Lisbon"], "mel", "melanie smith"),
        (["Robert will retire", "We met Bob"], "bob", "robert"),
        (["I saw Anita Patel", "Dr Patel was late"], "dr patel", "anita patel"),
        (["Medistar Ltd sent a bill", "I work at Medistar"], "medistar", "medistar ltd"),
        (["I flew to New York City", "NYC is loud"], "nyc", "new york city"),
        (["I run the Great North Run", "The GNR was wet"], "gnr", "great north run"),
        (["Melanie Smith called", "I had lunch with Mel"], "mel", "melanie smith"),
        (["My boss is Deepak Raman", "Deepak likes tea"], "deepak", "deepak raman"),
        (["Frederike called", "I met Frederike van Dam"], "frederike", "frederike van dam"),
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_a_short_name_joins_the_only_long_one(
    engine: MemoryEngine, graph: KnowledgeServices, texts: list[str], short: str, long: str, backwards: bool
) -> None:
    tell(engine, graph, *(reversed(texts) if backwards else texts))
    assert graph.concepts.details(ANN, short).concept.key == long
    assert list(engine.check()) == []


@pytest.mark.parametrize(
    ("texts", "short"),
    [
        (["Samuel called", "Samantha called", "I had lunch with Sam"], "sam"),
        (["Agnes is my landlady", "I met Agne from Vilnius"], "agne"),
        (["I met Ann", "I met Anna"], "ann"),
        (["I met Will", "I met Willow"], "will"),
        (["We hiked in Jordan", "We swam at Jordan Lake"], "jordan"),
        (["I met Anita Patel", "I met Ravi Patel", "Dr Patel was late"], "dr patel"),
    ],
)
def test_names_of_several_people_or_places_stay_apart(
    engine: MemoryEngine, graph: KnowledgeServices, texts: list[str], short: str
) -> None:
    tell(engine, graph, *texts)
    assert graph.concepts.details(ANN, short).concept.key == short


def test_a_short_name_leaves_when_another_long_one_comes(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, "Samuel called", "I had lunch with Sam")
    assert graph.concepts.details(ANN, "sam").concept.aliases == ("Sam",)
    tell(engine, graph, "Samantha called")
    assert graph.concepts.details(ANN, "sam").concept.key == "sam"
    assert graph.concepts.details(ANN, "samuel").concept.aliases == ()


def test_a_name_that_was_separated_stays_apart_until_it_is_stated_again(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    tell(engine, graph, "Melanie called", "I had lunch with Mel")
    melanie = graph.concepts.details(ANN, "mel").concept
    graph.claims.separate(ANN, melanie.id, "Mel")
    graph.indexer.catch_up()
    mel = graph.concepts.details(ANN, "mel").concept
    assert (mel.key, mel.aliases, mel.owners) == ("mel", (), 1)
    graph.claims.update(ANN, mel.id, ConceptPatch(aliases=()))
    tell(engine, graph, "Melanie Smith called")
    assert graph.concepts.details(ANN, "mel").concept.key == "mel"
    graph.claims.update(ANN, melanie.id, ConceptPatch(aliases=("Mel",)))
    graph.indexer.catch_up()
    assert graph.concepts.details(ANN, "mel").concept.key == "melanie smith"


def test_a_separated_alias_is_no_longer_stated(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, "My sofa is red.", "My couch is green.")
    sofa = graph.concepts.details(ANN, "sofa").concept
    graph.claims.update(ANN, sofa.id, ConceptPatch(aliases=("couch",)))
    graph.indexer.catch_up()
    assert graph.concepts.details(ANN, "couch").concept.key == "sofa"
    graph.claims.separate(ANN, sofa.id, "couch")
    graph.indexer.catch_up()
    assert graph.concepts.details(ANN, "sofa").concept.aliases == ()
    assert graph.concepts.details(ANN, "couch").concept.key == "couch"


def test_a_name_of_another_concept_cannot_be_stated(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, "Alice met Bernard in Lisbon.")
    with pytest.raises(Conflict, match="Another concept has the name"):
        graph.claims.state(ANN, [ConceptStatement("Lisbon", name="Alice")], [])
    graph.claims.state(ANN, [ConceptStatement("Lisbon", name="Lisboa")], [])
    graph.claims.state(ANN, [ConceptStatement("Lisbon", name="Olisipo")], [])
    assert graph.concepts.details(ANN, "Olisipo").concept.key == "lisbon"
    with pytest.raises(ConceptNotFound):
        graph.concepts.details(ANN, "Lisboa")


def test_only_an_alias_that_a_text_mentions_can_be_separated(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, "Melanie called")
    melanie = graph.concepts.details(ANN, "melanie").concept
    with pytest.raises(Conflict, match="first name in the texts"):
        graph.claims.separate(ANN, melanie.id, "Melanie")
    with pytest.raises(NotFound, match="read its aliases"):
        graph.claims.separate(ANN, melanie.id, "Boris")


def test_a_concept_has_its_most_supported_kind_unless_a_text_defines_it(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    tell(engine, graph, "I flew to Florence", "I live in Florence", "Florence said hello")
    florence = graph.concepts.details(ANN, "florence").concept
    assert florence.kind == "place"
    assert 0.4 < florence.confidence < 0.6
    tell(engine, graph, "Florence is my sister", "kernel is our cat, obviously")
    assert [graph.concepts.details(ANN, one).concept.kind for one in ("florence", "kernel")] == ["person", "animal"]
    graph.claims.update(ANN, florence.id, ConceptPatch(kind="place"))
    assert graph.concepts.details(ANN, "florence").concept.confidence == 1.0


def test_claims_of_callers_precede_those_of_models_and_both_precede_texts(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    tell(engine, graph, "Miso sleeps all day", "Miso is a cat")
    assert graph.concepts.details(ANN, "miso").concept.description == "Miso is a cat"
    assert graph.concepts.details(ANN, "miso").described_by == "texts"
    state(engine, "miso", "description", "The family's cat", by="model")
    assert graph.concepts.details(ANN, "miso").described_by == "model"
    state(engine, "miso", "name", "Miso the Cat")
    state(engine, "miso", "name", "Some cat", by="model")
    state(engine, "miso", "description", "A tabby")
    details = graph.concepts.details(ANN, "miso the cat")
    assert (details.concept.name, details.concept.description, details.described_by) == (
        "Miso the Cat",
        "A tabby",
        "caller",
    )
    assert details.concept.aliases == ("Miso",)


@pytest.mark.parametrize(
    ("texts", "best"),
    [
        (["Did Ann call?", "My sister Ann is a cellist. We ate."], "My sister Ann is a cellist."),
        (["My sister Ann called."], None),
        (["Ann is my sister.", "I told my sister Ann to come."], "Ann is my sister."),
        (["I work at Ann", "Ann is a small publisher."], "Ann is a small publisher."),
        (["We went to Ann Arbor. Ann is the head of sales.", "Ann left"], "Ann is the head of sales."),
        (["Is Ann a doctor?", "I told Ann about it", "No Ann yet."], None),
    ],
)
def test_without_a_description_the_best_definition_is_shown_in_lists_too(
    engine: MemoryEngine, graph: KnowledgeServices, texts: list[str], best: str | None
) -> None:
    tell(engine, graph, *texts)
    details = graph.concepts.details(ANN, "Ann")
    assert (details.concept.description, details.described_by) == (best, None if best is None else "texts")
    assert {one.name: one.description for one in graph.concepts.page(ANN)[0]}["Ann"] == best


def test_a_concept_is_shown_with_its_latest_mentions(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, "I met Boris", "It rains", "Boris called")
    kept = engine.add(ANN, MemoryDraft("We visited Boris in Lisbon", "talk")).id
    graph.indexer.catch_up()
    details = graph.concepts.details(ANN, "boris")
    assert [one.content for one in details.messages] == ["Boris called", "I met Boris"]
    assert [one.id for one in details.memories] == [kept]
    assert 0 <= details.rarity < graph.concepts.details(ANN, "lisbon").rarity == 1


def test_the_most_significant_concepts_come_first_and_pages_are_contiguous(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    people = [f"Person{chr(97 + number)}" for number in range(20)]
    tell(
        engine,
        graph,
        *["I met Ann and Boris"] * 8,
        *["I met Ann and Clara"] * 5,
        *(f"I met Ann, {one}" for one in people),
    )
    everything, total = graph.concepts.page(ANN)
    # All 33 mention Ann: 33 * log(49 / 33) is less than 8 * log(49 / 8).
    assert [one.name for one in everything][:2] == ["Boris", "Ann"]
    assert {one.owners for one in everything[3:]} == {1}
    pages = [one for offset in range(total) for one in graph.concepts.page(ANN, offset=offset, limit=1)[0]]
    assert pages == list(everything)


def test_common_nouns_of_which_nothing_is_said_introduce_no_agent(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    for text in (
        "I met Clara at the choir.",
        "My essay is late.",
        "My essay on the birthday paradox is done.",
        "The birthday paradox again!",
        *["The pharmacist said no."] * 3,
        "I saw Zorblax again.",
    ):
        tell(engine, graph, text)
    listed = {one.key for one in graph.concepts.page(ANN)[0]}
    assert {"clara", "choir", "essay", "birthday paradox", "pharmacist", "zorblax"} <= listed
    leading = [one.key for one in graph.concepts.leading(ANN, limit=20)]
    assert leading == ["clara", "birthday paradox"]


def test_what_only_the_assistant_mentions_introduces_no_agent(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, "I moved to Oslo with Clara.")
    answer = MessageDraft(MessageRole.ASSISTANT, "Quebec is a city in Canada. Is Clara in Oslo?", session_id="s")
    Conversations(engine).add(ANN, [answer])
    graph.indexer.catch_up()
    assert "quebec" in {one.key for one in graph.concepts.page(ANN)[0]}
    assert {one.key for one in graph.concepts.leading(ANN, limit=20)} == {"oslo", "clara"}


def test_the_shorter_of_two_names_introduces_no_agent_unless_only_it_is_described(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    tell(engine, graph, *["Hebden Bridge is near Leeds.", "We drove from Hebden Bridge to Hebden."] * 2)
    tell(engine, graph, "Leeds is my home town.", "I run the Leeds Half Marathon.")
    leading = {one.key for one in graph.concepts.leading(ANN, limit=20)}
    assert "leeds" in leading
    assert leading.isdisjoint({"hebden", "leeds half marathon"})


def test_what_is_slight_introduces_an_agent_only_if_there_is_little_else(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    people = ["Ann", "Boris", "Clara", "Dora", "Emil", "Fritz", "Greta", "Hanna", "Igor", "Julia"]
    tell(engine, graph, *(f"I met {one} in Lisbon." for one in people), "I met Karl in Lisbon.", "Redis is down.")
    answer = MessageDraft(MessageRole.ASSISTANT, "And where does Redis run?", session_id="s")
    Conversations(engine).add(ANN, [answer])
    graph.indexer.catch_up()
    assert len(graph.concepts.leading(ANN, limit=20)) == concept_ranking.ENOUGH_LINES
    tell(engine, graph, *(f"I met {one} in Porto." for one in people))
    assert {"karl", "redis"}.isdisjoint(one.key for one in graph.concepts.leading(ANN, limit=20))


def test_concepts_that_co_occur_are_related(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, *["I saw Boris with Clara"] * 3, *["I met Clara in Lisbon"] * 2, *["I met Dora"] * 5)
    concept, found = graph.concepts.related(ANN, "boris", depth=1)
    names = {one.concept.name: one for one in found}
    assert concept.name == "Boris"
    assert "Clara" in names
    assert not {"Lisbon", "Dora", "Boris"} & names.keys()
    assert (names["Clara"].together, names["Clara"].relationship_type, names["Clara"].path) == (3, "co_occurs", ())
    deeper = {one.concept.name: one for one in graph.concepts.related(ANN, "boris", depth=2)[1]}
    assert (deeper["Lisbon"].depth, deeper["Lisbon"].path) == (2, ("Clara",))
    assert deeper["Lisbon"].strength < deeper["Clara"].strength


def test_strongest_paths_are_those_of_an_exhaustive_search(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    people = ["Ann", "Boris", "Clara", "Dora", "Emil", "Fritz", "Greta"]
    tell(engine, graph, *(f"I saw {a} and {people[(n * 3 + 1) % 7]}" for n in range(9) for a in people[n % 4 :]))
    with engine.namespace(ANN) as (connection, namespace):
        assert namespace is not None
        ids = {one.id: one.name for one in concept_ranking.top(connection, namespace.id, limit=50)}
        steps = {
            id_: concept_ranking.neighbours(connection, namespace.id, id_, limit=50, now=datetime.now(UTC))
            for id_ in ids
        }
    for depth in (1, 2, 3):
        best: dict[str, float] = {}
        reached = {next(id_ for id_, name in ids.items() if name == "Ann"): 1.0}
        for _ in range(depth):
            following: dict[int, float] = {}
            for id_, strength in reached.items():
                for step in steps[id_]:
                    following[step.concept_id] = max(following.get(step.concept_id, 0), strength * step.strength)
            reached = following
            for id_, strength in reached.items():
                best[ids[id_]] = max(best.get(ids[id_], 0), strength)
        best.pop("Ann", None)
        found = {one.concept.name: one.strength for one in graph.concepts.related(ANN, "Ann", depth=depth)[1]}
        assert found == pytest.approx(best)


def test_a_stated_relation_gives_the_type_of_a_related_concept(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, "Boris met Clara", "I saw Dora")
    state(engine, "boris", "relation", "works_for", other="dora", by="model")
    state(engine, "boris", "relation", "married_to", other="clara")
    found = {one.concept.name: one for one in graph.concepts.related(ANN, "boris", depth=1)[1]}
    assert (found["Clara"].relationship_type, found["Clara"].together) == ("married_to", 1)
    assert (found["Dora"].relationship_type, found["Dora"].outgoing, found["Dora"].strength) == ("works_for", True, 0.9)
    back = {one.concept.name: one for one in graph.concepts.related(ANN, "dora", depth=1)[1]}
    assert (back["Boris"].relationship_type, back["Boris"].outgoing) == ("works_for", False)


def test_a_hidden_concept_is_removed_under_all_spellings_permanently(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    tell(engine, graph, "I met Boris", "Boris Petrov called Clara")
    stand_for(engine, graph, "boris petrov", "boris")
    graph.concepts.hide(ANN, graph.concepts.details(ANN, "boris").concept.id)
    tell(engine, graph, "Boris and Boris Petrov are one")
    assert [one.name for one in graph.concepts.page(ANN)[0]] == ["Clara"]
    with pytest.raises(ConceptNotFound):
        graph.concepts.details(ANN, "boris")


def test_a_hidden_concept_is_hidden_under_all_of_its_stated_names(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    tell(engine, graph, "I met Boris and Emil", "I met Clara")
    boris = graph.concepts.details(ANN, "boris").concept.id
    graph.claims.update(ANN, boris, ConceptPatch(aliases=("Emil", "Klabautermann")))
    graph.concepts.hide(ANN, boris)
    tell(engine, graph, "I met Boris, Emil and Klabautermann")
    assert [one.name for one in graph.concepts.page(ANN)[0]] == ["Clara"]


def test_a_name_of_another_concept_is_refused(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, "I met Boris and Emil")
    boris = graph.concepts.details(ANN, "boris").concept
    with pytest.raises(Conflict):
        graph.claims.update(ANN, boris.id, ConceptPatch(name="Emil"))
    assert graph.concepts.details(ANN, "boris").concept == boris
    assert graph.claims.update(ANN, boris.id, ConceptPatch(name="BORIS")).name == "BORIS"


def test_a_sentence_about_a_longer_name_does_not_define_a_shorter_one(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    tell(engine, graph, "Annabel is a painter. I had lunch with Ann.")
    assert graph.concepts.details(ANN, "ann").concept.description is None


def test_a_page_after_the_last_is_empty(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, "I met Boris")
    assert graph.concepts.page(ANN, offset=2**63 - 1) == ([], 1)


def test_agents_are_isolated(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    other = Scope("bob", "tester")
    tell(engine, graph, "I met Boris and Clara")
    tell(engine, graph, "I met Emil", agent=other)
    boris = graph.concepts.details(ANN, "boris").concept
    for ask in (graph.concepts.details, graph.concepts.related):
        for called in (boris.id, "boris"):
            with pytest.raises(ConceptNotFound):
                ask(other, called)
    with pytest.raises(ConceptNotFound):
        graph.concepts.hide(other, boris.id)
    assert graph.concepts.details(ANN, boris.id).concept == boris
    assert [one.name for one in graph.concepts.page(other)[0]] == ["Emil"]
    with pytest.raises(AgentNotFound):
        graph.concepts.page(Scope("nobody"))


def test_a_patch_replaces_earlier_claims_of_callers(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, "I met Boris", "I met Boris", "We saw Bob in Lisbon")
    state(engine, "boris", "name", "Model's Boris", by="model")
    boris = graph.concepts.details(ANN, "boris").concept.id
    said = ConceptPatch("Boris P.", "A friend", "person", ("Bob", "The Boss"), 0.5)
    assert graph.claims.update(ANN, boris, said).name == "Boris P."
    graph.indexer.catch_up()
    details = graph.concepts.details(ANN, "the boss")
    assert (details.concept.id, details.concept.kind, details.concept.owners) == (boris, "person", 3)
    assert details.concept.aliases[:2] == ("The Boss", "Bob")
    assert (details.concept.description, details.confidence) == ("A friend", 0.5)
    assert graph.concepts.details(ANN, "bob").concept == details.concept
    graph.claims.update(ANN, boris, ConceptPatch(name="", description="", aliases=()))
    graph.indexer.catch_up()
    after = graph.concepts.details(ANN, "boris").concept
    assert (after.name, after.kind, after.owners, after.aliases) == ("Model's Boris", "person", 2, ("Boris",))
    assert graph.concepts.details(ANN, "bob").concept.owners == 1


def test_claims_of_callers_are_screened(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, "I met Boris")
    boris = graph.concepts.details(ANN, "boris").concept.id
    secret = "AKIAIOSFODNN7EXAMPLE"
    changed = graph.claims.update(ANN, boris, ConceptPatch(description=f"His key is {secret}", aliases=(secret,)))
    assert secret not in repr(changed)


def test_an_empty_patch_and_an_unknown_concept_are_refused(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    tell(engine, graph, "I met Boris")
    boris = graph.concepts.details(ANN, "boris").concept.id
    with pytest.raises(NothingToDo):
        graph.claims.update(ANN, boris, ConceptPatch())
    with pytest.raises(ConceptNotFound):
        graph.claims.update(ANN, boris + 1000, ConceptPatch(name="Nobody"))
    with pytest.raises(AgentNotFound):
        graph.claims.update(Scope("nobody"), boris, ConceptPatch(name="Nobody"))
