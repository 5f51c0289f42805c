"""A background thread that runs maintenance at an interval, and soon after it is requested."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

import structlog

log = structlog.get_logger(__name__)


class Maintenance:
    """Calls `work` every `interval_s` seconds and soon after `ask`, until `close` returns."""

    def __init__(self, work: Callable[[], None], *, interval_s: float) -> None:
        self._work = work
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
        while not self._closing.is_set():
            self._asked.wait(self._interval_s)
            self._asked.clear()
            if self._closing.is_set():
                return
            try:
                self._work()
            except Exception:  # retried at the next interval; the database is authoritative meanwhile
                log.exception("maintenance_failed")
