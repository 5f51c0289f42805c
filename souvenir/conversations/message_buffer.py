"""The newest messages of one conversation, in a circular buffer. No method blocks.

Invariant: messages are ordered by position, whatever the order of insertion, and never exceed the capacity.
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
"""Approximate characters per token of English text for common language models."""

MAX_MESSAGES = 50
TOKEN_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class BufferedMessage:
    """:param position: Ascends in the order of storing.

    :param timestamp: Time of the message, in seconds since 1970.
    """

    position: int
    role: MessageRole
    content: str
    timestamp: float

    def to_dict(self) -> dict[str, Any]:
        return {"role": self.role.value, "content": self.content, "timestamp": self.timestamp}


class MessageBuffer:
    """Thread-safe."""

    def __init__(self, max_messages: int = MAX_MESSAGES) -> None:
        """:raises InvalidRequest: If the capacity is less than one message."""
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

    def append(self, role: MessageRole, content: str, timestamp: float) -> None:
        """Append a message after the newest one."""
        with self._lock:
            position = self._messages[-1].position + 1 if self._messages else 0
            self._put(BufferedMessage(position, role, content, timestamp))

    def newest(self, limit: int | None = None) -> list[BufferedMessage]:
        """Return the newest messages, oldest first; all without a limit."""
        with self._lock:
            first = 0 if limit is None else max(len(self._messages) - max(limit, 0), 0)
            return self._messages[first:]

    def fitting(self, token_limit: int) -> list[BufferedMessage]:
        """Return the newest consecutive messages that fit the token limit, oldest first."""
        messages, budget = self.newest(), token_limit * CHARS_PER_TOKEN
        first = len(messages)
        while first and len(messages[first - 1].content) <= budget:
            first -= 1
            budget -= len(messages[first].content)
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
    """A circular buffer of messages `{role, content, timestamp}`; safe for concurrent tasks, loops and threads.

    No method blocks; they are coroutines for consistency with the other tiers.
    """

    def __init__(self, max_messages: int = MAX_MESSAGES) -> None:
        """:raises InvalidRequest: If the capacity is less than one message."""
        self._window = MessageBuffer(max_messages)

    async def add_message(self, role: str, content: str) -> None:
        """:raises InvalidRequest: If there is no such role."""
        self._window.append(role_named(role), content, time.time())

    async def get_messages(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the newest messages, oldest first; all without a limit."""
        return [message.to_dict() for message in self._window.newest(limit)]

    async def clear(self) -> None:
        self._window.clear()

    async def get_context_window(self, token_limit: int = TOKEN_LIMIT) -> list[dict[str, Any]]:
        """Return the newest messages that fit, at about four characters per token; oldest first."""
        return [message.to_dict() for message in self._window.fitting(token_limit)]
