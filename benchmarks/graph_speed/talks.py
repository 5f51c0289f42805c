"""Synthetic messages with many mentions: any number, the same for the same seed.

What they mention is drawn log-uniformly from pools of names, places and things, so that some is mentioned all the time
and most of it once or twice, and something new comes up until the end, as in people's own talk.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np

from souvenir.core.types import MessageRole
from souvenir.store.messages.messages import MessageDraft

SESSION_LENGTH = 20
FIRST_AT = datetime(2023, 1, 1, tzinfo=UTC)
STEP = timedelta(minutes=8)
"""Between two messages: 100,000 of them are a year and a half."""

NAMES, PLACES, THINGS = 4_000, 2_000, 60_000
_ONSETS = ("b", "br", "d", "dr", "f", "g", "gr", "k", "l", "m", "n", "p", "pl", "r", "s", "st", "t", "tr", "v", "z")
_VOWELS = ("a", "e", "i", "o", "u")
_CODAS = ("", "l", "m", "n", "r", "t")
_QUALITIES = ("wooden", "second-hand", "electric", "early", "portable", "local", "northern", "heavy", "quiet", "glass")
_FORMS = (
    "Yesterday {0} showed me the {2} in {1}, and I liked it.",
    "Did {0} ever talk about the {2} with you? I think the {3} was better.",
    "I asked {0} to bring the {2} on {4}, before we drive to {1}.",
    "Well, the {2} broke again, so I called {0} about the {3}.",
    "That sounds good. What about you?",
    "In {1} we saw a {2} next to the {3}.",
    "My neighbour {0} is in {1}. I promised them the {2} by Friday.",
    "I gave {0} the {2}, it is done. We have sushi in {1} every Thursday.",
    "The {2} is moved from {1} to the {3}. I never eat fish.",
)


class Talks:
    """:param seed: Of what is drawn."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._words = [self._word(2 + number % 2) for number in range(NAMES + PLACES + THINGS // len(_QUALITIES))]

    def drafts(self, count: int) -> Iterator[MessageDraft]:
        """In the order in which they are said, user and assistant in turns, in sessions of `SESSION_LENGTH`."""
        for number in range(count):
            role = MessageRole.ASSISTANT if number % 2 else MessageRole.USER
            session, user = f"session-{number // SESSION_LENGTH}", f"user-{number // SESSION_LENGTH % 7}"
            at = FIRST_AT + number * STEP
            yield MessageDraft(role, self._text(at), session_id=session, user=user, created_at=at)

    def _text(self, at: datetime) -> str:
        form = _FORMS[int(self._random.integers(len(_FORMS)))]
        name, place = self._words[self._drawn(NAMES)].title(), self._words[NAMES + self._drawn(PLACES)].title()
        return form.format(name, place, self._thing(), self._thing(), f"{at:%-d %B %Y}")

    def _thing(self) -> str:
        noun, quality = divmod(self._drawn(THINGS), len(_QUALITIES))
        return f"{_QUALITIES[quality]} {self._words[NAMES + PLACES + noun]}"

    def _drawn(self, pool: int) -> int:
        return int(pool ** self._random.random()) - 1

    def _word(self, syllables: int) -> str:
        parts = (self._random.choice(part) for _ in range(syllables) for part in (_ONSETS, _VOWELS, _CODAS))
        return "".join(parts)
