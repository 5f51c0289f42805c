"""Personalised PageRank (Page et al. 1999; Haveliwala 2002) over documents and the rare concepts that they share.

A walker starts at a seed and goes from a document to one of its concepts, the rarer the likelier, and on to any of the
documents that mention it; after each such step it goes on with the probability `damping`, and else starts again. What a
document gets by being a seed is left out of its support: the other arms count it already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from souvenir.knowledge.concept_ranking import rarity

STEPS = 10
"""Further ones change no ranking: what is left after them is below `damping ** 10`."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ConceptGraph:
    """The mentions of n documents, one an edge, of concepts that at least two and at most a share of them mention.

    :param concepts: The place of each concept, by key.
    :param document: Of each edge; :param concept: likewise. :param forth: The probability of each edge from its
        document on. :param back: And from its concept.
    """

    documents: int
    concepts: dict[str, int]
    document: Integers
    concept: Integers
    forth: Floats
    back: Floats

    @classmethod
    def of(cls, keys: Sequence[Sequence[str]], max_share: float) -> ConceptGraph:
        """:param keys: What each document mentions, each key once."""
        owners: dict[str, int] = {}
        for mentioned in keys:
            for key in mentioned:
                owners[key] = owners.get(key, 0) + 1
        most = max(2.0, max_share * len(keys))
        kept = [key for key, count in owners.items() if 2 <= count <= most]
        concepts = {key: place for place, key in enumerate(kept)}
        edges = [
            (document, concepts[key]) for document, mentioned in enumerate(keys) for key in mentioned if key in concepts
        ]
        document, concept = np.array(edges, dtype=np.int64).reshape(-1, 2).T
        rare = np.array([rarity(owners[key], len(keys)) for key in kept], dtype=np.float64)
        weights = rare[concept] if len(edges) else np.zeros(0)
        leaving = np.bincount(document, weights, len(keys))
        forth = weights / np.where(leaving > 0, leaving, 1.0)[document]
        back = 1.0 / np.bincount(concept, minlength=len(kept))[concept] if len(edges) else np.zeros(0)
        return cls(len(keys), concepts, document, concept, forth, back)

    def support(self, documents: Floats, concepts: Floats, *, damping: float) -> Floats:
        """How much of the walk ends at each document without having begun there, the most of it as 1; (n,).

        :param documents: How likely the walk starts at each, (n,). :param concepts: Likewise; together they make 1.
        """
        # A walk that starts at a concept is half a step from its documents.
        first = self._to_documents(concepts)
        at, reached = documents, first
        for _ in range(STEPS):
            reached = damping * self._to_documents(self._to_concepts(at)) + (1.0 - damping) * first
            at = (1.0 - damping) * documents + reached
        most = reached.max(initial=0.0)
        return reached / most if most > 0 else reached

    def _to_concepts(self, documents: Floats) -> Floats:
        return _sums(self.concept, documents[self.document] * self.forth, len(self.concepts))

    def _to_documents(self, concepts: Floats) -> Floats:
        return _sums(self.document, concepts[self.concept] * self.back, self.documents)


def _sums(places: Integers, values: Floats, count: int) -> Floats:
    return np.bincount(places, values, count).astype(np.float64)
