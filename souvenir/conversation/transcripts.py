"""A transcript as messages of an agent: its turns, as far as somebody said them.

What hygiene takes out is not stored, and neither are turns of tools and of the system, which nobody said. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from souvenir.errors import InvalidRequest
from souvenir.extraction.turns import Transcript, Turn, TurnRole
from souvenir.store.messages import MessageDraft
from souvenir.types import MessageRole

MAX_TURNS = 1_000
MAX_CONTENT_CHARS = 50_000
"""Of one message; a longer turn becomes several."""

MAX_SPEAKER_CHARS = 100

_ROLES = {
    TurnRole.USER: MessageRole.USER,
    TurnRole.ASSISTANT: MessageRole.ASSISTANT,
    TurnRole.UNKNOWN: MessageRole.USER,
}
"""Who says what is stored. A text without roles is the word of whoever sends it."""


def message_drafts(transcript: Transcript, *, session_id: str, user: str | None) -> list[MessageDraft]:
    """Its turns in their order, with their times.

    :raises InvalidRequest: If there are too many.
    """
    drafts = [
        MessageDraft(
            role, content, session_id=session_id, user=user, speaker=_speaker(turn.speaker), created_at=turn.at
        )
        for turn in transcript.turns
        if (role := _ROLES.get(turn.role)) is not None
        for content in _contents(turn)
    ]
    if len(drafts) > MAX_TURNS:
        raise InvalidRequest(f"A transcript of more than {MAX_TURNS} turns cannot be stored at once; send it in parts")
    return drafts


def _contents(turn: Turn) -> Iterator[str]:
    """What is said, in parts that end at a line or a word where one does."""
    rest = turn.text.replace("\0", "").strip()
    while len(rest) > MAX_CONTENT_CHARS:
        head = rest[:MAX_CONTENT_CHARS]
        end = next((at for sign in ("\n", " ") if (at := head.rfind(sign)) > 0), MAX_CONTENT_CHARS)
        yield head[:end].rstrip()
        rest = rest[end:].lstrip()
    if rest:
        yield rest


def _speaker(name: str | None) -> str | None:
    """The name as messages have it, or none."""
    shown = "".join(sign for sign in name or "" if sign.isprintable()).strip()
    return shown[:MAX_SPEAKER_CHARS] or None
