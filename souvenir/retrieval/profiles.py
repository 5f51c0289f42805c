"""All constants of scoring, by profile.

Sources: Robertson and Zaragoza 2009 for k1 and b. The values were chosen on development conversations (LoCoMo, four of
ten; BEAM 100k, eight chats) and evaluated on held-out ones; docs/ranking.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from souvenir.core.types import Profile

HEAD_TOKENS = 64
"""Tokens of an assistant's answer that are embedded. Embedding all of it gained nothing at 14 times the cost."""

LEGIBLE_SHARE = 0.6
"""A query of whose tokens the embedding model knows a smaller share is ranked by its words alone, since the rest adds
noise to its vector (English model, Chinese questions: recall@10 .957 with it, .978 without; of the answers to 6,000
random identifiers, 39 were not among the first three with it, none without). The model knows all tokens of every
English question measured, and of the Chinese ones above 0.5 little more than their numbers."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of words to neighbours in the session: per term, the greatest weight that reaches a passage counts.

    A term with weight w in the k-th passage before weighs ``back * decay ** (k - 1) * w`` here, in the k-th after
    ``forward * decay ** (k - 1) * w``. The turn that answers rarely contains the words of the topic; its neighbours do.

    :param turns: The greatest k; 0: no spread. :param after_question: Replaces `back` right after a question.
    """

    turns: int = 0
    back: float = 0.0
    forward: float = 0.0
    decay: float = 0.0
    after_question: float = 0.0


NO_SPREAD = Spread()


@dataclass(frozen=True, slots=True)
class Late:
    """The constants of a profile where late interaction takes part.

    :param weight: Of the late interaction. :param unrelated: That of an unrelated passage, subtracted from it.
    :param lexical: Factor of L(j). :param dense: Replaces the weight of the centred cosine.
    """

    weight: float
    unrelated: float
    lexical: float
    dense: float


@dataclass(frozen=True, slots=True)
class Constants:
    """The score constants of a profile; all except `k1`, `b` and `chunk_tokens` are weights in the sum.

    :param k1: Saturation of a term's repeats. :param b: Share of length normalisation.
    :param chunk_tokens: BM25 weighs chunks of at most this many words and marks; None: the whole passage.
    :param doubt_below: The weight of words falls in proportion to the greatest L(j) of a search below this; 0: never.
    :param dense: Centred cosine. :param speaker: Said by the only speaker that the query names.
    :param role: Said by the user. :param question: Ends with a question mark.
    :param length: Times ln(1 + number of terms). :param time_word: Contains one, for queries about when.
    :param number: Contains one, for "how many" or "how long". :param name: Contains a capitalised word, for who or
        what.
    :param period: Occurred in a period named by the query. :param day: Times the nearness to a named day.
    :param late: Where it takes part in a search; None: nowhere.
    """

    k1: float
    b: float
    dense: float
    doubt_below: float = 0.0
    chunk_tokens: int | None = None
    spread: Spread = NO_SPREAD
    speaker: float = 0.0
    role: float = 0.0
    question: float = 0.0
    length: float = 0.0
    time_word: float = 0.0
    number: float = 0.0
    name: float = 0.0
    period: float = 0.0
    day: float = 0.0
    late: Late | None = None


Profiles = Mapping[Profile, Constants]

# A named user who talks with an assistant is a turn of a talk between messages of a chat, and has their role term;
# talks between people have no assistant, and so no role term.
#
# The weights of a named time are measured for talks and facts. Documents and chats use those of facts: the labelled
# questions to documents name no time, and of those to chats (BEAM) one names a date, which is right either way.
PROFILES: Profiles = MappingProxyType(
    {
        Profile.FACT: Constants(
            k1=0.9,
            b=0.4,
            dense=1.3,
            doubt_below=0.6,
            spread=Spread(turns=3, back=0.4, forward=0.4, decay=0.8),
            period=0.4,
            day=0.05,
            late=Late(weight=1.0, unrelated=0.3, lexical=0.75, dense=1.0),
        ),
        Profile.DOC: Constants(k1=1.2, b=0.75, dense=1.3, period=0.4, day=0.05),
        Profile.TALK: Constants(
            k1=0.9,
            b=0.15,
            dense=0.4,
            spread=Spread(turns=6, back=0.7, forward=0.6, decay=0.8, after_question=0.9),
            speaker=0.3,
            role=0.4,
            question=-0.1,
            length=0.05,
            time_word=0.3,
            number=0.12,
            name=0.06,
            period=0.45,
            day=0.05,
            late=Late(weight=1.5, unrelated=0.35, lexical=0.5, dense=0.4),
        ),
        Profile.CHAT: Constants(k1=0.9, b=0.4, dense=1.3, chunk_tokens=64, role=0.4, period=0.4, day=0.05),
    }
)
