"""A topic is named by what its messages say of its subject, as long as they do."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytest

from souvenir.conversations.agents import Agents
from souvenir.core.errors import Conflict
from souvenir.core.types import ConceptKind, MessageRole
from souvenir.knowledge import clustering, topic_assignment, topic_names
from souvenir.knowledge.recognition.extraction import noun_phrases
from souvenir.knowledge.segmentation import UNIT, Floats
from souvenir.knowledge.topic_names import (
    CANDIDATES,
    LEAST_ABROAD,
    Phrase,
    UsedPhrases,
    name_of,
    phrases_of,
    shown_name,
)
from souvenir.store.graph.topics import Excerpt, Form, TopicMessage
from souvenir.store.selection import Chooses
from tests.cases import for_all
from tests.knowledge.agent import ANN, Agent

LESSONS = ("The guitar, and the metronome", "The guitar, and the cello, and Lisbon", "The metronome")


@pytest.fixture
def related(monkeypatch: pytest.MonkeyPatch) -> None:
    """Different words are never close in meaning for the fake embedder."""
    monkeypatch.setattr(topic_names, "NEXT_NEAR", -1.0)
    monkeypatch.setattr(topic_names, "NEXT_CLOSENESS", 0.0)
    monkeypatch.setattr(topic_names, "LEAST_VALUE", 0.0)


def name(ann: Agent) -> str:
    return ann.graph.topics.details(ANN, 1).named.name


def phrases(*said: str | tuple[MessageRole, str], people: Sequence[str] = ()) -> dict[str, float]:
    """Return the phrases of one segment, which ends with a message without any, with their weights, best first."""
    messages = [
        TopicMessage(number, *((MessageRole.USER, one) if isinstance(one, str) else one), None)
        for number, one in enumerate((*said, "Yes"))
    ]
    forms = {0: [Form(number, person, ConceptKind.PERSON) for number, person in enumerate(people)]}
    return {one.text: one.weight for one in phrases_of([messages], forms)}


@for_all(
    "text, nouns",
    [
        ("My guitar lesson was about chords", ["guitar lesson", "chords"]),
        ("Ich habe eine neue Hüfte bekommen, und die Reha beginnt bald", ["Hüfte", "Reha"]),
        ("Gegen Ende der Reha hatte ich eine Frage an Frau Ehlers", ["Reha", "Ehlers"]),
        ("Mañana viene el técnico por el horno grande y el nuevo horario", ["técnico", "horno", "horario"]),
        ("We willen de oude keuken en het dak laten doen", ["keuken", "dak"]),
        ("```\nthe guitar\n```", []),
    ],
)
def test_nouns_are_found_in_four_languages(text: str, nouns: list[str]) -> None:
    assert [" ".join(words) for words, _ in noun_phrases(text)] == nouns


@for_all(
    "text, nouns",
    [
        ("Pido la licencia de taxi y el crédito", ["licencia", "licencia de taxi", "crédito"]),
        ("Hablamos del turno de noche", ["turno"]),
        ("La última, y la primera vez del horno", ["horno"]),
        ("Ya no la llevo, pero la metí en el taller", ["taller"]),
    ],
)
def test_spanish_nouns_have_the_noun_after_de_and_pronouns_are_no_articles(text: str, nouns: list[str]) -> None:
    assert [" ".join(words) for words, _ in noun_phrases(text)] == nouns


def test_a_phrase_weighs_more_if_users_say_it_and_if_they_begin_with_it() -> None:
    answer = MessageRole.ASSISTANT, "Close the valve"
    weights = phrases("The boiler is off", answer, "The gasket is loose", "The boiler!")
    assert list(weights) == ["boiler", "gasket", "valve"]
    opened = phrases("The boiler is off", "The gasket is loose")
    assert opened["boiler"] > opened["gasket"]


def test_a_phrase_weighs_less_where_it_comes_later_in_a_message() -> None:
    weights = phrases("We have a boiler, and before winter comes it needs a gasket")
    assert weights["boiler"] > weights["gasket"] > phrases("Winter", "the gasket")["gasket"] / 2


def test_a_topic_of_one_message_of_a_user_has_no_phrases() -> None:
    answer = TopicMessage(1, MessageRole.ASSISTANT, "Turn the boiler off", None)
    said = [TopicMessage(number, MessageRole.USER, "The boiler is off", None) for number in (0, 2)]
    assert phrases_of([[said[0], answer]], {}) == []
    assert [one.text for one in phrases_of([[said[0]], [answer, said[1]]], {})] == ["boiler"]


def test_a_phrase_ends_before_the_name_of_a_person() -> None:
    assert list(phrases("My neighbour Devraj cooks, and the boiler", people=["Devraj"])) == ["boiler", "neighbour"]


def test_several_words_say_more_than_one_and_vague_words_nothing_alone() -> None:
    weights = phrases("We have a boiler, a gas meter, a noise problem and a problem")
    assert weights["gas meter"] > weights["boiler"]
    assert "noise problem" in weights
    assert "problem" not in weights


def test_people_weigh_half() -> None:
    assert phrases("The landlord")["landlord"] == phrases("The boiler")["boiler"] / 2


def test_vague_nouns_of_other_languages_are_no_phrases() -> None:
    forms = {0: [Form(1, "Ende", ConceptKind.PHRASE)]}
    said = [TopicMessage(number, MessageRole.USER, "Ich habe das Ende der Reha gesehen", None) for number in (0, 1)]
    assert [one.text for one in phrases_of([said], forms)] == ["Reha"]


def test_times_slips_names_and_parts_of_names_are_no_phrases_but_relatives_and_landlords_are() -> None:
    for word in ("Fridays", "shes", "tmrw", "Anna", "weeks", "sixty", "sixteen pages"):
        assert list(phrases(f"I mean the boiler and the {word}")) == ["boiler"]
    weights = phrases("I mean Harbour Bank and the deposit account")
    assert weights.keys() == {"Harbour Bank", "deposit account"}
    weights = phrases("My landlord Brugger met Brugger and my mum", people=["Brugger", "mum"])
    assert weights.keys() == {"landlord", "mum"}


def test_a_phrase_has_places_in_two_messages_those_in_small_letters_first() -> None:
    texts = ["Boiler broken", "the boiler", "my boiler", "a boiler"]
    messages = [TopicMessage(number, MessageRole.USER, text, None) for number, text in enumerate(texts)]
    [phrase] = [one for one in phrases_of([messages], {}) if one.text.casefold() == "boiler"]
    assert (phrase.text, phrase.places) == ("boiler", (Excerpt(1, 4, 6), Excerpt(2, 3, 6)))


def test_the_number_of_compared_phrases_is_bounded() -> None:
    assert len(phrases("; ".join(f"the gadget{'abcdefghijklmnopqrstuvwxyz'[n]}o" for n in range(26)))) == CANDIDATES


def parts(
    *weights: tuple[str, float],
    means: Floats | None = None,
    is_english: bool = True,
    further: int = 0,
    used: Collection[str] = (),
    **cosines: float,
) -> list[str]:
    """Return the parts of a name of phrases with these weights and cosines to the topic.

    :param further: The message in which users say all phrases but the first one, which they say in message 0.
    :param used: Names of other topics.
    """
    found = [
        Phrase(
            text,
            weight,
            text.istitle(),
            is_english,
            (Excerpt(number, 0, 1),),
            frozenset([further if number else 0]),
        )
        for number, (text, weight) in enumerate(weights)
    ]
    vectors = {
        text.replace("_", " "): UNIT * np.array([cosine, np.sqrt(1 - cosine**2)]) for text, cosine in cosines.items()
    }
    mean = UNIT * np.array([1.0, 0.0]) if means is None else means
    return [one.text for one in name_of(found, vectors, (mean, mean), UsedPhrases(used))]


def test_a_name_has_the_phrases_that_are_said_most_and_are_close_to_the_topic() -> None:
    weights = ("knee", 1.0), ("run", 1.5), ("stairs", 1.0)
    assert parts(*weights, knee=0.9, run=0.5, stairs=0.7) == ["knee", "run", "stairs"]
    assert parts(("knee", 1.0), ("run", 1.0), knee=0.69, run=0.69) == [], "a value of 0.69"
    assert parts(("knee", 1.0), ("run", 1.0), knee=0.71, run=0.69) == ["knee", "run"]
    assert parts(("knee", 9.0), knee=0.27) == [], "a closeness of 0.27 times 0.27"
    assert parts(("knee", 9.0), knee=0.29) == ["knee"]
    assert parts(("knee", 1.0), ("run", 0.51), ("stairs", 0.49), means=np.zeros(2)) == ["knee", "run"]


def test_a_phrase_of_the_name_of_another_topic_is_no_part_and_no_other_one_takes_the_place_of_the_best() -> None:
    weights = ("knee", 1.0), ("run", 0.9), ("stairs", 0.8)

    def named(*used: str) -> list[str]:
        return parts(*weights, used=used, knee=0.9, run=0.9, stairs=0.9)

    assert named() == named("leg", "elbow pain") == ["knee", "run", "stairs"]
    assert named("runs", "stairs of stone") == ["knee"]
    assert named("knees") == named("left knee") == []
    assert parts(("left knee", 1.0), used=["knee"], left_knee=0.9) == []
    assert parts(("left knee", 1.0), used=["left elbow"], left_knee=0.9) == ["left knee"]


def test_further_parts_are_said_in_a_message_with_the_first_one_and_are_close_to_the_topic() -> None:
    weights = ("knee", 2.0), ("run", 1.0)
    assert parts(*weights, knee=0.9, run=0.27) == ["knee"]
    assert parts(*weights, knee=0.9, run=0.29) == ["knee", "run"]
    assert parts(*weights, knee=0.9, run=0.9, further=1) == ["knee"]


def test_the_vectors_of_phrases_in_other_languages_are_not_compared_with_the_topic() -> None:
    weights = ("keuken", LEAST_ABROAD + 0.1), ("dak", LEAST_ABROAD), ("regen", LEAST_ABROAD - 0.1)
    assert parts(*weights, is_english=False, keuken=0.1, dak=0.1, regen=0.9) == ["keuken", "dak"]
    assert parts(("regen", LEAST_ABROAD - 0.1), is_english=False, regen=0.9) == []


def test_names_of_which_nothing_is_known_are_no_phrases() -> None:
    texts = "I gave Zelvira a boiler", "Yes"
    messages = [TopicMessage(number, MessageRole.USER, text, None) for number, text in enumerate(texts)]
    forms = {0: [Form(1, "Zelvira", ConceptKind.NAME)]}
    assert [one.text for one in phrases_of([messages], forms)] == ["boiler"]


def test_further_parts_are_close_to_the_first_one() -> None:
    assert parts(("knee", 1.0), ("tax", 2.5), knee=0.7, tax=0.1) == ["knee"], (
        "both are near to the mean of two subjects"
    )


def test_the_name_of_a_place_is_no_further_part() -> None:
    assert parts(("knee", 1.0), ("Leeds", 0.9), knee=0.9, Leeds=0.9) == ["knee"]
    assert parts(("knee", 0.9), ("Leeds", 1.0), knee=0.9, Leeds=0.9) == ["Leeds", "knee"]


def test_parts_of_a_name_share_no_word() -> None:
    weights = [
        (text, 1 - number / 100) for number, text in enumerate(("gas meter", "meter", "gasket", "dance", "dancing"))
    ]
    assert parts(*weights, means=np.zeros(2)) == ["gas meter", "dance"]
    assert shown_name(["gas", "gases", "boiler", "rent", "key"]) == "gas, boiler"
    assert shown_name([]) == ""


@pytest.mark.usefixtures("related")
def test_a_topic_is_named_by_common_nouns_of_its_messages(ann: Agent) -> None:
    ann.tell(*LESSONS)
    topic = ann.topic()
    assert (topic.name, topic.named_by) == ("guitar, metronome", None)


OVEN = ("Boris bakes panettone with Greta, in the oven", "Greta brought panettone for Boris and the oven")


@pytest.mark.usefixtures("related")
def test_a_phrase_names_only_the_topic_with_the_most_messages(ann: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "SAME_TOPIC", (9.0, 9.0))

    def named() -> dict[int, str]:
        return {one.topic.id: one.name for one in ann.topics()}

    ann.tell(*OVEN, session="old")
    assert named() == {1: "panettone, oven"}
    ann.tell(*OVEN, session="new")
    assert named() == {1: "panettone, oven"}
    ann.tell("The panettone", session="new")
    assert named() == {2: "panettone, oven"}


@pytest.mark.usefixtures("related")
def test_a_name_that_a_caller_gave_to_another_topic_is_not_taken(ann: Agent) -> None:
    ann.tell("Alice took the Albatross from Lisbon", "Lisbon again, on the Albatross", session="sea")
    topics, sea = ann.graph.topics, ann.topic().topic.id
    topics.describe(ANN, sea, {"name": "Boats, Oven"})
    ann.tell(*OVEN, session="oven")
    assert {one.name for one in ann.topics()} == {"Boats, Oven", "panettone"}
    [oven] = {one.topic.id for one in ann.topics()} - {sea}
    for used in ("panettone", "Panettone "):
        with pytest.raises(Conflict, match=f"Topic {oven} has the name"):
            topics.describe(ANN, sea, {"name": used})
    assert topics.describe(ANN, sea, {"name": "BOATS, oven"}).name == "BOATS, oven"
    assert topics.describe(ANN, oven, {"name": "Panettone"}).name == "Panettone"
    with pytest.raises(Conflict, match=f"Topic {sea} has the name"):
        topics.describe(ANN, oven, {"name": "Boats, oven", "summary": "Bread"})
    assert topics.details(ANN, oven).named.summary != "Bread"
    topics.describe(ANN, sea, {"name": "Sailing"})
    assert topics.describe(ANN, oven, {"name": "Boats, oven"}).name == "Boats, oven"


@pytest.mark.usefixtures("related")
def test_a_name_loses_what_is_deleted_or_edited_at_once(ann: Agent) -> None:
    first, second, third = ann.tell(*LESSONS)
    ann.edit(first, "And so on")
    assert "metronome" in name(ann), "the third message says it too"
    ann.edit(third, "And so on")
    assert name(ann) == "guitar"
    ann.remove(Chooses.MESSAGE, second)
    assert ann.graph.topics.page(ANN) == ([], 0)


@pytest.mark.usefixtures("related")
def test_a_name_does_not_quote_messages_that_the_policy_hides(ann: Agent) -> None:
    ann.say(LESSONS[1], metadata={"sensitive_topics": ["health"]})
    ann.tell("The guitar and the metronome")
    assert name(ann) == "guitar, cello"
    Agents(ann.engine).set_policy(ANN, {"hidden_topics": ["health"]})
    assert name(ann) == "guitar"


@pytest.mark.usefixtures("related")
def test_a_deleted_concept_is_in_no_name(ann: Agent) -> None:
    ann.tell("Lisbon, and the guitar", "Lisbon again, or Madeira", "The guitar in Lisbon, and the metronome")
    assert name(ann) == "Lisbon, guitar"
    [lisbon] = [one.concept_id for one in ann.graph.topics.details(ANN, 1).named.terms if one.name == "Lisbon"]
    ann.graph.concepts.hide(ANN, lisbon)
    assert name(ann) == "guitar"
    ann.tell("The guitar in Lisbon")
    assert name(ann) == "guitar"


def test_a_topic_without_a_name_is_not_listed_until_it_gets_one(ann: Agent) -> None:
    ann.tell("Anna, Anna")
    assert ann.graph.topics.page(ANN) == ([], 0)
    assert name(ann) == ""
    ann.graph.topics.describe(ANN, 1, {"name": "Anna"})
    assert ann.topic().name == "Anna"


@pytest.mark.usefixtures("related")
def test_only_the_largest_topics_are_named_and_one_that_becomes_small_loses_its_name(
    ann: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.tell(*LESSONS)
    monkeypatch.setattr(topic_assignment, "DESCRIBED", 0)
    assert name(ann) == "guitar, metronome", "it did not change"
    ann.tell("The metronome again")
    assert name(ann) == ""
    assert ann.graph.topics.page(ANN) == ([], 0)
