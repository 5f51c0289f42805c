"""The sentences of a message as they are shown and as they are read, and the terms by which they are compared."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from souvenir.core.text import sentences
from souvenir.index.analyser import Analyser
from souvenir.knowledge.recognition import statement_patterns as patterns
from souvenir.knowledge.recognition.statement_words import GENERIC

MAX_SENTENCE_CHARS = 300
"""Longer sentences state nothing."""

MAX_TERMS = 48
"""Maximum number of compared terms."""


class Sentence(NamedTuple):
    """A sentence as it is shown, and as it is read: without quoted speech and without a question at its end."""

    shown: str
    read: str

    @property
    def is_statement(self) -> bool:
        return len(self.shown) <= MAX_SENTENCE_CHARS and self.read != "" and self.read[-1] not in "?:"


@cache
def analyser() -> Analyser:
    return Analyser()


@cache
def _generic_terms() -> frozenset[str]:
    words = GENERIC.split()
    return frozenset(term for word in words for term in (word, *analyser().terms(word)))


def content_terms(text: str) -> list[str]:
    """Return the distinct index terms of a text, without generic words and numbers, in order."""
    generic = _generic_terms()
    found = dict.fromkeys(analyser().terms(text))
    return [term for term in found if term not in generic and not term[0].isdigit() and len(term) > 1][:MAX_TERMS]


def sentences_of(text: str) -> list[Sentence]:
    """Return the sentences outside of blocks of code."""
    fenced = [match.span() for match in re.finditer(r"```.*?(?:```|\Z)", text, re.DOTALL)]
    unquoted = patterns.QUOTED.sub(lambda quote: " " * len(quote[0]), text)
    return [
        Sentence(
            " ".join(text[start:end].split()), patterns.QUESTION_AT_END.sub("", " ".join(unquoted[start:end].split()))
        )
        for start, end in sentences(text)
        if not any(first <= start < last for first, last in fenced)
    ]


def terms_of(text: str) -> str:
    return " ".join(content_terms(text))
