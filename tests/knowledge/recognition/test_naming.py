"""Which keys a question may mean."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from souvenir.knowledge.recognition.extraction import MAX_TRIED_WORDS, MAX_WORDS, keys_in_question, mentioned
from souvenir.knowledge.recognition.spelling import key_of
from tests.growth import assert_linear


def test_sequences_of_up_to_three_words_may_be_keys_in_any_spelling():
    keys = keys_in_question("the Support-Groups of NEW YORK?")
    assert {"support group", "new york", "york"} <= {*keys}
    assert "lisbon" in keys_in_question("LISBON'S?")
    assert keys_in_question(" ... ") == ()


@given(st.text(max_size=80))
def test_keys_of_a_question_are_valid_and_unique(text: str):
    # A key may be shorter than its name, but a letter such as þ is written as two.
    assume(all(len(key_of(letter)) <= 1 for letter in text))
    keys = keys_in_question(text)
    assert {one.key for one in mentioned(text)} <= {*keys}
    assert len({*keys}) == len(keys)
    assert all(key and len(key_of(key)) <= len(key) for key in keys)


def test_only_the_first_words_of_a_long_question_are_tried():
    question = "word and word " * 50_000
    assert_linear(keys_in_question, question)
    assert len(keys_in_question(question)) <= 2 * MAX_WORDS * MAX_TRIED_WORDS + 16
