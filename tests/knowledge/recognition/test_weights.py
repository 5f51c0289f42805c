"""Rarity and strength: what more and less of something does to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.knowledge.concept_ranking import HALF_LIFE_MONTHS, rarity, strength

COUNTS = st.integers(0, 1000)


def test_rarity_is_1_for_a_single_mention_and_0_for_a_concept_of_every_text():
    assert rarity(1, 1000) == 1.0
    assert rarity(1000, 1000) == 0.0
    assert rarity(10, 1000) == pytest.approx(2 / 3)


def test_two_that_only_meet_each_other_are_stronger_than_two_that_meet_by_chance():
    assert strength({0: 10}, 10, 10, 1000, 0) > strength({0: 10}, 100, 100, 1000, 0) == 0.0


def test_one_meeting_proves_less_than_many():
    assert strength({0: 1}, 1, 1, 1000, 0) < strength({0: 20}, 20, 20, 1000, 0)


def test_after_the_half_life_half_is_left():
    now = strength({0: 10}, 20, 20, 1000, 0)
    assert strength({0: 10}, 20, 20, 1000, int(HALF_LIFE_MONTHS)) == pytest.approx(now / 2)


def test_what_lies_in_the_future_counts_as_now():
    assert strength({5: 3}, 4, 4, 100, 0) == strength({0: 3}, 4, 4, 100, 0)


def test_without_a_meeting_there_is_no_strength():
    assert strength({}, 5, 5, 100, 0) == 0.0


@given(st.dictionaries(st.integers(0, 30000), COUNTS, max_size=4), COUNTS, COUNTS, COUNTS, st.integers(0, 30000))
def test_both_are_between_0_and_1_whatever_the_counts(together, a, b, total, now):
    assert 0.0 <= rarity(a, total) <= 1.0
    assert 0.0 <= strength(together, a, b, total, now) <= 1.0
