"""The newest messages of one conversation, in a circular buffer. Nothing here waits for anything.

Invariant: messages are ordered by their positions, in whatever order they are added, and there are never more than
the buffer was made for.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from threading import Lock
from typing import Any

from souvenir.core.errors import InvalidRequest
from souvenir.core.types import MessageRole

CHARS_PER_TOKEN = 4
"""About so many characters of English are a token of the usual language models."""

MAX_MESSAGES = 50
TOKEN_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class BufferedMessage:
    """:param position: Ascends in the order of storing. :param timestamp: When it was said, in seconds since 1970."""

    position: int
    role: MessageRole
    content: str
    timestamp: float

    def to_dict(self) -> dict[str, Any]:
        return {"role": self.role.value, "content": self.content, "timestamp": self.timestamp}


class MessageBuffer:
    """Safe to call from any thread."""

    def __init__(self, max_messages: int = MAX_MESSAGES) -> None:
        """:raises InvalidRequest: If it would hold no message."""
        if max_messages < 1:
            raise InvalidRequest("A context window holds at least one message; give max_messages of 1 or more")
        self._max_messages = max_messages
        self._messages: list[BufferedMessage] = []
        self._lock = Lock()

    def add(self, messages: Iterable[BufferedMessage]) -> None:
        """Insert messages by position, replacing those of the same position; the oldest are evicted."""
        with self._lock:
            for message in messages:
                self._put(message)

    def say(self, role: MessageRole, content: str, timestamp: float) -> None:
        """Append a message after the newest one."""
        with self._lock:
            position = self._messages[-1].position + 1 if self._messages else 0
            self._put(BufferedMessage(position, role, content, timestamp))

    def newest(self, limit: int | None = None) -> list[BufferedMessage]:
        """All, or so many of the newest; oldest first."""
        with self._lock:
            first = 0 if limit is None else max(len(self._messages) - max(limit, 0), 0)
            return self._messages[first:]

    def fitting(self, token_limit: int) -> list[BufferedMessage]:
        """The newest that together take no more tokens, whole and without a gap; oldest first."""
        messages, room = self.newest(), token_limit * CHARS_PER_TOKEN
        first = len(messages)
        while first and len(messages[first - 1].content) <= room:
            first -= 1
            room -= len(messages[first].content)
        return messages[first:]

    def clear(self) -> None:
        with self._lock:
            self._messages.clear()

    def _put(self, message: BufferedMessage) -> None:
        at = bisect_left(self._messages, message.position, key=attrgetter("position"))
        known = at < len(self._messages) and self._messages[at].position == message.position
        self._messages[at : at + known] = [message]
        del self._messages[: -self._max_messages]


def role_named(name: str) -> MessageRole:
    """:raises InvalidRequest: If there is no such role."""
    try:
        return MessageRole(name)
    except ValueError as error:
        raise InvalidRequest(f"The role {name!r} is not known; give one of {', '.join(MessageRole)}") from error


class SessionMemory:
    """A circular buffer of messages `{role, content, timestamp}`; safe for many tasks, loops and threads at once.

    No method waits for anything; they are awaited because those of the other tiers are.
    """

    def __init__(self, max_messages: int = MAX_MESSAGES) -> None:
        """:raises InvalidRequest: If it would hold no message."""
        self._window = MessageBuffer(max_messages)

    async def add_message(self, role: str, content: str) -> None:
        """:raises InvalidRequest: If there is no such role."""
        self._window.say(role_named(role), content, time.time())

    async def get_messages(self, limit: int | None = None) -> list[dict[str, Any]]:
        """All, or so many of the newest; oldest first."""
        return [message.to_dict() for message in self._window.newest(limit)]

    async def clear(self) -> None:
        self._window.clear()

    async def get_context_window(self, token_limit: int = TOKEN_LIMIT) -> list[dict[str, Any]]:
        """The newest messages that fit, at about four characters a token; oldest first."""
        return [message.to_dict() for message in self._window.fitting(token_limit)]
