"""A conversation that a caller sends whole, again and again while it goes on: what is new of it is stored.

A message is known by who says it, when and what; one without a time is new each time that it is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memory_engine import MemoryEngine
from souvenir.conversation.messages import Conversations
from souvenir.errors import AgentNotFound
from souvenir.store.messages import Message, MessageDraft, MessageFilter
from souvenir.types import MessageRole, Scope

PAGE_SIZE = 1_000


def add_new(
    engine: MemoryEngine, conversations: Conversations, scope: Scope, session_id: str, drafts: Sequence[MessageDraft]
) -> Sequence[Message]:
    """Store those of a session's messages that it does not hold yet, in their order.

    :raises SessionEnded: If the session takes no more messages, and one is new.
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
        # Its first message makes it.
        return set()
    return {(one.role, one.created_at, one.content) for one in found}
