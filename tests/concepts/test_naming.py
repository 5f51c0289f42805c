"""Which keys a question may mean."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from souvenir.concepts.extraction import mentioned
from souvenir.concepts.naming import MAX_TRIED_WORDS, MAX_WORDS, possible_keys
from souvenir.concepts.spelling import key_of


def test_words_one_two_and_three_at_a_time_may_be_keys_in_whatever_spelling():
    keys = possible_keys("the Support-Groups of NEW YORK?")
    assert {"support group", "new york", "york"} <= {*keys}
    assert "lisbon" in possible_keys("LISBON'S?")
    assert possible_keys(" ... ") == ()


@given(st.text(max_size=80))
def test_what_a_question_mentions_may_be_meant_and_every_key_is_one_and_comes_once(text: str):
    keys = possible_keys(text)
    assert {one.key for one in mentioned(text)} <= {*keys}
    assert len({*keys}) == len(keys)
    assert all(key and len(key_of(key)) <= len(key) for key in keys)


def test_of_a_long_text_few_words_are_tried_in_little_time():
    begin = time.perf_counter()
    keys = possible_keys("word and word " * 100_000)
    assert time.perf_counter() - begin < 2
    assert len(keys) <= 2 * MAX_WORDS * MAX_TRIED_WORDS + 16
