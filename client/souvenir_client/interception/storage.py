"""Stores messages in spite of failures: retries what is safe to retry, and reports refusals.

A request keeps its Idempotency-Key over its retries, so nothing is stored twice. While the service is unavailable,
requests are retried until it answers. For one thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import uuid4

from souvenir_client.errors import ApiError, ConnectionFailed, SouvenirError
from souvenir_client.interception.outages import Outage, Use

MAX_BATCH_TURNS, MAX_BATCH_CHARS = 50, 500_000
"""Limits of a request: it is embedded well within the request's timeout, and is far below the largest body."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
GIVE_UP_S = 120.0
"""After this time, a request that the service fails at is dropped, because others wait. A request that does not reach
the service is retried without limit.
"""

_log = logging.getLogger("souvenir_client")


@dataclass(frozen=True, slots=True)
class Place:
    """The agent, the session and the user of a message."""

    agent: str
    session_id: str
    user: str | None


Messages = Sequence[Mapping[str, Any]]
Send = Callable[[Place, Messages, str], object]
"""Sends one request, with its Idempotency-Key."""


class Storage:
    """:param pause: Waits some seconds before a retry; returns True if there must be none."""

    def __init__(self, send: Send, outage: Outage, pause: Callable[[float], bool]) -> None:
        self._send = send
        self._outage = outage
        self._pause = pause
        self._warned: set[tuple[str, int, str]] = set()

    def store(self, place: Place, messages: Messages) -> int:
        """:returns: The number of dropped messages."""
        return sum(self._store(place, part) for part in _parts(messages))

    def _store(self, place: Place, messages: Messages) -> int:
        """Store all messages that the service accepts.

        :returns: The number of dropped messages.
        """
        try:
            self._store_once(place, messages)
        except SouvenirError as error:
            if isinstance(error, ApiError) and _is_refusal(error):
                if error.status == 422 and len(messages) > 1:
                    return sum(self._store(place, [message]) for message in messages)
                self._warn(place.agent, error)
            return len(messages)
        return 0

    def _store_once(self, place: Place, messages: Messages) -> None:
        """:raises SouvenirError: If they are refused, or the service keeps failing for too long."""
        key, begin = uuid4().hex, time.monotonic()
        for attempt in count():
            try:
                self._send(place, messages, key)
            except SouvenirError as error:
                if _is_refusal(error):
                    self._outage.worked(Use.CAPTURE)
                    raise
                if time.monotonic() - begin > GIVE_UP_S and not isinstance(error, ConnectionFailed):
                    raise
                self._outage.failed(Use.CAPTURE, str(error))
                if self._pause(_pause_s(error, attempt)):
                    raise
            else:
                self._outage.worked(Use.CAPTURE)
                return

    def _warn(self, agent: str, error: ApiError) -> None:
        reason = (agent, error.status, error.code)
        if reason not in self._warned:
            self._warned.add(reason)
            _log.warning("Turns of agent %s are dropped: the service refused them: %s", agent, error)


def _is_refusal(error: SouvenirError) -> bool:
    """Return whether the service itself refuses the request, so that a retry is useless.

    Refusals of a proxy are temporary, and have no `code`.
    """
    if not isinstance(error, ApiError) or not error.code:
        return False
    return 400 <= error.status < 500 and error.status not in (408, 429)


def _pause_s(error: SouvenirError, attempt: int) -> float:
    """Return the delay; it grows with the attempts, even if the service requests none."""
    wished = (error.retry_after_s if isinstance(error, ApiError) else None) or 0.0
    growing: float = FIRST_PAUSE_S * 2 ** min(attempt, 10)
    return min(LONGEST_PAUSE_S, max(growing, wished))


def _parts(messages: Messages) -> Iterator[Messages]:
    """Split the messages into requests of bounded size."""
    part: list[Mapping[str, Any]] = []
    chars = 0
    for message in messages:
        chars += len(message["content"])
        if part and (len(part) == MAX_BATCH_TURNS or chars > MAX_BATCH_CHARS):
            yield part
            part, chars = [], len(message["content"])
        part.append(message)
    if part:
        yield part
