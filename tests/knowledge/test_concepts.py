"""Concepts of an agent in answers: names, counts, mentions, descriptions and relations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count, product

import pytest

from souvenir.core.errors import AgentNotFound, ConceptNotFound, Conflict
from souvenir.core.types import ConceptKind, MemoryDraft, MessageRole, Scope
from souvenir.knowledge import concept_ranking, related
from souvenir.knowledge.claim_types import ConceptPatch, ConceptStatement
from souvenir.store.graph import mentions
from souvenir.store.privacy import NOTHING_HIDDEN
from tests.cases import for_all
from tests.knowledge.agent import ANN, BEN, Agent

OTHERS = tuple(f"I met {name}" for name in ("Emil", "Fritz", "Greta", "Hanna", "Ivo", "Jonas"))
"""So that nothing else is in everything."""


def state(ann: Agent, key: str, kind: str, text: str, *, other: str | None = None, by: str = "caller") -> None:
    """Claim something of the concept of a key."""
    claim = (
        "INSERT INTO claims (namespace_id, kind, concept_id, other_id, text, confidence, made_by, created_at) "
        "SELECT namespace_id, ?, id, (SELECT id FROM concepts WHERE key = ?), ?, 0.9, ?, 0 FROM concepts WHERE key = ?"
    )
    ann.engine.write_rows(lambda connection: connection.execute(claim, (kind, other, text, by, key)))


def stand_for(ann: Agent, spelling: str, root: str) -> None:
    """Let one key be another spelling of the other."""
    state(ann, spelling, "alias", spelling.title(), other=root)
    find = "SELECT id FROM concepts WHERE key = ?"
    ann.engine.write(
        ANN, lambda tx: mentions.queue_matching(tx.connection, [tx.connection.execute(find, (spelling,)).get])
    )
    ann.index()


def test_a_concept_is_shown_by_its_most_used_form_with_its_counts_and_times(ann: Agent) -> None:
    first = datetime(2024, 1, 1, tzinfo=UTC)
    ann.tell("I met Zoë", "Zoë and Boris came", "We saw Zoe", at=first, apart=timedelta(days=31))
    concept = ann.concept("ZOE")
    assert (concept.key, concept.name, concept.kind, concept.owners) == ("zoe", "Zoë", "person", 3)
    assert (concept.aliases, concept.first_at, concept.last_at) == (("Zoe",), first, datetime(2024, 3, 3, tzinfo=UTC))


def test_another_spelling_is_shown_as_its_root_and_counted_with_it(ann: Agent) -> None:
    ann.tell("I met Boris", "We saw Zeppo in Lisbon", "I met Zeppo", *OTHERS)
    before = ann.graph.concepts.page(ANN)[1]
    stand_for(ann, "zeppo", "boris")
    found, total = ann.graph.concepts.page(ANN)
    boris = ann.concept("zeppo")
    assert total == before - 1 == len(found)
    assert (boris.name, boris.owners, boris.aliases) == ("Boris", 3, ("Zeppo",))
    assert found[0] == boris


def test_a_term_of_another_spelling_is_shown_as_its_root(ann: Agent) -> None:
    ann.tell("We saw Zeppo in Lisbon", "I met Zeppo in Lisbon again")
    ann.engine.add(ANN, MemoryDraft("I met Boris", "talk"))
    ann.index()
    stand_for(ann, "zeppo", "boris")
    topic = ann.topic()
    assert "Boris" in {term.name for term in topic.terms}
    assert "Zeppo" not in {topic.name, *(term.name for term in topic.terms)}


JOINED = [
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
]
APART = [
    (["Samuel called", "Samantha called", "I had lunch with Sam"], "sam"),
    (["Agnes is my landlady", "I met Agne from Vilnius"], "agne"),
    (["I met Ann", "I met Anna"], "ann"),
    (["I met Will", "I met Willow"], "will"),
    (["We hiked in Jordan", "We swam at Jordan Lake"], "jordan"),
    (["I met Anita Patel", "I met Ravi Patel", "Dr Patel was late"], "dr patel"),
    (["Anita Patel came.", "Raj Patel came.", "Dr Patel phoned."], "dr patel"),
]


def test_a_short_name_joins_the_only_long_one_in_any_order_and_stays_apart_from_several(ann: Agent) -> None:
    numbers = count()

    def key_of(texts: list[str], name: str, *, at_once: bool) -> str:
        agent = ann.another(Scope(f"agent-{next(numbers)}"))
        for batch in [texts] if at_once else [[text] for text in texts]:
            agent.tell(*batch)
        return agent.concept(name).key

    cases = [*JOINED, *((texts, name, name) for texts, name in APART)]
    for (texts, short, key), at_once in product(cases, (True, False)):
        for told in (texts, texts[::-1]):
            assert key_of(told, short, at_once=at_once) == key, (told, at_once)


def test_a_short_name_leaves_when_another_long_one_comes(ann: Agent) -> None:
    ann.tell("Samuel called", "I had lunch with Sam")
    assert ann.concept("sam").aliases == ("Sam",)
    ann.tell("Samantha called")
    assert (ann.concept("sam").key, ann.concept("samuel").aliases) == ("sam", ())


def test_a_name_that_was_separated_stays_apart_until_it_is_stated_again(ann: Agent) -> None:
    ann.tell("Melanie called", "I had lunch with Mel")
    melanie = ann.concept("mel")
    ann.graph.claims.separate(ANN, melanie.id, "Mel")
    ann.index()
    mel = ann.concept("mel")
    assert (mel.key, mel.aliases, mel.owners) == ("mel", (), 1)
    ann.update(mel, aliases=())
    ann.tell("Melanie Smith called")
    assert ann.concept("mel").key == "mel"
    ann.update(melanie, aliases=("Mel",))
    assert ann.concept("mel").key == "melanie smith"


def test_a_separated_alias_is_no_longer_stated(ann: Agent) -> None:
    ann.tell("My sofa is red.", "My couch is green.")
    ann.update(ann.concept("sofa"), aliases=("couch",))
    sofa = ann.concept("couch")
    assert sofa.key == "sofa"
    ann.graph.claims.separate(ANN, sofa.id, "couch")
    ann.index()
    assert (ann.concept("sofa").aliases, ann.concept("couch").key) == ((), "couch")


def test_a_name_of_another_concept_is_refused(ann: Agent) -> None:
    ann.tell("Alice met Bernard in Lisbon.")
    lisbon = ann.concept("lisbon")
    with pytest.raises(Conflict, match="Another concept has the name"):
        ann.graph.claims.state(ANN, [ConceptStatement(key="Lisbon", name="Alice")], [])
    with pytest.raises(Conflict):
        ann.update(lisbon, name="Alice")
    assert ann.concept("lisbon") == lisbon
    assert ann.update(lisbon, name="LISBON").name == "LISBON"
    for name in ("Lisboa", "Olisipo"):
        ann.graph.claims.state(ANN, [ConceptStatement(key="Lisbon", name=name)], [])
    assert ann.concept("Olisipo").key == "lisbon"
    with pytest.raises(ConceptNotFound):
        ann.details("Lisboa")


def test_a_concept_has_its_most_supported_kind_unless_a_text_defines_it(ann: Agent) -> None:
    ann.tell("I flew to Florence", "I live in Florence", "Florence said hello")
    florence = ann.concept("florence")
    assert florence.kind == "place"
    assert 0.4 < florence.confidence < 0.6
    ann.tell("Florence is my sister", "kernel is our cat, obviously")
    assert [ann.concept(one).kind for one in ("florence", "kernel")] == ["person", "animal"]
    ann.update(florence, kind="place")
    assert ann.concept("florence").confidence == 1.0


def test_claims_of_callers_precede_those_of_models_and_both_precede_texts(ann: Agent) -> None:
    ann.tell("Miso sleeps all day", "Miso is a cat")
    assert (ann.concept("miso").description, ann.details("miso").described_by) == ("Miso is a cat", "texts")
    state(ann, "miso", "description", "The family's cat", by="model")
    assert ann.details("miso").described_by == "model"
    state(ann, "miso", "name", "Miso the Cat")
    state(ann, "miso", "name", "Some cat", by="model")
    state(ann, "miso", "description", "A tabby")
    details = ann.details("miso the cat")
    assert (details.concept.name, details.concept.aliases) == ("Miso the Cat", ("Miso",))
    assert (details.concept.description, details.described_by) == ("A tabby", "caller")


def test_without_a_description_the_best_definition_is_shown_in_lists_too(ann: Agent) -> None:
    for number, (best, *texts) in enumerate(
        [
            ("My sister Ann is a cellist.", "Did Ann call?", "My sister Ann is a cellist. We ate."),
            (None, "My sister Ann called."),
            ("Ann is my sister.", "Ann is my sister.", "I told my sister Ann to come."),
            ("Ann is a small publisher.", "I work at Ann", "Ann is a small publisher."),
            ("Ann is the head of sales.", "We went to Ann Arbor. Ann is the head of sales.", "Ann left"),
            (None, "Is Ann a doctor?", "I told Ann about it", "No Ann yet."),
            (None, "Annabel is a painter. I had lunch with Ann."),
        ]
    ):
        agent = ann.another(Scope(f"agent-{number}"))
        agent.tell(*(text for text in texts if text))
        details = agent.details("Ann")
        assert (details.concept.description, details.described_by) == (best, best and "texts")
        assert {one.name: one.description for one in agent.listed()}["Ann"] == best


def test_rarity_is_greater_for_what_fewer_texts_mention(ann: Agent) -> None:
    ann.tell("I met Boris", "It rains", "Boris called", "We visited Boris in Lisbon")
    assert 0 <= ann.details("boris").rarity < ann.details("lisbon").rarity == 1


def test_the_most_significant_concepts_come_first_and_pages_are_contiguous(ann: Agent) -> None:
    people = [f"Person{chr(97 + number)}" for number in range(20)]
    ann.tell(
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
    assert ann.graph.concepts.page(ANN, offset=2**63 - 1) == ([], total)


ESSAY = ("My essay is late.", "My essay on the birthday paradox is done.", "The birthday paradox again!")
HEBDEN = ("Hebden Bridge is near Leeds.", "We drove from Hebden Bridge to Hebden.") * 2


@for_all(
    "texts, of_assistant, listed, leading",
    [
        # Common nouns of which nothing is said, and a name of which nothing is said.
        (
            (*["I met Clara at the choir."] * 2, *ESSAY, *["The pharmacist said no."] * 3, "I saw Zorblax again."),
            None,
            {"clara", "choir", "essay", "birthday paradox", "pharmacist", "zorblax"},
            {"clara"},
        ),
        # What only the assistant mentions.
        (
            ("I live in Oslo with Clara.", "Clara likes it."),
            "Quebec is a city in Canada. Is Clara in Oslo?",
            {"quebec"},
            {"oslo", "clara"},
        ),
        # The shorter of two names, unless only it is described.
        (
            (*HEBDEN, "Leeds is my home town.", "I run the Leeds Half Marathon."),
            None,
            {"hebden"},
            {"leeds", "hebden bridge"},
        ),
        # A name of which nothing is said, unless people mention it again.
        (
            (*["I met Clara and Boris."] * 2, "I met Karl.", *["Redis is down."] * 3, *["Lisbon is far."] * 2),
            "Who is Karl? What is Lisbon?",
            {"karl", "lisbon"},
            {"clara", "boris", "redis"},
        ),
        # The user, and a common noun with a description.
        (
            ("I'm Alice, hello.", "Bishop is our cat.", "landlord is a guy called Wilf."),
            None,
            {"alice", "landlord"},
            {"bishop", "wilf"},
        ),
        # The place of one who introduces themself, without its role, and with it.
        (("Guten Abend, ich bin Thea, Hebamme in Freiburg.", "I'm Thea, from Leeds."), None, {"freiburg"}, {"leeds"}),
        # Of which a sentence tells something once.
        (
            ("I married Clara in a tent.", "We moved to Oslo.", "I use Kahoot."),
            None,
            {"clara", "oslo", "kahoot"},
            set(),
        ),
    ],
)
def test_an_agent_is_introduced_by_the_concepts_of_which_something_is_said(
    ann: Agent, texts: tuple[str, ...], of_assistant: str | None, listed: set[str], leading: set[str]
) -> None:
    agent = ann.another(Scope(texts[-1].split()[-1]))
    agent.tell(*texts)
    if of_assistant is not None:
        agent.tell(of_assistant, role=MessageRole.ASSISTANT)
    assert listed <= {one.key for one in agent.listed()}
    assert agent.leading().keys() == leading


def test_an_agent_is_introduced_by_the_role_instead_of_the_sentence_unless_one_is_stated(ann: Agent) -> None:
    ann.tell(
        "My sister Ines is a dentist.", "My boss Priya is a painter.", "I work at Brightlane.", "I'm Alice, hello."
    )
    ann.tell("Shona is a farmer, she talks a lot.", "Haar huisgenoot is een papegaai, Ricardo.")
    ann.tell("My flatmate Inga is nice.", "My flatmate Inga is moving the chairs.")
    state(ann, "priya", "description", "She pays.")
    assert {key: (one.role, one.description) for key, one in ann.leading().items()} == {
        "ines": ("your sister", None),
        "priya": ("your boss", "She pays."),
        "brightlane": ("where you work", None),
        "inga": ("your flatmate", None),
    }
    ann.tell("Ricardo sings.")
    assert ann.leading().keys() - {"ines", "priya", "brightlane", "inga"} == {"ricardo"}, (
        "with an article, once it recurs"
    )
    assert ann.concept("ricardo").kind is ConceptKind.ANIMAL, "although people have this name"
    assert ann.concept("ines").description == "My sister Ines is a dentist."
    assert ann.concept("alice").role == "you"


def test_concepts_that_co_occur_are_related(ann: Agent) -> None:
    ann.tell(*["I saw Boris with Clara"] * 3, *["I met Clara in Lisbon"] * 2, *["I met Dora"] * 5)
    clara = ann.related("boris")["Clara"]
    assert not {"Lisbon", "Dora", "Boris"} & ann.related("boris").keys()
    assert (clara.together, clara.relationship_type, clara.path) == (3, "co_occurs", ())
    deeper = ann.related("boris", depth=2)
    assert (deeper["Lisbon"].depth, deeper["Lisbon"].path) == (2, ("Clara",))
    assert deeper["Lisbon"].strength < deeper["Clara"].strength


def test_strongest_paths_are_those_of_an_exhaustive_search(ann: Agent) -> None:
    people = ["Ann", "Boris", "Clara", "Dora", "Emil", "Fritz", "Greta"]
    ann.tell(*(f"I saw {a} and {people[(n * 3 + 1) % 7]}" for n in range(9) for a in people[n % 4 :]))
    with ann.engine.namespace(ANN) as (connection, namespace):
        assert namespace is not None
        ids = {one.id: one.name for one in concept_ranking.top(connection, namespace.id, NOTHING_HIDDEN, limit=50)}
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
        assert {name: one.strength for name, one in ann.related("Ann", depth).items()} == pytest.approx(best)


def test_a_stated_relation_gives_the_type_of_a_related_concept(ann: Agent) -> None:
    ann.tell("Boris met Clara", "I saw Dora")
    state(ann, "boris", "relation", "works_for", other="dora", by="model")
    state(ann, "boris", "relation", "married_to", other="clara")
    found, back = ann.related("boris"), ann.related("dora")["Boris"]
    assert (found["Clara"].relationship_type, found["Clara"].together) == ("married_to", 1)
    assert (found["Dora"].relationship_type, found["Dora"].outgoing, found["Dora"].strength) == ("works_for", True, 0.9)
    assert (back.relationship_type, back.outgoing) == ("works_for", False)


def test_a_hidden_concept_is_hidden_under_all_spellings_and_stated_names_permanently(ann: Agent) -> None:
    ann.tell("I met Boris and Emil", "Boris Petrov called Clara")
    stand_for(ann, "boris petrov", "boris")
    ann.graph.claims.update(ANN, ann.concept("boris").id, ConceptPatch(aliases=("Emil", "Klabautermann")))
    ann.graph.concepts.hide(ANN, ann.concept("boris").id)
    ann.tell("Boris and Boris Petrov are one", "I met Boris, Emil and Klabautermann")
    assert [one.name for one in ann.listed()] == ["Clara"]
    with pytest.raises(ConceptNotFound):
        ann.details("boris")


def test_agents_are_isolated(ann: Agent) -> None:
    ben = ann.another(BEN)
    ann.tell("I met Boris and Clara")
    ben.tell("I met Emil")
    boris = ann.concept("boris")
    for ask in (ann.graph.concepts.details, ann.graph.concepts.related):
        for called in (boris.id, "boris"):
            with pytest.raises(ConceptNotFound):
                ask(BEN, called)
    with pytest.raises(ConceptNotFound):
        ann.graph.concepts.hide(BEN, boris.id)
    assert ann.concept(boris.id) == boris
    assert [one.name for one in ben.listed()] == ["Emil"]


def test_a_patch_replaces_earlier_claims_of_callers(ann: Agent) -> None:
    ann.tell("I met Boris", "I met Boris", "We saw Bob in Lisbon")
    state(ann, "boris", "name", "Model's Boris", by="model")
    boris = ann.concept("boris")
    said = {"name": "Boris P.", "description": "A friend", "kind": "person", "aliases": ("Bob", "The Boss")}
    assert ann.update(boris, **said, confidence=0.5).name == "Boris P."
    details = ann.details("the boss")
    assert (details.concept.id, details.concept.kind, details.concept.owners) == (boris.id, "person", 3)
    assert details.concept.aliases[:2] == ("The Boss", "Bob")
    assert (details.concept.description, details.confidence) == ("A friend", 0.5)
    assert ann.concept("bob") == details.concept
    ann.update(boris, name="", description="", aliases=())
    after = ann.concept("boris")
    assert (after.name, after.kind, after.owners, after.aliases) == ("Model's Boris", "person", 2, ("Boris",))
    assert ann.concept("bob").owners == 1


def test_claims_of_callers_are_screened_and_an_unknown_concept_is_refused(ann: Agent) -> None:
    ann.tell("I met Boris")
    boris, secret = ann.concept("boris"), "AKIAIOSFODNN7EXAMPLE"
    assert secret not in repr(ann.update(boris, description=f"His key is {secret}", aliases=(secret,)))
    with pytest.raises(ConceptNotFound):
        ann.graph.claims.update(ANN, boris.id + 1000, ConceptPatch(name="Nobody"))
    with pytest.raises(AgentNotFound):
        ann.graph.claims.update(Scope("nobody"), boris.id, ConceptPatch(name="Nobody"))
