"""Rarity and strength: what more and less of something does to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.knowledge.concept_ranking import HALF_LIFE_MONTHS, rarity, strength

COUNTS = st.integers(0, 1000)


def test_rarity_is_1_for_a_single_mention_and_0_for_a_concept_of_every_text():
    assert [rarity(mentions, 1000) for mentions in (1, 10, 1000)] == pytest.approx([1.0, 2 / 3, 0.0])


def test_strength_grows_with_the_number_and_the_exclusiveness_of_co_occurrences():
    assert strength({}, 5, 5, 100, 0) == strength({0: 10}, 100, 100, 1000, 0) == 0.0
    assert 0.0 < strength({0: 1}, 1, 1, 1000, 0) < strength({0: 20}, 20, 20, 1000, 0)


def test_strength_halves_with_the_half_life_and_a_future_co_occurrence_has_age_zero():
    now, later = (strength({0: 10}, 20, 20, 1000, month) for month in (0, int(HALF_LIFE_MONTHS)))
    assert later == pytest.approx(now / 2)
    assert strength({5: 3}, 4, 4, 100, 0) == strength({0: 3}, 4, 4, 100, 0)


@given(st.dictionaries(st.integers(0, 30000), COUNTS, max_size=4), COUNTS, COUNTS, COUNTS, st.integers(0, 30000))
def test_both_are_between_0_and_1_for_any_counts(together, a, b, total, now):
    assert 0.0 <= rarity(a, total) <= 1.0
    assert 0.0 <= strength(together, a, b, total, now) <= 1.0
