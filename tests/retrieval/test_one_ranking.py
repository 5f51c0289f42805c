"""Interleaving of several kinds' results, with numbers computed by hand and with arbitrary numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from souvenir.retrieval.ranking import STRONG_SHARE, interleave

rankings = st.lists(
    st.lists(st.floats(-2.0, 3.0), max_size=6).map(lambda scores: sorted(scores, reverse=True)), max_size=3
)


def test_kinds_alternate_while_their_scores_are_close_to_the_best():
    assert interleave([[2.0, 1.9, 1.8, 0.5], [1.6, 1.5, 1.4, 0.1]]) == [
        *((0, 0), (1, 0), (0, 1), (1, 1), (0, 2)),
        *((1, 2), (0, 3), (1, 3)),
    ]


def test_the_kind_with_the_best_item_begins():
    assert interleave([[1.6, 1.5], [2.0, 1.7]]) == [(1, 0), (0, 0), (1, 1), (0, 1)]
    assert interleave([[2.0], [], [2.0]]) == [(0, 0), (2, 0)]


def test_a_kind_without_good_results_gets_no_places():
    assert interleave([[0.4, 0.3], [1.0, 0.9, 0.8]]) == [(1, 0), (1, 1), (1, 2), (0, 0), (0, 1)]


def test_kinds_with_incomparable_scores_alternate_to_the_end():
    assert interleave([[9.0, 8.0, 7.0], [-0.1]], comparable=False) == [(0, 0), (1, 0), (0, 1), (0, 2)]


def test_scores_alone_decide_if_none_is_positive():
    assert interleave([[-0.5, -0.9], [-0.4, -0.6]]) == [(1, 0), (0, 0), (1, 1), (0, 1)]


@given(rankings)
def test_every_item_occurs_once_and_strong_items_keep_their_order(scores: list[list[float]]):
    order = interleave(scores)
    assert sorted(order) == [(kind, place) for kind, of in enumerate(scores) for place in range(len(of))]
    for kind in range(len(scores)):
        places = [place for one, place in order if one == kind]
        assert places == sorted(places)


@given(rankings)
def test_no_weak_item_precedes_a_strong_one(scores: list[list[float]]):
    best = max((of[0] for of in scores if of), default=0.0)
    strong = [scores[kind][place] >= STRONG_SHARE * best for kind, place in interleave(scores)]
    assert strong == sorted(strong, reverse=True)
