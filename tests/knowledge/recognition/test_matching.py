"""Which keys are spellings of one thing, by their letters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from souvenir.knowledge.concept_similarity import may_match
from tests.cases import for_all


@for_all(
    "one, other",
    [
        ("road trip", "roadtrip"),
        ("user_name", "username"),
        ("hex_to_rgb", "hextorgb"),
        ("microservices_architecture", "microservices architecture"),
        ("#newyork", "new york"),
        ("colour", "color"),
        ("favourite colour", "favorite color"),
        ("theatre", "theater"),
        ("organisation", "organization"),
        ("organised tour", "organized tour"),
        ("aria-labels", "aria-label"),
        ("github actions", "github action"),
        ("queries", "query"),
    ],
)
def test_spellings_of_one_thing_may_match_in_either_order(one, other):
    assert may_match(one, other)
    assert may_match(other, one)


@for_all(
    "one, other",
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


@given(st.text(max_size=80), st.text(max_size=80))
def test_comparing_two_keys_is_symmetric(one, other):
    assert may_match(one, other) == may_match(other, one)
