"""Find the definition of a concept in texts: the sentence that defines it most plainly.

A heuristic of ours, and a function of the texts alone: definitions ("Miso is a cat"), naming ("a cat called Miso") and
possession ("my sister Ann") rank before incidental mentions. Questions define nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from souvenir.core.text import sentences
from souvenir.core.types import MessageRole
from souvenir.knowledge.recognition.extraction import said

MAX_SENTENCE_CHARS = 300
"""Longer sentences are no definitions."""

_POSSESSIVES = r"(?:my|our|your|his|her|their|its|[^\W\d_]+['’]s)"
_A = rf"(?:an?|the|one|{_POSSESSIVES})"
_IS = r"(?:is|are|was|were|means|stands for|refers to)"
_PATTERNS = (
    (5, rf"(?:^|\W){{form}}(?: \([^)]*\))?,? {_IS} {_A}\b"),
    (4, rf"(?:^|\W){{form}}, (?:an?|the|{_POSSESSIVES}) "),
    (3, rf"\b{_POSSESSIVES} (?:\w+ ){{{{1,3}}}}(?:{_IS} |{_IS} called |called |named |, )?{{form}}(?!\w)"),
    (3, r"\b(?:called|named|known as) {form}(?!\w)"),
    (2, rf"(?:^|\W){{form}} {_IS} "),
    (1, r"^\W*(?:the |an? )?{form}(?!\w)"),
)
"""Patterns of defining sentences, with their weights."""


class Mentioning(NamedTuple):
    """A text that mentions a concept in this form. :param role: The role of its author, if it is a message."""

    form: str
    text: str
    role: MessageRole | None
    at: datetime


def plainest(texts: Iterable[Mentioning]) -> str | None:
    """Return the plainest defining sentence of these texts, the oldest of several."""
    found: list[tuple[int, datetime, str]] = []
    for one in texts:
        text = said(one.text, one.role)
        for start, end in sentences(text):
            sentence = " ".join(text[start:end].split())
            if len(sentence) <= MAX_SENTENCE_CHARS and _mentions(sentence, one.form):
                found.append((-_plainness(sentence, one.form), one.at, sentence))
    return min(found)[2] if found else None


def _mentions(sentence: str, form: str) -> bool:
    """Match whole words only: Annabel is not Ann."""
    return re.search(rf"(?<!\w){re.escape(form)}(?!\w)", sentence, re.IGNORECASE) is not None


def _plainness(sentence: str, form: str) -> int:
    asked = -3 if sentence.endswith("?") else 0
    short = -1 if len(sentence.split()) <= len(form.split()) else 0
    quoted = re.escape(form)
    found = (weight for weight, pattern in _PATTERNS if re.search(pattern.format(form=quoted), sentence, re.IGNORECASE))
    return max(found, default=0) + asked + short
