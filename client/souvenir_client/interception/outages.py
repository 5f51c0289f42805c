"""The availability of the memory service: one warning per outage, and no requests for some seconds.

Several parts of a connection use the service. An outage begins with the first failure and ends when no part fails any
more; nothing is logged in between. Thread-safe.
"""

from __future__ import annotations

import logging
import time
from enum import StrEnum
from threading import Lock

COOL_DOWN_S = 5.0
"""How long model calls make no request after a failure: an outage costs one waiting call per period."""

_log = logging.getLogger("souvenir_client")


class Use(StrEnum):
    """The parts that use the service, as named in the warning."""

    CONTEXT = "context"
    CAPTURE = "capture"


class Outage:
    def __init__(self, url: str) -> None:
        self._url = url
        self._failing: set[Use] = set()
        self._ask_again_at = 0.0
        self._lock = Lock()

    def may_ask(self) -> bool:
        """Return True if context may be requested now. During an outage, one call is allowed after each cool-down."""
        with self._lock:
            if Use.CONTEXT not in self._failing:
                return True
            now = time.monotonic()
            if now < self._ask_again_at:
                return False
            self._ask_again_at = now + COOL_DOWN_S
            return True

    def failed(self, part: Use, reason: str) -> None:
        with self._lock:
            begins = not self._failing
            self._failing.add(part)
            if part is Use.CONTEXT:
                self._ask_again_at = time.monotonic() + COOL_DOWN_S
        if begins:
            _log.warning("Model calls continue without the memory of %s (%s failed): %s", self._url, part, reason)

    def worked(self, part: Use) -> None:
        with self._lock:
            ends = self._failing == {part}
            self._failing.discard(part)
        if ends:
            _log.info("The memory of %s is available again", self._url)
