"""Values of a transcript: turns, their pieces that may be learned from, removed parts, and timestamps.

All offsets are characters of the given text. Invariants: pieces and removed parts ascend and do not overlap; a piece's
text is found at its offsets verbatim, or in JSON as an escaped string; hygiene shifts no offset. A time without a zone
is UTC. If day and month are ambiguous, no time is returned: a wrong date is worse than none.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from dateutil.parser import parse as parse_date

from souvenir.core.dates import MONTH_ABBREVIATIONS, is_day_first
from souvenir.core.types import OriginClass


class TurnRole(StrEnum):
    """The role of a speaker. `unknown` is a text without speakers."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"
    UNKNOWN = "unknown"


ORIGIN_OF_ROLE = {
    TurnRole.USER: OriginClass.USER,
    TurnRole.ASSISTANT: OriginClass.ASSISTANT,
    TurnRole.TOOL: OriginClass.TOOL,
    TurnRole.SYSTEM: OriginClass.INFERRED,
    TurnRole.UNKNOWN: OriginClass.DOCUMENT,
}
"""Origin class by role. Clients put instructions, summaries and memories into system turns, so these are trusted least
of all learnable text. A text without roles is a document.
"""


class RemovedKind(StrEnum):
    """Why a part is never learned from."""

    RECALLED = "recalled"
    """Text recalled from a memory."""
    INJECTED = "injected"
    """Text injected by a client: reminders, output of hooks and commands, the editor's open files."""
    TOOL = "tool"
    """A call of a tool, or a result that only programs read."""
    NOISE = "noise"
    """Encoded data, colour codes, stack traces, diffs and logs."""
    REASONING = "reasoning"
    """A model's thinking, which is not part of the conversation."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start` to `end` of a transcript, and their decoded text.

    :param steps: For an escaped string, pairs of an index in `text` and its offset, wherever the offset jumps.
    """

    start: int
    end: int
    text: str
    steps: Sequence[tuple[int, int]] = field(default=(), repr=False)

    def offset(self, at: int) -> int:
        """Return the offset in the transcript of the character `at` of `text`; for the length of `text`, `end`."""
        if at >= len(self.text):
            return self.end
        step = bisect_right(self.steps, at, key=_behind)
        behind, offset = self.steps[step - 1] if step else (0, self.start)
        return offset + at - behind

    def index(self, offset: int) -> int:
        """Return the index in `text` of a character of the transcript; the inverse of `offset`."""
        if offset >= self.end:
            return len(self.text)
        step = bisect_right(self.steps, offset, key=_jumped_to)
        behind, start = self.steps[step - 1] if step else (0, self.start)
        return behind + offset - start

    def part(self, first: int, last: int) -> Piece:
        """Return the piece of `text[first:last]`."""
        inside = self.steps[bisect_right(self.steps, first, key=_behind) : bisect_left(self.steps, last, key=_behind)]
        steps = tuple((behind - first, offset) for behind, offset in inside)
        return Piece(self.offset(first), self.offset(last), self.text[first:last], steps)


def _behind(step: tuple[int, int]) -> int:
    return step[0]


def _jumped_to(step: tuple[int, int]) -> int:
    return step[1]


@dataclass(frozen=True, slots=True)
class TranscriptTurn:
    """One turn of a speaker. `at` is timezone-aware, or None if unknown."""

    role: TurnRole
    speaker: str | None
    at: datetime | None
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The text that may be learned from; empty if hygiene removed all of it."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def origin(self) -> OriginClass:
        return ORIGIN_OF_ROLE[self.role]


@dataclass(frozen=True, slots=True)
class RemovedPart:
    """A part that is never learned from, with its text."""

    kind: RemovedKind
    start: int
    end: int
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Transcript:
    """:param text: The given text; all offsets refer to it."""

    text: str
    turns: tuple[TranscriptTurn, ...]
    removed: tuple[RemovedPart, ...]

    @property
    def is_empty(self) -> bool:
        """True if hygiene left nothing to learn from."""
        return not any(turn.pieces for turn in self.turns)


@dataclass(frozen=True, slots=True)
class HiddenSpan:
    kind: RemovedKind
    start: int
    end: int


def merged(spans: Iterable[HiddenSpan]) -> list[HiddenSpan]:
    """Return the spans in order, without overlap: the span that begins first keeps what two share."""
    found: list[HiddenSpan] = []
    done = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        start = max(span.start, done)
        if start < span.end:
            found.append(HiddenSpan(span.kind, start, span.end))
            done = span.end
    return found


def holds(spans: Sequence[HiddenSpan], at: int) -> bool:
    """Return True if a character lies in one of the spans, which ascend and do not overlap."""
    behind = bisect_right(spans, at, key=lambda span: span.start) - 1
    return behind >= 0 and at < spans[behind].end


ROLES = {
    **dict.fromkeys(("user", "human", "customer", "me"), TurnRole.USER),
    **dict.fromkeys(
        ("assistant", "ai", "ai assistant", "bot", "chatbot", "agent", "claude", "chatgpt", "gpt", "gemini", "copilot"),
        TurnRole.ASSISTANT,
    ),
    **dict.fromkeys(("system", "developer"), TurnRole.SYSTEM),
    **dict.fromkeys(("tool", "function", "tool result", "tool_result", "observation"), TurnRole.TOOL),
    "model": TurnRole.ASSISTANT,
}
"""Roles by casefolded value of a message's field."""

SPOKEN_ROLES = {word: role for word, role in ROLES.items() if word not in ("me", "model")}
"""Roles that open a turn in plain text: "Model: T5" is more often a list item than a speaker."""


# --- times -----------------------------------------------------------------------------------------------------------


_MONTH = f"(?:{'|'.join(MONTH_ABBREVIATIONS)})[a-z]{{0,6}}"
_DATE = (
    r"(?:[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:[0-9]{4}|[0-9]{2})"
    rf"|[0-9]{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\.?,? [0-9]{{4}}"
    rf"|{_MONTH}\.? [0-9]{{1,2}}(?:st|nd|rd|th)?,? [0-9]{{4}})"
)
_CLOCK = (
    r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,6})?)?(?: ?[ap]\.?m\.?)?(?:Z| ?[+-][0-9]{2}:?[0-9]{2}| UTC| GMT)?"
)
DATED_STAMP = rf"(?:{_DATE}(?:(?:T|, ?| at | )(?:{_CLOCK}))?|(?:{_CLOCK})(?: on |, ?| ){_DATE})(?![\w:])"
"""Regex of a date, with or without a time of day; for `re.IGNORECASE`."""

STAMP = rf"(?:{DATED_STAMP}|{_CLOCK}(?![\w:]))"
"""Regex of a date, a time of day, or both."""

_DATED = re.compile(_DATE, re.IGNORECASE)
_EITHER = re.compile(r"(?<![0-9])([0-9]{1,2})[-/.]([0-9]{1,2})[-/.][0-9]{2,4}(?![0-9])")
_LATEST_EPOCH_S = 32_503_680_000
"""The year 3000; larger numbers are milliseconds."""


def parse_stamp(stamp: str, day: date | None) -> datetime | None:
    """Parse a timestamp; None if it is not one, or is ambiguous.

    :param day: The day of a stamp that is only a time of day.
    """
    written = _DATED.search(stamp)
    if written is None and day is None:
        return None
    day_first = False
    if either := _EITHER.search(stamp):
        order = is_day_first(int(either[1]), int(either[2]))
        if order is None:
            return None
        day_first = order
    midnight = datetime.combine(day or date(2000, 1, 1), datetime.min.time())
    try:
        read: datetime = parse_date(
            stamp.replace(" on ", " ").replace(" of ", " "), default=midnight, dayfirst=day_first
        )
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_time_value(value: object) -> datetime | None:
    """Parse the time field of a message: text, or seconds or milliseconds since 1970."""
    if isinstance(value, str):
        return parse_stamp(value, None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = value / 1000 if abs(value) > _LATEST_EPOCH_S else value
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return None
