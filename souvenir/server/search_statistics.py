"""Statistics of searches: how often each memory was returned, and facts about searches by day.

A search appends one entry to a queue. Entries are counted and written every few seconds and at close, so a kill loses
those of the last seconds. Nothing that ranks or filters reads them; reports do. Safe to use from any thread.
"""

from __future__ import annotations

from collections import Counter, deque
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import NamedTuple

from souvenir.core.background import Maintenance
from souvenir.core.errors import Overloaded, Unavailable
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope, SearchQuery, SearchResult
from souvenir.memories.engine import MemoryEngine
from souvenir.server.usage import Usage
from souvenir.store.memories import quality

FLUSH_INTERVAL_S = 5.0

MAX_QUEUED = 100_000
"""Entries that wait to be written, at most; some are lost if the database cannot be written for long."""

SEARCH = "search"
"""The operation in the usage, with these dimensions:"""
EVIDENCE, RETURNED, TIMED, LINKED = "evidence", "returned", "timed", "linked"
SOME, NONE = "some", "none"


class Searched(NamedTuple):
    """A search that was answered.

    :param timed: It had a time filter, or names a time.
    :param linked: Results that were found only by a link with another result.
    """

    namespace: str
    memory_ids: tuple[int, ...]
    evidence: str
    timed: bool
    linked: int


class SearchStatistics:
    def __init__(self, engine: MemoryEngine, usage: Usage) -> None:
        """:param usage: Counts the facts by day, unless it is disabled."""
        self._engine = engine
        self._usage = usage
        self._queue: deque[Searched] = deque(maxlen=MAX_QUEUED)
        self._writing = Lock()
        self._maintenance = Maintenance(self.flush, interval_s=FLUSH_INTERVAL_S)
        self._maintenance.start()

    def close(self) -> None:
        """Write what is queued; the engine must still be open. If it cannot, it is lost."""
        self._maintenance.close()
        with suppress(Overloaded, Unavailable):
            self.flush()

    def note(self, scope: Scope, query: SearchQuery, result: SearchResult) -> None:
        """Count a search that a caller asked for."""
        filters = query.filters
        timed = result.time is not None or filters.since is not None or filters.until is not None
        ids = tuple(hit.memory.id for hit in result.hits)
        linked = sum(hit.support is not None and not hit.support.direct for hit in result.hits)
        self._queue.append(Searched(scope.namespace, ids, result.evidence.value, timed, linked))

    def flush(self) -> None:
        """Write what is queued.

        :raises Overloaded, Unavailable: If the database cannot be written; it is kept.
        """
        with self._writing:
            taken = [self._queue.popleft() for _ in range(len(self._queue))]
            if not taken:
                return
            retrieved = Counter(memory_id for one in taken for memory_id in one.memory_ids)
            try:
                self._engine.write_rows(partial(quality.count_retrievals, counts=retrieved, now=utc_now()), alone=False)
            except BaseException:
                self._queue.extendleft(reversed(taken))
                raise
            for (namespace, dimension, name), calls in _facts_of(taken).items():
                self._usage.count(namespace, SEARCH, {dimension: name}, calls=calls)


def _facts_of(taken: list[Searched]) -> Counter[tuple[str, str, str]]:
    found = Counter[tuple[str, str, str]]()
    for one in taken:
        found[one.namespace, EVIDENCE, one.evidence] += 1
        found[one.namespace, RETURNED, SOME if one.memory_ids else NONE] += len(one.memory_ids) or 1
        if one.timed:
            found[one.namespace, TIMED, SOME] += 1
        if one.linked:
            found[one.namespace, LINKED, SOME] += 1
    return found
