"""What the store takes and holds, for whoever looks after it; over all namespaces, without naming one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from souvenir.index.registry import IndexRegistry
from souvenir.store import reads
from souvenir.store.database import Database


@dataclass(frozen=True, slots=True)
class Vitals:
    """Rows and bytes are those of the indexes that are loaded."""

    memories: int
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
        counts = reads.counts(connection)
    indexes = registry.loaded().values()
    backups = database.backups.all()
    database_bytes, log_bytes = database.bytes_on_disk
    return Vitals(
        memories=counts.memories,
        namespaces=counts.namespaces,
        loaded_indexes=len(indexes),
        index_rows=sum(map(len, indexes)),
        index_bytes=sum(index.nbytes for index in indexes),
        database_bytes=database_bytes,
        log_bytes=log_bytes,
        backups=len(backups),
        newest_backup_at=datetime.fromisoformat(backups[0].created_at) if backups else None,
    )
