"""Texts within the limits of the service. Nothing here calls it."""

from __future__ import annotations

import unicodedata

MAX_TEXT_CHARACTERS = 50_000
MAX_QUERY_CHARACTERS = 10_000

_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that are drawn as blanks."""
_INVISIBLE = frozenset(("Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Mn", "Me", "Mc"))


def is_blank(text: str) -> bool:
    """Return whether the service refuses the text because none of its characters is visible."""
    return all(char in _FILLERS or unicodedata.category(char) in _INVISIBLE for char in text)
