"""Write the context as text within a token budget. Pure functions.

Messages that were found are joined with their neighbours to excerpts of conversations. The text can be passed to a
model as it is: blocks first, then memories and excerpts.

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

Invariants: the part with the blocks depends on the blocks only. Each part has a fence of its own, which stored text can
neither open nor close, so that clients can place the parts separately, and recalled text is never learned as if it had
been said. Every line that begins with `#` or `**` is ours: such a line of a stored text is escaped with a backslash,
even if it begins with whitespace or invisible characters. Lines of a memory after the first are indented, so that every
line of that section that begins with `-` is ours too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from souvenir.core.text import recalled
from souvenir.core.types import Memory
from souvenir.store.messages.blocks import Block
from souvenir.store.messages.messages import Message


@dataclass(frozen=True, slots=True)
class Fitted:
    """`tail` contains the `kept` best results; `tokens` is the exact count of the whole text."""

    kept: int
    tail: str
    tokens: int


def fitted(
    prefix: str, tail_of: Callable[[int], str], found: int, count: Callable[[str], int], *, max_tokens: int
) -> Fitted:
    """Append as many of the best results to the prefix as fit the budget; the prefix alone may exceed it.

    The tokens of a text are estimated as the sum over its lines, each counted once; the final text is counted exactly.

    :param tail_of: Returns the text of the given number of best results.
    :param count: Returns the number of tokens of a text.
    """
    of_line: dict[str, int] = {}

    def about(text: str) -> int:
        lines = text.split("\n")
        of_line.update({line: count(line) for line in lines if line not in of_line})
        return sum(of_line[line] for line in lines)

    budget, kept = max_tokens - about(prefix), 0
    while kept < found and about(tail_of(kept + 1)) <= budget:
        kept += 1
    tokens = count(prefix + tail_of(kept))
    while kept and tokens > max_tokens:
        kept -= 1
        tokens = count(prefix + tail_of(kept))
    return Fitted(kept, tail_of(kept), tokens)


Excerpt = Sequence[Message]
"""Consecutive turns of one session."""

NEIGHBOUR_TURNS = 1
"""Number of turns shown before and after a result."""


def excerpts(found: Iterable[Message], around: Iterable[Message]) -> list[Excerpt]:
    """Join results with their neighbours to excerpts, each turn once and in order; excerpts are ordered by their start.

    :param around: The results and their neighbours, session by session, in order. Other messages are ignored.
    """
    wanted = {
        (message.session_row, message.position + step)
        for message in found
        for step in range(-NEIGHBOUR_TURNS, NEIGHBOUR_TURNS + 1)
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


def stable_prefix(blocks: Iterable[Block], token_of: Callable[[str], str] = lambda _: "") -> str:
    """Return the blocks, each under its label, in a fence; empty if none has a value.

    :param token_of: The token of the fence around a text, which is the same for the same text.
    """
    shown = [f"### {block.label}\n{_escaped(block.value.strip())}" for block in blocks if block.value.strip()]
    text = _section("Memory", shown)
    return recalled(text, token_of(text)) if shown else ""


def volatile_tail(
    memories: Sequence[Memory],
    excerpts: Sequence[Excerpt],
    *,
    follows: bool,
    shorten: Callable[[str], str] | None = None,
    token: str = "",
) -> str:
    """Return the results as text, oldest first, in a fence; empty if there are none.

    :param follows: True if blocks precede it; an empty line separates them.
    :param shorten: Selects the shown part of a text; None for its beginning.
    :param token: Of the fence.
    """
    shorten = shorten or shortened
    dated = sorted(memories, key=lambda memory: (memory.occurred_at, memory.id))
    sections = []
    if dated:
        sections.append(_section("Relevant Memories", ["\n".join(_memory(one, shorten) for one in dated)]))
    if excerpts:
        sections.append(_section("Relevant Past Conversations", [_excerpt(one, shorten) for one in excerpts]))
    return ("\n" if follows else "") + recalled("\n".join(sections), token) if sections else ""


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
    """Return a speaker's name on one line, in which no asterisk ends the bold text."""
    words = " ".join(name.split())[:_MAX_NAME_CHARS].strip()
    return words.replace("\\", "\\\\").replace("*", "\\*")


def _day(at: datetime) -> str:
    return at.date().isoformat()


def _escaped(text: str) -> str:
    """Escape text that would read as our structure, and turn every line break into a newline."""
    return "\n".join(map(_escaped_line, text.splitlines()))


def _escaped_line(line: str) -> str:
    seen = next((at for at, sign in enumerate(line) if not _is_unseen(sign)), len(line))
    return f"{line[:seen]}\\{line[seen:]}" if line.startswith(_OURS, seen) else line


def _is_unseen(sign: str) -> bool:
    """Return True for whitespace, control and format characters, and combining marks."""
    return unicodedata.category(sign)[0] in "ZCM"
