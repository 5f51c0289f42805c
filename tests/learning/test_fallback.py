"""Extraction without a model: sentences that state something durable are stored verbatim."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given

from souvenir.core.ledger import Category, LedgerFact
from souvenir.core.text import fenced
from souvenir.core.types import OriginClass
from souvenir.learning.durable_sentences import MAX_CHARS, MIN_PLAIN_CHARS, MIN_PLAIN_WORDS, durable_facts
from souvenir.learning.transcripts.transcript import read_transcript
from tests.learning.test_transcript import ANY_TEXT


def learned(text: str, max_facts: int = 5) -> list[LedgerFact]:
    facts = durable_facts(read_transcript(text, document_at=None), max_facts=max_facts)
    for fact in facts:
        assert fact.span is not None
        assert text[fact.span.start : fact.span.end] == fact.text
    return facts


@pytest.mark.parametrize(
    ("sentence", "category"),
    [
        ("We decided to keep SQLite for the ledger.", Category.DECISION),
        ("The decision is to ship on Thursdays only.", Category.DECISION),
        ("We are going with the blue theme for the site.", Category.DECISION),
        ("Our policy is that nobody deploys on Fridays.", Category.DECISION),
        ("The standard here is four spaces, never tabs.", Category.DECISION),
        ("We should pin every dependency with its hash.", Category.DECISION),
        ("Let's keep the old endpoint until the summer.", Category.DECISION),
        ("Use ruff for the formatting of all Python files.", Category.DECISION),
        ("I prefer short answers without any emoji.", Category.DETAIL),
        ("Remember that the staging database is read-only.", Category.DETAIL),
        ("My name is Alice and I work in the billing team.", Category.DETAIL),
        ("I live in Lisbon, close to the old harbour.", Category.DETAIL),
        ("I'm allergic to peanuts and to most other nuts.", Category.DETAIL),
        ("My sister's birthday is on the third of May.", Category.DETAIL),
        ("It turned out that the cache was never cleared.", Category.LEARNING),
        ("The root cause was a clock that ran backwards.", Category.LEARNING),
    ],
)
def test_a_sentence_that_states_something_durable_is_learned_with_its_category(sentence: str, category: Category):
    (fact,) = learned(f"User: Hello there!\n- {sentence} Thanks a lot.\nAssistant: You are welcome.")
    assert (fact.text, fact.category, fact.origin_class) == (sentence, category, OriginClass.USER)


@pytest.mark.parametrize(
    "sentence",
    [
        "We decided.",
        "Which database should we use for this?",
        "Should we go with the blue theme or the red one",
        "Maybe we should look at it again another day.",
        "If we go with that, the tests will have to change.",
        "The weather was nice and the trains were on time.",
        "We will " + "really " * 45 + "keep it.",
        "Let's see what the tests say about this one.",
        "I'm a bit tired after all of these meetings.",
    ],
)
def test_questions_hedges_small_talk_and_texts_out_of_bounds_are_not_learned(sentence: str):
    assert learned(f"User: {sentence}\nAssistant: Fine.") == []


@pytest.mark.parametrize(
    "sentence",
    [
        "I'm allergic to nuts.",
        "I am lactose intolerant.",
        "Also, I can't eat gluten.",
        "I don’t drink coffee.",
        "I'm vegan.",
        "I'm 34 years old.",
        "I'm originally from Ghana.",
        "I'm the CTO of Acme.",
        "I have a peanut allergy.",
        "I've got two kids.",
        "I was diagnosed with asthma.",
        "I was born in 1984.",
        "I grew up in Porto.",
        "I'm learning Spanish.",
        "I play the cello.",
        "I quit smoking last year.",
        "I run every morning.",
        "I hate mushrooms.",
        "My sister is Ana.",
        "My best friend Tom lives in Oslo.",
        "My blood type is AB negative.",
        "Our dog is called Rex.",
    ],
)
def test_a_plain_statement_of_a_person_is_learned_however_short(sentence: str):
    (fact,) = learned(f"User: {sentence}\nAssistant: Noted.")
    assert (fact.text, fact.category) == (sentence, Category.DETAIL)


@pytest.mark.parametrize(
    "sentence",
    [
        "I'm tired today.",
        "I'm back from lunch.",
        "I'm afraid that is wrong.",
        "I'm blinded by it.",
        "I can't wait for it.",
        "I can't stand it.",
        "I don't think so.",
        "I have no idea.",
        "I take your point.",
        "I hate to say it.",
        "My bad, sorry.",
        "My guess is no.",
        "Is my sister there?",
        "Maybe I'm vegan.",
    ],
)
def test_short_small_talk_is_not_learned(sentence: str):
    assert learned(f"User: {sentence}\nAssistant: Fine.") == []


def test_users_precede_assistants_and_explicit_wording_precedes_small_talk():
    text = (
        "Assistant: We decided to rename the whole project today.\n"
        "User: I really like the colour of the new button.\nWe decided to keep SQLite for the ledger.\n"
        "User: My name is Alice and I work in billing."
    )
    assert [fact.text for fact in learned(text, 2)] == [
        "We decided to keep SQLite for the ledger.",
        "My name is Alice and I work in billing.",
    ]
    assert [fact.origin_class for fact in learned(text)] == [OriginClass.ASSISTANT, *[OriginClass.USER] * 3]
    assert learned(text, 0) == []


def test_recalled_text_code_tools_and_systems_are_not_learned_from():
    text = (
        "System: We decided to keep SQLite for the ledger.\n"
        "Tool: We decided to keep SQLite for the ledger.\n"
        "User: "
        + fenced("We decided to keep SQLite for the ledger.")
        + "```\nWe decided to keep SQLite for it.\n```\nOk\n"
        "Assistant: Fine."
    )
    assert learned(text) == []


def test_a_fact_has_speaker_and_time_of_its_turn_and_is_learned_once():
    text = (
        "[2024-03-15 10:00] Alice: I prefer tea in the morning.\n[2024-03-16 10:00] Alice: I prefer tea in the morning."
    )
    (fact,) = learned(text)
    assert (fact.speaker, fact.event_at) == ("Alice", datetime(2024, 3, 15, 10, tzinfo=UTC))


@given(ANY_TEXT)
def test_facts_of_any_text_keep_the_limits_and_match_their_spans(text: str):
    transcript = read_transcript(text, document_at=None)
    facts = durable_facts(transcript, max_facts=3)
    assert len(facts) <= 3
    assert facts == durable_facts(transcript, max_facts=3)
    for fact in facts:
        assert MIN_PLAIN_CHARS <= len(fact.text) <= MAX_CHARS
        assert len(fact.text.split()) >= MIN_PLAIN_WORDS
