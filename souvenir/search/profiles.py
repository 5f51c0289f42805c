"""The constants of scoring, a row a profile, and how a text's profile is decided. Nothing else holds a constant.

Sources: Robertson and Zaragoza 2009 for k1 and b; the values were chosen on development conversations and scored on
held-out ones (docs/benchmarks.md has the figures).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from souvenir.types import Profile

FACT_MAX_TOKENS = 60
"""A text of fewer tokens of the embedding model is scored as a fact, a longer one as a document."""


LEGIBLE_SHARE = 0.5
"""A question of whose tokens the embedding model knows fewer than this share is ranked by its words alone: what the
model makes of the rest is noise (English model, Chinese questions: recall@10 .957 with it, .978 without; of the answers
to 6,000 random identifiers, 39 were not among the first three with it, none without)."""


@dataclass(frozen=True, slots=True)
class Constants:
    """:param k1: Saturation of term frequency. :param b: Length normalisation. :param dense: Weight of the cosine."""

    k1: float
    b: float
    dense: float


PROFILES: Mapping[Profile, Constants] = MappingProxyType(
    {
        Profile.FACT: Constants(k1=0.9, b=0.4, dense=1.3),
        Profile.DOC: Constants(k1=1.2, b=0.75, dense=1.3),
        Profile.TALK: Constants(k1=0.9, b=0.15, dense=1.3),
        Profile.CHAT: Constants(k1=0.9, b=0.4, dense=1.3),
    }
)


def profile_of(token_count: int) -> Profile:
    return Profile.FACT if token_count < FACT_MAX_TOKENS else Profile.DOC


def turn_profile_of(speaker: str | None) -> Profile:
    """Turns of people who have names are talk; a user and an assistant chat."""
    return Profile.CHAT if speaker is None else Profile.TALK
