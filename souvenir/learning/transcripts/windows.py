"""Windows of a transcript for a model: consecutive turns, each with a number that the model can refer to.

    <transcript>
    [12] 2024-03-15 Alice (user): I moved to Lisbon.
      My old flat is sold.
    [13] 2024-03-15 (assistant): Noted.
    </transcript>

Invariants: every line that begins with a bracket is ours, because all other lines of a turn are indented; no text of a
turn closes the frame. A number is the index of the turn in the transcript, the same in each window. No window is longer
than requested, including its frame; text that hygiene removed is in none. Pure functions.
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
    """The part of a turn that a window shows: all of it, unless the turn is too long for one window.

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

    :param overlap: Number of leading parts that the previous window shows too.
    """

    parts: tuple[Part, ...]
    overlap: int

    @property
    def numbers(self) -> frozenset[int]:
        """The turns that a model can refer to."""
        return frozenset(part.number for part in self.parts)

    @property
    def text(self) -> str:
        return fenced("".join(map(str, self.parts)), name=FRAME)


def windows(transcript: Transcript, *, max_chars: int, overlap_turns: int) -> list[Window]:
    """Return windows that show every turn with text left.

    Each begins with the last turns of the previous one: at most `overlap_turns`, and at most a quarter of its size.

    :param max_chars: Limit for a window's text; at least `MIN_WINDOW_CHARS`.
    """
    budget = max(max_chars, MIN_WINDOW_CHARS) - _FRAME_CHARS
    made: list[Window] = []
    parts: list[Part] = []
    overlap, length = 0, 0
    for part in (part for number, turn in enumerate(transcript.turns) for part in _parts(number, turn, budget)):
        size = len(str(part))
        if parts and length + size > budget:
            made.append(Window(tuple(parts), overlap))
            parts = _tail(parts, overlap_turns, min(budget // 4, budget - size))
            overlap, length = len(parts), sum(len(str(one)) for one in parts)
        parts.append(part)
        length += size
    if len(parts) > overlap:
        made.append(Window(tuple(parts), overlap))
    return made


def _tail(parts: Sequence[Part], count: int, budget: int) -> list[Part]:
    tail: list[Part] = []
    for part in reversed(parts[-count:] if count else []):
        budget -= len(str(part))
        if budget < 0:
            break
        tail.insert(0, part)
    return tail


def _parts(number: int, turn: TranscriptTurn, budget: int) -> Iterator[Part]:
    """Yield the turn. A turn that is too long is cut after sentences, and a sentence that is too long anywhere."""
    head = _head(number, turn)
    said = _shown(turn.text.strip())
    budget -= len(head) + 2
    begin = 0
    ends = [end for _, end in sentences(said)]
    for at, end in enumerate(ends):
        while end - begin > budget:
            cut = begin + budget
            yield Part(number, head, said[begin:cut].strip())
            begin = cut
        following = ends[at + 1] if at + 1 < len(ends) else None
        if end > begin and (following is None or following - begin > budget):
            if shown := said[begin:end].strip():
                yield Part(number, head, shown)
            begin = end


def _head(number: int, turn: TranscriptTurn) -> str:
    at = f" {turn.at.date().isoformat()}" if turn.at else ""
    name = _name(turn.speaker) if turn.speaker else ""
    return f"[{number}]{at}{name} ({turn.role.value}):"


def _name(speaker: str) -> str:
    """Return the name on one line, without characters that would end a head."""
    name = " ".join(defuse(speaker, name=FRAME).translate(_NO_SIGNS).split())[:_MAX_NAME_CHARS].strip()
    return f" {name}" if name else ""


def _shown(text: str) -> str:
    """Indent every line but the first, and turn every kind of line break into a newline."""
    return f"\n{INDENT}".join(defuse(text, name=FRAME).splitlines())


_NO_SIGNS = str.maketrans(dict.fromkeys("[]():<>", " "))
