"""Locate a model's quotes in a transcript. Pure functions, linear in the transcript.

A quote is searched verbatim, then by its words (ignoring whitespace, punctuation, case and kinds of dashes), then with
few words changed, missing or added: the best match by edit distance between words (Sellers 1980), computed for all
words of the quote at once as bits of one number (Myers 1999). Only text that hygiene kept is searched, piece by piece,
so that no match contains removed text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from souvenir.core.ledger import TextSpan
from souvenir.learning.transcripts.turns import Piece, RemovedKind, Transcript, TranscriptTurn

MIN_SHARE = 0.8
"""Minimum share of matching words: at most one in five is changed, missing or added. Quotes of fewer than five words
must match exactly.
"""

MAX_QUOTE_WORDS = 400
"""Only the beginning of a longer quote is searched; no fact needs more."""

_WORD = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯]|[^\W_぀-ヿ㐀-䶿一-鿿가-힯]+")
"""Letters and digits; in scripts without spaces, each character."""

_PREFIX = re.compile(r"\s*\[[0-9]+\][^\n:]{0,150}?:\s")
"""The prefix of a turn in a window, which models quote with it."""


@dataclass(frozen=True, slots=True)
class Quote:
    """The location of a quote: its characters, and the index of the turn.

    :param share: Share of matching words, in [0.8, 1].
    """

    span: TextSpan
    turn: int
    share: float


@dataclass(frozen=True, slots=True)
class _Words:
    words: Sequence[str]
    places: Sequence[tuple[int, int]]


def find_quote(turns: Sequence[TranscriptTurn], quote: str) -> Quote | None:
    """Return the best match of a quote in the text that hygiene kept, the first of several; None if there is none."""
    quote = _PREFIX.sub("", quote, count=1).strip()
    pieces = [(number, piece) for number, turn in enumerate(turns) for piece in turn.pieces]
    for number, piece in pieces:
        if (at := _exact(piece.text, quote)) is not None:
            return _quote(number, piece, at, at + len(quote), 1.0)
    wanted = _words(quote).words[:MAX_QUOTE_WORDS]
    if not wanted:
        return None
    read = [(number, piece, _words(piece.text)) for number, piece in pieces]
    for number, piece, words in read:
        if (first := _run(words.words, wanted)) is not None:
            return _quote(number, piece, words.places[first][0], words.places[first + len(wanted) - 1][1], 1.0)
    best: Quote | None = None
    for number, piece, words in read:
        distance, first, last = _nearest(words.words, wanted)
        share = 1 - distance / len(wanted)
        if share >= MIN_SHARE and (best is None or share > best.share):
            best = _quote(number, piece, words.places[first][0], words.places[last][1], share)
    return best


def in_removed(transcript: Transcript, quote: str) -> bool:
    """Return True if recalled text matches better than the other text, so that the fact would be learned twice."""
    wanted = _words(_PREFIX.sub("", quote, count=1)).words[:MAX_QUOTE_WORDS]
    recalled = [_words(part.text).words for part in transcript.removed if part.kind == RemovedKind.RECALLED]
    if not wanted or not recalled:
        return False
    share = 1 - min(_nearest(words, wanted)[0] for words in recalled) / len(wanted)
    said = find_quote(transcript.turns, quote)
    return share >= MIN_SHARE and (said is None or said.share < share)


def _exact(text: str, quote: str) -> int | None:
    """Return the offset of a verbatim quote that neither begins nor ends inside a word."""
    at = text.find(quote) if quote else -1
    end = at + len(quote)
    is_part = (quote[:1].isalnum() and text[at - 1 : at].isalnum()) or (
        quote[-1:].isalnum() and text[end : end + 1].isalnum()
    )
    return None if at < 0 or is_part else at


def _quote(turn: int, piece: Piece, first: int, last: int, share: float) -> Quote:
    return Quote(TextSpan(piece.offset(first), piece.offset(last)), turn, share)


def _words(text: str) -> _Words:
    found = list(_WORD.finditer(text))
    return _Words([word[0].casefold() for word in found], [word.span() for word in found])


def _run(words: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return the index of the first run of all wanted words."""
    joined, sought = " ".join(["", *words, ""]), " ".join(["", *wanted, ""])
    at = joined.find(sought)
    return None if at < 0 else joined.count(" ", 0, at)


def _nearest(words: Sequence[str], wanted: Sequence[str]) -> tuple[int, int, int]:
    """Return the fewest changes that turn the wanted words into a run of words, and the run's first and last word."""
    if not words:
        return len(wanted), 0, 0
    distance, last = _best_end(words, wanted)
    reach = len(wanted) + distance
    behind = list(reversed(words[max(0, last + 1 - reach) : last + 1]))
    _, length = _best_end(behind, list(reversed(wanted)), anchored=True)
    return distance, last - length, last


def _best_end(words: Sequence[str], wanted: Sequence[str], *, anchored: bool = False) -> tuple[int, int]:
    """Return the smallest distance of the wanted words to a run of words, and the index of the run's last word.

    Among equal ends, the first one that equals the last wanted word is preferred, else the first.

    Myers 1999, section 3: `more` and `less` store for each wanted word whether the distance grows or shrinks there.
    rapidfuzz has no such distance: its partial alignments compare runs of the quote's own length by insertions and
    deletions only, and miss the nearest run of one in three quotes that have changes.

    :param anchored: True if the run must begin with the first word.
    """
    places: dict[str, int] = {}
    for at, word in enumerate(wanted):
        places[word] = places.get(word, 0) | 1 << at
    full, top = (1 << len(wanted)) - 1, 1 << (len(wanted) - 1)
    more, less, distance = full, 0, len(wanted)
    best, end = len(wanted) + 1, 0
    for at, word in enumerate(words):
        equal = places.get(word, 0)
        vertical = equal | less
        horizontal = (((equal & more) + more) ^ more) | equal
        grows = less | (full & ~(horizontal | more))
        shrinks = more & horizontal
        distance += 1 if grows & top else -1 if shrinks & top else 0
        grows = full & (grows << 1 | anchored)
        shrinks = full & shrinks << 1
        more = shrinks | (full & ~(vertical | grows))
        less = grows & vertical
        if distance < best or (distance == best and word == wanted[-1] != words[end]):
            best, end = distance, at
    return best, end
