"""The walk over shared concepts, against a slow one over the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.graph.walking import STEPS, ConceptGraph
from souvenir.knowledge.concept_ranking import rarity

KEYS = [["lisbon", "alice"], ["lisbon", "camera"], ["camera", "alice"], ["alice"], [], ["alice", "rain"], ["camera"]]
MAX_SHARE = 0.5
"""Leaves Alice out, whom four of seven mention."""


@pytest.mark.parametrize("damping", [0.5, 0.85])
@pytest.mark.parametrize(("seed", "concept"), [(0, None), (None, "camera"), (1, "lisbon")])
def test_the_walk_is_that_over_the_whole_matrix(damping: float, seed: int | None, concept: str | None):
    graph = ConceptGraph.of(KEYS, MAX_SHARE)
    assert set(graph.concepts) == {"lisbon", "camera"}
    documents, concepts = np.zeros(len(KEYS)), np.zeros(len(graph.concepts))
    share = 1.0 if seed is None or concept is None else 0.5
    if seed is not None:
        documents[seed] = share
    if concept is not None:
        concepts[graph.concepts[concept]] = share
    expected = slow_reference(list(graph.concepts), documents, concepts, damping)
    found = graph.support(documents, concepts, damping=damping)
    assert np.allclose(found, expected)
    assert found.max() == 1.0
    assert found[4] == found[3] == found[5] == 0.0


def test_where_nothing_is_shared_nothing_is_supported():
    graph = ConceptGraph.of([["a"], ["b"]], 1.0)
    assert graph.support(np.array([1.0, 0.0]), np.zeros(0), damping=0.5).tolist() == [0.0, 0.0]


def slow_reference(
    concepts: list[str], start: np.ndarray, named: np.ndarray, damping: float
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Step by step: what arrives at each document over its concepts, or from the concepts that the question names."""
    mentions = np.array([[float(key in keys) for key in concepts] for keys in KEYS])
    owners = mentions.sum(axis=0)
    rare = np.array([rarity(int(count), len(KEYS)) for count in owners])
    forth = mentions * rare
    forth = forth / np.where(forth.sum(axis=1) > 0, forth.sum(axis=1), 1.0)[:, None]
    back = (mentions / owners).T
    at, reached = start, named @ back
    for _ in range(STEPS):
        reached = damping * (at @ forth @ back) + (1 - damping) * (named @ back)
        at = (1 - damping) * start + reached
    return np.asarray(reached / reached.max(), dtype=np.float64)
