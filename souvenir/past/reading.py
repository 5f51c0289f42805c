"""Reading the past: the history of a memory, and memories as they were at a moment.

Nothing is kept for it but the history. A moment that is yet to come is now, and what was forgotten stays forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory_engine import MemoryEngine
from souvenir.errors import MemoryNotFound
from souvenir.past.searching import search_past
from souvenir.store import links, past, reads
from souvenir.types import HistoryEntry, Listing, Memory, Page, Scope, SearchQuery, SearchResult


@dataclass(frozen=True, slots=True)
class MemoryHistory:
    """:param entries: Oldest first. :param deleted: What is left of it says no text.

    :param supersedes: In whose place it stands. :param superseded_by: What stands in its place.
    """

    entries: Sequence[HistoryEntry]
    deleted: bool
    supersedes: Sequence[int]
    superseded_by: int | None


class Past:
    """Safe to call from any thread. What the scope does not see now, or did not then, is not there."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def history(self, scope: Scope, memory_id: int) -> MemoryHistory:
        """:raises MemoryNotFound: If there never was such a memory, or the scope may not know of it."""
        with self._engine.namespace(scope) as (connection, namespace):
            entries = None if namespace is None else past.history(connection, namespace, memory_id)
            if namespace is None or entries is None:
                raise MemoryNotFound(memory_id)
            memory = reads.memories(connection, namespace, [memory_id]).get(memory_id)
            if memory is None:
                return MemoryHistory(entries, True, (), None)
            replaced = links.links_of(connection, namespace, memory_id, link_type=reads.SUPERSEDES, incoming=False)
            return MemoryHistory(entries, False, [link.to_id for link in replaced], memory.superseded_by)

    def get(self, scope: Scope, memory_id: int, at: datetime | None) -> Memory:
        """:raises MemoryNotFound: If it is not there, or was not then, or is forgotten since."""
        found = self.shown(scope, [memory_id], at)
        if memory_id not in found:
            raise MemoryNotFound(memory_id)
        return found[memory_id]

    def shown(self, scope: Scope, ids: Sequence[int], at: datetime | None) -> dict[int, Memory]:
        """Those of the memories that are there, or were then, by id."""
        if at is None:
            return self._engine.get(scope, ids)
        with self._engine.namespace(scope) as (connection, namespace):
            return {} if namespace is None else past.memories_at(connection, namespace, at, ids)

    def search(self, scope: Scope, query: SearchQuery, at: datetime | None) -> SearchResult:
        """The memories that answer a query best, or did at a moment.

        :raises SearchUnavailable: If no arm can run.
        """
        return self._engine.search(scope, query) if at is None else search_past(self._engine, scope, query, at)

    def page(
        self,
        scope: Scope,
        at: datetime,
        listing: Listing = reads.ALL,
        *,
        offset: int,
        limit: int,
    ) -> Page:
        """One page of the memories as they were; those are listed that have the tags now."""
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return Page((), 0)
            ids = past.ids_at(connection, namespace, at, listing)
            wanted = ids[offset : offset + limit]
            found = past.memories_at(connection, namespace, at, wanted)
            return Page(tuple(found[id_] for id_ in wanted if id_ in found), len(ids))
