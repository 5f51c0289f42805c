"""Whether the memory service can be had: one warning when it cannot, and some seconds without asking it.

Several parts of a connection ask the service. An outage begins with the first of them that fails and ends when none of
them fails any more; between, nothing more is said. Safe in threads.
"""

from __future__ import annotations

import logging
import time
from enum import StrEnum
from threading import Lock

COOL_DOWN_S = 5.0
"""For which a model call does not ask a service that failed: an outage costs one waiting call in so many seconds."""

_log = logging.getLogger("souvenir_client")


class Part(StrEnum):
    """What asks the service, as the warning names it."""

    CONTEXT = "context"
    CAPTURE = "capture"


class Outage:
    def __init__(self, url: str) -> None:
        self._url = url
        self._failing: set[Part] = set()
        self._ask_again_at = 0.0
        self._lock = Lock()

    def may_ask(self) -> bool:
        """Whether to ask for context now. During an outage one call may, each time when it has cooled down."""
        with self._lock:
            if Part.CONTEXT not in self._failing:
                return True
            now = time.monotonic()
            if now < self._ask_again_at:
                return False
            self._ask_again_at = now + COOL_DOWN_S
            return True

    def failed(self, part: Part, reason: str) -> None:
        with self._lock:
            begins = not self._failing
            self._failing.add(part)
            if part is Part.CONTEXT:
                self._ask_again_at = time.monotonic() + COOL_DOWN_S
        if begins:
            _log.warning("Model calls go on without the memory of %s (%s failed): %s", self._url, part, reason)

    def worked(self, part: Part) -> None:
        with self._lock:
            ends = self._failing == {part}
            self._failing.discard(part)
        if ends:
            _log.info("The memory of %s answers again", self._url)
