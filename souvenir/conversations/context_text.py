"""Write the context as text. Pure functions.

Messages that were found are grouped by session to excerpts of conversations, in which an ellipsis stands where turns
are missing. The text can be passed to a model as it is: blocks first, then memories and excerpts.

    <recalled_memory>
    ## Memory

    ### human
    Name: Alice
    </recalled_memory>

    <recalled_memory>
    ## Relevant Memories

    - 2025-03-30: Alice leads the billing team.

    ## Relevant Past Conversations

    ### 2025-04-02

    **User**: My name is Alice and I live in Boston.

    …

    **Assistant**: Nice to meet you, Alice!
    </recalled_memory>

Invariants: the part with the blocks depends on the blocks only. Each part has a fence of its own, which stored text can
neither open nor close, so that clients can place the parts separately, and recalled text is never learned as if it had
been said. Every line that begins with `#` or `**` is ours: such a line of a stored text is escaped with a backslash,
even if it begins with whitespace or invisible characters. Lines of a memory after the first are indented, so that every
line of that section that begins with `-` is ours too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from souvenir.core.text import is_unseen, recalled
from souvenir.core.types import Memory
from souvenir.store.messages.blocks import Block
from souvenir.store.messages.messages import Message

SHOWN_CHARS = 500
"""Maximum length of one message or memory; a longer one is cut to the part with most terms of the query."""

OUTLINE_CHARS = 100
"""Maximum length of one of them in an outline: enough to see what it is about (measured by benchmarks/context)."""

ELLIPSIS = "…"
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n+|(?<=[。！？])")

_OURS = ("#", "**")
_MAX_NAME_CHARS = 100

MEMORIES_HEADING, CONVERSATIONS_HEADING = "## Relevant Memories", "## Relevant Past Conversations"

Excerpt = Sequence[Message]
"""Turns of one session, in order."""


def shortened(text: str, max_chars: int = SHOWN_CHARS) -> str:
    """Return the text, or its beginning up to the end of a word with an ellipsis; a very long word is split."""
    if len(text) <= max_chars:
        return text
    kept = text[: max_chars - len(ELLIPSIS)]
    end = (
        len(kept)
        if text[len(kept)].isspace()
        else max((at for at, sign in enumerate(kept) if sign.isspace()), default=0)
    )
    return kept[: end if end >= max_chars // 2 else len(kept)].rstrip() + ELLIPSIS


def outlined(text: str) -> str:
    """Return the beginning of the text on one line."""
    return shortened(" ".join(text.split()), OUTLINE_CHARS)


def part_shown(
    text: str, asked: Collection[str], terms_of: Callable[[str], Iterable[str]], max_chars: int = SHOWN_CHARS
) -> str:
    """Return the sentences of a long text with most terms of the query; its beginning in case of a tie."""
    if len(text) <= max_chars:
        return text
    ends = [*(end.end() for end in _SENTENCE_END.finditer(text)), len(text)]
    sentences = list(pairwise([0, *ends]))
    held = [frozenset(asked).intersection(terms_of(text[start:end])) for start, end in sentences]
    most, begin = 0, 0
    for first, (start, _) in enumerate(sentences):
        found = set(held[first])
        for terms, (_, end) in zip(held[first + 1 :], sentences[first + 1 :], strict=True):
            if end - start >= max_chars:
                break
            found |= terms
        if len(found) > most:
            most, begin = len(found), start
    if begin == 0:
        return shortened(text, max_chars)
    return ELLIPSIS + shortened(text[begin:], max_chars - len(ELLIPSIS))


@dataclass(frozen=True, slots=True)
class Layout:
    """The form of the results.

    :param shorten: Selects the shown part of a text.
    :param gap: Stands where turns are missing between two; empty for nothing.
    """

    shorten: Callable[[str], str] = shortened
    gap: str = ELLIPSIS


def excerpts(turns: Iterable[Message]) -> list[Excerpt]:
    """Group turns by session, in order; sessions are ordered by their first turn."""
    sessions: dict[int, list[Message]] = {}
    for turn in sorted(turns, key=lambda turn: turn.position):
        sessions.setdefault(turn.session_row, []).append(turn)
    return sorted(sessions.values(), key=lambda run: (min(turn.created_at for turn in run), run[0].id))


def stable_prefix(blocks: Iterable[Block], token_of: Callable[[str], str] = lambda _: "") -> str:
    """Return the blocks, each under its label, in a fence; empty if none has a value.

    :param token_of: The token of the fence around a text, which is the same for the same text.
    """
    shown = [f"### {block.label}\n{_escaped(block.value.strip())}" for block in blocks if block.value.strip()]
    text = "## Memory\n\n" + "\n\n".join(shown) + "\n"
    return recalled(text, token_of(text)) if shown else ""


def volatile_tail(
    memories: Sequence[Memory],
    excerpts: Sequence[Excerpt],
    *,
    follows: bool,
    layout: Layout = Layout(),
    note: str = "",
    token: str = "",
) -> str:
    """Return the results as text, oldest first, in a fence; empty if there are none.

    :param follows: True if blocks precede it; an empty line separates them.
    :param note: A line before the results.
    :param token: Of the fence.
    """
    text = "".join(text for text, _ in _pieces(memories, excerpts, layout, note))
    return ("\n" if follows else "") + recalled(text, token) if text else ""


@dataclass(frozen=True, slots=True)
class ResultLines:
    """The lines of a text that show a message or memory, from the first to the last, counted from 1."""

    record: Memory | Message
    first: int
    last: int


def result_lines(
    prefix: str, memories: Sequence[Memory], excerpts: Sequence[Excerpt], *, layout: Layout, note: str
) -> list[ResultLines]:
    """Return where `volatile_tail` shows the results, in the text that begins with the prefix.

    A fence adds a line before the results, and keeps their line breaks.
    """
    line = 1 + prefix.count("\n") + bool(prefix) + 1
    found = []
    for text, record in _pieces(memories, excerpts, layout, note):
        if record is not None:
            found.append(ResultLines(record, line, line + text.count("\n") - 1))
        line += text.count("\n")
    return found


def _pieces(
    memories: Sequence[Memory], excerpts: Sequence[Excerpt], layout: Layout, note: str
) -> Iterator[tuple[str, Memory | Message | None]]:
    """Yield the results as text, each with its record, and what stands between them; nothing without results."""
    if note and (memories or excerpts):
        yield f"{note}\n\n", None
    if memories:
        yield f"{MEMORIES_HEADING}\n\n", None
    for memory in sorted(memories, key=lambda memory: (memory.occurred_at, memory.id)):
        yield f"{memory_line(memory, layout)}\n", memory
    if memories and excerpts:
        yield "\n", None
    if excerpts:
        yield f"{CONVERSATIONS_HEADING}\n", None
    for excerpt in excerpts:
        yield f"\n{session_heading(excerpt)}\n", None
        next_position = excerpt[0].position
        for turn in excerpt:
            yield f"\n{layout.gap}\n\n" if layout.gap and next_position < turn.position else "\n", None
            yield f"{turn_line(turn, layout)}\n", turn
            next_position = turn.position + 1


def memory_line(memory: Memory, layout: Layout) -> str:
    lines = _escaped(layout.shorten(memory.text.strip())).split("\n")
    return f"- {_day(memory.occurred_at)}: " + "\n  ".join(lines)


def session_heading(turns: Sequence[Message]) -> str:
    days = sorted({_day(turn.created_at) for turn in turns})
    return f"### {days[0]}" if len(days) == 1 else f"### {days[0]} to {days[-1]}"


def turn_line(message: Message, layout: Layout) -> str:
    name = _name(message.speaker or "") or message.role.value.capitalize()
    return f"**{name}**: {_escaped(layout.shorten(message.content.strip()))}"


def _name(name: str) -> str:
    """Return a speaker's name on one line, in which no asterisk ends the bold text."""
    words = " ".join(name.split())[:_MAX_NAME_CHARS].strip()
    return words.replace("\\", "\\\\").replace("*", "\\*")


def _day(at: datetime) -> str:
    return at.date().isoformat()


def _escaped(text: str) -> str:
    """Escape text that would read as our structure, and turn every line break into a newline."""
    return "\n".join(map(_escaped_line, text.splitlines()))


def _escaped_line(line: str) -> str:
    seen = next((at for at, sign in enumerate(line) if not is_unseen(sign)), len(line))
    return f"{line[:seen]}\\{line[seen:]}" if line.startswith(_OURS, seen) else line
