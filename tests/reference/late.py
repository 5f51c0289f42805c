"""Late interaction, a token and a passage at a time: the best match of each query token, here or in a neighbour."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from souvenir.core.types import Embedder
from tests.reference.constants import MOST_TOKEN_WEIGHT, TABLE, TOKEN_SPREAD_TURNS
from tests.reference.cues import ends_in_question
from tests.reference.passages import SlowPassage

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class QueryToken:
    vector: NDArray[np.float64]
    weight: float


def query_tokens(
    text: str, embedder: Embedder, terms: Callable[[str], Sequence[str]], idf: Callable[[str], float], names: set[str]
) -> list[QueryToken]:
    """The tokens of a query that are no speaker's name; each weighs as the rarest term of its word."""
    tokens = embedder.query_tokens(text)
    if tokens is None:
        return []
    found = []
    for vector, (start, end) in zip(tokens.vectors, tokens.spans, strict=True):
        word = next(match[0] for match in _WORD.finditer(text) if match.start() <= start and end <= match.end())
        of_word = terms(word)
        weight = min(max(map(idf, of_word), default=0.0), MOST_TOKEN_WEIGHT)
        if weight > 0 and not names.intersection(of_word):
            found.append(QueryToken(vector.astype(np.float64), weight))
    return found


def late_interaction(passages: Sequence[SlowPassage], at: int, tokens: Sequence[QueryToken]) -> float:
    """``LI(j) = sum_t w_t m_t(j) / sum_t w_t``."""
    total = sum(token.weight for token in tokens)
    return sum(token.weight * _match(passages, at, token) for token in tokens) / total


def _match(passages: Sequence[SlowPassage], at: int, token: QueryToken) -> float:
    """m_t(j): the greatest cosine with a token here, or in a turn nearby times its share."""
    passage = passages[at]
    greatest = _own_match(passage, token)
    constants = TABLE[passage.profile]
    if passage.session is None or not constants.turns:
        return greatest
    together = [other for other, one in enumerate(passages) if one.session == passage.session]
    place = together.index(at)
    for distance in range(1, TOKEN_SPREAD_TURNS + 1):
        faded = constants.decay ** (distance - 1)
        if distance <= place:
            before = passages[together[place - distance]]
            share = constants.back * faded
            if distance == 1 and ends_in_question(before.text):
                share = max(share, constants.after_question)
            greatest = max(greatest, share * _own_match(before, token))
        if place + distance < len(together):
            after = passages[together[place + distance]]
            greatest = max(greatest, constants.forward * faded * _own_match(after, token))
    return greatest


def _own_match(passage: SlowPassage, token: QueryToken) -> float:
    return max((float(vector @ token.vector) for vector in passage.tokens), default=0.0)
