"""Where sentences and lines end. Linear."""

from __future__ import annotations

import re
from itertools import pairwise

_END = re.compile(r"(?<=[.!?])[\"'”’)\]]{0,3}+\s++|(?<=[。！？])|\n++")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dr|prof|st|no|approx)|\b[A-Za-z])\.\s*$", re.IGNORECASE)


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans that follow each other and are the whole text, blanks behind a sentence with it."""
    cuts = [
        end.end()
        for end in _END.finditer(text)
        if not _ABBREVIATION.search(text, max(0, end.start() - 12), end.start())
    ]
    return [(start, end) for start, end in pairwise(sorted({0, *cuts, len(text)}))]
