"""Circuit breaker of the hooks: an unavailable service does not delay every prompt.

After `FAILURES_TO_OPEN` consecutive failures the hooks do nothing for a minute. Then one call is tried: a success
closes the breaker, a failure opens it for twice as long, up to `LONGEST_REST_S`. All hooks of a user share the state,
by the address of the service.

Invariants: nothing else depends on the state, so losing it only costs some waits; a clock that was set back keeps the
breaker open for at most `LONGEST_REST_S`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path

from souvenir_client.hooks.state import locked, read_state, write_state

FAILURES_TO_OPEN = 3
FIRST_REST_S = 60.0
LONGEST_REST_S = 600.0
LOCK_WAIT_S = 1.0


class Breaker:
    """:param now: Seconds since the epoch, because the state outlives the process."""

    def __init__(self, folder: Path, url: str, now: Callable[[], float] = time.time) -> None:
        self._path = folder / f"breaker-{hashlib.sha256(url.encode()).hexdigest()[:16]}.json"
        self._now = now

    def is_open(self) -> bool:
        return self._rests(self._read()[1])

    def succeeded(self, wait_s: float = LOCK_WAIT_S) -> None:
        """:param wait_s: Maximum wait for the lock of the state file; after that, the result is not recorded."""
        if self._read() == (0, 0.0):
            return
        with locked(self._path, wait_s=wait_s) as mine:
            if mine:
                write_state(self._path, {"failures": 0, "open_until": 0.0})

    def failed(self, wait_s: float = LOCK_WAIT_S) -> float | None:
        """:returns: The seconds for which this failure opened the breaker; None if it did not, or it was open."""
        with locked(self._path, wait_s=wait_s) as mine:
            failures, open_until = self._read()
            if not mine or self._rests(open_until):
                return None
            failures += 1
            rest_s = None
            if failures >= FAILURES_TO_OPEN:
                rest_s = min(LONGEST_REST_S, FIRST_REST_S * 2.0 ** min(failures - FAILURES_TO_OPEN, 16))
                open_until = self._now() + rest_s
            write_state(self._path, {"failures": failures, "open_until": open_until})
        return rest_s

    def _rests(self, open_until: float) -> bool:
        return 0.0 < open_until - self._now() <= LONGEST_REST_S

    def _read(self) -> tuple[int, float]:
        state = read_state(self._path)
        failures, open_until = state.get("failures"), state.get("open_until")
        if type(failures) is not int or failures < 0 or not isinstance(open_until, int | float):
            return 0, 0.0
        return failures, float(open_until)
