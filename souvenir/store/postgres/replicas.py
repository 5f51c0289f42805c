"""The presence of this process among those that share the database, and news of their commits.

One thread renews the row of this replica, and listens. A replica whose row is not renewed in time is deleted by any
other; its jobs are then taken over, and it cannot finish them any more (`souvenir.store.admin.jobs`). News only wake
threads that would otherwise look later: what is read is always compared with the database.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Callable
from threading import Event, Thread
from time import monotonic

import psycopg
import structlog

from souvenir.core.service_warnings import ServiceWarnings
from souvenir.core.timestamps import to_us, utc_now
from souvenir.store.postgres.schema import SCHEMA

RENEWED_EVERY_S = 2.0
KNOWN_AFTER_S = 1.0
"""A replica does no work of keys for so long after its start, while others may still do it."""

LEASE_S = 15.0
"""A replica that did not renew its row for so long, by the clock of the database, has ended or must be treated so."""

TURN_S = 0.05
"""News of commits in the meantime are sent together."""

RECONNECT_PAUSE_S = 0.5
MAX_SKEW_S = 5.0

DATABASE_UNREACHABLE = "database_unreachable"
CLOCK_SKEW = "clock_skew"

_CHANNEL = "souvenir"
_ENDED = "ended"
"""The notice of a replica that ends; others are the ids of those that committed."""
_NOW = "floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

log = structlog.get_logger(__name__)


class Replicas:
    """Thread-safe. `start` it when the database can be used.

    :param on_news: Called soon after commits of other replicas, and every `RENEWED_EVERY_S` in any case.
    """

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection[tuple[object, ...]]],
        warnings: ServiceWarnings,
        on_news: Callable[[], None],
    ) -> None:
        self.id = uuid.uuid4().hex
        self._connect = connect
        self._warnings = warnings
        self._on_news = on_news
        self._committed = Event()
        self._closing = Event()
        self._reachable = True
        self._present = Event()
        self._running: tuple[str, ...] = (self.id,)
        self._known_at = math.inf
        """The monotonic time by which the others know of this replica."""
        self._thread = Thread(target=self._run, name="souvenir-replica", daemon=True)

    @property
    def reachable(self) -> bool:
        """True if the last query for the lease succeeded."""
        return self._reachable

    def owns(self, key: str) -> bool:
        """Return whether this replica does the background work of a key: of all that run, one does.

        For some moments after one began or ended, two may, or none.
        """
        if len(self._running) > 1 and monotonic() < self._known_at:
            return False
        return self.id == max(self._running, key=lambda one: hashlib.sha256(f"{one} {key}".encode()).digest())

    def runs(self, replica: str) -> bool:
        """Return whether a replica was running when this one looked last."""
        return replica in self._running

    def start(self) -> None:
        """Return once this replica has a row, by which its jobs are known as its own."""
        self._thread.start()
        self._present.wait(RENEWED_EVERY_S)

    def tell(self) -> None:
        """Tell the other replicas, soon, that there is a commit."""
        self._committed.set()

    def close(self) -> None:
        """Let the other replicas take over at once."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                with self._connect() as connection:
                    connection.execute(f"LISTEN {_CHANNEL}")
                    self._follow(connection)
            except psycopg.Error as error:
                self._reachable = False
                reason = f"The database cannot be reached ({error}); look at its server and the network"
                self._warnings.put(DATABASE_UNREACHABLE, reason)
                self._closing.wait(RECONNECT_PAUSE_S)
            except Exception:  # the boundary of a thread, without which this replica counts as ended
                log.exception("replica_not_renewed", action="tried again")
                self._closing.wait(RECONNECT_PAUSE_S)

    def _follow(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        renewed_at = self._renew(connection)
        self._reachable = True
        self._present.set()
        self._known_at = monotonic() + KNOWN_AFTER_S
        self._committed.set()
        self._warnings.clear(DATABASE_UNREACHABLE)
        self._on_news()
        while not self._closing.is_set():
            if self._committed.is_set():
                self._committed.clear()
                connection.execute("SELECT pg_notify(%s, %s)", (_CHANNEL, self.id))
            if monotonic() - renewed_at >= RENEWED_EVERY_S:
                renewed_at = self._renew(connection)
                # A replica may have died between a commit and its notification.
                self._on_news()
            heard = {notice.payload for notice in connection.notifies(timeout=TURN_S)}
            if heard - set(self._running) or _ENDED in heard:
                renewed_at = self._renew(connection)
            if heard - {self.id}:
                self._on_news()
        connection.execute(f"DELETE FROM {SCHEMA}.replicas WHERE id = %s", (self.id,))
        connection.execute("SELECT pg_notify(%s, %s)", (_CHANNEL, _ENDED))

    def _renew(self, connection: psycopg.Connection[tuple[object, ...]]) -> float:
        """Renew the row of this replica, and delete those that were not renewed in time."""
        before = utc_now()
        row = connection.execute(
            f"INSERT INTO {SCHEMA}.replicas VALUES (%s, {_NOW}) "
            f"ON CONFLICT (id) DO UPDATE SET seen_at = {_NOW} RETURNING seen_at",
            (self.id,),
        ).fetchone()
        if row is not None:
            self._compare_clocks((int(str(row[0])) - to_us(before)) / 1_000_000)
        ended = connection.execute(
            f"DELETE FROM {SCHEMA}.replicas WHERE seen_at < {_NOW} - %s RETURNING id", (int(LEASE_S * 1_000_000),)
        ).fetchall()
        if ended:
            log.warning("replicas_ended", number=len(ended), action="their jobs are run by others")
        running = connection.execute(f"SELECT id FROM {SCHEMA}.replicas ORDER BY id").fetchall()
        self._running = tuple(str(row[0]) for row in running)
        return monotonic()

    def _compare_clocks(self, ahead_s: float) -> None:
        """:param ahead_s: Seconds that the clock of the database is ahead, as far as its answer's way explains it."""
        if abs(ahead_s) <= MAX_SKEW_S:
            self._warnings.clear(CLOCK_SKEW)
            return
        self._warnings.put(
            CLOCK_SKEW,
            f"The clocks of this machine and of the database differ by more than {MAX_SKEW_S:g} s, so times of "
            "memories from different replicas are in the wrong order; synchronise both with NTP",
        )
