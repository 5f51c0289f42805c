"""Texts with a topic that the policy of an agent hides: no concept has a description or a role from one."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from souvenir.api.agent_graph import json_graph
from souvenir.conversations.agents import Agents
from souvenir.conversations.messages import Conversations
from souvenir.core.timestamps import utc_now
from souvenir.core.types import MemoryDraft, MemoryPatch
from souvenir.knowledge.concepts import ConceptDetails
from souvenir.knowledge.graph_export import Label, graph_pieces
from souvenir.knowledge.insights import InsightKind
from souvenir.store.graph.concepts import Concept
from tests.knowledge.agent import ANN, Agent
from tests.knowledge.model_claims_setup import MOVED, WORKS, always, claim, lives, result

HEALTH = {"sensitive_topics": ["health"]}
NEUTRAL, SECRET = "Kuba is my brother.", "Kuba is my therapist for depression."
START = datetime(2024, 1, 1, tzinfo=UTC)
TOGETHER = ("Kuba and Lisbon", "Lisbon with Kuba", "I met Emil", "I met Fritz", "I met Greta")
"""So that Kuba and Lisbon are related."""


def hide(ann: Agent, *topics: str) -> None:
    Agents(ann.engine).set_policy(ANN, {"hidden_topics": list(topics or ("health",))})


def reads(ann: Agent, as_of: datetime | None = None) -> dict[str, Concept]:
    """The concept Kuba by each read that shows it."""
    concepts = ann.graph.concepts
    found = {one.name: one for one in concepts.page(ANN, as_of)[0]}
    lisbon, reached = concepts.related(ANN, "Lisbon", as_of)
    assert lisbon.name == "Lisbon"
    return {
        "page": found["Kuba"],
        "details": concepts.details(ANN, "Kuba", as_of).concept,
        "related": next(one.concept for one in reached if one.concept.name == "Kuba"),
        "start of related": concepts.related(ANN, "Kuba", as_of)[0],
    }


def said_of(found: dict[str, Concept]) -> set[tuple[str | None, str | None]]:
    return {(one.role, one.description) for one in found.values()}


def test_the_next_best_description_and_role_are_shown_instead_of_hidden_ones(ann: Agent) -> None:
    ann.say(NEUTRAL, at=START)
    ann.say(SECRET, metadata=HEALTH, at=START + timedelta(days=1))
    ann.tell(*TOGETHER, at=START + timedelta(days=2))
    assert said_of(reads(ann)) == {("your therapist for depression", SECRET)}
    hide(ann, "legal")
    assert said_of(reads(ann)) == {("your therapist for depression", SECRET)}
    hide(ann)
    assert said_of(reads(ann)) == {("your brother", NEUTRAL)}
    assert ann.leading()["kuba"].role == "your brother"


def test_a_concept_that_only_hidden_texts_describe_has_its_name_alone(ann: Agent) -> None:
    ann.say(SECRET, metadata=HEALTH)
    ann.tell(*TOGETHER)
    assert "kuba" in ann.leading()
    hide(ann)
    assert said_of(reads(ann)) == {(None, None)}
    assert ann.details("Kuba").described_by is None
    assert (ann.leading()["kuba"].role, ann.leading()["kuba"].description) == (None, None)


def test_a_spelling_is_not_described_by_a_hidden_text_either(ann: Agent) -> None:
    ann.say("Melanie is my therapist for depression.", metadata=HEALTH)
    ann.tell("I met Mel")
    assert (ann.concept("Mel").name, ann.concept("Mel").role) == ("Melanie", "your therapist for depression")
    hide(ann)
    assert (ann.concept("Mel").name, ann.concept("Mel").role) == ("Melanie", None)


def test_a_hidden_memory_describes_nothing_and_no_text_is_listed_for_the_concept(ann: Agent) -> None:
    ann.engine.add(ANN, MemoryDraft(SECRET, "notes", metadata=HEALTH))
    ann.engine.add(ANN, MemoryDraft("Kuba likes tea", "notes"))
    # A message and a memory may have the same id.
    uids = ann.tell("Kuba came", *["I saw Kuba"] * 3)
    ann.say("Kuba knows about my depression", metadata=HEALTH)
    ann.index()

    def listed(found: ConceptDetails) -> tuple[list[str], list[str]]:
        return [one.uid for one in found.messages], [one.text for one in found.memories]

    before = ann.graph.concepts.details(ANN, "Kuba", latest=20)
    assert [len(one) for one in listed(before)] == [5, 2]
    hide(ann)
    assert listed(ann.graph.concepts.details(ANN, "Kuba", latest=20)) == (uids[::-1], ["Kuba likes tea"])
    assert len(ann.graph.concepts.details(ANN, "Kuba", latest=5).messages) == 4, "hidden texts take no place"
    assert (ann.concept("Kuba").role, ann.concept("Kuba").description) == (None, None)


def test_writes_answer_with_no_hidden_description(ann: Agent) -> None:
    ann.say(SECRET, metadata=HEALTH)
    ann.tell("Kuba and Jakub", "Jakub came")
    hide(ann)
    kuba = ann.concept("Kuba")
    changed = ann.update(kuba, kind="guru", aliases=("Jakub",))
    assert (changed.kind, changed.role, changed.description) == ("guru", None, None)
    assert ann.graph.claims.separate(ANN, kuba.id, "Jakub").role is None
    assert ann.update(kuba, description="A friend.").description == "A friend."
    deleted = ann.graph.concepts.hide(ANN, kuba.id)
    assert (deleted.role, deleted.description) == (None, "A friend.")


def test_an_earlier_time_shows_no_text_that_is_hidden_now(ann: Agent) -> None:
    ann.tell(NEUTRAL, *TOGETHER)
    ann.tell(SECRET, metadata=HEALTH)
    at = utc_now()
    assert said_of(reads(ann, at)) == {("your therapist for depression", SECRET)}
    hide(ann)
    assert said_of(reads(ann, at)) == {("your brother", NEUTRAL)}
    quoted = {one.content for one in ann.graph.concepts.details(ANN, "Kuba", at).messages}
    assert quoted == {NEUTRAL, *TOGETHER[:2]}


@pytest.mark.parametrize("kind", ["message", "memory"])
@pytest.mark.parametrize("text", [None, "The baker sold a loaf"])
def test_an_earlier_time_shows_no_text_that_was_hidden_then(ann: Agent, kind: str, text: str | None) -> None:
    ann.tell(NEUTRAL, *TOGETHER)
    unflagged: dict[str, Any] = {"sensitive_topics": []}
    if kind == "message":
        [uid] = ann.tell(SECRET, metadata=HEALTH)
        at = utc_now()
        Conversations(ann.engine).edit(ANN, uid, content=text, metadata=unflagged)
    else:
        made = ann.engine.add(ANN, MemoryDraft(SECRET, "notes", metadata=HEALTH)).id
        assert made is not None
        ann.index()
        at = utc_now()
        ann.engine.update(ANN, made, MemoryPatch(text=text, metadata=unflagged))
    ann.index()
    hide(ann)
    assert said_of(reads(ann, at)) == {("your brother", NEUTRAL)}
    after = ("your therapist for depression", SECRET) if text is None else ("your brother", NEUTRAL)
    assert said_of(reads(ann, utc_now())) == {after}


def test_claims_of_a_model_from_a_hidden_message_are_not_shown(ann: Agent) -> None:
    ann.tell(MOVED)
    ann.tell(WORKS, metadata=HEALTH)
    model_claims = ann.model_claims(
        always(
            lives(),
            claim("relation", "Alice", "works for", WORKS, "Heron"),
            claim("description", "Alice", "An engineer.", WORKS),
            claim("kind", "Heron", "company", WORKS),
        )
    )
    job = result(model_claims)["job_id"]
    before = utc_now()

    def shown(as_of: datetime | None = None) -> tuple[Any, ...]:
        alice, reached = ann.graph.concepts.related(ANN, "Alice", as_of)
        details = ann.graph.concepts.details(ANN, "Alice", as_of)
        kind = ann.graph.concepts.details(ANN, "Heron", as_of).concept.kind
        types = {one.relationship_type for one in reached} - {"co_occurs"}
        return alice.description, details.described_by, details.confidence, kind, types

    def listed() -> tuple[set[str], set[str]]:
        relations = ann.graph.claims.relations(ANN, ann.concept("Alice").id)
        claimed = model_claims.get(ANN, job)[1]
        return {one.claim.text for one in relations}, {one.text for one in claimed}

    described = ("An engineer.", "model", 0.9, "company", {"lives_in", "works_for"})
    assert shown() == shown(before) == described
    assert listed() == ({"lives_in", "works_for"}, {"lives_in", "works_for", "An engineer.", "company"})
    hide(ann)
    assert shown() == shown(before)
    description, described_by, _, kind, types = shown()
    assert (description, described_by, types) == (None, None, {"lives_in"})
    assert kind != "company"
    assert listed() == ({"lives_in"}, {"lives_in"})
    assert model_claims.undo(ANN, job).claims == 4


SAILING = ("We sailed with Malvina to Madeira", "Malvina and Madeira are lovely")


def exported(ann: Agent) -> Any:
    return json.loads(b"".join(graph_pieces(ann.engine, ANN, json_graph)))


def exported_topic(ann: Agent) -> Any:
    [found] = [one["properties"] for one in exported(ann)["nodes"] if one["label"] == Label.TOPIC]
    return found


def test_concepts_that_only_hidden_texts_mention_are_no_terms_of_a_topic(ann: Agent) -> None:
    ann.say(*SAILING)
    ann.tell("Malvina took Zorbexil on Madeira", metadata=HEALTH)
    [topic] = ann.rows("SELECT id FROM topics")[0]

    def terms() -> set[str]:
        details = ann.graph.topics.details(ANN, topic)
        assert [one.name for one in details.named.terms] == [
            one.name for one in ann.graph.topics.describe(ANN, topic, {"name": "Sailing"}).terms
        ]
        assert ann.topic().terms == details.named.terms
        return {one.name for one in details.named.terms}

    def quoted() -> set[str]:
        return {message.content for message, _ in ann.graph.topics.details(ANN, topic).messages}

    assert terms() == {"Malvina", "Madeira", "Zorbexil"}
    assert quoted() == {*SAILING, "Malvina took Zorbexil on Madeira"}
    assert "Zorbexil" in exported_topic(ann)["summary"]
    hide(ann)
    assert "Malvina" in exported_topic(ann)["summary"]
    assert "Zorbexil" not in exported_topic(ann)["summary"]
    assert terms() == {"Malvina", "Madeira"}
    assert quoted() == {*SAILING}
    ann.tell("Zorbexil is on the boat")
    assert "Zorbexil" in terms()


def test_an_export_has_no_hidden_description(ann: Agent) -> None:
    ann.say(NEUTRAL, at=START)
    ann.say(SECRET, metadata=HEALTH, at=START + timedelta(days=1))
    ann.say(MOVED)
    ann.tell(WORKS, metadata=HEALTH)
    result(ann.model_claims(always(lives(), claim("relation", "Alice", "works for", WORKS, "Heron"))))

    def shown() -> tuple[str | None, set[str]]:
        graph = exported(ann)
        described = {
            one["properties"]["key"]: one["properties"].get("description")
            for one in graph["nodes"]
            if one["label"] == Label.CONCEPT
        }
        types = {one["properties"].get("relationship_type") for one in graph["relations"]}
        return described["kuba"], types & {"lives_in", "works_for"}

    assert shown() == (SECRET, {"lives_in", "works_for"})
    hide(ann)
    assert shown() == (NEUTRAL, {"lives_in"})


def test_an_insight_has_the_role_of_another_message(ann: Agent) -> None:
    ann.say(NEUTRAL, at=START - timedelta(hours=2))
    ann.say(SECRET, metadata=HEALTH, at=START - timedelta(hours=1))
    week = timedelta(weeks=1)
    for number in range(3):
        ann.say("I climbed with Kuba again.", session=f"climb{number}", at=START + number * week)
    for number in range(3, 9):
        ann.say("The server is slow.", session=f"work{number}", at=START + number * week)
    ann.index()
    hide(ann)
    found = ann.graph.insights.of_agent(ANN, START + 9 * week)
    [one] = [one for one in found if one.kind is InsightKind.QUIET]
    assert one.text.startswith("Kuba (your brother) came up")
    assert {(concept.role, concept.description) for concept in one.concepts} == {("your brother", NEUTRAL)}
