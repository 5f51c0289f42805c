"""Tier 1 by itself: the messages of one conversation in memory, for whoever keeps them elsewhere or not at all.

`MemoryManager` keeps what it is told; this does not.
"""

from __future__ import annotations

import time
from typing import Any

from souvenir.conversation.window import MAX_MESSAGES, TOKEN_LIMIT, MessageWindow, role_named


class SessionMemory:
    """A circular buffer of messages `{role, content, timestamp}`; safe for many tasks, loops and threads at once.

    No method waits for anything; they are awaited because those of the other tiers are.
    """

    def __init__(self, max_messages: int = MAX_MESSAGES) -> None:
        """:raises InvalidRequest: If there would be no room for a message."""
        self._window = MessageWindow(max_messages)

    async def add_message(self, role: str, content: str) -> None:
        """:raises InvalidRequest: If nobody has this role."""
        self._window.say(role_named(role), content, time.time())

    async def get_messages(self, limit: int | None = None) -> list[dict[str, Any]]:
        """All, or so many of the newest; oldest first."""
        return [message.to_dict() for message in self._window.newest(limit)]

    async def clear(self) -> None:
        self._window.clear()

    async def get_context_window(self, token_limit: int = TOKEN_LIMIT) -> list[dict[str, Any]]:
        """The newest messages that fit, at about four characters a token; oldest first."""
        return [message.to_dict() for message in self._window.fitting(token_limit)]
