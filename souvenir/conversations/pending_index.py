"""Deferred indexing: embed and index messages that were stored without it, so that storing them is fast.

It runs when their session ends, when another session of their agent starts, and when the service starts. Each batch is
embedded outside of every lock and stored in one transaction; messages that change in the meantime are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from souvenir.core.passages import PreparedPassage
from souvenir.core.types import Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import mentions
from souvenir.store.messages import messages as rows
from souvenir.store.messages.messages import Message
from souvenir.store.transaction import Transaction

BATCH_SIZE = 64
"""Messages embedded and stored at once: about 0.3 s of work, so that other writes can interleave."""

ACTOR = "service"


def index_pending(
    engine: MemoryEngine,
    scope: Scope,
    session_id: str | None = None,
    *,
    at_most: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Index pending messages; returns their number.

    :param session_id: Only messages of this session.
    :param at_most: Approximate limit; the rest is indexed next time.
    :param stop: Called between batches.
    :raises EmbeddingUnavailable: If the model cannot run; earlier batches are indexed.
    """
    indexed = after_id = 0
    while not stop() and (at_most is None or indexed < at_most):
        batch = _next(engine, scope, session_id, after_id)
        if not batch:
            break
        prepared = engine.prepare([one.content for one in batch], spoken_by=[one.spoken_by for one in batch])
        indexed += _index(engine, scope, batch, prepared)
        after_id = batch[-1].id
    return indexed


def index_all_pending(engine: MemoryEngine, stop: Callable[[], bool]) -> int:
    """Index the pending messages of every namespace."""
    with engine.namespace(Scope()) as (connection, _):
        names = rows.namespaces_with_pending(connection)
    return sum(index_pending(engine, Scope(name, ACTOR), stop=stop) for name in names)


def _next(engine: MemoryEngine, scope: Scope, session_id: str | None, after_id: int) -> Sequence[Message]:
    with engine.namespace(scope) as (connection, namespace):
        if namespace is None:
            return ()
        return rows.pending(connection, namespace.id, session_id, after_id=after_id, limit=BATCH_SIZE)


def _index(
    engine: MemoryEngine, scope: Scope, batch: Sequence[Message], prepared: Sequence[Sequence[PreparedPassage]]
) -> int:
    def work(tx: Transaction) -> int:
        now = rows.by_id(tx.connection, tx.namespace_id, [one.id for one in batch])
        indexed = 0
        for one, passages in zip(batch, prepared, strict=True):
            stored = now.get(one.id)
            # New content was indexed with its change.
            if stored is not None and not stored.indexed and stored.content == one.content:
                tx.passages.insert(stored.owner, passages)
                rows.mark_indexed(tx.connection, stored.id)
                indexed += 1
        # Topics depend on vectors.
        mentions.queue_sessions(tx.connection, now)
        return indexed

    return engine.write(scope, work)
