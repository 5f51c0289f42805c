"""Code in Markdown: fenced blocks and spans in backticks, as far as it must be known what is code. Linear."""

from __future__ import annotations

import re
from bisect import bisect_left

_FENCE = re.compile(
    r"^[ \t]{0,3}(?:(?:[-*+]|[0-9]{1,3}[.)])[ \t]+)?[ \t]{0,8}(?P<marks>`{3,}+|~{3,}+)(?P<info>[^`\n]*+)$", re.MULTILINE
)
_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]++\1(?!`)")


def code_blocks(text: str) -> list[tuple[int, int]]:
    """Blocks that are closed, from their first line to their last; what is not closed is no block."""
    fences = list(_FENCE.finditer(text))
    closers = [_following(fences, "`"), _following(fences, "~")]
    blocks: list[tuple[int, int]] = []
    at = 0
    while at < len(fences):
        closer = closers["`~".index(fences[at]["marks"][0])][at]
        if closer is not None:
            blocks.append((fences[at].start(), fences[closer].end()))
            at = closer
        at += 1
    return blocks


def code_spans(text: str) -> list[tuple[int, int]]:
    """Words in backticks, each within one line."""
    return [found.span() for found in _SPAN.finditer(text)]


def _following(fences: list[re.Match[str]], mark: str) -> list[int | None]:
    """For each fence the next one of that mark that may close it: bare, and at least as long."""
    found: list[int | None] = [None] * len(fences)
    lengths: list[int] = []
    places: list[int] = []
    for at in range(len(fences) - 1, -1, -1):
        fence = fences[at]
        if fence["marks"][0] != mark:
            continue
        length = len(fence["marks"])
        behind = bisect_left(lengths, -length + 1) - 1
        found[at] = places[behind] if behind >= 0 else None
        if not fence["info"].strip():
            while lengths and -lengths[-1] <= length:
                lengths.pop()
                places.pop()
            lengths.append(-length)
            places.append(at)
    return found
