"""How much of what was found fits in a budget of tokens. Pure functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
