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


def test_exclusive_co_occurrence_is_stronger_than_chance():
    assert strength({0: 10}, 10, 10, 1000, 0) > strength({0: 10}, 100, 100, 1000, 0) == 0.0


def test_one_co_occurrence_counts_less_than_many():
    assert strength({0: 1}, 1, 1, 1000, 0) < strength({0: 20}, 20, 20, 1000, 0)


def test_after_the_half_life_the_strength_is_halved():
    now = strength({0: 10}, 20, 20, 1000, 0)
    assert strength({0: 10}, 20, 20, 1000, int(HALF_LIFE_MONTHS)) == pytest.approx(now / 2)


def test_future_co_occurrences_have_age_zero():
    assert strength({5: 3}, 4, 4, 100, 0) == strength({0: 3}, 4, 4, 100, 0)


def test_without_a_co_occurrence_the_strength_is_zero():
    assert strength({}, 5, 5, 100, 0) == 0.0


@given(st.dictionaries(st.integers(0, 30000), COUNTS, max_size=4), COUNTS, COUNTS, COUNTS, st.integers(0, 30000))
def test_both_are_between_0_and_1_for_any_counts(together, a, b, total, now):
    assert 0.0 <= rarity(a, total) <= 1.0
    assert 0.0 <= strength(together, a, b, total, now) <= 1.0
