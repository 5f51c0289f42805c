"""What of a message or a memory counts as said: without what was recalled, put in by clients or printed by programs."""

from __future__ import annotations

import structlog

from souvenir.concepts.extraction import mentioned
from souvenir.extraction.hygiene import screened
from souvenir.extraction.turns import TurnRole
from souvenir.types import Mentioned, MessageRole

log = structlog.get_logger(__name__)


def mentions_in(text: str, role: MessageRole | None) -> tuple[Mentioned, ...]:
    """What a message of that role mentions, or a memory; instructions to the model mention nothing."""
    if role is MessageRole.SYSTEM:
        return ()
    try:
        return mentioned(said(text, role))
    except Exception:  # the boundary of the background's work: one text must not keep all others waiting
        log.exception("text_not_read", chars=len(text))
        return ()


def said(text: str, role: MessageRole | None) -> str:
    turn = TurnRole.ASSISTANT if role is MessageRole.ASSISTANT else TurnRole.USER
    parts, done = [], 0
    for span in screened(text, turn):
        parts += [text[done : span.start], "\n"]
        done = span.end
    return "".join([*parts, text[done:]])
