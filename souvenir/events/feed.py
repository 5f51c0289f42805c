"""The feed of changes as readers of a namespace see it (`souvenir.store.admin.events`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from souvenir.core.background import Maintenance
from souvenir.core.timestamps import utc_now
from souvenir.core.types import AccessLevel, AccessLevels, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import events as rows
from souvenir.store.admin.events import EVERYTHING, Event, EventFilter, EventPage

MAX_EVENTS = 100_000
"""Maximum number of events of a namespace that are kept."""

TRIM_INTERVAL_S = 600.0

NEEDS = {
    rows.MEMORY: AccessLevel.FULL,
    rows.CONFLICT: AccessLevel.FULL,
    rows.BLOCK: AccessLevel.FULL,
    rows.MESSAGE: AccessLevel.LOGS,
}
"""The access level without which a reader does not see events of a noun; the others need none, as jobs do not."""

OF_WHOLE_NAMESPACE = frozenset({rows.MESSAGE, rows.BLOCK})
"""Nouns that a key limited to sources does not see."""


def filter_of(scope: Scope, levels: AccessLevels, *, all_actors: bool, event_type: str | None = None) -> EventFilter:
    """Return the filter of what a caller may see.

    :param all_actors: Whether the jobs of all callers are included, as for an admin of the whole namespace.
    """
    nouns = {
        noun
        for noun in EVERYTHING.nouns
        if (noun not in NEEDS or not levels.missing(frozenset({NEEDS[noun]})))
        and (scope.sources is None or noun not in OF_WHOLE_NAMESPACE)
    }
    return EventFilter(frozenset(nouns), scope.sources, None if all_actors else scope.actor, event_type)


class EventFeed:
    """Reads events; safe to use from any thread."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def after(self, namespace: str, event_id: int, *, limit: int, chosen: EventFilter = EVERYTHING) -> EventPage:
        """Return the events of a namespace after one, in the order of the commits.

        :param limit: The number of events to read; fewer may be visible.
        """
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.events_after(connection, namespace, event_id, limit=limit, chosen=chosen)

    def recent(self, namespace: str, *, limit: int, chosen: EventFilter = EVERYTHING) -> list[Event]:
        """Return the last visible events, in the order of the commits."""
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.recent_events(connection, namespace, limit=limit, chosen=chosen)

    def after_each(self, positions: Mapping[str, int], *, limit: int) -> list[Event]:
        """Return the events of several namespaces, each after a position of its own."""
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.events_of(connection, positions, limit=limit)

    def last_of(self, namespace: str) -> int:
        """Return the id of the last event of a namespace."""
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.last_of(connection, namespace)

    def is_complete(self, namespace: str, event_id: int) -> bool:
        """Return whether all events of a namespace after one are kept."""
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.is_complete(connection, namespace, event_id)

    def when_restored(self, notify: Callable[[], None]) -> None:
        """Call `notify` after a restore of a backup, with which the feed begins again."""
        self._engine.when_restored(notify)

    def when_committed(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` on the writer's thread after every commit, until the returned function is called.

        :param notify: Must only wake another thread.
        """
        return self._engine.when_committed(notify)


class FeedRetention:
    """Deletes old events in the background."""

    def __init__(self, engine: MemoryEngine, *, retention_days: float) -> None:
        self._engine = engine
        self._retention = timedelta(days=retention_days)
        self._maintenance = Maintenance(self.trim, interval_s=TRIM_INTERVAL_S)

    def start(self) -> None:
        self._maintenance.start()

    def close(self) -> None:
        self._maintenance.close()

    def trim(self) -> None:
        """Delete expired events and those beyond MAX_EVENTS, in batches between which other writes run."""
        before = utc_now() - self._retention
        while self._engine.write_rows(lambda connection: rows.forget_before(connection, before)):
            pass
        while self._engine.write_rows(lambda connection: rows.forget_beyond(connection, MAX_EVENTS)):
            pass
