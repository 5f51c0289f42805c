"""Every constant of scoring, a row a profile.

Sources: Robertson and Zaragoza 2009 for k1 and b. The values were chosen on development conversations (LoCoMo, four of
its ten; BEAM 100k, eight chats) and scored on others that were kept back; docs/retrieval.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from souvenir.core.types import Profile

HEAD_TOKENS = 64
"""Tokens that an assistant's answer is embedded by. Embedding all of it gained nothing at 14 times the cost."""

LEGIBLE_SHARE = 0.6
"""A question of whose tokens the embedding model knows fewer than this share is ranked by its words alone: what the
model makes of the rest is noise (English model, Chinese questions: recall@10 .957 with it, .978 without; of the answers
to 6,000 random identifiers, 39 were not among the first three with it, none without). It knows all of every English
question measured, and of the Chinese ones above 0.5 little but their numbers."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How a passage takes part in what its neighbours in the session say: the greatest of what reaches it, a term.

    A term that weighs w in the k-th passage before weighs ``back * decay ** (k - 1) * w`` here, in the k-th behind
    ``forward * decay ** (k - 1) * w``. The turn that answers rarely holds the words of the topic; its neighbours do.

    :param turns: The farthest k; 0: none. :param after_question: Stands for `back` right after a turn that asks.
    """

    turns: int = 0
    back: float = 0.0
    forward: float = 0.0
    decay: float = 0.0
    after_question: float = 0.0


NO_SPREAD = Spread()


@dataclass(frozen=True, slots=True)
class Constants:
    """What a passage of a profile is scored by; all but `k1`, `b` and `chunk_tokens` are weights in the sum.

    :param k1: Saturation of a term's repeats. :param b: Share of length normalisation.
    :param chunk_tokens: BM25 weighs pieces of at most so many words and marks; None: the whole passage.
    :param dense: Of the centred cosine. :param speaker: Said by the one speaker whom the question names.
    :param role: Said by the user. :param question: Ends with a question mark.
    :param length: Times ln(1 + number of terms). :param time_word: Has one, asked for when.
    :param number: Has one, asked for how many or how long. :param name: Has a capitalised word, asked for who or what.
    :param period: Occurred in a period that the question names. :param day: Times the nearness to a day that it names.
    """

    k1: float
    b: float
    dense: float
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


Profiles = Mapping[Profile, Constants]

# A user who has a name and talks with an assistant is a turn of a talk between messages of a chat, and has their role
# term; talks between people have no assistant, and so no role term.
#
# The weights of a named time are measured for talks and facts. Documents and chats have those of facts: the labelled
# questions to documents name no time, and of those to chats (BEAM) one names a date, which is right either way.
PROFILES: Profiles = MappingProxyType(
    {
        Profile.FACT: Constants(
            k1=0.9,
            b=0.4,
            dense=1.3,
            spread=Spread(turns=3, back=0.4, forward=0.4, decay=0.8),
            period=0.4,
            day=0.05,
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
        ),
        Profile.CHAT: Constants(k1=0.9, b=0.4, dense=1.3, chunk_tokens=64, role=0.4, period=0.4, day=0.05),
    }
)
