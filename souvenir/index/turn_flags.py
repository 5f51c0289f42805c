"""What a message looks like, for the terms of a score that ask for a time, a number or a name: decided when stored.

English words; in other languages only the question mark and digits count. Linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from souvenir.passages import TurnFlag

TURN_FLAGS_VERSION = 1
"""Stored with every index."""

_NOTE_AT_END = re.compile(r"\s*\[[^\[\]]*\]\s*\Z")
"""A note in brackets (what a picture shows, say) is not what was said."""

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
    """Of what was said, without who says it. A capitalised word counts where it does not begin a sentence."""
    said = _NOTE_AT_END.sub("", text) if text.rstrip().endswith("]") else text
    found = TurnFlag.QUESTION if said.rstrip().endswith(("?", "？")) else TurnFlag(0)
    for flag, pattern in _PATTERNS.items():
        if pattern.search(said):
            found |= flag
    return found
