"""The newest messages of one conversation, in a circular buffer. Nothing here waits for anything.

Invariant: messages stand in the order of their positions, whichever came first, and there are never more of them than
the buffer was made for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from threading import Lock
from typing import Any

from souvenir.errors import InvalidRequest
from souvenir.types import MessageRole

CHARS_PER_TOKEN = 4
"""About so many characters of English are a token of the usual language models."""

MAX_MESSAGES = 50
TOKEN_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class WindowMessage:
    """:param position: Ascends in the order of storing. :param timestamp: When it was said, in seconds since 1970."""

    position: int
    role: MessageRole
    content: str
    timestamp: float

    def to_dict(self) -> dict[str, Any]:
        return {"role": self.role.value, "content": self.content, "timestamp": self.timestamp}


class MessageWindow:
    """Safe to call from any thread."""

    def __init__(self, max_messages: int = MAX_MESSAGES) -> None:
        """:raises InvalidRequest: If there would be no room for a message."""
        if max_messages < 1:
            raise InvalidRequest("A context window holds at least one message; give max_messages of 1 or more")
        self._max_messages = max_messages
        self._messages: list[WindowMessage] = []
        self._lock = Lock()

    def add(self, messages: Iterable[WindowMessage]) -> None:
        """Put messages in their places, one of a known position in the place of the old; the oldest beyond leave."""
        with self._lock:
            for message in messages:
                self._put(message)

    def say(self, role: MessageRole, content: str, timestamp: float) -> None:
        """Put a message behind the newest one."""
        with self._lock:
            position = self._messages[-1].position + 1 if self._messages else 0
            self._put(WindowMessage(position, role, content, timestamp))

    def newest(self, limit: int | None = None) -> list[WindowMessage]:
        """All, or so many of the newest; oldest first."""
        with self._lock:
            first = 0 if limit is None else max(len(self._messages) - max(limit, 0), 0)
            return self._messages[first:]

    def fitting(self, token_limit: int) -> list[WindowMessage]:
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

    def _put(self, message: WindowMessage) -> None:
        at = bisect_left(self._messages, message.position, key=attrgetter("position"))
        known = at < len(self._messages) and self._messages[at].position == message.position
        self._messages[at : at + known] = [message]
        del self._messages[: -self._max_messages]


def role_named(name: str) -> MessageRole:
    """:raises InvalidRequest: If nobody has this role."""
    try:
        return MessageRole(name)
    except ValueError as error:
        raise InvalidRequest(f"The role {name!r} is not known; give one of {', '.join(MessageRole)}") from error
