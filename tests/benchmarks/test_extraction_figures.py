"""The figures of the extraction benchmark, on texts that are small enough to count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.extraction import facts, types
from benchmarks.extraction.corrections import outcome_of
from benchmarks.extraction.data_sets import PairKind, Paragraph, ReferenceFact, Session, Turn, TypedText
from benchmarks.extraction.facts import Tally
from benchmarks.extraction.learners import Learned, LearnedFact
from benchmarks.extraction.matching import COSINE, OVERLAP, matches, measures
from souvenir.core.types import FloatVector
from tests.fake_embedder import FakeEmbedder

TURNS = (Turn("t1", "Ann", "I keep two newts"), Turn("t2", "Bo", "My gecko\nis green"), Turn("t3", "Ann", "Bye"))


def equal(found: Sequence[str], wanted: Sequence[str]) -> FloatVector:
    return np.array([[float(one == other) for other in wanted] for one in found], dtype=np.float32)


def session(*references: ReferenceFact) -> Session:
    return Session("s", None, TURNS, references)


def test_matches_are_one_to_one_and_the_most_alike_come_first():
    likeness = np.array([[0.8, 0.9], [0.7, 0.85], [0.3, 0.2]], dtype=np.float32)
    assert matches(likeness, 0.5) == {0: 1, 1: 0}


def test_a_similarity_equal_to_the_threshold_is_a_match():
    assert matches(np.array([[0.5, 0.25]], dtype=np.float32), 0.5) == {0: 0}
    assert matches(np.array([[0.5, 0.25]], dtype=np.float32), 0.75) == {}


def test_the_first_of_equal_similarities_is_taken():
    assert matches(np.full((2, 2), 0.5, dtype=np.float32), 0.5) == {0: 0, 1: 1}


def test_overlap_is_twice_the_shared_terms_over_all_terms():
    """newt, green and newt, big, green: 2 * 2 / (2 + 3); stop words and endings do not count."""
    overlap = measures(FakeEmbedder())[OVERLAP](["the green newts", "of the"], ["a big green newt"])
    assert overlap[0, 0] == pytest.approx(0.8)
    assert overlap[1, 0] == 0.0


def test_cosine_is_that_of_the_vectors():
    """Two of three words are shared: 2 / sqrt(3 * 3)."""
    cosine = measures(FakeEmbedder())[COSINE](["red green newt"], ["blue green newt"])
    assert cosine[0, 0] == pytest.approx(2 / 3, abs=1e-6)


def test_a_character_of_the_transcript_belongs_to_the_turn_of_its_line():
    """The lines begin at 0, 22 and 42: "Ann: I keep two newts" and "Bo: My gecko is green" have 21 characters each."""
    assert [session().turn_at(offset) for offset in (0, 20, 22, 43, 44)] == ["t1", "t1", "t2", "t2", "t3"]


def test_recall_counts_references_and_precision_counts_what_was_found():
    found = [LearnedFact("newts", "add"), LearnedFact("newts", "noop"), LearnedFact("cats", "add")]
    reference = session(ReferenceFact("newts", frozenset({"t1"})), ReferenceFact("gecko", frozenset({"t2"})))
    tally = facts.figures_of(reference, found, {COSINE: equal, OVERLAP: equal}).facts[COSINE]
    assert (tally.recall, tally.precision) == (1 / 2, 1 / 3)


def test_a_quote_is_located_if_it_is_in_a_turn_of_the_evidence():
    found = [
        LearnedFact("newts", "add", offset=5),
        LearnedFact("gecko", "add", offset=5),
        LearnedFact("cats", "add", offset=5),
        LearnedFact("bye", "add"),
    ]
    reference = session(
        ReferenceFact("newts", frozenset({"t1"})),
        ReferenceFact("gecko", frozenset({"t2"})),
        ReferenceFact("bye", frozenset({"t3"})),
    )
    figures = facts.figures_of(reference, found, {COSINE: equal, OVERLAP: equal})
    assert (figures.learned, figures.quoted, figures.locatable, figures.located) == (4, 3, 2, 1)


def test_figures_of_sessions_add_up():
    one = facts.FactFigures(facts={COSINE: Tally(2, 4, 1), OVERLAP: Tally()}, learned=2, quoted=1)
    both = one + one
    assert both.facts[COSINE] == Tally(4, 8, 2)
    assert (both.learned, both.quoted) == (4, 2)


def test_nothing_found_is_a_recall_of_zero_and_no_precision():
    tally = facts.figures_of(session(ReferenceFact("newts", frozenset())), [], {COSINE: equal, OVERLAP: equal}).facts
    assert tally[COSINE].recall == 0.0
    assert np.isnan(tally[COSINE].precision)


def learned(*found: LearnedFact) -> Learned:
    return Learned(found, 0.0)


FIRST = learned(LearnedFact("old", "add", memory_id=1))


def test_an_update_of_the_first_statement_replaces_it():
    second = learned(LearnedFact("new", "update", memory_id=2, target=1))
    outcome = outcome_of(PairKind.UPDATE, FIRST, second, [2, 9])
    assert (outcome.learned, outcome.replaced, outcome.flagged) == (True, True, False)
    assert (outcome.wrong, outcome.newer_first, outcome.found) == (0, True, True)


def test_a_conflict_flags_the_first_statement_and_the_older_one_may_still_come_first():
    second = learned(LearnedFact("new", "conflict", memory_id=2, target=1))
    outcome = outcome_of(PairKind.CONTRADICTION, FIRST, second, [1, 2])
    assert (outcome.replaced, outcome.flagged) == (False, True)
    assert (outcome.newer_first, outcome.found) == (False, True)


def test_a_memory_that_is_none_of_the_pairs_is_touched_wrongly_once():
    second = learned(LearnedFact("new", "delete", target=7), LearnedFact("other", "update", memory_id=3, target=7))
    outcome = outcome_of(PairKind.UPDATE, FIRST, second, [])
    assert (outcome.replaced, outcome.wrong, outcome.found) == (False, 1, False)


def test_rows_touched_by_the_first_statement_are_wrong_too():
    first = learned(LearnedFact("old", "update", memory_id=1, target=7))
    assert outcome_of(PairKind.UPDATE, first, learned(), []).wrong == 1


def test_to_say_a_thing_again_touches_nothing_and_does_not_put_it_behind_itself():
    second = learned(LearnedFact("old", "noop", target=1))
    outcome = outcome_of(PairKind.UPDATE, FIRST, second, [1])
    assert (outcome.learned, outcome.replaced, outcome.wrong, outcome.newer_first) == (True, False, 0, True)


def test_a_first_statement_that_was_known_already_is_replaced_where_it_was_known():
    first = learned(LearnedFact("old", "noop", target=5))
    second = learned(LearnedFact("new", "update", memory_id=6, target=5))
    outcome = outcome_of(PairKind.UPDATE, first, second, [6])
    assert (outcome.learned, outcome.replaced, outcome.wrong) == (True, True, 0)


def test_types_are_found_by_cosine_and_right_by_category():
    paragraph = Paragraph("p", "...", [TypedText("decision", "newts"), TypedText("fact", "gecko")])
    found = [LearnedFact("newts", "add", category="DECISION"), LearnedFact("gecko", "add", category="DECISION")]
    figures = types.figures_of(paragraph, found, equal)
    assert (figures.recall, figures.typed_recall) == (1.0, 0.5)
    assert (figures + types.figures_of(paragraph, [], equal)).recall == 0.5
