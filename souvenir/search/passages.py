"""Cutting a long text: into overlapping passages that each fit the embedding model, and into chunks for its words.

Nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

OVERLAP_TOKENS = 32
"""Tokens that a passage repeats of the one before, so that a statement across the cut stands whole in one of them."""

_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]]*\s+|\n+|(?<=[。！？])")


def split_passages(
    text: str, tokenize: Callable[[str], list[tuple[int, int]]], *, max_tokens: int
) -> tuple[list[str], int]:
    """Windows of at most `max_tokens` tokens over the whole text, cut at sentence ends where one is near.

    A cut looks for the last sentence end in the second half of the window, and else cuts between two tokens.

    :param tokenize: Character span of every token of a text, in order.
    :return: At least one passage, their union being the text; and how many tokens the text has.
    """
    offsets = tokenize(text)
    if len(offsets) <= max_tokens:
        return [text], len(offsets)
    windows: list[str] = []
    for window in _windows(text, offsets, max_tokens):
        # A cut inside a word can give its parts more tokens than the word had.
        windows += split_passages(window, tokenize, max_tokens=max_tokens)[0]
    return windows, len(offsets)


_CHUNK_END = re.compile(r"(?<=[.!?:])\s+|\n+|(?<=[。！？])")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def split_chunks(text: str, *, max_tokens: int) -> list[str]:
    """Consecutive sentences and lines, together at most `max_tokens` words and marks; a longer one stands alone.

    :return: At least one chunk.
    """
    chunks: list[str] = []
    pieces: list[str] = []
    held = 0
    for piece in _CHUNK_END.split(text):
        tokens = len(_TOKEN.findall(piece))
        if not tokens:
            continue
        if pieces and held + tokens > max_tokens:
            chunks.append("\n".join(pieces))
            pieces, held = [], 0
        pieces.append(piece)
        held += tokens
    return [*chunks, "\n".join(pieces)] if pieces or not chunks else chunks


def _windows(text: str, offsets: Sequence[tuple[int, int]], max_tokens: int) -> Iterator[str]:
    overlap_tokens = min(OVERLAP_TOKENS, max_tokens // 4)
    sentence_starts = {match.end() for match in _SENTENCE_END.finditer(text)}
    first = 0
    while True:
        last = min(first + max_tokens, len(offsets))
        if last < len(offsets):
            last = _cut(offsets, sentence_starts, first, last)
        start = 0 if first == 0 else offsets[first][0]
        yield text[start : len(text) if last == len(offsets) else offsets[last][0]]
        if last == len(offsets):
            return
        first = max(first + 1, last - overlap_tokens)


def _cut(offsets: Sequence[tuple[int, int]], sentence_starts: set[int], first: int, last: int) -> int:
    """The token that begins the next window: one that begins a sentence if the window's second half has one."""
    for token in range(last, (first + last) // 2, -1):
        position = offsets[token][0]
        if position in sentence_starts:
            return token
    return last
