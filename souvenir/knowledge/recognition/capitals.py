"""Decide whether the capitals of a word or of a sentence are evidence for a name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from souvenir.knowledge.recognition.exact import Token
from souvenir.knowledge.recognition.vocabulary import WordClass, class_of

_SMALL = (WordClass.DETERMINER, WordClass.PREPOSITION, WordClass.TO, WordClass.FUNCTION)
_CACHED_WORDS = 16_384
_HEADING_WORDS = 3
"""From this many words on, capitals on all of them indicate a heading."""


def has_capital(token: Token) -> bool:
    """Return True for a capital at the start or inside: iPhone."""
    return token.text != token.word and (token.text[0].isupper() or is_unlike_a_start(token.text))


def is_heading(words: Sequence[Token], *, marked: bool, ended: bool) -> bool:
    """Return True if capitals are no evidence, because all words, or all but the small ones, are capitalised.

    :param marked: True if markup indicates a heading; otherwise several words are needed.
    :param ended: True for a sentence with a full stop, which is no heading, but may be all in capitals.
    """
    if ended:
        return len(words) >= _HEADING_WORDS and all(word.text.isupper() for word in words)
    telling = 0
    for word in words:
        if has_capital(word):
            telling += class_of(word.word) not in _SMALL and not is_unlike_a_start(word.text)
        elif class_of(word.word) not in _SMALL and not word.text.isdigit():
            return False
    if len(words) >= _HEADING_WORDS and all(word.text.isupper() for word in words):
        return True
    return marked or telling >= _HEADING_WORDS


@lru_cache(_CACHED_WORDS)
def is_unlike_a_start(text: str) -> bool:
    """Return True for capitals after the first letter: LGBTQ, YouTube."""
    stem = text.removesuffix("'s")
    return len(stem) > 1 and any(letter.isupper() for letter in stem[1:]) and "-" not in stem


def is_acronym(text: str) -> bool:
    return len(text) > 1 and text.isupper()
