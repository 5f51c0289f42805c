"""Which keys a question may mean."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from souvenir.knowledge.recognition.extraction import MAX_TRIED_WORDS, MAX_WORDS, keys_in_question, mentioned
from souvenir.knowledge.recognition.spelling import key_of
from tests.growth import assert_linear


def test_words_one_two_and_three_at_a_time_may_be_keys_in_whatever_spelling():
    keys = keys_in_question("the Support-Groups of NEW YORK?")
    assert {"support group", "new york", "york"} <= {*keys}
    assert "lisbon" in keys_in_question("LISBON'S?")
    assert keys_in_question(" ... ") == ()


@given(st.text(max_size=80))
def test_what_a_question_mentions_may_be_meant_and_every_key_is_one_and_comes_once(text: str):
    keys = keys_in_question(text)
    assert {one.key for one in mentioned(text)} <= {*keys}
    assert len({*keys}) == len(keys)
    assert all(key and len(key_of(key)) <= len(key) for key in keys)


def test_of_a_long_text_few_words_are_tried_in_little_time():
    assert_linear(keys_in_question, "word and word " * 100_000)
    keys = keys_in_question("word and word " * 100_000)
    assert len(keys) <= 2 * MAX_WORDS * MAX_TRIED_WORDS + 16
