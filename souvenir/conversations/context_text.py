"""Write the context as text within a token budget. Pure functions.

Found turns are joined with their neighbours to excerpts of conversations.

A context as text that a model can be given as it is: blocks first, then memories and excerpts of conversations.

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

    **Assistant**: Nice to meet you, Alice!
    </recalled_memory>

Invariants: the part about blocks depends on nothing but the blocks. Both parts stand in a fence of their own, which
nothing that was stored opens or closes, so that clients can place them apart, and what a model was reminded of is never
learned as if it had been said. Every line that begins with `#` or `**` is ours,
whatever was stored: such a line of a stored text gets a backslash before it, also where blanks or signs that nobody
sees go before. Lines of a memory after its first are indented, so that every line of that section that begins with `-`
is ours too. Pure functions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from souvenir.core.text import fenced
from souvenir.core.types import Memory
from souvenir.store.messages.blocks import Block
from souvenir.store.messages.messages import Message


@dataclass(frozen=True, slots=True)
class Fitted:
    """`kept` of the best finds are in `tail`; `tokens` counts the whole text, exactly."""

    kept: int
    tail: str
    tokens: int


def fitted(
    prefix: str, tail_of: Callable[[int], str], found: int, count: Callable[[str], int], *, max_tokens: int
) -> Fitted:
    """The prefix with as many of the best finds as keep the budget; the prefix alone may be over it.

    The tokens of a text are taken as those of its lines, so that no line is counted twice, and counted as a whole once.

    :param tail_of: The text of so many of the best finds.
    :param count: Tokens of a text.
    """
    of_line: dict[str, int] = {}

    def about(text: str) -> int:
        lines = text.split("\n")
        of_line.update({line: count(line) for line in lines if line not in of_line})
        return sum(of_line[line] for line in lines)

    room, kept = max_tokens - about(prefix), 0
    while kept < found and about(tail_of(kept + 1)) <= room:
        kept += 1
    tokens = count(prefix + tail_of(kept))
    while kept and tokens > max_tokens:
        kept -= 1
        tokens = count(prefix + tail_of(kept))
    return Fitted(kept, tail_of(kept), tokens)


Excerpt = Sequence[Message]
"""Turns that follow each other in one session."""

BESIDE = 1
"""Turns shown before and after one that was found."""


def excerpts(found: Iterable[Message], around: Iterable[Message]) -> list[Excerpt]:
    """Found turns with their neighbours as excerpts, each turn once and in order; excerpts are ordered by their start.

    :param around: The messages found and their neighbours, session by session, in order. Others are left out.
    """
    wanted = {
        (message.session_row, message.position + step) for message in found for step in range(-BESIDE, BESIDE + 1)
    }
    runs: list[list[Message]] = []
    for turn in around:
        if (turn.session_row, turn.position) in wanted:
            if runs and _follows(runs[-1][-1], turn):
                runs[-1].append(turn)
            else:
                runs.append([turn])
    return sorted(runs, key=lambda run: (min(turn.created_at for turn in run), run[0].id))


def _follows(earlier: Message, later: Message) -> bool:
    return earlier.session_row == later.session_row and later.position == earlier.position + 1


SHOWN_CHARS = 500
"""Maximum length of one message or memory; a longer one is cut to the part with most terms of the query."""

ELLIPSIS = "…"
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n+|(?<=[。！？])")

_OURS = ("#", "**")
_MAX_NAME_CHARS = 100


def stable_prefix(blocks: Iterable[Block]) -> str:
    """The blocks, each under its label, in a fence; empty if none has a value."""
    shown = [f"### {block.label}\n{_escaped(block.value.strip())}" for block in blocks if block.value.strip()]
    return fenced(_section("Memory", shown)) if shown else ""


def volatile_tail(
    memories: Sequence[Memory],
    excerpts: Sequence[Excerpt],
    *,
    follows: bool,
    shorten: Callable[[str], str] | None = None,
) -> str:
    """The found texts, oldest first, in a fence; empty if there are none.

    :param follows: Whether it stands after blocks, from which an empty line parts it.
    :param shorten: What is shown of a text; None: its beginning.
    """
    shorten = shorten or shortened
    dated = sorted(memories, key=lambda memory: (memory.occurred_at, memory.id))
    sections = []
    if dated:
        sections.append(_section("Relevant Memories", ["\n".join(_memory(one, shorten) for one in dated)]))
    if excerpts:
        sections.append(_section("Relevant Past Conversations", [_excerpt(one, shorten) for one in excerpts]))
    return ("\n" if follows else "") + fenced("\n".join(sections)) if sections else ""


def shortened(text: str, max_chars: int = SHOWN_CHARS) -> str:
    """The text, or its beginning up to a word's end with an ellipsis; a word that is very long is cut in two."""
    if len(text) <= max_chars:
        return text
    kept = text[: max_chars - len(ELLIPSIS)]
    end = (
        len(kept)
        if text[len(kept)].isspace()
        else max((at for at, sign in enumerate(kept) if sign.isspace()), default=0)
    )
    return kept[: end if end >= max_chars // 2 else len(kept)].rstrip() + ELLIPSIS


def part_shown(text: str, asked: Collection[str], terms_of: Callable[[str], Iterable[str]]) -> str:
    """The sentences of a long text with most terms of the query; its beginning if no others have more."""
    if len(text) <= SHOWN_CHARS:
        return text
    ends = [*(end.end() for end in _SENTENCE_END.finditer(text)), len(text)]
    sentences = list(pairwise([0, *ends]))
    held = [frozenset(asked).intersection(terms_of(text[start:end])) for start, end in sentences]
    most, begin = 0, 0
    for first, (start, _) in enumerate(sentences):
        found = set(held[first])
        for terms, (_, end) in zip(held[first + 1 :], sentences[first + 1 :], strict=True):
            if end - start >= SHOWN_CHARS:
                break
            found |= terms
        if len(found) > most:
            most, begin = len(found), start
    return shortened(text) if begin == 0 else ELLIPSIS + shortened(text[begin:], SHOWN_CHARS - len(ELLIPSIS))


def _section(title: str, parts: Sequence[str]) -> str:
    return f"## {title}\n\n" + "\n\n".join(parts) + "\n"


def _memory(memory: Memory, shorten: Callable[[str], str]) -> str:
    lines = _escaped(shorten(memory.text.strip())).split("\n")
    return f"- {_day(memory.occurred_at)}: " + "\n  ".join(lines)


def _excerpt(excerpt: Excerpt, shorten: Callable[[str], str]) -> str:
    days = sorted({_day(turn.created_at) for turn in excerpt})
    heading = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return "\n\n".join([f"### {heading}", *(_turn(turn, shorten) for turn in excerpt)])


def _turn(message: Message, shorten: Callable[[str], str]) -> str:
    name = _name(message.speaker or "") or message.role.value.capitalize()
    return f"**{name}**: {_escaped(shorten(message.content.strip()))}"


def _name(name: str) -> str:
    """A speaker's name on one line, in which no asterisk ends what is bold."""
    words = " ".join(name.split())[:_MAX_NAME_CHARS].strip()
    return words.replace("\\", "\\\\").replace("*", "\\*")


def _day(at: datetime) -> str:
    return at.date().isoformat()


def _escaped(text: str) -> str:
    """The text with a backslash before what would read as structure of ours, and every line break a newline."""
    return "\n".join(map(_escaped_line, text.splitlines()))


def _escaped_line(line: str) -> str:
    seen = next((at for at, sign in enumerate(line) if not _is_unseen(sign)), len(line))
    return f"{line[:seen]}\\{line[seen:]}" if line.startswith(_OURS, seen) else line


def _is_unseen(sign: str) -> bool:
    """Blanks, control and format characters, and marks that belong to the sign before them."""
    return unicodedata.category(sign)[0] in "ZCM"
