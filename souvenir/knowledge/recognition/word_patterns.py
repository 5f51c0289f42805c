"""Patterns that only a sentence with certain words can match, since words are quicker to look up than to search."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"\w+")

PLAIN = str.maketrans("ſıİ", "siI")
"""Letters that a pattern in any case takes for others: "auguſt"."""

_CACHED_SENTENCES = 16
"""Many patterns are searched in one sentence, then in the next."""


@lru_cache(_CACHED_SENTENCES)
def words_of(sentence: str) -> frozenset[str]:
    """Return the words of a sentence in lower case, as runs of letters and digits: "I'll" has two."""
    return frozenset(_WORD.findall(sentence.lower()))


class WordPattern:
    """A pattern with the operations of `re.Pattern`.

    :param words: In lower case; a sentence with a match has one of these, or one of `parts`.
    :param parts: Parts of words; a few, since each is sought by itself.
    """

    def __init__(self, pattern: re.Pattern[str], words: str, *parts: str) -> None:
        self.plain = pattern
        self._words = frozenset(words.split())
        self._parts = parts

    def search(self, sentence: str) -> re.Match[str] | None:
        return self.plain.search(sentence) if self._may_match(sentence) else None

    def sub(self, replacement: str, sentence: str) -> str:
        return self.plain.sub(replacement, sentence) if self._may_match(sentence) else sentence

    def _may_match(self, sentence: str) -> bool:
        if not self._words.isdisjoint(words_of(sentence)):
            return True
        lower = sentence.lower() if self._parts else ""
        return any(part in lower for part in self._parts)


def any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(rf"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


def with_one_of(words: str, *patterns: str, parts: tuple[str, ...] = ()) -> WordPattern:
    """Return any of the patterns, of which each match is in a sentence with one of the words or their parts."""
    return WordPattern(any_of(*patterns), words, *parts)
