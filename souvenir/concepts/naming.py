"""Which keys a question may mean: what it mentions, and its words one, two and three at a time.

A question names a concept less carefully than a message mentions one ("lisbon camera?"), so everything that could be a
key is given, and whoever has the concepts looks which of them there are.
"""

from __future__ import annotations

import re

from souvenir.concepts.extraction import MAX_CHARS_READ, mentioned
from souvenir.concepts.spelling import key_of, singular

MAX_WORDS = 3
"""Of a key that is tried beside what the question mentions."""

MAX_TRIED_WORDS = 64
"""Of a longer question the words of its beginning are tried."""

_WORD = re.compile(r"[^\s,;:!?\"()\[\]{}<>]+")


def possible_keys(text: str) -> tuple[str, ...]:
    """Each once: the keys of what the text mentions, then those of its words, longer ones first."""
    text = text[:MAX_CHARS_READ]
    words = _WORD.findall(text)[:MAX_TRIED_WORDS]
    keys = [mention.key for mention in mentioned(text)]
    for count in range(MAX_WORDS, 0, -1):
        for start in range(len(words) - count + 1):
            key = key_of(" ".join(words[start : start + count]))
            *before, last = key.split(" ")
            keys += [key, " ".join([*before, singular(last)])]
    return tuple(dict.fromkeys(key for key in keys if key))
