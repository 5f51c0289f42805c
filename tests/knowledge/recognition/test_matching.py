"""Which keys are spellings of one thing: letters must allow it, and vectors agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.knowledge.concept_similarity import CANDIDATE_SIMILARITY, MATCH_MARGIN, is_match, may_match


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("road trip", "roadtrip"),
        ("user_name", "username"),
        ("#newyork", "new york"),
        ("colour", "color"),
        ("favourite colour", "favorite color"),
        ("theatre", "theater"),
        ("organisation", "organization"),
        ("organised tour", "organized tour"),
        ("aria-labels", "aria-label"),
        ("github actions", "github action"),
        ("queries", "query"),
        ("nyc", "new york city"),
    ],
)
def test_spellings_of_one_thing_may_match_in_either_order(one, other):
    assert may_match(one, other)
    assert may_match(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sofa", "couch"),
        ("clothing store", "clothes store"),
        ("sister", "brother"),
        ("john", "joan"),
        ("sara", "sarah"),
        ("hr", "hr representative"),
        ("rate limit", "rate limiter"),
        ("new york", "york"),
        ("version 1", "version 2"),
        ("2022-05", "2023-05"),
        ("15 km", "15 cm"),
        ("may 8", "mai 8"),
        ("2023-05-08", "20230508"),
        ("bc", "b'c"),
        ("house", "mouse"),
        ("wife", "wifi"),
        ("date", "data"),
        ("courier", "corier"),
        ("script.js", "scripts.js"),
        ("test_user", "test_users"),
    ],
)
def test_keys_with_other_letters_or_numbers_may_not_match(one, other):
    assert not may_match(one, other)


def test_the_nearest_matches_above_the_threshold_and_the_margin():
    assert is_match(CANDIDATE_SIMILARITY, None)
    assert not is_match(CANDIDATE_SIMILARITY - 0.01, None)
    assert is_match(0.97, 0.97 - 2 * MATCH_MARGIN)
    assert not is_match(0.97, 0.97)


@given(st.text(max_size=80), st.text(max_size=80))
def test_comparing_two_keys_is_symmetric(one, other):
    assert may_match(one, other) == may_match(other, one)
