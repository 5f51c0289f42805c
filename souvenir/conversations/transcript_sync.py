"""Convert a transcript to messages of an agent, and store the new ones.

Turns of users and assistants are stored without the text that hygiene removes; turns of tools and of the system are
not stored. A client may send a growing conversation repeatedly: a message is identified by role, time and content, and
a message without a time is always new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from souvenir.conversations.messages import Conversations
from souvenir.core.errors import AgentNotFound, InvalidRequest
from souvenir.core.text import is_blank
from souvenir.core.types import MessageRole, Scope
from souvenir.learning.transcripts.turns import Transcript, TranscriptTurn, TurnRole
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.messages import Message, MessageDraft, MessageFilter

MAX_TURNS = 1_000
MAX_CONTENT_CHARS = 50_000
"""Maximum length of one message; a longer turn becomes several."""

MAX_SPEAKER_CHARS = 100

_ROLES = {
    TurnRole.USER: MessageRole.USER,
    TurnRole.ASSISTANT: MessageRole.ASSISTANT,
    TurnRole.UNKNOWN: MessageRole.USER,
}
"""The roles of stored turns. A text without roles is attributed to the user."""


def message_drafts(transcript: Transcript, *, session_id: str, user: str | None) -> list[MessageDraft]:
    """Return the turns in order, with their times.

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


def _contents(turn: TranscriptTurn) -> Iterator[str]:
    """The text of a turn in parts, split at the end of a line or a word if possible."""
    rest = turn.text.replace("\0", "").strip()
    while len(rest) > MAX_CONTENT_CHARS:
        head = rest[:MAX_CONTENT_CHARS]
        end = next((at for sign in ("\n", " ") if (at := head.rfind(sign)) > 0), MAX_CONTENT_CHARS)
        yield head[:end].rstrip()
        rest = rest[end:].lstrip()
    if not is_blank(rest):
        yield rest


def _speaker(name: str | None) -> str | None:
    """Return the name in the form of messages, or None."""
    shown = "".join(sign for sign in name or "" if sign.isprintable()).strip()
    return shown[:MAX_SPEAKER_CHARS] or None


PAGE_SIZE = 1_000


def add_new(
    engine: MemoryEngine, conversations: Conversations, scope: Scope, session_id: str, drafts: Sequence[MessageDraft]
) -> Sequence[Message]:
    """Store the messages that the session does not contain yet, in order.

    :raises SessionEnded: If the session has ended, and a message is new.
    """
    known = _known(conversations, scope, session_id, [one.created_at for one in drafts if one.created_at is not None])
    stored_as = engine.screening.applied(scope, refuse=False)
    new = [
        one
        for one in drafts
        if one.created_at is None or (one.role, one.created_at, stored_as.text(one.content)) not in known
    ]
    return conversations.add(scope, new) if new else ()


def _known(
    conversations: Conversations, scope: Scope, session_id: str, times: Sequence[datetime]
) -> set[tuple[MessageRole, datetime, str]]:
    if not times:
        return set()
    chosen = MessageFilter(session_id, since=min(times), until=max(times))
    found: list[Message] = []
    try:
        page, total = conversations.page(scope, chosen, limit=PAGE_SIZE)
        while page:
            found += page
            page = (
                conversations.page(scope, chosen, offset=len(found), limit=PAGE_SIZE)[0] if len(found) < total else ()
            )
    except AgentNotFound:
        # The agent is created with its first message.
        return set()
    return {(one.role, one.created_at, one.content) for one in found}
