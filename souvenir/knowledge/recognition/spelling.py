"""One key for all the spellings of one thing: case, accents, possessives, hyphens, articles and plurals.

Every step is linear in the length of the text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from souvenir.index.analyser import fold, normalised
from souvenir.knowledge.recognition.gazetteer import GIVEN_NAMES
from souvenir.knowledge.recognition.vocabulary import IRREGULAR_PLURALS, NO_PLURALS

MAX_KEY_CHARS = 80
"""Longer keys are cut; no name in common use is longer."""

_CACHED_WORDS = 16_384

_ARTICLES = ("the ", "a ", "an ", "my ", "your ", "his ", "her ", "our ", "their ", "its ", "this ", "that ")
_POSSESSIVE = re.compile(r"'s?(?![^\W_])")
_ABBREVIATED = re.compile(r"\.(?=[\s\-–—])")
_CLOSED = re.compile(r"\b(co|e|wi|anti|re|pre|non|multi|micro|inter)-(?=[^\W\d_]{2})")
"""Prefixes that are also written without their hyphen: co-worker, e-mail, wi-fi."""
_BETWEEN = re.compile(r"[\s\-–—]+")
_AROUND = " .,;:!?'\"()[]{}*_`~|\\/<>=+&-"


@lru_cache(_CACHED_WORDS)
def key_of(name: str) -> str:
    """Return the key of a name or a phrase in any spelling; empty if nothing is left.

    Idempotent. A name keeps its plural ("the Beatles"), because names have no singular; for a phrase apply `singular`
    first.
    """
    text = normalised(name[: 4 * MAX_KEY_CHARS]).casefold().strip(_AROUND)
    text = _POSSESSIVE.sub("", text)
    text = _ABBREVIATED.sub(" ", text)
    text = _CLOSED.sub(r"\1", text)
    text = " ".join(fold(word) for word in _BETWEEN.sub(" ", text).split())
    while text.startswith(_ARTICLES):
        text = text.partition(" ")[2]
    return text[:MAX_KEY_CHARS].strip(_AROUND)


@lru_cache(_CACHED_WORDS)
def singular(word: str) -> str:
    """The singular of an English noun in lower case; other words are returned unchanged."""
    if word in NO_PLURALS or word in GIVEN_NAMES or not word.endswith("s"):
        return IRREGULAR_PLURALS.get(word, word)
    if word in IRREGULAR_PLURALS:
        return IRREGULAR_PLURALS[word]
    if len(word) <= 3 or word.endswith(("ss", "us", "is", "ous", "'s")) or not word.isalpha():
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1]
