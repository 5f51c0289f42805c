"""Conditions that an operator must see: lost commits, unreadable rows, a full disk.

They are logged when they appear or change, and shown by `GET /health/ready` for as long as they last.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import structlog

log = structlog.get_logger(__name__)


class ServiceWarning(NamedTuple):
    """`code` identifies the condition; `message` is for operators and names the next command or action."""

    code: str
    message: str


class ServiceWarnings:
    """The current warnings of one service, at most one per code. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._messages: dict[str, str] = {}

    def put(self, code: str, message: str) -> None:
        """Add or replace the warning of this code; an unchanged one is not logged again."""
        with self._lock:
            if self._messages.get(code) == message:
                return
            self._messages[code] = message
        log.warning(code, reason=message)

    def clear(self, code: str) -> None:
        """Remove the warning of this code, if there is one."""
        with self._lock:
            cleared = self._messages.pop(code, None)
        if cleared is not None:
            log.info("warning_cleared", code=code)

    def current(self) -> tuple[ServiceWarning, ...]:
        """Return the warnings, the oldest first."""
        with self._lock:
            return tuple(ServiceWarning(code, message) for code, message in self._messages.items())
