"""The lexical evidence, a term and a passage at a time: BM25 over chunks, spread over neighbours, and typo repair."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence

from souvenir.index.analyser import QueryWord, WordKind
from tests.reference.constants import LEAST_IDF, LIKE_ENOUGH, SHORTEST_SWAP, TABLE
from tests.reference.cues import ends_in_question
from tests.reference.passages import SlowPassage


class Words:
    """The words of some passages; those of a session stand in their order, others may stand between them."""

    def __init__(self, passages: Sequence[SlowPassage]) -> None:
        chunks = [chunk for passage in passages for chunk in passage.chunks]
        self._passages = passages
        self._together: defaultdict[Hashable, list[int]] = defaultdict(list)
        for at, passage in enumerate(passages):
            if passage.session is not None:
                self._together[passage.session].append(at)
        self._count = len(chunks)
        of_texts = [chunk for passage in passages if not passage.of_fact for chunk in passage.chunks]
        self._average_length = sum(map(len, of_texts)) / len(of_texts)
        self._df = Counter(term for chunk in chunks for term in set(chunk))

    def evidence(self, at: int, terms: Sequence[str]) -> float:
        """L(j) = the greatest over the chunks of sum_t idf_t w_t / sum_t idf_t over the terms of a query."""
        known = [term for term in terms if self._df[term]]
        if not known:
            return 0.0
        passage = self._passages[at]
        spread = TABLE[passage.profile].turns > 0
        lent = {term: self._spread(at, term) if spread else 0.0 for term in known}
        sums = [
            sum(self.idf(term) * max(self._weight(passage, chunk, term), lent[term]) for term in known)
            for chunk in passage.chunks
        ]
        return max(sums) / sum(map(self.idf, terms))

    def idf(self, term: str) -> float:
        return max(math.log((self._count - self._df[term] + 0.5) / (self._df[term] + 0.5)), LEAST_IDF)

    def _weight(self, passage: SlowPassage, chunk: Sequence[str], term: str) -> float:
        tf = chunk.count(term)
        if not tf:
            return 0.0
        k1, b = TABLE[passage.profile].k1, TABLE[passage.profile].b
        return tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(chunk) / self._average_length))

    def _best_weight(self, at: int, term: str) -> float:
        passage = self._passages[at]
        return max(self._weight(passage, chunk, term) for chunk in passage.chunks)

    def _spread(self, at: int, term: str) -> float:
        """m_t(j): the turn's own weight, or what a turn up to K before or after lends it, whichever is greatest."""
        passage = self._passages[at]
        if passage.session is None:
            return self._best_weight(at, term)
        constants, together = TABLE[passage.profile], self._together[passage.session]
        place = together.index(at)
        greatest = self._best_weight(at, term)
        for distance in range(1, constants.turns + 1):
            faded = constants.decay ** (distance - 1)
            if distance <= place:
                other = together[place - distance]
                share = constants.back * faded
                if distance == 1 and ends_in_question(self._passages[other].text):
                    share = max(share, constants.after_question)
                greatest = max(greatest, share * self._best_weight(other, term))
            if place + distance < len(together):
                other = together[place + distance]
                greatest = max(greatest, constants.forward * faded * self._best_weight(other, term))
        return greatest

    def repaired(self, words: Iterable[QueryWord]) -> list[str]:
        """The distinct terms of a query; a plain word that no passage holds becomes the known word most like it."""
        terms = [
            self._nearest(word.term) if word.kind is WordKind.PLAIN and not self._df[word.term] else word.term
            for word in words
        ]
        return list(dict.fromkeys(terms))

    def _nearest(self, term: str) -> str:
        swapped = [term[:at] + term[at + 1] + term[at] + term[at + 2 :] for at in range(len(term) - 1)]
        similar = {known: 1.0 for known in swapped if self._df[known]} if len(term) >= SHORTEST_SWAP else {}
        if not similar:
            similar = {known: jaccard(trigrams(term), trigrams(known)) for known in self._df if self._df[known]}
        near = [
            (-similarity, -self._df[known], known) for known, similarity in similar.items() if similarity >= LIKE_ENOUGH
        ]
        return min(near)[2] if near else term


def trigrams(term: str) -> set[str]:
    padded = f"  {term}  "
    return {padded[at : at + 3] for at in range(len(term) + 2)} if term.isalpha() and 4 <= len(term) <= 64 else set()


def jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0
