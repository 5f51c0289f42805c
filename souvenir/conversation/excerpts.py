"""Excerpts of conversations: what was found with the turns beside it, joined where they touch. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from souvenir.store.messages import Message

Excerpt = Sequence[Message]
"""Turns that follow each other in one session."""

BESIDE = 1
"""Turns shown before and after one that was found."""


def excerpts(found: Iterable[Message], around: Iterable[Message]) -> list[Excerpt]:
    """What was found with its neighbours, each turn once, in order; excerpts by when they begin.

    :param around: The messages found and those beside them, session by session, in order. Others are left out.
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
