"""Relevance: values computed by hand, invariants, and a plain loop for the speakers' means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.types import EvidenceLevel, Profile
from souvenir.retrieval.profiles import PROFILES
from souvenir.retrieval.ranking import Evidence
from souvenir.retrieval.relevance import (
    COEFFICIENTS,
    STRONG_RELEVANCE,
    WEAK_RELEVANCE,
    Judgement,
    Logistic,
    Signals,
    Spoken,
    best_means,
    evidence_of,
    judge,
    signals_of,
)

ANN, BEN, CEM = 1, 2, 3

SIGNALS = {
    "cosine": st.floats(-1.0, 1.0),
    "unheard": st.floats(0.0, 12.0),
    "covered": st.floats(0.0, 2.2),
    "gap": st.floats(-4.0, 4.0),
    "fact": st.floats(-1.0, 1.0),
}
some_signals = st.fixed_dictionaries({}, optional=SIGNALS).filter(
    lambda signals: ("unheard" in signals) == ("covered" in signals)
)


def talk(lexical: Sequence[float], dense: Sequence[float], *, speaker: Sequence[float] = ()) -> Evidence:
    """Turns with these parts; `speaker` is the score term of the named speaker's turns."""
    count = len(lexical)
    return Evidence(
        rows=np.arange(count),
        owner_ids=np.arange(count),
        lexical=np.array(lexical),
        dense=np.array(dense),
        similarity=np.array(dense) / 2,
        profiles=np.full(count, Profile.TALK),
        occurred_us=np.zeros(count, dtype=np.int64),
        greatest_lexical=max(lexical),
        fields={"speaker": np.array(speaker, dtype=np.float32)} if speaker else {},
    )


def signals(evidence: Evidence, speakers: Sequence[int], named: int | None, known: float | None = 1.0) -> Signals:
    return signals_of(evidence, Spoken(np.array(speakers, dtype=np.int32), named, known, rarest=3.0), PROFILES)


def test_a_logistic_is_the_sigmoid_of_a_weighted_sum():
    logistic = Logistic(-1.0, {"cosine": 4.0, "known": 0.5})
    assert logistic({"cosine": 0.5, "known": 2.0, "gap": 7.0}) == pytest.approx(1 / (1 + math.exp(-2.0)))
    assert Logistic(0.0, {})({}) == 0.5
    assert Logistic(1e6)({}) == 1.0
    assert 0.0 <= Logistic(-1e6)({}) < 1e-200


def test_the_gap_compares_the_best_three_turns_without_the_speaker_term():
    evidence = talk(
        [1.0, 0.8, 0.6, 0.1, 0.9, 0.5, 0.4], [0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0], speaker=[0.3] * 4 + [0.0] * 3
    )
    found = signals(evidence, [ANN, ANN, ANN, ANN, BEN, CEM, CEM], ANN, known=0.5)
    weight = PROFILES[Profile.TALK].dense
    gap = (1.0 + 0.8 + 0.6) / 3 + 0.5 * weight - 0.9
    assert found == pytest.approx({"cosine": 0.25, "unheard": 1.5, "covered": 1.0, "gap": gap})


def test_the_gap_needs_a_named_speaker_and_another_one():
    evidence = talk([1.0, 0.5], [0.1, 0.1])
    assert "gap" not in signals(evidence, [ANN, BEN], None)
    assert "gap" not in signals(evidence, [ANN, ANN], ANN)
    assert "gap" not in signals(evidence, [ANN, 0], ANN)
    assert set(signals(evidence, [ANN, BEN], ANN, known=None)) == {"cosine"}


def test_a_named_speaker_without_results_counts_as_zero():
    evidence = talk([1.0, 0.5], [0.0, 0.0])
    assert signals(evidence, [BEN, BEN], ANN)["gap"] == pytest.approx(-0.75)


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-1, 3)), min_size=1, max_size=40))
def test_the_best_means_equal_those_of_a_plain_loop(rows: list[tuple[int, float]]):
    speakers, scores = zip(*rows, strict=True)
    found = best_means(np.array(scores), np.array(speakers, dtype=np.int32))
    for speaker in set(speakers):
        best = sorted((score for one, score in rows if one == speaker), reverse=True)[:3]
        assert found[speaker] == pytest.approx(sum(best) / len(best))
    assert set(found) == set(speakers)


def test_the_cosine_of_a_best_fact_is_a_signal():
    evidence = replace(talk([0.9, 0.2], [0.4, 0.1]), profiles=np.array([Profile.FACT, Profile.DOC]))
    assert signals(evidence, [0, 0], None)["fact"] == 0.4
    assert "fact" not in signals(replace(evidence, profiles=evidence.profiles[::-1]), [0, 0], None)
    assert "fact" not in signals(replace(evidence, dense_counts=False), [0, 0], None)


def test_relevance_is_the_product_of_both_logistics():
    of = COEFFICIENTS
    every = {"cosine": 0.5, "unheard": 0.9, "covered": 0.7, "gap": 0.1, "fact": 0.6}
    for left_out, spoken_of, answered in (
        ((), of.spoken_of, of.answered_by_the_named),
        (("gap",), of.spoken_of, of.answered_by_a_fact),
        (("gap", "fact"), of.spoken_of, of.answered),
        (("cosine", "fact"), of.spoken_of_by_words, of.answered_by_the_named),
        (("cosine", "gap", "fact"), of.spoken_of_by_words, of.answered),
        (("unheard", "covered", "gap", "fact"), of.spoken_of_by_meaning, of.answered),
    ):
        given = {name: value for name, value in every.items() if name not in left_out}
        assert judge(given).relevance == pytest.approx(spoken_of(given) * answered(given))
        assert judge(given).signals == given


def test_an_answer_without_signals_has_no_evidence():
    assert judge({}) == Judgement(0.0, EvidenceLevel.NONE, {})


@given(some_signals)
def test_relevance_is_a_probability(given_signals: dict[str, float]):
    found = judge(given_signals)
    assert 0.0 <= found.relevance <= 1.0
    assert found.evidence is evidence_of(found.relevance)


@given(some_signals.filter(bool), st.floats(0.0, 1.0), st.data())
def test_relevance_is_monotonic_in_each_signal(given_signals: dict[str, float], more: float, data: st.DataObject):
    name = data.draw(st.sampled_from(sorted(given_signals)))
    before, after = (judge({**given_signals, name: given_signals[name] + by}).relevance for by in (0.0, more))
    assert after <= before + 1e-12 if name == "unheard" else after >= before - 1e-12


@pytest.mark.parametrize(
    ("relevance", "expected"),
    [
        (0.0, EvidenceLevel.NONE),
        (math.nextafter(WEAK_RELEVANCE, 0), EvidenceLevel.NONE),
        (WEAK_RELEVANCE, EvidenceLevel.WEAK),
        (math.nextafter(STRONG_RELEVANCE, 0), EvidenceLevel.WEAK),
        (STRONG_RELEVANCE, EvidenceLevel.STRONG),
        (1.0, EvidenceLevel.STRONG),
    ],
)
def test_evidence_levels_follow_from_relevance(relevance: float, expected: EvidenceLevel):
    assert evidence_of(relevance) is expected
