"""Searches of a moment that is over: what stood then, in the words that it had then.

What says the same now is found by the index that is there. What said something else is embedded again, for this search
alone, and only so much of it: more than `MAX_FORMER_TEXTS` are not read, and the answer says so. Both are ranked
together by the statistics of what stood then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from memory_engine import MemoryEngine
from souvenir.errors import EmbeddingUnavailable
from souvenir.passages import FormerText, Standing
from souvenir.store import past, reads
from souvenir.store.past import Stood
from souvenir.store.transaction import owner_of
from souvenir.types import Listing, Memory, PassageKind, Scope, SearchQuery, SearchResult

MAX_FORMER_TEXTS = 200
"""Texts that are embedded for one search: about a second of the model."""

PAST_TEXTS = "past_texts"
"""Said to be degraded where not every text of then was read."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Then:
    """:param stood: All that was stored. :param may_be_found: Ids of those that fit the filters.

    :param former: Those that said something else, as they were; `left_out` says whether there are more.
    """

    stood: Sequence[Stood]
    may_be_found: Sequence[int]
    former: Sequence[Memory]
    left_out: bool


def search_past(engine: MemoryEngine, scope: Scope, query: SearchQuery, at: datetime) -> SearchResult:
    """The memories that answered a query best at a moment, as they were.

    :raises SearchUnavailable: If no arm can run.
    """
    then = _then(engine, scope, query, at)
    query = replace(query, now=query.now or at, filters=replace(query.filters, include_archived=True))
    former, degraded = _prepared(engine, then)
    standing = Standing([one.id for one in then.stood if one.same], former)
    found = engine.recall(scope, PassageKind.MEMORY, query, owner_ids=then.may_be_found, standing=standing)
    if found is None:
        return SearchResult(query.text, ())
    with engine.namespace(scope) as (connection, namespace):
        memories = {} if namespace is None else past.memories_at(connection, namespace, at, found.owner_ids)
    result = found.result(memories)
    return replace(result, query=query.text, degraded=(*result.degraded, *degraded))


def _then(engine: MemoryEngine, scope: Scope, query: SearchQuery, at: datetime) -> _Then:
    wanted, archived = query.filters.metadata, query.filters.include_archived
    with engine.namespace(scope) as (connection, namespace):
        if namespace is None:
            return _Then((), (), (), False)
        reads.require_filter(namespace, wanted)
        stood = past.stood_at(connection, namespace, at, wanted)
        may = [one.id for one in stood if one.fits and (archived or not one.archived)]
        if query.filters.tags:
            tagged = Listing(tags=query.filters.tags, all_tags=query.filters.all_tags)
            may = sorted({*may} & {*reads.memory_ids(connection, namespace, tagged)})
        chosen = frozenset(may)
        others = sorted((one.id for one in stood if not one.same), key=lambda id_: (id_ in chosen, id_))
        read = others[-MAX_FORMER_TEXTS:]
        former = past.memories_at(connection, namespace, at, read)
        return _Then(stood, may, list(former.values()), len(read) < len(others))


def _prepared(engine: MemoryEngine, then: _Then) -> tuple[Sequence[FormerText], tuple[str, ...]]:
    """What was said otherwise, fit to be searched; and what could not be had of it."""
    left_out = (PAST_TEXTS,) if then.left_out else ()
    try:
        passages = engine.prepare([memory.text for memory in then.former]) if then.former else []
    except EmbeddingUnavailable as error:
        log.warning("former_texts_not_embedded", reason=error.message)
        return (), (PAST_TEXTS,)
    return [FormerText(owner_of(memory), of) for memory, of in zip(then.former, passages, strict=True)], left_out
