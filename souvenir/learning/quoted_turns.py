"""The words that a fact came from, in their turn: in the transcript while it is kept, and in the stored message.

A commit has no transcript. Its facts keep their spans, and its options name the dry run that each was taken from.
Forgetting a memory or a message, or changing the message, blanks the transcript, and with it what is shown here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from souvenir.core.labels import MESSAGE_ID, MESSAGE_SPAN
from souvenir.core.ledger import FactRow, TextSpan
from souvenir.core.timestamps import to_us
from souvenir.learning.transcripts.transcript import read_transcript
from souvenir.learning.transcripts.turns import Transcript
from souvenir.store.learning import extractions
from souvenir.store.learning.extractions import TAKEN, ExtractionRecord, Party
from souvenir.store.messages import messages, sessions
from souvenir.store.messages.messages import Message
from souvenir.store.sql import Connection


@dataclass(frozen=True, slots=True)
class QuotedTurn:
    """A turn without the parts that hygiene removed; the quote is `text[start:end]`.

    :param session: The session of the conversation, if one was named.
    """

    role: str
    speaker: str | None
    at: datetime | None
    text: str
    start: int
    end: int
    session: str | None

    @property
    def words(self) -> str:
        return self.text[self.start : self.end]


EXCERPT_CHARS = 1_000
"""How much of a turn is shown on either side of a quote."""


@dataclass(frozen=True, slots=True)
class FoundQuote:
    """A quote and the text around it in its turn, for a reader.

    :param before: Begins with `…` if the turn is longer; `after` ends with it.
    :param session: The session of the conversation, and the id of the stored message that contains the quote.
    """

    before: str
    words: str
    after: str
    role: str
    speaker: str | None
    at: datetime | None
    session: str | None
    message_id: str | None = None

    @classmethod
    def of(cls, turn: QuotedTurn, cited: tuple[Message, TextSpan] | None = None) -> FoundQuote:
        """:param cited: The stored message of the turn."""
        before, after = _excerpt(turn.text, turn.start, turn.end)
        message_id = None if cited is None else cited[0].uid
        return cls(before, turn.words, after, turn.role, turn.speaker, turn.at, turn.session, message_id)

    @classmethod
    def in_message(cls, message: Message, start: int, end: int) -> FoundQuote:
        """Return the quote in a stored message; the whole message if it was edited since."""
        if message.edited_at is not None or not 0 <= start <= end <= len(message.content):
            start, end = 0, 0
        before, after = _excerpt(message.content, start, end)
        return cls(
            before,
            message.content[start:end],
            after,
            message.role.value,
            message.speaker,
            message.created_at,
            message.session_id,
            message.uid,
        )


def _excerpt(text: str, start: int, end: int) -> tuple[str, str]:
    first, last = max(0, start - EXCERPT_CHARS), min(len(text), end + EXCERPT_CHARS)
    before, after = text[first:start], text[end:last]
    return f"…{before}" if first else before, f"{after}…" if last < len(text) else after


def turn_at(transcript: Transcript, span: TextSpan, session: str | None = None) -> QuotedTurn | None:
    """Return the turn that contains a quote; None if hygiene removed the text."""
    for turn in transcript.turns:
        before = 0
        for piece in turn.pieces:
            if piece.start <= span.start and span.end <= piece.end:
                start, end = (before + piece.index(offset) for offset in span)
                return QuotedTurn(turn.role.value, turn.speaker, turn.at, turn.text, start, end, session)
            before += len(piece.text)
    return None


def quoted_turns(
    connection: Connection, extraction: ExtractionRecord, rows: Iterable[FactRow]
) -> dict[int, QuotedTurn]:
    """Return the turns that the facts quote, by ordinal, as far as their transcript is kept."""
    taken: Mapping[str, Sequence[Any]] = extraction.options.get(TAKEN, {})
    read: dict[str, tuple[Transcript, str | None] | None] = {}
    found: dict[int, QuotedTurn] = {}
    for row in rows:
        if row.fact is None or row.fact.span is None:
            continue
        job_id, *_ = taken.get(str(row.ordinal), (extraction.job_id,))
        if job_id not in read:
            is_own = job_id == extraction.job_id
            read[job_id] = _transcript(extraction if is_own else extractions.find(connection, job_id))
        kept = read[job_id]
        if kept is not None and (turn := turn_at(kept[0], row.fact.span, kept[1])) is not None:
            found[row.ordinal] = turn
    return found


def _transcript(extraction: ExtractionRecord | None) -> tuple[Transcript, str | None] | None:
    """Return a transcript with the session of its conversation."""
    if extraction is None or extraction.kept_transcript is None:
        return None
    named: Sequence[str] = extraction.learned_with.get(Party.SESSION.value, ())
    transcript = read_transcript(extraction.kept_transcript, document_at=extraction.document_at)
    return transcript, next(iter(named), None)


def message_of(connection: Connection, namespace_id: int, turn: QuotedTurn) -> tuple[Message, TextSpan] | None:
    """Return the stored message of a turn, and where the quote is in it.

    Of several messages of the session with these words, the one with the time and the text of the turn is preferred,
    then the newest.
    """
    session_row = None if turn.session is None else sessions.row_of(connection, namespace_id, turn.session)
    if session_row is None or not turn.words.strip():
        return None
    found = messages.with_words(connection, session_row, turn.words)
    if not found:
        return None
    at = None if turn.at is None else to_us(turn.at)
    message = max(found, key=lambda one: (to_us(one.created_at) == at, one.content == turn.text.strip()))
    lead = len(turn.text) - len(turn.text.lstrip())
    start = turn.start - lead if message.content == turn.text.strip() else message.content.find(turn.words)
    return message, TextSpan(start, start + len(turn.words))


def message_metadata(
    connection: Connection, namespace_id: int, extraction: ExtractionRecord, rows: Sequence[FactRow]
) -> dict[int, dict[str, object]]:
    """Return, by ordinal, the metadata that links a memory durably to the stored message of its quote."""
    found: dict[int, dict[str, object]] = {}
    if not any(row.fact is not None and row.fact.span is not None for row in rows):
        return found
    if not extraction.learned_with.get(Party.SESSION.value):
        return found
    for ordinal, turn in quoted_turns(connection, extraction, rows).items():
        if (cited := message_of(connection, namespace_id, turn)) is not None:
            message, span = cited
            found[ordinal] = {MESSAGE_ID: message.uid, MESSAGE_SPAN: {"start": span.start, "end": span.end}}
    return found
