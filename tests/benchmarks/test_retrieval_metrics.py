"""The metrics against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.retrieval.certainty import differences, estimates
from benchmarks.retrieval.metrics import (
    DOCUMENT_METRICS,
    SESSION_METRICS,
    document_scores,
    ndcg,
    ranked_sessions,
    recall,
    reciprocal_rank,
    session_scores,
)
from benchmarks.retrieval.peers import fused


def found(*ids: str) -> list[tuple[str, float]]:
    return [(id_, 1.0 / rank) for rank, id_ in enumerate(ids, 1)]


def test_recall_counts_what_was_missed_too():
    assert recall(["a", "x", "b"], {"a", "b", "c", "d"}) == 0.5


def test_ndcg_is_measured_against_the_best_ranking_there_could_be():
    # Found: grade 1 at rank 1, grade 3 at rank 3; best: 3, 2, 1.
    gained = 1 + 3 / math.log2(4)
    best = 3 + 2 / math.log2(3) + 1 / math.log2(4)
    assert ndcg(["one", "none", "three"], {"one": 1.0, "two": 2.0, "three": 3.0}) == pytest.approx(gained / best)


def test_ndcg_is_one_when_ten_of_many_relevant_documents_come_first():
    relevant = {str(number): 1.0 for number in range(30)}
    assert ndcg([str(number) for number in range(10)], relevant) == pytest.approx(1.0)


def test_the_reciprocal_rank_is_that_of_the_first_relevant_document_among_ten():
    assert reciprocal_rank(["x", "y", "a", "b"], {"a", "b"}) == pytest.approx(1 / 3)
    assert reciprocal_rank([*"0123456789", "a"], {"a"}) == 0.0


def test_a_question_is_scored_at_one_five_and_ten():
    scores = document_scores(found("x", "a", "y", "z", "v", "b"), {"a": 1.0, "b": 1.0})
    ideal = 1 + 1 / math.log2(3)
    assert scores == pytest.approx([0.0, 0.5, 1.0, (1 / math.log2(3) + 1 / math.log2(7)) / ideal, 0.5])
    assert len(scores) == len(DOCUMENT_METRICS)


def test_a_session_scores_its_best_document_and_half_the_mean_of_its_best_three():
    ranking = [("a1", 1.0), ("b1", 0.9), ("b2", 0.9), ("b3", 0.9), ("a2", 0.3), ("a3", 0.2), ("b4", 0.1)]
    session_of = {id_: id_[0] for id_, _ in ranking}
    # a: 1.0 + 0.5 * (1.0 + 0.3 + 0.2) / 3 = 1.25; b: 0.9 + 0.5 * 0.9 = 1.35.
    assert ranked_sessions(ranking, session_of) == ["b", "a"]


def test_documents_that_a_ranking_does_not_reach_score_as_its_last():
    # a: 1.0 + 0.5 * (1.0 + 0.2 + 0.2) / 3 = 1.23; b: 0.9 + 0.5 * (0.9 + 0.9 + 0.2) / 3 = 1.23 + 0.0 - so a little less.
    ranking = [("a1", 1.0), ("b1", 0.9), ("b2", 0.9), ("c1", 0.2)]
    session_of = {id_: id_[0] for id_, _ in ranking}
    assert ranked_sessions(ranking, session_of) == ["a", "b", "c"]


def test_any_wants_one_relevant_session_and_all_wants_every_one():
    ranking = found(*(f"s{number}" for number in range(1, 8)))
    session_of = {f"s{number}": f"session {number}" for number in range(1, 12)}
    scores = session_scores(ranking, {"s1": 1.0, "s7": 1.0}, session_of)
    assert dict(zip(SESSION_METRICS, scores, strict=True)) == {"any@5": 1, "any@10": 1, "all@5": 0, "all@10": 1}


def test_reciprocal_ranks_count_from_one_and_words_rank_only_what_they_match():
    scores = fused(np.array([0.0, 2.0, 0.0]), np.array([0.9, 0.1, 0.5]))
    assert scores == pytest.approx([1 / 61, 1 / 61 + 1 / 63, 1 / 62])


def test_an_interval_holds_the_mean_and_is_the_same_on_every_run():
    scores = np.random.default_rng(1).random((200, 2))
    first, second = estimates(scores), estimates(scores)
    assert first == second
    assert all(one.low < one.mean < one.high for one in first)
    # The standard error of 200 uniform draws is 0.289 / sqrt(200) = 0.0204; 95 % are 1.96 of them to either side.
    assert first[0].high - first[0].low == pytest.approx(2 * 1.96 * 0.0204, rel=0.15)


def test_a_difference_that_is_the_same_on_every_question_is_certain():
    theirs = np.random.default_rng(2).random((50, 1))
    [difference] = differences(theirs + 0.1, theirs)
    assert (difference.low, difference.high) == pytest.approx((0.1, 0.1))
    assert difference.sign == 1
    assert differences(theirs, theirs)[0].sign == 0
