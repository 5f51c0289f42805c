"""A background thread that runs maintenance at an interval, and soon after it is requested."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from time import monotonic

import structlog

log = structlog.get_logger(__name__)


PAUSE_S = 0.2
"""Between two runs on request, so that many requests do not keep a processor busy."""


class Maintenance:
    """Calls `work` every `interval_s` seconds, and `when_asked` soon after `ask`, until `close` returns.

    :param when_asked: None: `work`.
    """

    def __init__(
        self, work: Callable[[], None], *, interval_s: float, when_asked: Callable[[], None] | None = None
    ) -> None:
        self._work = work
        self._when_asked = work if when_asked is None else when_asked
        self._interval_s = interval_s
        self._asked = Event()
        self._closing = Event()
        self._thread = Thread(target=self._run, name="souvenir-maintenance", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask(self) -> None:
        self._asked.set()

    def close(self, timeout_s: float | None = None) -> None:
        """:param timeout_s: How long to wait for work that is being done; None: until it is finished."""
        self._closing.set()
        self._asked.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        due_s = monotonic() + self._interval_s
        while True:
            is_asked = self._asked.wait(max(0.0, due_s - monotonic()))
            self._asked.clear()
            if self._closing.is_set():
                return
            is_due = monotonic() >= due_s
            try:
                self._work() if is_due else self._when_asked()
            except Exception:  # retried at the next interval; the database is authoritative meanwhile
                log.exception("maintenance_failed")
            if is_due:
                due_s = monotonic() + self._interval_s
            if is_asked and self._closing.wait(PAUSE_S):
                return
