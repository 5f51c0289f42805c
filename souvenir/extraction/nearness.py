"""How alike texts are: by their words, by their figures, and by the cosine of their vectors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from souvenir.index.folding import normalised
from souvenir.passages import PreparedPassage
from souvenir.search.duplicates import words_of
from souvenir.types import FloatVector

NOVELTY_SIMILARITY = 0.85
"""Cosine from which a text says nothing new beside another, as far as vectors tell; figures may still differ."""

_FIGURE = re.compile(r"[0-9]+")


def words_key(text: str) -> str:
    """The same of texts that differ in nothing but case, spacing, punctuation and how their letters are encoded."""
    return " ".join(words_of(normalised(text)))


def figures(text: str) -> Counter[str]:
    """The numbers in a text: two that differ in one say different things, however near their vectors are."""
    return Counter(_FIGURE.findall(normalised(text)))


def unit_vectors(prepared: Sequence[Sequence[PreparedPassage]]) -> list[FloatVector]:
    """The unit mean vector (dim,) of each text's passages."""
    return [_unit(np.sum([passage.vector for passage in passages], axis=0)) for passages in prepared]


def cosine(one: FloatVector, other: FloatVector) -> float:
    """Of unit vectors."""
    return float(np.dot(one, other))


def _unit(vector: FloatVector) -> FloatVector:
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length else vector
