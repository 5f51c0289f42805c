"""The arithmetic of ranking, with numbers computed by hand and compared with a plain loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.types import Fusion, Profile, Weights
from souvenir.retrieval.profiles import PROFILES
from souvenir.retrieval.ranking import (
    DAY_US,
    RRF_K,
    Evidence,
    Ranked,
    half_life,
    rank_by_similarity,
    rank_owners,
    ranks,
    reciprocal_rank_scores,
    rrf_shares,
    score_terms,
)

NOW_US = 1_000 * DAY_US
FACT, DOC = Profile.FACT, Profile.DOC

Row = tuple[int, float, float, Profile, float]
"""Owner, lexical evidence, centred cosine, profile, age in days."""


def evidence(rows: Sequence[Row], *, dense_counts: bool = True) -> Evidence:
    owners, lexical, dense, profiles, ages = zip(*rows, strict=True) if rows else ((),) * 5
    return Evidence(
        rows=np.arange(len(rows)),
        owner_ids=np.array(owners, dtype=np.int64),
        lexical=np.array(lexical, dtype=np.float64),
        dense=np.array(dense, dtype=np.float64),
        similarity=np.array(dense, dtype=np.float64) / 2,
        profiles=np.array(profiles, dtype=np.int64),
        occurred_us=np.array([NOW_US - int(age * DAY_US) for age in ages], dtype=np.int64),
        fields={},
        greatest_lexical=max(lexical, default=0.0),
        dense_counts=dense_counts,
    )


def test_words_of_facts_count_less_if_no_passage_contains_much_of_the_query():
    rows = [(1, 0.3, 0.1, FACT, 0.0), (2, 0.15, 0.1, FACT, 0.0), (3, 0.3, 0.1, DOC, 0.0)]
    parts = score_terms(evidence(rows), Weights(), PROFILES, NOW_US).parts
    assert parts["lexical"].tolist() == pytest.approx([0.5 * 0.3, 0.5 * 0.15, 0.3])


HAND = [(1, 0.0, 0.9, FACT, 0.0), (2, 1.5, 0.2, FACT, 30.0), (3, 0.6, 0.8, DOC, 60.0), (2, 0.1, 0.1, FACT, 30.0)]


def test_the_sum_of_the_best_passage_is_its_lexical_score_plus_its_weighted_cosine():
    ranked = rank_owners(
        evidence(HAND), weights=Weights(), profiles=PROFILES, fusion=Fusion.SUM, now_us=NOW_US, top_k=10
    )
    assert [(one.owner_id, one.at) for one in ranked] == [(2, 1), (3, 2), (1, 0)]
    assert [one.score for one in ranked] == pytest.approx([1.5 + 1.3 * 0.2, 0.6 + 1.3 * 0.8, 1.3 * 0.9])
    assert ranked[0].parts == pytest.approx({"lexical": 1.5, "dense": 0.26})
    assert [(one.lexical_rank, one.vector_rank) for one in ranked] == [(1, 3), (2, 2), (None, 1)]


def test_a_memory_found_by_its_text_and_by_a_fact_gains_a_share_of_the_lesser_one():
    rows = [(1, 1.0, 0.0, DOC, 0.0), (1, 1.6, 0.0, FACT, 0.0), (1, 1.5, 0.0, FACT, 0.0), (2, 1.7, 0.0, DOC, 0.0)]
    found = replace(evidence(rows), of_fact=np.array([False, True, True, False]))
    ranked = rank_owners(found, weights=Weights(), profiles=PROFILES, fusion=Fusion.SUM, now_us=NOW_US, top_k=10)
    assert [(one.owner_id, one.at) for one in ranked] == [(1, 1), (2, 3)]
    assert [one.score for one in ranked] == pytest.approx([1.6 + 0.25 * 1.0, 1.7])
    assert [one.parts["facts"] for one in ranked] == pytest.approx([0.25, 0.0])


@pytest.mark.parametrize(
    ("vector", "lexical", "dense"),
    [(0.7, 1.0, 1.3), (0.0, 10 / 3, 0.0), (1.0, 0.0, 13 / 7), (0.85, 0.5, 1.3 * 17 / 14)],
)
def test_the_vector_weight_moves_weight_between_the_arms(vector: float, lexical: float, dense: float):
    parts = score_terms(evidence(HAND), Weights(vector=vector), PROFILES, NOW_US).parts
    assert parts["lexical"] == pytest.approx([0.0, 1.5 * lexical, 0.6 * lexical, 0.1 * lexical])
    assert parts["dense"] == pytest.approx([0.9 * dense, 0.2 * dense, 0.8 * dense, 0.1 * dense])
    assert set(parts) == {"lexical", "dense"}


def test_recency_and_confidence_halve_with_age():
    weights = Weights(recency=0.4, recency_half_life_days=30.0, confidence=0.2)
    parts = score_terms(evidence(HAND), weights, PROFILES, NOW_US).parts
    assert parts["recency"] == pytest.approx([0.4, 0.2, 0.1, 0.2])
    assert parts["confidence"] == pytest.approx([0.2, 0.2 * 0.5 ** (1 / 3), 0.2 * 0.5 ** (2 / 3), 0.2 * 0.5 ** (1 / 3)])


def test_a_future_date_counts_as_now():
    assert half_life(np.array([-5 * DAY_US, 0, DAY_US]), 1.0).tolist() == [1.0, 1.0, 0.5]


def test_reciprocal_ranks_count_from_one():
    scores = reciprocal_rank_scores([np.array([1, 2, 0]), np.array([0, 1, 0])], [0.6, 0.4])
    assert scores == pytest.approx([0.6 / 61, 0.6 / 62 + 0.4 / 61, 0.0])
    assert RRF_K == 60
    assert reciprocal_rank_scores([np.array([1])], [1.0], rrf_k=10) == pytest.approx([1 / 11])


def test_rankings_and_shares_of_different_numbers_are_an_error():
    with pytest.raises(ValueError, match="zip"):
        reciprocal_rank_scores([np.array([1])], [0.5, 0.5])


def test_reciprocal_rank_fusion_of_both_arms_by_hand():
    """Shares 0.7 and 0.3."""
    ranked = rank_owners(
        evidence(HAND), weights=Weights(), profiles=PROFILES, fusion=Fusion.RRF, now_us=NOW_US, top_k=10
    )
    expected = {1: 0.7 / 61, 2: 0.7 / 63 + 0.3 / 61, 3: 0.7 / 62 + 0.3 / 62}
    assert [one.owner_id for one in ranked] == [3, 2, 1]
    assert [one.score for one in ranked] == pytest.approx([expected[3], expected[2], expected[1]])
    assert all(one.score == one.rrf_score for one in ranked)


def test_every_hit_carries_its_reciprocal_rank_score_under_the_sum_too():
    by_sum = rank_owners(
        evidence(HAND), weights=Weights(), profiles=PROFILES, fusion=Fusion.SUM, now_us=NOW_US, top_k=10
    )
    by_rank = rank_owners(
        evidence(HAND), weights=Weights(), profiles=PROFILES, fusion=Fusion.RRF, now_us=NOW_US, top_k=10
    )
    assert {one.owner_id: one.rrf_score for one in by_sum} == {one.owner_id: one.score for one in by_rank}


def test_recency_and_confidence_are_rankings_of_their_own_in_reciprocal_rank_fusion():
    weights = Weights(vector=0.5, recency=0.5, confidence=0.2)
    shares = rrf_shares(weights)
    assert shares == pytest.approx({"vector": 0.2, "bm25": 0.2, "recency": 0.4, "confidence": 0.2})
    assert sum(shares.values()) == pytest.approx(1.0)
    ranked = rank_owners(evidence(HAND), weights=weights, profiles=PROFILES, fusion=Fusion.RRF, now_us=NOW_US, top_k=10)
    assert {one.owner_id: one.score for one in ranked} == pytest.approx(
        {
            1: 0.2 / 61 + 0.6 / 61,
            2: 0.2 / 63 + 0.2 / 61 + 0.6 / 62,
            3: 0.2 / 62 + 0.2 / 62 + 0.6 / 63,
        }
    )


def test_only_words_rank_if_the_cosine_does_not_count():
    ranked = rank_owners(
        evidence([(1, 0.5, 0.0, FACT, 0), (2, 0.9, 0.0, FACT, 0)], dense_counts=False),
        weights=Weights(),
        profiles=PROFILES,
        fusion=Fusion.SUM,
        now_us=NOW_US,
        top_k=10,
    )
    assert [(one.owner_id, one.vector_rank, one.lexical_rank) for one in ranked] == [(2, None, 1), (1, None, 2)]
    assert ranked[0].rrf_score == pytest.approx(0.3 / 61)


def test_no_evidence_is_no_ranking():
    for fusion in Fusion:
        assert (
            rank_owners(evidence([]), weights=Weights(), profiles=PROFILES, fusion=fusion, now_us=NOW_US, top_k=5) == []
        )
    assert rank_by_similarity(evidence([]), top_k=5) == []


def test_the_vector_arm_alone_ranks_by_the_plain_cosine():
    ranked = rank_by_similarity(evidence(HAND), top_k=2)
    assert [(one.owner_id, one.at, one.score, one.vector_rank) for one in ranked] == [
        (1, 0, 0.45, 1),
        (3, 2, 0.4, 2),
    ]
    assert [one.rrf_score for one in ranked] == pytest.approx([1 / 61, 1 / 62])
    assert ranked[0].parts == {"similarity": 0.45}


def test_ties_rank_by_owner():
    rows = [(owner, 0.5, 0.5, FACT, 0.0) for owner in (9, 4, 7, 4)]
    for fusion in Fusion:
        ranked = rank_owners(
            evidence(rows), weights=Weights(), profiles=PROFILES, fusion=fusion, now_us=NOW_US, top_k=10
        )
        assert [one.owner_id for one in ranked] == [4, 7, 9]
    assert [one.owner_id for one in rank_by_similarity(evidence(rows), top_k=10)] == [4, 7, 9]
    assert ranks(np.array([0.5, 0.7, 0.5])).tolist() == [2, 1, 3]


# Coarse numbers, so that ties happen.
quarters = st.integers(0, 4).map(lambda number: number / 4)
rows = st.lists(
    st.tuples(st.integers(1, 6), quarters, quarters.map(lambda x: x - 0.5), st.sampled_from(list(Profile)), quarters),
    max_size=25,
)
weightings = st.builds(Weights, vector=quarters, recency=quarters, confidence=quarters)


@given(rows=rows, weights=weightings, top_k=st.integers(1, 8))
def test_the_ranking_by_sum_equals_a_plain_loop(rows: list[Row], weights: Weights, top_k: int):
    most = max((row[1] for row in rows), default=0.0)

    def score(row: Row) -> float:
        _, lexical, dense, profile, age = row
        trust = min(1.0, most / 0.6) if profile is Profile.FACT else 1.0
        return (
            (1 - weights.vector) / 0.3 * trust * lexical
            + weights.vector / 0.7 * (0.4 if profile is Profile.TALK else 1.3) * dense
            + weights.recency * math.pow(0.5, age / 30)
            + weights.confidence * math.pow(0.5, age / 90)
        )

    best: dict[int, float] = {}
    for row in rows:
        best[row[0]] = max(score(row), best.get(row[0], -9.0))
    expected = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    ranked = rank_owners(
        evidence(rows), weights=weights, profiles=PROFILES, fusion=Fusion.SUM, now_us=NOW_US, top_k=top_k
    )
    assert [one.score for one in ranked] == pytest.approx([score for _, score in expected[:top_k]])
    assert [one.score for one in ranked] == pytest.approx([best[one.owner_id] for one in ranked])
    for earlier, later in pairwise(ranked):
        assert (-earlier.score, earlier.owner_id) < (-later.score, later.owner_id)
    for one in ranked:
        assert rows[one.at][0] == one.owner_id
        assert sum(one.parts.values()) == pytest.approx(one.score)


@given(rows=rows, weights=weightings)
def test_the_fusion_score_equals_that_of_the_reported_ranks(rows: list[Row], weights: Weights):
    weights = Weights(vector=weights.vector)
    shares = rrf_shares(weights)
    ranked = rank_owners(
        evidence(rows), weights=weights, profiles=PROFILES, fusion=Fusion.RRF, now_us=NOW_US, top_k=100
    )
    assert len(ranked) == len({row[0] for row in rows})
    for one in ranked:
        expected = sum(
            shares[arm] / (60 + rank)
            for arm, rank in (("vector", one.vector_rank), ("bm25", one.lexical_rank))
            if rank is not None
        )
        assert one.score == pytest.approx(expected)
        assert (one.lexical_rank is None) == all(row[1] == 0 for row in rows if row[0] == one.owner_id)
    assert sorted(one.vector_rank or 0 for one in ranked) == list(range(1, len(ranked) + 1))


balances = st.sampled_from([-0.75, -0.25, 0.0, 0.5])


@given(rows=rows, balance=st.dictionaries(st.integers(1, 6), balances, min_size=1), weight=quarters)
@pytest.mark.parametrize("fusion", list(Fusion))
def test_feedback_multiplies_positive_scores_and_nothing_else(
    rows: list[Row], balance: dict[int, float], weight: float, fusion: Fusion
):
    found = evidence(rows)
    judged = replace(found, balances=np.array([balance.get(owner, 0.0) for owner in found.owner_ids.tolist()]))

    def ranked(one: Evidence, feedback: float) -> dict[int, Ranked]:
        weights = Weights(feedback=feedback)
        of = rank_owners(one, weights=weights, profiles=PROFILES, fusion=fusion, now_us=NOW_US, top_k=10)
        assert [-each.score for each in of] == sorted(-each.score for each in of)
        return {each.owner_id: each for each in of}

    before, after = ranked(found, 0.0), ranked(judged, weight)
    for owner, one in before.items():
        factor = 1 + weight * balance.get(owner, 0.0) if one.score > 0 else 1.0
        assert after[owner].score == pytest.approx(factor * one.score)
    assert {owner: one.score for owner, one in ranked(judged, 0.0).items()} == {
        owner: one.score for owner, one in before.items()
    }
