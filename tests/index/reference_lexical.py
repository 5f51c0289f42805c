"""A reference implementation of the lexical index: rows in a list, everything recounted on every call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from souvenir.core.types import Profile
from souvenir.index.lexical import Bm25Constants


class ReferenceIndex:
    """Rows of terms; removing one moves the last row to its place."""

    def __init__(self, constants: Mapping[Profile, Bm25Constants]) -> None:
        self.constants = constants
        self.rows: list[tuple[list[str], Profile]] = []

    def add(self, terms: Sequence[str], profile: Profile) -> None:
        self.rows.append((list(terms), profile))

    def remove(self, row: int) -> None:
        self.rows[row] = self.rows[-1]
        self.rows.pop()

    def document_frequency(self, term: str) -> int:
        return sum(term in terms for terms, _ in self.rows)

    def average_length(self) -> float:
        return sum(len(terms) for terms, _ in self.rows) / len(self.rows) if self.rows else 0.0

    def idf(self, term: str) -> float:
        df = self.document_frequency(term)
        return max(math.log((len(self.rows) - df + 0.5) / (df + 0.5)), 0.1)

    def weight(self, term: str, row: int) -> float:
        terms, profile = self.rows[row]
        tf = terms.count(term)
        if not tf:
            return 0.0
        k1, b = self.constants[profile].k1, self.constants[profile].b
        return tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(terms) / self.average_length()))

    def score(self, query: Sequence[str]) -> list[float]:
        known = [term for term in sorted(set(query)) if self.document_frequency(term)]
        total = sum(self.idf(term) for term in known)
        return [
            sum(self.idf(term) * self.weight(term, row) for term in known) / total if known else 0.0
            for row in range(len(self.rows))
        ]

    def terms(self) -> set[str]:
        return {term for terms, _ in self.rows for term in terms}

    def nearest(self, term: str, least_similarity: float) -> str | None:
        """Return the repair of an unknown term: swapped letters, else most shared trigrams; ties by df, then a to z."""
        known = self.terms()
        if len(term) >= 5:
            swapped = {term[:at] + term[at + 1] + term[at] + term[at + 2 :] for at in range(len(term) - 1)} & known
            if swapped:
                return min(swapped, key=lambda other: (-self.document_frequency(other), other))
        near = [
            (-similarity, -self.document_frequency(other), other)
            for other in known
            if (similarity := trigram_similarity(term, other)) >= least_similarity
        ]
        return min(near)[2] if near else None


def trigram_similarity(one: str, other: str) -> float:
    """Jaccard similarity of the trigrams of two words of letters, each padded with two blanks on either side."""
    if not all(4 <= len(word) <= 64 and word.isalpha() for word in (one, other)):
        return 0.0
    first, second = ({f"  {word}  "[at : at + 3] for at in range(len(word) + 2)} for word in (one, other))
    return len(first & second) / len(first | second)
