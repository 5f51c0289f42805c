"""Whether what was found bears on the question at all: a soft flag, beside what was found and never in its place.

Three signals: the best cosine of a find with the question; the share of the question's words that stand in one of the
first finds; and, where the question names one of those who speak, whether somebody else's turns answer it better. The
thresholds were chosen on LoCoMo and BEAM (docs/benchmarks.md has the rates, `benchmarks/context` measures them). They
tell a question of another subject from one of this. Most questions that are about the same things and yet not answered
they do not tell from answered ones. The cosines are those of all-MiniLM-L6-v2, and other models have other scales. Pure
functions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

STRONG_SIMILARITY = 0.50
"""Reached by the best find for 95 % of the questions that a conversation answers, and 6 % of those of other ones."""

NO_SIMILARITY = 0.40
NO_COVERAGE = 0.60
"""Below both: 1 % of the questions that a conversation answers, 69 % of those of other ones."""

WORDS_ENOUGH = 2
"""One word that stands somewhere says little: `name` of "What is my name?" does in many messages."""

FINDS_READ = 3
"""Finds whose words are looked at."""

OTHERS_LEAD = 0.10
"""By so much in score the best turn of others goes before that of the speaker whom the question names: 40 % of the
questions about the wrong speaker, 9 % of those about the right one."""


class Evidence(StrEnum):
    STRONG = "strong"
    WEAK = "weak"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Find:
    """:param similarity: The cosine with the question; None where that means nothing.

    :param words: The terms of its text; only those of the first `FINDS_READ` are looked at.
    :param speaker: The terms of the name of who said it; empty if it has none.
    """

    similarity: float | None
    score: float
    words: Collection[str] = ()
    speaker: frozenset[str] = frozenset()


def evidence(asked: Collection[str], finds: Sequence[Find]) -> Evidence:
    """:param asked: The terms of the question. :param finds: Best first."""
    words = frozenset(asked)
    cosine = max((find.similarity for find in finds if find.similarity is not None), default=0.0)
    coverage = max((_share(words, find.words) for find in finds[:FINDS_READ]), default=0.0)
    if cosine < NO_SIMILARITY and coverage < NO_COVERAGE:
        return Evidence.NONE
    near = cosine >= STRONG_SIMILARITY or (coverage == 1.0 and len(words) >= WORDS_ENOUGH)
    return Evidence.STRONG if near and not _is_others_talk(words, finds) else Evidence.WEAK


def _share(asked: frozenset[str], words: Collection[str]) -> float:
    return len(asked.intersection(words)) / len(asked) if asked else 0.0


def _is_others_talk(asked: frozenset[str], finds: Sequence[Find]) -> bool:
    """Whether the question names one of those who were found to speak, and others go well before them."""
    named = {find.speaker for find in finds if find.speaker and find.speaker <= asked}
    if len(named) != 1:
        return False
    own = max(find.score for find in finds if find.speaker in named)
    others = max((find.score for find in finds if find.speaker and find.speaker not in named), default=own)
    return others - own > OTHERS_LEAD
