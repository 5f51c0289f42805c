"""The form of a message, classified when it is stored: is it a question, does it contain a time, a number or a name.

It knows English words; in other languages only question marks and digits count. It is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from souvenir.core.passages import TurnFlag

TURN_FLAGS_VERSION = 1
"""Stored with every index."""

_NOTE_AT_END = re.compile(r"\s*\[[^\[\]]*\]\s*\Z")
"""A trailing note in brackets (for example a description of a picture) was not spoken."""

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_RELATIVE = "yesterday|today|tonight|tomorrow|morning|last|next|ago|since|recently|soon|just"
_SPANS = "week|weekend|month|years?|summer"
_COUNTS = "one|two|three|four|five|six|seven|eight|nine|ten|once|twice|couple|few|dozen|hundred|several|half"

_PATTERNS: Mapping[TurnFlag, re.Pattern[str]] = {
    TurnFlag.TIME: re.compile(rf"\b(?:{_MONTHS}|{_DAYS}|{_RELATIVE}|{_SPANS}|\d{{4}})\b", re.IGNORECASE),
    TurnFlag.NUMBER: re.compile(rf"\b(?:\d+|{_COUNTS})\b", re.IGNORECASE),
    TurnFlag.NAME: re.compile(r"[a-z,] [A-Z][a-z]"),
}


def turn_flags(text: str) -> TurnFlag:
    """Classify a message's content, without its speaker. A capitalised word counts only within a sentence."""
    said = _NOTE_AT_END.sub("", text) if text.rstrip().endswith("]") else text
    found = TurnFlag.QUESTION if said.rstrip().endswith(("?", "？")) else TurnFlag(0)
    for flag, pattern in _PATTERNS.items():
        if pattern.search(said):
            found |= flag
    return found
