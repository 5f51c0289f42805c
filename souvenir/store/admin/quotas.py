"""What keys store and submit, and the refusal of what would exceed their quotas, in the transaction that would.

There is one writer, so concurrent requests cannot exceed a quota together. Triggers of the schema keep `key_usage`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import apsw

from souvenir.core.errors import (
    ExtractionQuotaExceeded,
    JobQuotaExceeded,
    MemoryQuotaExceeded,
    StorageQuotaExceeded,
)
from souvenir.core.quotas import Quotas
from souvenir.core.timestamps import to_us
from souvenir.store.admin.jobs import EXTRACT
from souvenir.store.admin.keys import key_id_of
from souvenir.store.rows import first

DAY_S = 86_400
_DAY_US = DAY_S * 1_000_000


@dataclass(frozen=True, slots=True)
class StoredUsage:
    memories: int = 0
    stored_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DailyUsage:
    """Of one UTC day."""

    jobs: int = 0
    extractions: int = 0


def stored_usage(connection: apsw.Connection, actor: str) -> StoredUsage:
    """What the key of an actor stores now."""
    query = "SELECT memories, stored_bytes FROM key_usage WHERE key_id = ?"
    return first(connection, StoredUsage, query, (key_id_of(actor),)) or StoredUsage()


def daily_usage(connection: apsw.Connection, actor: str, now: datetime) -> DailyUsage:
    """What the key of an actor has submitted today."""
    query = "SELECT jobs, extractions FROM key_days WHERE key_id = ? AND day = ?"
    return first(connection, DailyUsage, query, (key_id_of(actor), to_us(now) // _DAY_US)) or DailyUsage()


def require_storable(connection: apsw.Connection, actor: str, before: StoredUsage, quotas: Quotas) -> None:
    """Refuse a write that stored more than the quotas allow; one that does not grow is allowed above them too.

    :param before: The usage when the transaction began.
    :raises MemoryQuotaExceeded: If there are too many memories. :raises StorageQuotaExceeded: If too many bytes.
    """
    now = stored_usage(connection, actor)
    if quotas.memories is not None and now.memories > max(quotas.memories, before.memories):
        raise MemoryQuotaExceeded(quotas.memories, before.memories)
    if quotas.stored_bytes is not None and now.stored_bytes > max(quotas.stored_bytes, before.stored_bytes):
        raise StorageQuotaExceeded(quotas.stored_bytes, before.stored_bytes)


def require_submittable(connection: apsw.Connection, actor: str, quotas: Quotas, kind: str, now: datetime) -> None:
    """:raises JobQuotaExceeded: If no job may be submitted today. :raises ExtractionQuotaExceeded: If no extraction."""
    used, is_extraction = daily_usage(connection, actor, now), kind == EXTRACT
    retry_after_s = DAY_S - to_us(now) % _DAY_US // 1_000_000
    if is_extraction and quotas.extractions_per_day is not None and used.extractions >= quotas.extractions_per_day:
        raise ExtractionQuotaExceeded(quotas.extractions_per_day, retry_after_s=retry_after_s)
    if not is_extraction and quotas.jobs_per_day is not None and used.jobs >= quotas.jobs_per_day:
        raise JobQuotaExceeded(quotas.jobs_per_day, retry_after_s=retry_after_s)


def submit(connection: apsw.Connection, actor: str, quotas: Quotas, kind: str, now: datetime) -> None:
    """Count a job or an extraction of the day, if the actor is a key.

    :raises JobQuotaExceeded: If no job may be submitted today. :raises ExtractionQuotaExceeded: If no extraction.
    """
    require_submittable(connection, actor, quotas, kind, now)
    if (key_id := key_id_of(actor)) is None:
        return
    is_extraction = kind == EXTRACT
    connection.execute(
        "INSERT INTO key_days VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key_id) DO UPDATE SET day = ?2, "
        "jobs = iif(day = ?2, jobs, 0) + ?3, extractions = iif(day = ?2, extractions, 0) + ?4",
        (key_id, to_us(now) // _DAY_US, int(not is_extraction), int(is_extraction)),
    )
