"""The circuit breaker: a service that is away is not waited for at every prompt.

After `FAILURES_TO_OPEN` failures in a row the hooks do nothing for a minute. Then one is tried again: a success closes
the breaker, a failure opens it for twice as long, up to `LONGEST_REST_S`. All hooks of a user share the state, by the
address of the service.

Invariants: the state is never needed for anything else, so losing it costs a few waits and nothing more; a clock that
was set back holds nothing open for longer than `LONGEST_REST_S`.
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
    """:param now: Seconds since the epoch: the state outlives the process, so no other clock serves."""

    def __init__(self, folder: Path, url: str, now: Callable[[], float] = time.time) -> None:
        self._path = folder / f"breaker-{hashlib.sha256(url.encode()).hexdigest()[:16]}.json"
        self._now = now

    def is_open(self) -> bool:
        return self._rests(self._read()[1])

    def succeeded(self, wait_s: float = LOCK_WAIT_S) -> None:
        """:param wait_s: For the lock of the state file; after that, the failure is not recorded."""
        if self._read() == (0, 0.0):
            return
        with locked(self._path, wait_s=wait_s) as mine:
            if mine:
                write_state(self._path, {"failures": 0, "open_until": 0.0})

    def failed(self, wait_s: float = LOCK_WAIT_S) -> float | None:
        """:returns: For how many seconds hooks rest from now on; None if they do not, or did already."""
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
