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
    names_in,
    signals_of,
)

ANN, BEN, CEM = 1, 2, 3

SIGNALS = {
    "cosine": st.floats(-1.0, 1.0),
    "unheard": st.floats(0.0, 12.0),
    "covered": st.floats(0.0, 2.2),
    "gap": st.floats(-4.0, 4.0),
}
OF_SHORT = {
    "hit": st.floats(-1.0, 1.0),
    "unknown": st.floats(0.0, 8.0),
    "covered": st.floats(0.0, 2.2),
    "other_name": st.floats(0.0, 1.0),
}
WORDS = {"unknown", "covered", "other_name"}
some_signals = st.fixed_dictionaries({}, optional=SIGNALS).filter(
    lambda signals: ("unheard" in signals) == ("covered" in signals)
) | st.fixed_dictionaries({}, optional=OF_SHORT).filter(lambda signals: len(WORDS & signals.keys()) in (0, 3))


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


def signals(
    evidence: Evidence, speakers: Sequence[int], named: int | None, known: float | None = 1.0, **of_words: object
) -> Signals:
    of = {"rarest": 3.0, "count": 10, "lacking": np.zeros(len(speakers)), **of_words}
    return signals_of(evidence, Spoken(np.array(speakers, dtype=np.int32), named, known, **of), PROFILES)  # type: ignore[arg-type]


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


def test_a_best_hit_that_is_a_short_memory_has_its_own_signals():
    evidence = replace(talk([0.9, 0.2], [0.4, 0.1]), profiles=np.array([Profile.FACT, Profile.DOC]))
    lacking = np.array([0.5, 0.0])
    found = signals(evidence, [0, 0], None, known=0.6, count=200, lacking=lacking)
    assert found == pytest.approx({"hit": 0.2, "unknown": 0.4 * math.log(10), "covered": 0.9, "other_name": 0.5})
    assert signals(evidence, [0, 0], None, known=0.6, count=15)["unknown"] == 0.0
    assert signals(evidence, [0, 0], None, known=None) == {"hit": 0.2}
    assert "hit" not in signals(replace(evidence, dense_counts=False), [0, 0], None)
    assert "hit" not in signals(replace(evidence, profiles=evidence.profiles[::-1]), [0, 0], None)


def test_a_name_in_any_passage_of_the_best_hit_is_its_name():
    evidence = replace(talk([0.9, 0.2], [0.4, 0.1]), profiles=np.full(2, Profile.FACT), owner_ids=np.array([7, 7]))
    assert signals(evidence, [0, 0], None, lacking=np.array([1.0, 0.0]))["other_name"] == 0.0


def test_nothing_is_relevant_to_a_query_that_neither_the_model_nor_a_text_knows():
    assert judge({"unknown": 0.0, "covered": 0.0, "other_name": 0.0}).relevance == 0.0
    assert judge({"unheard": 4.0, "covered": 0.0}).evidence is EvidenceLevel.NONE
    assert judge({"unknown": 0.0, "covered": 0.9, "other_name": 0.0}).relevance > 0.5


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Which vet looks after Pickle?", {"pickle"}),
        ("Can Zoë O'Hara be reached at Foo-Bar?", {"zoë", "o'hara", "foo-bar"}),
        ("I'm late. What does the Nile's delta grow", {"nile's"}),
        ("who has my spare key", set()),
    ],
)
def test_names_are_capitalised_words_other_than_function_words(query: str, names: set[str]):
    assert names_in(query, lambda word: [word.casefold()]) == names


def test_relevance_is_the_product_of_both_logistics():
    of = COEFFICIENTS
    every = {"cosine": 0.5, "unheard": 0.9, "covered": 0.7, "gap": 0.1}
    for left_out, spoken_of, answered in (
        ((), of.spoken_of, of.answered_by_the_named),
        (("gap",), of.spoken_of, of.answered),
        (("cosine",), of.spoken_of_by_words, of.answered_by_the_named),
        (("cosine", "gap"), of.spoken_of_by_words, of.answered),
        (("unheard", "covered", "gap"), of.spoken_of_by_meaning, of.answered),
    ):
        given = {name: value for name, value in every.items() if name not in left_out}
        assert judge(given).relevance == pytest.approx(spoken_of(given) * answered(given))
        assert judge(given).signals == given


def test_relevance_of_a_short_memory_is_one_logistic():
    of = COEFFICIENTS
    every = {"hit": 0.5, "unknown": 0.9, "covered": 0.7, "other_name": 0.5}
    for found, function in (
        (every, of.short),
        ({name: every[name] for name in WORDS}, of.short_by_words),
        ({"hit": 0.5}, of.short_by_meaning),
    ):
        assert judge(found).relevance == pytest.approx(function(found))


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
    lowers = name in ("unheard", "unknown", "other_name")
    assert after <= before + 1e-12 if lowers else after >= before - 1e-12


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
