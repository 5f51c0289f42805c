"""Row counts and sizes of the store: of one namespace, or aggregated over all of them for operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from souvenir.core.types import Readiness, Scope, Stats
from souvenir.index.registry import IndexRegistry
from souvenir.retrieval.searcher import memories_of
from souvenir.retrieval.serving_model import Serving
from souvenir.store import meta, namespaces
from souvenir.store.database import Database
from souvenir.store.graph import mention_queue as unread
from souvenir.store.memories import reads
from souvenir.store.vectors import MODEL


@dataclass(frozen=True, slots=True)
class Vitals:
    """Rows and bytes of indexes cover loaded indexes only.

    :param unread: Messages and memories that wait to be indexed into a graph.
    """

    memories: int
    unread: int
    namespaces: int
    loaded_indexes: int
    index_rows: int
    index_bytes: int
    database_bytes: int
    log_bytes: int
    backups: int
    newest_backup_at: datetime | None


def vitals_of(database: Database, registry: IndexRegistry) -> Vitals:
    with database.read() as connection:
        counts, waiting = reads.counts(connection), unread.count_all(connection)
    indexes = registry.loaded().values()
    backups = database.backups.all()
    database_bytes, log_bytes = database.bytes_on_disk
    return Vitals(
        memories=counts.memories,
        unread=waiting,
        namespaces=counts.namespaces,
        loaded_indexes=len(indexes),
        index_rows=sum(map(len, indexes)),
        index_bytes=sum(index.nbytes for index in indexes),
        database_bytes=database_bytes,
        log_bytes=log_bytes,
        backups=len(backups),
        newest_backup_at=datetime.fromisoformat(backups[0].created_at) if backups else None,
    )


def readiness_of(database: Database, serving: Serving, *, warm: bool) -> Readiness:
    """Return True as ready if searches of the default namespace are answered from all of its memories.

    :param warm: True if its index was loaded.
    """
    with database.read() as connection:
        namespace = namespaces.named(connection, Scope().namespace)
        stored = 0 if namespace is None else reads.count_memories(connection, namespace)
        is_current = meta.get(connection, MODEL) == serving.embedder.model_id
    ready = serving.embedder.ready and warm and is_current
    indexed = 0
    if ready and namespace is not None:
        indexed = serving.registry.get(memories_of(namespace), namespace.change_seq).owner_count()
    return Readiness(ready, "ready" if ready else "starting", indexed, stored)


def stats_of(database: Database, serving: Serving, scope: Scope) -> Stats:
    """Return statistics; for a restricted scope the visible counts only, without times and sizes of the namespace."""
    with database.read() as connection:
        namespace = namespaces.named(connection, scope.namespace, scope.sources)
        memories = 0 if namespace is None else reads.count_memories(connection, namespace)
        passages = 0 if namespace is None else reads.count_passages(connection, namespace)
    whole = namespace if scope.sources is None else None
    index = None if whole is None else serving.registry.loaded().get(memories_of(whole))
    return Stats(
        memories=memories,
        passages=passages,
        dim=serving.embedder.dim,
        model_id=serving.embedder.model_id,
        created_at=None if whole is None else whole.created_at,
        changed_at=None if whole is None else whole.changed_at,
        index_bytes=0 if index is None else index.nbytes,
        backups=len(database.backups.all()),
    )
