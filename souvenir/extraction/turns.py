"""A transcript as values: turns, the pieces of them that may be learned from, and what was taken out.

All offsets are characters of the text that was given. Invariants: pieces and what was removed stand in the order of the
text and do not touch each other's characters; a piece's text stands at its offsets, as it is, or in JSON as an escaped
string; what hygiene takes out shifts no offset.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from souvenir.types import OriginClass


class TurnRole(StrEnum):
    """Who says a turn. `unknown` is a text in which nobody is said to speak."""

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
"""Whose word a turn is. A system turn is nobody's: clients put instructions, summaries and memories there, so it is
trusted least of what may still be learned from. A text without roles is a document that somebody handed in."""


class RemovedKind(StrEnum):
    """Why a part is never learned from."""

    RECALLED = "recalled"
    """It came out of a memory."""
    INJECTED = "injected"
    """A client put it there: reminders, output of hooks and commands, what an editor has open."""
    TOOL = "tool"
    """A call of a tool, or a result that only programs read."""
    NOISE = "noise"
    """Encoded data, colour codes, stack traces, diffs and logs."""
    REASONING = "reasoning"
    """A model's thinking, which was not said."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start` to `end` of a transcript, and what they say.

    :param steps: Of an escaped string: after which characters of `text` which offset comes, where it is not the next.
    """

    start: int
    end: int
    text: str
    steps: Sequence[tuple[int, int]] = field(default=(), repr=False)

    def offset(self, at: int) -> int:
        """Where the character `at` of `text` stands in the transcript; for the length of `text`, `end`."""
        if at >= len(self.text):
            return self.end
        step = bisect_right(self.steps, at, key=_behind)
        behind, offset = self.steps[step - 1] if step else (0, self.start)
        return offset + at - behind

    def part(self, first: int, last: int) -> Piece:
        """The piece of `text[first:last]`."""
        inside = self.steps[bisect_right(self.steps, first, key=_behind) : bisect_left(self.steps, last, key=_behind)]
        steps = tuple((behind - first, offset) for behind, offset in inside)
        return Piece(self.offset(first), self.offset(last), self.text[first:last], steps)


def _behind(step: tuple[int, int]) -> int:
    return step[0]


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker says at once. `at` is aware; None if nothing says when."""

    role: TurnRole
    speaker: str | None
    at: datetime | None
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """What may be learned from; empty if hygiene took all of it."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def origin(self) -> OriginClass:
        return ORIGIN_OF_ROLE[self.role]


@dataclass(frozen=True, slots=True)
class Removed:
    """A part that is never learned from. `text` is what it says."""

    kind: RemovedKind
    start: int
    end: int
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Transcript:
    """:param text: As it was given; everything else is in its offsets."""

    text: str
    turns: tuple[Turn, ...]
    removed: tuple[Removed, ...]

    @property
    def is_empty(self) -> bool:
        """Whether hygiene left nothing to learn from."""
        return not any(turn.pieces for turn in self.turns)
