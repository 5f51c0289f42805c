"""The audit log: actions are written before they are answered, denials in batches and at a limited rate.

A denied caller must not be able to fill the disk or to keep the writer busy. Equal denials become one row with a count;
of different ones a burst and then a low rate is kept, and one row counts the rest. A kill loses the denials of
the last `FLUSH_INTERVAL_S`, and no action.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

from souvenir.core.background import Maintenance
from souvenir.core.errors import Overloaded, Unavailable
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import audit as rows
from souvenir.store.admin.audit import AuditEntry, AuditEvent, AuditFilter
from souvenir.store.sql import Connection

FLUSH_INTERVAL_S = 30.0
SWEEP_INTERVAL_S = 3600.0
"""The interval between deletions of expired events."""

MAX_JUMP_S = 60.0
"""A change of the date against the monotonic clock beyond this is a jump, not a drift."""

BURST = 60
REFILL_PER_S = 0.1
"""The token bucket of denials with separate rows; an endless flood writes 11,000 rows a day, about 2 MB."""

DENIED = "denied"
SEVERAL = "several"
"""The actor of the row that counts denials without separate rows."""


@dataclass(frozen=True, slots=True)
class Denial:
    """A request that was refused because of its caller.

    :param code: The code of the error in the answer.
    """

    actor: str
    namespace: str | None
    method: str
    route: str
    status: int
    address: str
    code: str


class AuditLog:
    """Safe to use from any thread."""

    def __init__(
        self, engine: MemoryEngine, *, retention_days: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine = engine
        self._retention_days = retention_days
        self._clock = clock
        self._lock = Lock()
        self._denied: dict[Denial, tuple[datetime, int]] = {}
        self._more = 0
        self._allowance = float(BURST)
        self._refilled_at = clock()
        self._swept_at = clock()
        self._offset_s: float | None = None
        """The date minus `clock`, which changes when the date jumps."""
        self._maintenance = Maintenance(self._turn, interval_s=FLUSH_INTERVAL_S)
        self._maintenance.start()

    def close(self) -> None:
        """Write the pending denials; the engine must still be open. If it cannot, they are lost."""
        self._maintenance.close()
        with suppress(Overloaded, Unavailable):
            self.flush()

    def act(self, scope: Scope, action: str, resource_id: str | None = None, detail: str | None = None) -> None:
        """Record an action of a caller, durably."""
        event = AuditEvent(utc_now(), action, scope.actor, scope.namespace, resource_id, detail=detail)
        self._engine.write_rows(lambda connection: rows.record(connection, [event]), alone=False)

    def deny(self, denial: Denial) -> None:
        """Record a denied request; it is written later, as a row or as part of a count."""
        with self._lock:
            known = self._denied.get(denial)
            if known is not None:
                self._denied[denial] = known[0], known[1] + 1
            elif self._allowed():
                self._denied[denial] = utc_now(), 1
            else:
                self._more += 1

    def flush(self) -> None:
        """Write the pending denials."""
        with self._lock:
            denied, self._denied = self._denied, {}
            more, self._more = self._more, 0
        events = [_event_of(denial, at, count) for denial, (at, count) in denied.items()]
        if more:
            events.append(AuditEvent(utc_now(), DENIED, SEVERAL, count=more))
        if events:
            self._engine.write_rows(lambda connection: rows.record(connection, events), alone=False)

    def page(self, chosen: AuditFilter, *, limit: int, offset: int) -> Sequence[AuditEntry]:
        """Return the events, newest first, including the denials until now."""
        self.flush()
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.page(connection, chosen, limit=limit, offset=offset)

    def purge(self, scope: Scope, *, retention_days: int) -> int:
        """Delete older events, record that, and return their number. The history of memories is kept."""
        deleted = self._delete_older(retention_days, utc_now())
        self.act(scope, "audit.purge", detail=f"{deleted} events older than {retention_days} days")
        return deleted

    def _turn(self) -> None:
        self.flush()
        self.sweep_if_due(utc_now())

    def sweep_if_due(self, now: datetime) -> None:
        """Delete the expired events once an interval, but only if the date did not jump in it.

        A date that is wrong for a while, such as that of a start before the clock was set, must not expire everything.
        """
        clock_s = self._clock()
        offset_s = now.timestamp() - clock_s
        if self._offset_s is None or abs(offset_s - self._offset_s) > MAX_JUMP_S:
            self._offset_s, self._swept_at = offset_s, clock_s
        elif clock_s - self._swept_at >= SWEEP_INTERVAL_S:
            self._offset_s, self._swept_at = offset_s, clock_s
            self._delete_older(self._retention_days, now)

    def _delete_older(self, retention_days: int, now: datetime) -> int:
        """Delete in batches, so that other writes are not delayed."""
        before = now - timedelta(days=retention_days)

        def delete(connection: Connection) -> int:
            return rows.purge(connection, before)

        total = 0
        while deleted := self._engine.write_rows(delete):
            total += deleted
        return total

    def _allowed(self) -> bool:
        now = self._clock()
        self._allowance = min(BURST, self._allowance + REFILL_PER_S * (now - self._refilled_at))
        self._refilled_at = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True


def _event_of(denial: Denial, at: datetime, count: int) -> AuditEvent:
    return AuditEvent(
        at,
        DENIED,
        denial.actor,
        denial.namespace,
        method=denial.method,
        route=denial.route,
        status=denial.status,
        address=denial.address,
        count=count,
        detail=denial.code,
    )
