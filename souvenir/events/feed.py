"""The feed of changes as readers of a namespace see it (`souvenir.store.admin.events`)."""

from __future__ import annotations

from collections.abc import Callable

from souvenir.core.types import AccessLevel, AccessLevels, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import events as rows
from souvenir.store.admin.events import EVERYTHING, Event, EventFilter, EventPage

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

    def after(self, namespace: str | None, event_id: int, *, limit: int, chosen: EventFilter = EVERYTHING) -> EventPage:
        """Return the events after one, in the order of the commits.

        :param namespace: None for all namespaces. :param limit: The number of events to read; fewer may be visible.
        """
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.events_after(connection, namespace, event_id, limit=limit, chosen=chosen)

    def recent(self, namespace: str, *, limit: int, chosen: EventFilter = EVERYTHING) -> list[Event]:
        """Return the last visible events, in the order of the commits."""
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.recent_events(connection, namespace, limit=limit, chosen=chosen)

    @property
    def last_id(self) -> int:
        """The id of the last event of all namespaces."""
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.last_id(connection)

    def is_complete(self, namespace: str, event_id: int) -> bool:
        """Return whether all events of a namespace after one are kept."""
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.is_complete(connection, namespace, event_id)

    def when_committed(self, notify: Callable[[], None]) -> None:
        """Call `notify` on the writer's thread after every commit; it must only wake another thread."""
        self._engine.when_committed(notify)
