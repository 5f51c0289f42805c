"""A transcript as a model reads it: windows of turns, each turn under a number that the model can name.

    <transcript>
    [12] 2024-03-15 Alice (user): I moved to Lisbon.
      My old flat is sold.
    [13] 2024-03-15 (assistant): Noted.
    </transcript>

Invariants: every line of a window that begins with a bracket is ours, whatever was said, since all other lines of a
turn are indented; nothing that was said closes the frame. A number is the index of the turn in the transcript, in each
window the same. No window is longer than asked, frame and all; what hygiene took out is in none. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from souvenir.core.text import defuse, fenced, sentences
from souvenir.learning.transcripts.turns import Transcript, TranscriptTurn

FRAME = "transcript"
INDENT = "  "
MIN_WINDOW_CHARS = 400
"""A frame, a head with a long name, and some words."""

_MAX_NAME_CHARS = 60
_FRAME_CHARS = len(fenced("", name=FRAME))


@dataclass(frozen=True, slots=True)
class Part:
    """What a window shows of a turn; all of it unless the turn is too long for one.

    :param number: Index of the turn in the transcript.
    """

    number: int
    head: str
    said: str

    def __str__(self) -> str:
        return f"{self.head} {self.said}\n"


@dataclass(frozen=True, slots=True)
class Window:
    """Parts in the order of the transcript.

    :param overlap: How many of the first parts stood in the window before.
    """

    parts: tuple[Part, ...]
    overlap: int

    @property
    def numbers(self) -> frozenset[int]:
        """The turns that a model can name."""
        return frozenset(part.number for part in self.parts)

    @property
    def text(self) -> str:
        return fenced("".join(map(str, self.parts)), name=FRAME)


def windows(transcript: Transcript, *, max_chars: int, overlap_turns: int) -> list[Window]:
    """Windows that show every turn of which something is left.

    Each begins with the last turns of the one before, as many as are asked for and fit in a quarter of it.

    :param max_chars: Of a window's text; at least `MIN_WINDOW_CHARS`.
    """
    room = max(max_chars, MIN_WINDOW_CHARS) - _FRAME_CHARS
    made: list[Window] = []
    parts: list[Part] = []
    overlap, length = 0, 0
    for part in (part for number, turn in enumerate(transcript.turns) for part in _parts(number, turn, room)):
        size = len(str(part))
        if parts and length + size > room:
            made.append(Window(tuple(parts), overlap))
            parts = _tail(parts, overlap_turns, min(room // 4, room - size))
            overlap, length = len(parts), sum(len(str(one)) for one in parts)
        parts.append(part)
        length += size
    if len(parts) > overlap:
        made.append(Window(tuple(parts), overlap))
    return made


def _tail(parts: Sequence[Part], count: int, room: int) -> list[Part]:
    tail: list[Part] = []
    for part in reversed(parts[-count:] if count else []):
        room -= len(str(part))
        if room < 0:
            break
        tail.insert(0, part)
    return tail


def _parts(number: int, turn: TranscriptTurn, room: int) -> Iterator[Part]:
    """The turn; if it is too long its parts, cut at the ends of sentences, and a sentence that is too long anywhere."""
    head = _head(number, turn)
    said = _shown(turn.text.strip())
    room -= len(head) + 2
    begin = 0
    ends = [end for _, end in sentences(said)]
    for at, end in enumerate(ends):
        while end - begin > room:
            cut = begin + room
            yield Part(number, head, said[begin:cut].strip())
            begin = cut
        following = ends[at + 1] if at + 1 < len(ends) else None
        if end > begin and (following is None or following - begin > room):
            if shown := said[begin:end].strip():
                yield Part(number, head, shown)
            begin = end


def _head(number: int, turn: TranscriptTurn) -> str:
    at = f" {turn.at.date().isoformat()}" if turn.at else ""
    name = _name(turn.speaker) if turn.speaker else ""
    return f"[{number}]{at}{name} ({turn.role.value}):"


def _name(speaker: str) -> str:
    """On one line, and without what would end a head."""
    name = " ".join(defuse(speaker, name=FRAME).translate(_NO_SIGNS).split())[:_MAX_NAME_CHARS].strip()
    return f" {name}" if name else ""


def _shown(text: str) -> str:
    """Every line but the first is indented, and every kind of line break is a newline."""
    return f"\n{INDENT}".join(defuse(text, name=FRAME).splitlines())


_NO_SIGNS = str.maketrans(dict.fromkeys("[]():<>", " "))
