"""Concepts of an agent in answers: names, counts, mentions, descriptions and relations."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from souvenir.conversations.messages import Conversations
from souvenir.core.errors import AgentNotFound, ConceptNotFound, Conflict, NotFound, NothingToDo
from souvenir.core.types import MemoryDraft, MessageRole, Scope
from souvenir.knowledge import concept_ranking, related
from souvenir.knowledge.claim_types import ConceptPatch, ConceptStatement
from souvenir.store.graph import mentions
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.transaction import Transaction
from tests.knowledge.agent import ANN, Agent

OTHERS = tuple(f"I met {name}" for name in ("Emil", "Fritz", "Greta", "Hanna", "Ivo", "Jonas"))
"""So that nothing else is in everything."""


def tell(ann: Agent, *texts: str, agent: Scope = ANN) -> None:
    """Say these to the agent, one month after the other, and let them be read."""
    drafts = [
        MessageDraft(MessageRole.USER, text, created_at=datetime(2024, 1 + number % 5, 1, tzinfo=UTC))
        for number, text in enumerate(texts)
    ]
    Conversations(ann.engine).add(agent, drafts)
    ann.index()


def state(ann: Agent, key: str, kind: str, text: str, *, other: str | None = None, by: str = "caller") -> None:
    """Claim something of the concept of a key."""

    def work(tx: Transaction) -> None:
        tx.connection.execute(
            "INSERT INTO claims (namespace_id, kind, concept_id, other_id, text, confidence, made_by, created_at) "
            "SELECT namespace_id, ?, id, (SELECT id FROM concepts WHERE key = ?), ?, 0.9, ?, 0 FROM concepts "
            "WHERE key = ?",
            (kind, other, text, by, key),
        )

    ann.engine.write(ANN, work)


def stand_for(ann: Agent, spelling: str, root: str) -> None:
    """Let one key be another spelling of the other."""
    state(ann, spelling, "alias", spelling.title(), other=root)
    find = "SELECT id FROM concepts WHERE key = ?"
    ann.engine.write(
        ANN, lambda tx: mentions.queue_matching(tx.connection, [tx.connection.execute(find, (spelling,)).get])
    )
    ann.index()


def test_a_concept_is_shown_by_its_most_used_form_with_its_counts_and_times(ann: Agent) -> None:
    tell(ann, "I met Zoë", "Zoë and Boris came", "We saw Zoe")
    concept = ann.concept("ZOE")
    assert (concept.key, concept.name, concept.kind, concept.owners) == ("zoe", "Zoë", "person", 3)
    assert concept.aliases == ("Zoe",)
    assert (concept.first_at, concept.last_at) == (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC))


def test_another_spelling_is_shown_as_its_root_and_counted_with_it(ann: Agent) -> None:
    tell(ann, "I met Boris", "We saw Zeppo in Lisbon", "I met Zeppo", *OTHERS)
    before = ann.graph.concepts.page(ANN)[1]
    stand_for(ann, "zeppo", "boris")
    found, total = ann.graph.concepts.page(ANN)
    boris = ann.concept("zeppo")
    assert total == before - 1 == len(found)
    assert (boris.name, boris.owners, boris.aliases) == ("Boris", 3, ("Zeppo",))
    assert found[0] == boris


def test_a_term_of_another_spelling_is_shown_as_its_root(ann: Agent) -> None:
    tell(ann, "We saw Zeppo in Lisbon", "I met Zeppo again")
    ann.engine.add(ANN, MemoryDraft("I met Boris", "talk"))
    ann.index()
    stand_for(ann, "zeppo", "boris")
    topic = ann.graph.topics.details(ANN, 1).named
    assert "Boris" in {term.name for term in topic.terms}
    assert "Zeppo" not in {topic.name, *(term.name for term in topic.terms)}


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
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_short_name_joins_the_only_long_one(
    ann: Agent, texts: list[str], short: str, long: str, backwards: bool, at_once: bool
) -> None:
    told = [*reversed(texts)] if backwards else texts
    for batch in [told] if at_once else [[text] for text in told]:
        tell(ann, *batch)
    assert ann.concept(short).key == long
    assert list(ann.engine.check()) == []


@pytest.mark.parametrize(
    ("texts", "short"),
    [
        (["Samuel called", "Samantha called", "I had lunch with Sam"], "sam"),
        (["Agnes is my landlady", "I met Agne from Vilnius"], "agne"),
        (["I met Ann", "I met Anna"], "ann"),
        (["I met Will", "I met Willow"], "will"),
        (["We hiked in Jordan", "We swam at Jordan Lake"], "jordan"),
        (["I met Anita Patel", "I met Ravi Patel", "Dr Patel was late"], "dr patel"),
        (["Anita Patel came.", "Raj Patel came.", "Dr Patel phoned."], "dr patel"),
    ],
)
def test_names_of_several_people_or_places_stay_apart(ann: Agent, texts: list[str], short: str) -> None:
    tell(ann, *texts)
    assert ann.concept(short).key == short


def test_a_short_name_leaves_when_another_long_one_comes(ann: Agent) -> None:
    tell(ann, "Samuel called", "I had lunch with Sam")
    assert ann.concept("sam").aliases == ("Sam",)
    tell(ann, "Samantha called")
    assert ann.concept("sam").key == "sam"
    assert ann.concept("samuel").aliases == ()


def test_a_name_that_was_separated_stays_apart_until_it_is_stated_again(ann: Agent) -> None:
    tell(ann, "Melanie called", "I had lunch with Mel")
    melanie = ann.concept("mel")
    ann.graph.claims.separate(ANN, melanie.id, "Mel")
    ann.index()
    mel = ann.concept("mel")
    assert (mel.key, mel.aliases, mel.owners) == ("mel", (), 1)
    ann.graph.claims.update(ANN, mel.id, ConceptPatch(aliases=()))
    tell(ann, "Melanie Smith called")
    assert ann.concept("mel").key == "mel"
    ann.graph.claims.update(ANN, melanie.id, ConceptPatch(aliases=("Mel",)))
    ann.index()
    assert ann.concept("mel").key == "melanie smith"


def test_a_separated_alias_is_no_longer_stated(ann: Agent) -> None:
    tell(ann, "My sofa is red.", "My couch is green.")
    sofa = ann.concept("sofa")
    ann.graph.claims.update(ANN, sofa.id, ConceptPatch(aliases=("couch",)))
    ann.index()
    assert ann.concept("couch").key == "sofa"
    ann.graph.claims.separate(ANN, sofa.id, "couch")
    ann.index()
    assert ann.concept("sofa").aliases == ()
    assert ann.concept("couch").key == "couch"


def test_a_name_of_another_concept_cannot_be_stated(ann: Agent) -> None:
    tell(ann, "Alice met Bernard in Lisbon.")
    with pytest.raises(Conflict, match="Another concept has the name"):
        ann.graph.claims.state(ANN, [ConceptStatement(key="Lisbon", name="Alice")], [])
    ann.graph.claims.state(ANN, [ConceptStatement(key="Lisbon", name="Lisboa")], [])
    ann.graph.claims.state(ANN, [ConceptStatement(key="Lisbon", name="Olisipo")], [])
    assert ann.concept("Olisipo").key == "lisbon"
    with pytest.raises(ConceptNotFound):
        ann.details("Lisboa")


def test_only_an_alias_that_a_text_mentions_can_be_separated(ann: Agent) -> None:
    tell(ann, "Melanie called")
    melanie = ann.concept("melanie")
    with pytest.raises(Conflict, match="first name in the texts"):
        ann.graph.claims.separate(ANN, melanie.id, "Melanie")
    with pytest.raises(NotFound, match="read its aliases"):
        ann.graph.claims.separate(ANN, melanie.id, "Boris")


def test_a_concept_has_its_most_supported_kind_unless_a_text_defines_it(ann: Agent) -> None:
    tell(ann, "I flew to Florence", "I live in Florence", "Florence said hello")
    florence = ann.concept("florence")
    assert florence.kind == "place"
    assert 0.4 < florence.confidence < 0.6
    tell(ann, "Florence is my sister", "kernel is our cat, obviously")
    assert [ann.concept(one).kind for one in ("florence", "kernel")] == ["person", "animal"]
    ann.graph.claims.update(ANN, florence.id, ConceptPatch(kind="place"))
    assert ann.concept("florence").confidence == 1.0


def test_claims_of_callers_precede_those_of_models_and_both_precede_texts(ann: Agent) -> None:
    tell(ann, "Miso sleeps all day", "Miso is a cat")
    assert ann.concept("miso").description == "Miso is a cat"
    assert ann.details("miso").described_by == "texts"
    state(ann, "miso", "description", "The family's cat", by="model")
    assert ann.details("miso").described_by == "model"
    state(ann, "miso", "name", "Miso the Cat")
    state(ann, "miso", "name", "Some cat", by="model")
    state(ann, "miso", "description", "A tabby")
    details = ann.details("miso the cat")
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
    ann: Agent, texts: list[str], best: str | None
) -> None:
    tell(ann, *texts)
    details = ann.details("Ann")
    assert (details.concept.description, details.described_by) == (best, None if best is None else "texts")
    assert {one.name: one.description for one in ann.graph.concepts.page(ANN)[0]}["Ann"] == best


def test_a_concept_is_shown_with_its_latest_mentions(ann: Agent) -> None:
    tell(ann, "I met Boris", "It rains", "Boris called")
    kept = ann.engine.add(ANN, MemoryDraft("We visited Boris in Lisbon", "talk")).id
    ann.index()
    details = ann.details("boris")
    assert [one.content for one in details.messages] == ["Boris called", "I met Boris"]
    assert [one.id for one in details.memories] == [kept]
    assert 0 <= details.rarity < ann.details("lisbon").rarity == 1


def test_the_most_significant_concepts_come_first_and_pages_are_contiguous(ann: Agent) -> None:
    people = [f"Person{chr(97 + number)}" for number in range(20)]
    tell(
        ann,
        *["I met Ann and Boris"] * 8,
        *["I met Ann and Clara"] * 5,
        *(f"I met Ann, {one}" for one in people),
    )
    everything, total = ann.graph.concepts.page(ANN)
    # All 33 mention Ann: 33 * log(49 / 33) is less than 8 * log(49 / 8).
    assert [one.name for one in everything][:2] == ["Boris", "Ann"]
    assert {one.owners for one in everything[3:]} == {1}
    pages = [one for offset in range(total) for one in ann.graph.concepts.page(ANN, offset=offset, limit=1)[0]]
    assert pages == list(everything)


def test_common_nouns_of_which_nothing_is_said_introduce_no_agent(ann: Agent) -> None:
    for text in (
        *["I met Clara at the choir."] * 2,
        "My essay is late.",
        "My essay on the birthday paradox is done.",
        "The birthday paradox again!",
        *["The pharmacist said no."] * 3,
        "I saw Zorblax again.",
    ):
        tell(ann, text)
    listed = {one.key for one in ann.graph.concepts.page(ANN)[0]}
    assert {"clara", "choir", "essay", "birthday paradox", "pharmacist", "zorblax"} <= listed
    leading = [one.key for one in ann.graph.concepts.leading(ANN, limit=20)]
    assert leading == ["clara"]


def test_what_only_the_assistant_mentions_introduces_no_agent(ann: Agent) -> None:
    tell(ann, "I moved to Oslo with Clara.", "Clara likes it.")
    ann.tell("Quebec is a city in Canada. Is Clara in Oslo?", role=MessageRole.ASSISTANT)
    assert "quebec" in {one.key for one in ann.graph.concepts.page(ANN)[0]}
    assert {one.key for one in ann.graph.concepts.leading(ANN, limit=20)} == {"oslo", "clara"}


def test_the_shorter_of_two_names_introduces_no_agent_unless_only_it_is_described(ann: Agent) -> None:
    tell(ann, *["Hebden Bridge is near Leeds.", "We drove from Hebden Bridge to Hebden."] * 2)
    tell(ann, "Leeds is my home town.", "I run the Leeds Half Marathon.")
    leading = {one.key for one in ann.graph.concepts.leading(ANN, limit=20)}
    assert "leeds" in leading
    assert leading.isdisjoint({"hebden", "leeds half marathon"})


def test_a_name_of_which_nothing_is_said_introduces_an_agent_only_if_people_mention_it_again(ann: Agent) -> None:
    tell(ann, *["I met Clara and Boris."] * 2, "I met Karl.", *["Redis is down."] * 3, *["Lisbon is far."] * 2)
    ann.tell("Who is Karl? What is Lisbon?", role=MessageRole.ASSISTANT)
    assert {one.key for one in ann.graph.concepts.leading(ANN, limit=20)} == {"clara", "boris", "redis"}


def test_the_user_and_a_described_common_noun_introduce_no_agent(ann: Agent) -> None:
    tell(ann, "I'm Alice, hello.", "Bishop is our cat.", "landlord is a guy called Wilf.")
    listed = {one.key: one.role for one in ann.graph.concepts.page(ANN)[0]}
    assert listed["alice"] == "you"
    assert "landlord" in listed
    assert {one.key for one in ann.graph.concepts.leading(ANN, limit=20)} == {"bishop", "wilf"}


def test_an_agent_is_introduced_by_the_role_instead_of_the_sentence_unless_one_is_stated(ann: Agent) -> None:
    tell(ann, "My sister Ines is a dentist.", "My boss Priya is a painter.", "I work at Brightlane.")
    state(ann, "priya", "description", "She pays.")
    leading = {one.key: (one.role, one.description) for one in ann.graph.concepts.leading(ANN, limit=20)}
    of_work = ("where you work", "I work at Brightlane.")
    assert leading == {"ines": ("your sister", None), "priya": ("your boss", "She pays."), "brightlane": of_work}
    assert ann.details("ines").concept.description == "My sister Ines is a dentist."


def test_concepts_that_co_occur_are_related(ann: Agent) -> None:
    tell(ann, *["I saw Boris with Clara"] * 3, *["I met Clara in Lisbon"] * 2, *["I met Dora"] * 5)
    concept, found = ann.graph.concepts.related(ANN, "boris", depth=1)
    names = {one.concept.name: one for one in found}
    assert concept.name == "Boris"
    assert "Clara" in names
    assert not {"Lisbon", "Dora", "Boris"} & names.keys()
    assert (names["Clara"].together, names["Clara"].relationship_type, names["Clara"].path) == (3, "co_occurs", ())
    deeper = {one.concept.name: one for one in ann.graph.concepts.related(ANN, "boris", depth=2)[1]}
    assert (deeper["Lisbon"].depth, deeper["Lisbon"].path) == (2, ("Clara",))
    assert deeper["Lisbon"].strength < deeper["Clara"].strength


def test_strongest_paths_are_those_of_an_exhaustive_search(ann: Agent) -> None:
    people = ["Ann", "Boris", "Clara", "Dora", "Emil", "Fritz", "Greta"]
    tell(ann, *(f"I saw {a} and {people[(n * 3 + 1) % 7]}" for n in range(9) for a in people[n % 4 :]))
    with ann.engine.namespace(ANN) as (connection, namespace):
        assert namespace is not None
        ids = {one.id: one.name for one in concept_ranking.top(connection, namespace.id, limit=50)}
        steps = {id_: related.neighbours(connection, namespace.id, id_, limit=50, now=datetime.now(UTC)) for id_ in ids}
    for depth in (1, 2, 3):
        best: dict[str, float] = {}
        reached = {next(id_ for id_, name in ids.items() if name == "Ann"): 1.0}
        for _ in range(depth):
            following: dict[int, float] = {}
            for id_, strength in reached.items():
                for step in steps[id_]:
                    following[step.to_id] = max(following.get(step.to_id, 0), strength * step.strength)
            reached = following
            for id_, strength in reached.items():
                best[ids[id_]] = max(best.get(ids[id_], 0), strength)
        best.pop("Ann", None)
        found = {one.concept.name: one.strength for one in ann.graph.concepts.related(ANN, "Ann", depth=depth)[1]}
        assert found == pytest.approx(best)


def test_a_stated_relation_gives_the_type_of_a_related_concept(ann: Agent) -> None:
    tell(ann, "Boris met Clara", "I saw Dora")
    state(ann, "boris", "relation", "works_for", other="dora", by="model")
    state(ann, "boris", "relation", "married_to", other="clara")
    found = {one.concept.name: one for one in ann.graph.concepts.related(ANN, "boris", depth=1)[1]}
    assert (found["Clara"].relationship_type, found["Clara"].together) == ("married_to", 1)
    assert (found["Dora"].relationship_type, found["Dora"].outgoing, found["Dora"].strength) == ("works_for", True, 0.9)
    back = {one.concept.name: one for one in ann.graph.concepts.related(ANN, "dora", depth=1)[1]}
    assert (back["Boris"].relationship_type, back["Boris"].outgoing) == ("works_for", False)


def test_a_hidden_concept_is_removed_under_all_spellings_permanently(ann: Agent) -> None:
    tell(ann, "I met Boris", "Boris Petrov called Clara")
    stand_for(ann, "boris petrov", "boris")
    ann.graph.concepts.hide(ANN, ann.concept("boris").id)
    tell(ann, "Boris and Boris Petrov are one")
    assert [one.name for one in ann.graph.concepts.page(ANN)[0]] == ["Clara"]
    with pytest.raises(ConceptNotFound):
        ann.details("boris")


def test_a_hidden_concept_is_hidden_under_all_of_its_stated_names(ann: Agent) -> None:
    tell(ann, "I met Boris and Emil", "I met Clara")
    boris = ann.concept("boris").id
    ann.graph.claims.update(ANN, boris, ConceptPatch(aliases=("Emil", "Klabautermann")))
    ann.graph.concepts.hide(ANN, boris)
    tell(ann, "I met Boris, Emil and Klabautermann")
    assert [one.name for one in ann.graph.concepts.page(ANN)[0]] == ["Clara"]


def test_a_name_of_another_concept_is_refused(ann: Agent) -> None:
    tell(ann, "I met Boris and Emil")
    boris = ann.concept("boris")
    with pytest.raises(Conflict):
        ann.graph.claims.update(ANN, boris.id, ConceptPatch(name="Emil"))
    assert ann.concept("boris") == boris
    assert ann.graph.claims.update(ANN, boris.id, ConceptPatch(name="BORIS")).name == "BORIS"


def test_a_sentence_about_a_longer_name_does_not_define_a_shorter_one(ann: Agent) -> None:
    tell(ann, "Annabel is a painter. I had lunch with Ann.")
    assert ann.concept("ann").description is None


def test_a_page_after_the_last_is_empty(ann: Agent) -> None:
    tell(ann, "I met Boris")
    assert ann.graph.concepts.page(ANN, offset=2**63 - 1) == ([], 1)


def test_agents_are_isolated(ann: Agent) -> None:
    other = Scope("bob", "tester")
    tell(ann, "I met Boris and Clara")
    tell(ann, "I met Emil", agent=other)
    boris = ann.concept("boris")
    for ask in (ann.graph.concepts.details, ann.graph.concepts.related):
        for called in (boris.id, "boris"):
            with pytest.raises(ConceptNotFound):
                ask(other, called)
    with pytest.raises(ConceptNotFound):
        ann.graph.concepts.hide(other, boris.id)
    assert ann.concept(boris.id) == boris
    assert [one.name for one in ann.graph.concepts.page(other)[0]] == ["Emil"]
    with pytest.raises(AgentNotFound):
        ann.graph.concepts.page(Scope("nobody"))


def test_a_patch_replaces_earlier_claims_of_callers(ann: Agent) -> None:
    tell(ann, "I met Boris", "I met Boris", "We saw Bob in Lisbon")
    state(ann, "boris", "name", "Model's Boris", by="model")
    boris = ann.concept("boris").id
    said = ConceptPatch("Boris P.", "A friend", "person", ("Bob", "The Boss"), 0.5)
    assert ann.graph.claims.update(ANN, boris, said).name == "Boris P."
    ann.index()
    details = ann.details("the boss")
    assert (details.concept.id, details.concept.kind, details.concept.owners) == (boris, "person", 3)
    assert details.concept.aliases[:2] == ("The Boss", "Bob")
    assert (details.concept.description, details.confidence) == ("A friend", 0.5)
    assert ann.concept("bob") == details.concept
    ann.graph.claims.update(ANN, boris, ConceptPatch(name="", description="", aliases=()))
    ann.index()
    after = ann.concept("boris")
    assert (after.name, after.kind, after.owners, after.aliases) == ("Model's Boris", "person", 2, ("Boris",))
    assert ann.concept("bob").owners == 1


def test_claims_of_callers_are_screened(ann: Agent) -> None:
    tell(ann, "I met Boris")
    boris = ann.concept("boris").id
    secret = "AKIAIOSFODNN7EXAMPLE"
    changed = ann.graph.claims.update(ANN, boris, ConceptPatch(description=f"His key is {secret}", aliases=(secret,)))
    assert secret not in repr(changed)


def test_an_empty_patch_and_an_unknown_concept_are_refused(ann: Agent) -> None:
    tell(ann, "I met Boris")
    boris = ann.concept("boris").id
    with pytest.raises(NothingToDo):
        ann.graph.claims.update(ANN, boris, ConceptPatch())
    with pytest.raises(ConceptNotFound):
        ann.graph.claims.update(ANN, boris + 1000, ConceptPatch(name="Nobody"))
    with pytest.raises(AgentNotFound):
        ann.graph.claims.update(Scope("nobody"), boris, ConceptPatch(name="Nobody"))
