"""Probabilities of results: values computed by hand, and what holds for any scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.types import Profile
from souvenir.retrieval.probability import CALIBRATIONS, COMPARED, Arms, Calibration, descending, probabilities
from souvenir.retrieval.profiles import PROFILES
from souvenir.retrieval.ranking import Evidence, Ranked

scores = st.lists(st.floats(-3.0, 5.0), min_size=1, max_size=60)


def evidence(
    similarity: Sequence[float],
    *,
    owners: Sequence[int] = (),
    profile: Profile = Profile.FACT,
    dense_counts: bool = True,
) -> Evidence:
    count = len(similarity)
    return Evidence(
        rows=np.arange(count),
        owner_ids=np.array(owners or range(count)),
        lexical=np.array(similarity),
        dense=np.zeros(count),
        similarity=np.array(similarity),
        profiles=np.full(count, profile),
        occurred_us=np.zeros(count, dtype=np.int64),
        fields={},
        greatest_lexical=1.0,
        dense_counts=dense_counts,
    )


def test_a_calibration_is_the_logistic_of_a_share_and_of_the_relevance():
    calibration = Calibration(temperature=0.5, bias=1.0, lead=2.0, relevance=0.25)
    found = calibration(np.array([1.0, 0.5]), np.array([1.0, 0.5]), relevance=0.8)
    whole = math.exp(2) + math.exp(1) + (COMPARED - 2)
    shares = [math.exp(2) / whole, math.exp(1) / whole]
    exponents = [1.0 + 2.0 * math.log(share) + 0.25 * math.log(4) for share in shares]
    assert found == pytest.approx([1 / (1 + math.exp(-exponent)) for exponent in exponents], abs=1e-6)
    assert np.isfinite(calibration(np.array([1.0]), np.array([1.0]), relevance=0.0)).all()


@given(scores, st.sampled_from(Profile), st.booleans(), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_better_score_and_more_relevance_are_never_less_likely(
    of: list[float], profile: Profile, hybrid: bool, relevance: float, more: float
):
    low, high = sorted((relevance, more))
    found = probabilities(evidence(of, profile=profile), PROFILES, CALIBRATIONS, low, hybrid=hybrid).owners
    assert ((found >= 0) & (found <= 1)).all()
    order = np.argsort(np.array(of))
    assert (np.diff(found[order]) >= 0).all()
    assert (
        probabilities(evidence(of, profile=profile), PROFILES, CALIBRATIONS, high, hybrid=hybrid).owners >= found
    ).all()


def test_the_only_memory_of_a_store_is_not_likely_to_answer_anything():
    [near], [far] = (
        probabilities(evidence([of]), PROFILES, CALIBRATIONS, 0.2, hybrid=True).owners for of in (1.5, 0.2)
    )
    assert far < 0.1 < 0.4 < near


@given(scores)
def test_results_beyond_the_compared_ones_change_no_probability(of: list[float]):
    of = sorted(of, reverse=True)
    every = probabilities(evidence(of), PROFILES, CALIBRATIONS, 0.5, hybrid=True).owners
    first = probabilities(evidence(of[:COMPARED]), PROFILES, CALIBRATIONS, 0.5, hybrid=True).owners
    assert every[:COMPARED] == pytest.approx(first)


def test_a_passage_is_as_likely_as_if_it_were_all_of_its_owner():
    one = probabilities(evidence([1.0, 0.4, 0.7], owners=[1, 1, 2]), PROFILES, CALIBRATIONS, 0.5, hybrid=True)
    alone = probabilities(evidence([0.4, 0.7], owners=[1, 2]), PROFILES, CALIBRATIONS, 0.5, hybrid=True)
    assert one.passage(1) == pytest.approx(alone.owners[0], abs=1e-6)


def test_a_passage_is_not_more_likely_than_its_owner():
    found = probabilities(evidence([1.0, 0.4, 0.7], owners=[1, 1, 2]), PROFILES, CALIBRATIONS, 0.5, hybrid=True)
    assert found.owners[0] == found.owners[1]
    assert found.passage(0) == found.owners[0]
    assert found.passage(1) < found.owners[1]


def test_the_arms_that_took_part_choose_the_constants():
    of = [1.0, 0.5]
    by_words = probabilities(evidence(of, dense_counts=False), PROFILES, CALIBRATIONS, 0.5, hybrid=True).owners
    expected = CALIBRATIONS[Arms.WORDS][Profile.FACT](np.array(of), np.array(of), 0.5)
    assert by_words == pytest.approx(expected)
    assert by_words[0] != probabilities(evidence(of), PROFILES, CALIBRATIONS, 0.5, hybrid=False).owners[0]


@given(st.lists(st.floats(0.0, 1.0), max_size=8))
def test_probabilities_of_another_order_are_lowered_to_that_of_the_one_before(of: list[float]):
    ranked = [Ranked(n, n, 0.0, 0.0, {}, None, None, probability=one) for n, one in enumerate(of)]
    found = [one.probability for one in descending(ranked)]
    assert found == [min(of[: n + 1]) for n in range(len(of))]
