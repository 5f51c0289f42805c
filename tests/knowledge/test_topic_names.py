"""A topic is named by what its messages say of its subject, as long as they do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count

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
    LEAST_CLOSENESS,
    LEAST_CLOSENESS_OF_RARE,
    Phrase,
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


def name(ann: Agent) -> str:
    return ann.graph.topics.details(ANN, 1).named.name


def phrases(*said: str | tuple[MessageRole, str], people: Sequence[str] = ()) -> dict[str, float]:
    """Return the phrases of one segment with their weights, best first."""
    messages = [
        TopicMessage(number, *((MessageRole.USER, one) if isinstance(one, str) else one), None)
        for number, one in enumerate(said)
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


def test_a_phrase_weighs_more_if_users_say_it_and_if_they_begin_with_it() -> None:
    answer = MessageRole.ASSISTANT, "Close the valve"
    weights = phrases("The boiler is off", answer, "The landlord knows", "The boiler!")
    assert list(weights) == ["boiler", "landlord", "valve"]
    opened = phrases("The boiler is off", "The landlord knows")
    assert opened["boiler"] > opened["landlord"]


def test_several_words_say_more_than_one_and_vague_words_nothing_alone() -> None:
    weights = phrases("We have a gas meter, a landlord, a noise problem and a problem")
    assert weights["gas meter"] > weights["landlord"]
    assert "noise problem" in weights
    assert "problem" not in weights


def test_times_slips_names_and_parts_of_names_are_no_phrases_but_relatives_and_landlords_are() -> None:
    for word in ("Fridays", "shes", "tmrw", "Anna", "weeks", "Easter", "sixty"):
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
    least: float = 0.0,
    used: Collection[str] = (),
    **cosines: float,
) -> list[str]:
    """Return the parts of a name of phrases with these weights and cosines to the topic.

    :param least: The closeness from which they may be the first part. :param used: Names of other topics.
    """
    found = [
        Phrase(text, weight, least, text.istitle(), (Excerpt(number, 0, 1),))
        for number, (text, weight) in enumerate(weights)
    ]
    vectors = {text: UNIT * np.array([cosine, np.sqrt(1 - cosine**2)]) for text, cosine in cosines.items()}
    mean = UNIT * np.array([1.0, 0.0]) if means is None else means
    return [one.text for one in name_of(found, vectors, (mean, mean), used)]


def test_a_name_has_the_phrases_that_are_said_most_and_are_close_to_the_topic() -> None:
    weights = ("knee", 1.0), ("run", 1.5), ("stairs", 1.0)
    assert parts(*weights, knee=0.9, run=0.5, stairs=0.7) == ["knee", "run", "stairs"]
    assert parts(("knee", 2.0), ("run", 1.0), knee=0.9, run=0.7) == ["knee"]
    assert parts(("knee", 1.0), ("run", 1.0), knee=0.54, run=0.54) == []
    assert parts(("knee", 2.0), ("run", 2.0), knee=0.9, run=0.31) == ["knee"], "a closeness of 0.31 times 0.31"
    nothing = np.zeros(2)
    assert parts(("knee", 1.0), ("run", 0.3), means=nothing, least=1.0) == ["knee"]


def test_the_first_part_of_a_name_is_close_enough_for_how_often_it_is_said() -> None:
    assert parts(("knee", 9.0), knee=0.3, least=0.08) == ["knee"]
    assert parts(("knee", 9.0), knee=0.3, least=0.1) == []


def test_a_name_that_another_topic_has_is_given_up_for_the_next_best_parts() -> None:
    weights = ("knee", 1.0), ("run", 0.9), ("stairs", 0.8)

    def named(*used: str) -> list[str]:
        return parts(*weights, used=used, knee=0.9, run=0.9, stairs=0.9)

    assert named() == named("knee", "run, knee") == ["knee", "run", "stairs"]
    assert named("knee, run") == ["knee", "stairs", "run"]
    assert named("knee, run", "knee, stairs") == ["run", "stairs"]
    assert named("knee, run", "knee, stairs", "run, stairs") == ["stairs"]
    assert named("knee, run", "knee, stairs", "run, stairs", "stairs") == ["knee", "run", "stairs"]
    assert parts(("Leeds", 1.0), used=["leeds"], Leeds=0.9) == ["Leeds"]
    assert parts(("Leeds", 1.0), ("knee", 0.5), used=["leeds, knee"], Leeds=0.9, knee=0.9) == ["Leeds", "knee"]


@for_all(
    "segments, least",
    [
        ([["a boiler"], ["the boilers"]], LEAST_CLOSENESS),
        ([["a boiler"], ["the gas boiler"], ["rent"], ["rent"]], LEAST_CLOSENESS),
        ([["a boiler"], ["the boiler"], ["rent"], ["rent"], ["rent"]], 1.0),
        ([["a boiler"], ["rent", "rent"]], LEAST_CLOSENESS_OF_RARE),
        ([["a boiler"], ["rent"]], 1.0),
        ([["a boiler", "the boiler", "rent"]], LEAST_CLOSENESS),
        ([["a boiler", "rent"]], LEAST_CLOSENESS_OF_RARE),
        ([["a boiler"]], 1.0),
    ],
)
def test_what_users_say_rarely_must_be_closer_to_the_topic(segments: list[list[str]], least: float) -> None:
    numbers = count()
    answer = MessageRole.ASSISTANT, "The boiler", None
    messages = [
        [*(TopicMessage(next(numbers), MessageRole.USER, text, None) for text in said), TopicMessage(99, *answer)]
        for said in segments
    ]
    assert {one.least for one in phrases_of(messages, {}) if one.text == "boiler"} == {least}


def test_names_of_which_nothing_is_known_are_no_phrases() -> None:
    messages = [TopicMessage(0, MessageRole.USER, "I gave Zelvira a boiler", None)]
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
def test_a_topic_takes_no_name_that_another_one_has(ann: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "SAME_TOPIC", (9.0, 9.0))
    ann.tell(*OVEN, session="old")
    assert ann.topic().name == "oven, panettone"
    ann.tell(*OVEN, session="new")
    named = {one.topic.id: one.name for one in ann.topics()}
    assert named == {1: "oven, panettone", 2: "panettone"}
    ann.tell("The oven", session="new")
    assert {one.topic.id: one.name for one in ann.topics()} == named


@pytest.mark.usefixtures("related")
def test_a_name_that_a_caller_gave_to_another_topic_is_not_taken(ann: Agent) -> None:
    ann.tell("Alice took the Albatross from Lisbon", "Lisbon again, on the Albatross", session="sea")
    topics = ann.graph.topics
    topics.describe(ANN, ann.topic().topic.id, {"name": "Oven, Panettone"})
    ann.tell(*OVEN, session="oven")
    assert {one.name for one in ann.topics()} == {"Oven, Panettone", "panettone"}
    sea, oven = sorted(one.topic.id for one in ann.topics())
    for used in ("panettone", "Panettone "):
        with pytest.raises(Conflict, match=f"Topic {oven} has the name"):
            topics.describe(ANN, sea, {"name": used})
    assert topics.describe(ANN, sea, {"name": "OVEN, panettone"}).name == "OVEN, panettone"
    assert topics.describe(ANN, oven, {"name": "Panettone"}).name == "Panettone"
    with pytest.raises(Conflict, match=f"Topic {sea} has the name"):
        topics.describe(ANN, oven, {"name": "Oven, panettone", "summary": "Bread"})
    assert topics.details(ANN, oven).named.summary != "Bread"
    topics.describe(ANN, sea, {"name": "Sailing"})
    assert topics.describe(ANN, oven, {"name": "Oven, panettone"}).name == "Oven, panettone"


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
