"""The constants of scoring as the retrieval page states them, written down a second time."""

from __future__ import annotations

from dataclasses import dataclass

from souvenir.core.types import Profile

FACT_BELOW_TOKENS = 60
TALK_BELOW_TOKENS = 256
MEAN_PRIOR_ROWS = 32
FACTS_SHARE = 0.25
CONFIDENCE_HALF_LIFE_DAYS = 90.0
LIKE_ENOUGH = 0.45
SHORTEST_SWAP = 5
LEAST_IDF = 0.1
MOST_TOKEN_WEIGHT = 6.0
TOKEN_SPREAD_TURNS = 3
TOKEN_SCALE = 127
HEAD_TOKENS = 64
"""Of an assistant's answer, so many tokens of the embedding model are embedded."""


@dataclass(frozen=True, slots=True)
class Constants:
    """One column of the page's table; what a profile does not have is 0."""

    k1: float
    b: float
    dense: float
    chunk_tokens: int = 0
    turns: int = 0
    back: float = 0.0
    forward: float = 0.0
    decay: float = 0.0
    after_question: float = 0.0
    speaker: float = 0.0
    role: float = 0.0
    question: float = 0.0
    length: float = 0.0
    time_word: float = 0.0
    number: float = 0.0
    name: float = 0.0
    period: float = 0.0
    day: float = 0.0
    doubt_below: float = 0.0
    late: float = 0.0
    late_unrelated: float = 0.0
    late_lexical: float = 1.0
    late_dense: float = 0.0


TABLE = {
    Profile.TALK: Constants(
        k1=0.9,
        b=0.15,
        dense=0.4,
        turns=6,
        back=0.7,
        forward=0.6,
        decay=0.8,
        after_question=0.9,
        role=0.4,
        speaker=0.3,
        question=-0.10,
        length=0.05,
        time_word=0.30,
        number=0.12,
        name=0.06,
        period=0.45,
        day=0.05,
        late=1.5,
        late_unrelated=0.35,
        late_lexical=0.5,
        late_dense=0.4,
    ),
    Profile.FACT: Constants(
        k1=0.9,
        b=0.4,
        dense=1.3,
        turns=3,
        back=0.4,
        forward=0.4,
        decay=0.8,
        doubt_below=0.6,
        period=0.4,
        day=0.05,
        late=1.0,
        late_unrelated=0.3,
        late_lexical=0.75,
        late_dense=1.0,
    ),
    Profile.DOC: Constants(k1=1.2, b=0.75, dense=1.3, period=0.4, day=0.05),
    Profile.CHAT: Constants(k1=0.9, b=0.4, dense=1.3, chunk_tokens=64, role=0.4, period=0.4, day=0.05),
}
