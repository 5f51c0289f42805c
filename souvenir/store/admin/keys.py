"""API keys, what they store and submit, and the refusal of what would exceed their quotas.

Only the SHA-256 and the first characters of a key are stored, not the key itself. Quotas are checked in the transaction
that would exceed them: there is one writer, so concurrent requests cannot exceed a quota together. Triggers of the
schema keep `key_usage`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from datetime import datetime

from souvenir.core.errors import (
    ExtractionQuotaExceeded,
    JobQuotaExceeded,
    MemoryQuotaExceeded,
    StorageQuotaExceeded,
)
from souvenir.core.quotas import UNLIMITED_QUOTAS, Quotas
from souvenir.core.timestamps import to_us
from souvenir.core.types import Role
from souvenir.store.rows import first, select
from souvenir.store.sql import Connection

_COLUMNS = (
    "id, name, principal_id, key_hash, key_prefix, role, namespace, prefixes, created_at, last_used_at, usage_count, "
    "revoked_at, quota_requests_per_minute, quota_memories, quota_stored_bytes, quota_jobs_per_day, "
    "quota_extractions_per_day"
)


KEY_ACTOR = "key:"
"""Prefix of the actor name of a caller with a key."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key and its permissions.

    :param key_prefix: The first characters of the key, for recognition by people.
    :param namespace: The only namespace that it may use; None: any.
    :param prefixes: Source paths that it may read and write; empty only for an admin, who sees all.
    """

    id: str
    name: str
    principal_id: str | None
    key_hash: str
    key_prefix: str
    role: Role
    namespace: str | None
    prefixes: tuple[str, ...]
    created_at: datetime
    last_used_at: datetime | None = None
    usage_count: int = 0
    revoked_at: datetime | None = None
    quotas: Quotas = UNLIMITED_QUOTAS

    @property
    def actor(self) -> str:
        """The actor name in history and jobs."""
        return f"{KEY_ACTOR}{self.id}"


def key_id_of(actor: str) -> str | None:
    """The id of the key with which an actor acts, if it is a managed one."""
    return actor.removeprefix(KEY_ACTOR) if actor.startswith(KEY_ACTOR) else None


@dataclass(frozen=True, slots=True)
class Usage:
    """Number of uses of a key since the last count, and the time of the last one."""

    count: int
    last_used_at: datetime


def all_keys(connection: Connection) -> list[ApiKey]:
    """Return all keys, oldest first, including revoked ones."""
    return list(select(connection, ApiKey, f"SELECT {_COLUMNS} FROM api_keys ORDER BY created_at, id"))


def active_key(connection: Connection, key_id: str) -> ApiKey | None:
    """Return the key if it exists and was not revoked."""
    rows = list(
        select(connection, ApiKey, f"SELECT {_COLUMNS} FROM api_keys WHERE id = ? AND revoked_at IS NULL", (key_id,))
    )
    return rows[0] if rows else None


def other_admin_exists(connection: Connection, key_id: str) -> bool:
    """Return whether another admin key is not revoked."""
    row = connection.execute(
        "SELECT 1 FROM api_keys WHERE role = ? AND revoked_at IS NULL AND id <> ?", (Role.ADMIN.value, key_id)
    ).fetchone()
    return row is not None


def put(connection: Connection, key: ApiKey) -> None:
    """Upsert a key; its usage counters are not overwritten."""
    connection.execute(
        f"INSERT INTO api_keys ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET "
        "name = excluded.name, principal_id = excluded.principal_id, key_hash = excluded.key_hash, "
        "key_prefix = excluded.key_prefix, role = excluded.role, namespace = excluded.namespace, "
        "prefixes = excluded.prefixes, revoked_at = excluded.revoked_at, "
        "quota_requests_per_minute = excluded.quota_requests_per_minute, quota_memories = excluded.quota_memories, "
        "quota_stored_bytes = excluded.quota_stored_bytes, quota_jobs_per_day = excluded.quota_jobs_per_day, "
        "quota_extractions_per_day = excluded.quota_extractions_per_day",
        (
            key.id,
            key.name,
            key.principal_id,
            key.key_hash,
            key.key_prefix,
            key.role.value,
            key.namespace,
            json.dumps(key.prefixes, ensure_ascii=False),
            to_us(key.created_at),
            None if key.last_used_at is None else to_us(key.last_used_at),
            key.usage_count,
            None if key.revoked_at is None else to_us(key.revoked_at),
            *astuple(key.quotas),
        ),
    )


def add_usage(connection: Connection, used: Mapping[str, Usage]) -> None:
    """Add usage counts by key id."""
    connection.executemany(
        "UPDATE api_keys SET usage_count = usage_count + ?, last_used_at = max(coalesce(last_used_at, 0), ?) "
        "WHERE id = ?",
        [(usage.count, to_us(usage.last_used_at), key_id) for key_id, usage in used.items()],
    )


EXTRACT = "extract"
"""The kind of jobs that count towards a quota of their own."""

DAY_S = 86_400
_DAY_US = DAY_S * 1_000_000


@dataclass(frozen=True, slots=True)
class StoredUsage:
    memories: int = 0
    stored_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DailyUsage:
    """Usage of one UTC day."""

    jobs: int = 0
    extractions: int = 0


def stored_usage(connection: Connection, actor: str) -> StoredUsage:
    """Return the present usage of storage by the key of an actor."""
    query = "SELECT memories, stored_bytes FROM key_usage WHERE key_id = ?"
    return first(connection, StoredUsage, query, (key_id_of(actor),)) or StoredUsage()


def daily_usage(connection: Connection, actor: str, now: datetime) -> DailyUsage:
    """Return the jobs and extractions that the key of an actor has submitted today."""
    query = "SELECT jobs, extractions FROM key_days WHERE key_id = ? AND day = ?"
    return first(connection, DailyUsage, query, (key_id_of(actor), to_us(now) // _DAY_US)) or DailyUsage()


def require_storable(connection: Connection, actor: str, before: StoredUsage, quotas: Quotas) -> None:
    """Refuse a write that stored more than the quotas allow; one that does not grow is allowed above them too.

    :param before: The usage when the transaction began.
    :raises MemoryQuotaExceeded: If there are too many memories. :raises StorageQuotaExceeded: If too many bytes.
    """
    now = stored_usage(connection, actor)
    if quotas.memories is not None and now.memories > max(quotas.memories, before.memories):
        raise MemoryQuotaExceeded(quotas.memories, before.memories)
    if quotas.stored_bytes is not None and now.stored_bytes > max(quotas.stored_bytes, before.stored_bytes):
        raise StorageQuotaExceeded(quotas.stored_bytes, before.stored_bytes)


def require_submittable(connection: Connection, actor: str, quotas: Quotas, kind: str, now: datetime) -> None:
    """:raises JobQuotaExceeded: If no job may be submitted today. :raises ExtractionQuotaExceeded: If no extraction."""
    used, is_extraction = daily_usage(connection, actor, now), kind == EXTRACT
    retry_after_s = DAY_S - to_us(now) % _DAY_US // 1_000_000
    if is_extraction and quotas.extractions_per_day is not None and used.extractions >= quotas.extractions_per_day:
        raise ExtractionQuotaExceeded(quotas.extractions_per_day, retry_after_s=retry_after_s)
    if not is_extraction and quotas.jobs_per_day is not None and used.jobs >= quotas.jobs_per_day:
        raise JobQuotaExceeded(quotas.jobs_per_day, retry_after_s=retry_after_s)


def count_submission(connection: Connection, actor: str, quotas: Quotas, kind: str, now: datetime) -> None:
    """Count a job or an extraction of the day, if the actor is a key.

    :raises JobQuotaExceeded: If no job may be submitted today. :raises ExtractionQuotaExceeded: If no extraction.
    """
    require_submittable(connection, actor, quotas, kind, now)
    if (key_id := key_id_of(actor)) is None:
        return
    is_extraction = kind == EXTRACT
    connection.execute(
        "INSERT INTO key_days VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key_id) DO UPDATE SET day = ?2, "
        "jobs = CASE WHEN key_days.day = ?2 THEN key_days.jobs ELSE 0 END + ?3, "
        "extractions = CASE WHEN key_days.day = ?2 THEN key_days.extractions ELSE 0 END + ?4",
        (key_id, to_us(now) // _DAY_US, int(not is_extraction), int(is_extraction)),
    )
