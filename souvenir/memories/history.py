"""Memories as of an earlier time: their history, lists, and searches.

Everything is read from the stored history; a deleted memory is deleted at all times. A search of an earlier time uses
the current index for texts that are unchanged since then. Other texts are embedded again for this search: at most
`MAX_FORMER_TEXTS`, and the result says if there are more. All are ranked together, with the statistics of that time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import structlog

from souvenir.core.errors import EmbeddingUnavailable, TooManyTokens
from souvenir.core.labels import fold, named_in
from souvenir.core.passages import FormerText, PastPassages, PreparedPassage
from souvenir.core.types import (
    HistoryEntry,
    Listing,
    Memory,
    MemoryDraft,
    Page,
    PassageKind,
    Scope,
    SearchQuery,
    SearchResult,
)
from souvenir.memories.indexed_store import IndexedStore
from souvenir.store import namespaces
from souvenir.store.memories import history, links, reads
from souvenir.store.memories.history import PastMemory
from souvenir.store.sql import Connection
from souvenir.store.transaction import owner_of

MAX_FORMER_TEXTS = 200
"""Limit of texts embedded for one search: about one second of the model."""

PAST_TEXTS = "past_texts"
"""The degradation named in a result if not every former text was searched."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Then:
    """:param stood: All memories of that time. :param may_be_found: The ids of those that match the filters.

    :param former: Memories with different passages, as they were; `left_out` is true if there are more.
    :param dated_alike: The ids of memories that share words with one of those.
    """

    stood: Sequence[PastMemory]
    may_be_found: Sequence[int]
    former: Sequence[Memory]
    left_out: bool
    dated_alike: Set[int] = frozenset()


def search_at(store: IndexedStore, scope: Scope, query: SearchQuery, at: datetime) -> SearchResult:
    """Return the memories that answered a query best at that time, as they were.

    :raises SearchUnavailable: If no arm can run.
    """
    then = _then(store, scope, query, at)
    query = replace(query, now=query.now or at, filters=replace(query.filters, include_archived=True))
    drafts = [MemoryDraft(one.text, one.source, facts=tuple(fact.text for fact in one.facts)) for one in then.former]
    passages, degraded = former_passages(lambda: store.prepare_drafts(drafts), left_out=then.left_out)
    former = [
        FormerText(owner_of(memory), of, {fact.text: fact.id for fact in memory.facts})
        for memory, of in zip(then.former, passages, strict=False)
    ]
    unchanged = {one.id for one in then.stood if one.same}
    past = PastPassages(at, sorted(unchanged - then.dated_alike), former, sorted(unchanged & then.dated_alike))
    found = store.recall(
        scope,
        PassageKind.MEMORY,
        query,
        owner_ids=then.may_be_found,
        past_passages=past,
        tagged=partial(_tagged, store, scope, at, {*map(fold, query.filters.tags), *named_in(query.text)}),
    )
    if found is None:
        return SearchResult(query.text, ())
    with store.namespace(scope) as (connection, namespace):
        memories = {} if namespace is None else history.memories_at(connection, namespace, at, found.owner_ids)
    result = found.result(memories)
    return replace(result, query=query.text, degraded=(*result.degraded, *degraded))


def _then(store: IndexedStore, scope: Scope, query: SearchQuery, at: datetime) -> _Then:
    wanted, archived = query.filters.metadata, query.filters.include_archived
    with store.namespace(scope) as (connection, namespace):
        if namespace is None:
            return _Then((), (), (), False)
        reads.require_filter(namespace, wanted)
        stood = history.stored_at(connection, namespace, at, wanted)
        may = [one.id for one in stood if one.fits and (archived or not one.archived)]
        if query.filters.tags:
            tagged = Listing(tags=query.filters.tags, all_tags=query.filters.all_tags)
            may = sorted({*may} & {*reads.memory_ids(connection, namespace, tagged)})
        if query.filters.within is not None:
            may = sorted({*may} & {*query.filters.within})
        chosen = frozenset(may)
        others = sorted((one.id for one in stood if not one.same), key=lambda id_: (id_ in chosen, id_))
        read = others[-MAX_FORMER_TEXTS:]
        former = history.memories_at(connection, namespace, at, read)
        alike = history.dated_as(connection, namespace, former.values())
        return _Then(stood, may, list(former.values()), len(read) < len(others), alike)


def _tagged(
    store: IndexedStore, scope: Scope, at: datetime, named: Collection[str], ids: Sequence[int]
) -> Collection[int]:
    with store.namespace(scope) as (connection, namespace):
        if namespace is None or not named:
            return ()
        return history.having_tags_at(connection, namespace, at, named, ids)


def former_passages(
    prepare: Callable[[], Sequence[Sequence[PreparedPassage]]], *, left_out: bool
) -> tuple[Sequence[Sequence[PreparedPassage]], tuple[str, ...]]:
    """Embed former texts for a search; also return the degradations.

    :param prepare: Returns the passages of each. :param left_out: Whether there are more than these.
    :return: No passages if the model cannot run.
    """
    try:
        return prepare(), (PAST_TEXTS,) if left_out else ()
    except (EmbeddingUnavailable, TooManyTokens) as error:
        log.warning("former_texts_not_embedded", reason=error.message)
        return (), (PAST_TEXTS,)


@dataclass(frozen=True, slots=True)
class MemoryHistory:
    """:param entries: Oldest first; without texts if it is `deleted`.

    :param supersedes: The memories that it replaced. :param superseded_by: The memory that replaced it.
    """

    entries: Sequence[HistoryEntry]
    deleted: bool
    supersedes: Sequence[int]
    superseded_by: int | None


def history_of(connection: Connection, namespace: namespaces.Namespace, memory_id: int) -> MemoryHistory | None:
    """Return None if there never was such a memory, or it is invisible to the namespace's viewer."""
    entries = history.history(connection, namespace, memory_id)
    if entries is None:
        return None
    memory = reads.memories(connection, namespace, [memory_id]).get(memory_id)
    if memory is None:
        return MemoryHistory(entries, True, (), None)
    replaced = links.links_of(connection, namespace, memory_id, link_type=reads.SUPERSEDES, incoming=False)
    return MemoryHistory(entries, False, [link.to_id for link in replaced], memory.superseded_by)


def page_at(
    connection: Connection,
    namespace: namespaces.Namespace,
    at: datetime,
    listing: Listing,
    *,
    offset: int,
    limit: int,
) -> Page:
    """Return one page of the memories as they were; a tag filter applies to the current tags."""
    ids = history.ids_at(connection, namespace, at, listing)
    wanted = ids[offset : offset + limit]
    found = history.memories_at(connection, namespace, at, wanted)
    return Page(tuple(found[id_] for id_ in wanted if id_ in found), len(ids))
