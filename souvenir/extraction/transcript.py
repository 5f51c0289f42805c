"""A transcript, in any form that clients send it, as turns of which only that is left which may be learned from."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from souvenir.extraction.hygiene import screened, shields
from souvenir.extraction.json_form import read_json
from souvenir.extraction.plain_form import read_plain
from souvenir.extraction.turns import Piece, Removed, Transcript, Turn


def read_transcript(text: str, *, document_at: datetime | None) -> Transcript:
    """The turns of a transcript. Never fails: what has no form that is known is one turn that nobody says.

    :param document_at: When it was said, as far as the transcript does not say it; aware.
    """
    read = read_json(text)
    turns, removed = read if read is not None else (read_plain(text, shields(text), document_at), [])
    kept = []
    for turn in turns:
        pieces, out = _screened(turn)
        kept.append(replace(turn, at=turn.at or document_at, pieces=pieces))
        removed += out
    return Transcript(text, tuple(kept), tuple(sorted(removed, key=lambda part: part.start)))


def kept_of(turn: Turn) -> Turn:
    """A turn as it was said, which is one piece: with what hygiene leaves of it."""
    pieces, _ = _screened(turn)
    return replace(turn, pieces=pieces)


def _screened(turn: Turn) -> tuple[tuple[Piece, ...], list[Removed]]:
    """Of a turn as it was read, which is one piece: what is kept, without blanks around it, and what is not."""
    (whole,) = turn.pieces
    if not whole.text.strip():
        return (), []
    kept: list[Piece] = []
    removed = []
    done = 0
    for span in screened(whole.text, turn.role):
        kept.append(whole.part(done, span.start))
        out = whole.part(span.start, span.end)
        removed.append(Removed(span.kind, out.start, out.end, out.text))
        done = span.end
    kept.append(whole.part(done, len(whole.text)))
    return _stripped([piece for piece in kept if piece.text]), removed


def _stripped(pieces: list[Piece]) -> tuple[Piece, ...]:
    said = [number for number, piece in enumerate(pieces) if piece.text.strip()]
    if not said:
        return ()
    pieces = pieces[said[0] : said[-1] + 1]
    first = pieces[0].text
    pieces[0] = pieces[0].part(len(first) - len(first.lstrip()), len(first))
    pieces[-1] = pieces[-1].part(0, len(pieces[-1].text.rstrip()))
    return tuple(pieces)
