"""Re-ranking by a cross-encoder's scores, with numbers computed by hand and with arbitrary numbers."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.types import Weights
from souvenir.retrieval.ranking import Ranked
from souvenir.retrieval.reranking import RERANK, logistic, reranked


def first(*rows: dict[str, float]) -> list[Ranked]:
    """A first ranking of these parts, whose scores are their sums."""
    return [
        Ranked(place, place + 100, sum(parts.values()), 0.01, parts, lexical_rank=None, vector_rank=None)
        for place, parts in enumerate(rows)
    ]


def test_scored_results_come_first_and_the_others_keep_their_order():
    ranked = reranked(
        first({"lexical": 2.0}, {"lexical": 1.5}, {"lexical": 1.0, "dense": 0.25}, {"lexical": 0.75}),
        {0: -1.0, 2: 3.0},
        Weights(),
    )
    assert [(one.owner_id, one.rerank_score) for one in ranked] == [(102, 3.0), (100, -1.0), (101, None), (103, None)]
    assert [one.score for one in ranked] == pytest.approx([1 / (1 + math.e**-3), 1 / (1 + math.e), 0.0, -0.75])
    assert ranked[0].parts[RERANK] == pytest.approx(1 / (1 + math.e**-3) - 1.25)
    assert ranked[3].parts == {"lexical": 0.75, RERANK: -1.5}


def test_score_parts_independent_of_the_text_are_kept():
    ranked = reranked(
        first({"lexical": 2.0, "speaker": 0.3}, {"lexical": 1.0, "period": 0.45}), {0: 0.0, 1: 0.0}, Weights()
    )
    assert [one.owner_id for one in ranked] == [101, 100]
    assert [one.score for one in ranked] == pytest.approx([0.95, 0.5])
    assert all(sum(one.parts.values()) == pytest.approx(one.score) for one in ranked)


def test_feedback_multiplies_the_new_score_by_what_it_multiplied_the_first_one_by():
    before = first({"lexical": 2.0, "feedback": -1.0, "facts": 0.1}, {"lexical": 1.0, "period": 0.5, "feedback": 0.75})
    ranked = reranked(before, {0: 0.0, 1: 0.0}, Weights(feedback=1.0))
    assert [one.owner_id for one in ranked] == [101, 100]
    assert [one.score for one in ranked] == pytest.approx([1.5 * (0.5 + 0.5), 0.5 * 0.5])
    assert all(sum(one.parts.values()) == pytest.approx(one.score) for one in ranked)


def test_a_role_counts_only_if_the_caller_weights_it():
    before = first({"lexical": 3.0}, {"lexical": 2.0, "role": -0.8}, {"lexical": 1.0})
    unweighed = reranked(before, {1: 0.0}, Weights())
    assert [one.owner_id for one in unweighed] == [101, 100, 102]
    assert [one.score for one in unweighed] == pytest.approx([0.5, 0.0, -2.0])
    weighed = reranked(before, {1: 0.0}, Weights(role=-0.8))
    assert [one.score for one in weighed] == pytest.approx([-0.3, -0.3, -2.3])
    assert [one.owner_id for one in weighed] == [101, 100, 102]


def test_scores_with_equal_logistics_keep_their_order():
    ranked = reranked(
        first({"lexical": 3.0}, {"lexical": 2.0}, {"lexical": 1.0}), {0: 60.0, 1: 80.0, 2: 70.0}, Weights()
    )
    assert [one.rerank_score for one in ranked] == [80.0, 70.0, 60.0]


@given(
    st.lists(st.floats(0, 5), max_size=12).map(lambda scores: sorted(scores, reverse=True)),
    st.dictionaries(st.integers(0, 11), st.floats(-1e4, 1e4)),
)
def test_scores_descend_and_equal_the_sum_of_their_parts_for_any_numbers(scores: list[float], read: dict[int, float]):
    before = first(*({"lexical": score} for score in scores))
    after = reranked(before, read, Weights())
    assert sorted(one.owner_id for one in after) == [one.owner_id for one in before]
    assert all(one.score >= other.score for one, other in pairwise(after))
    assert all(sum(one.parts.values()) == pytest.approx(one.score, abs=1e-9) for one in after)
    assert [one.at in read for one in after] == sorted((one.at in read for one in before), reverse=True)


def test_the_logistic_of_any_number_is_finite():
    assert (logistic(-1e6), logistic(0.0), logistic(1e6)) == (0.0, 0.5, 1.0)
