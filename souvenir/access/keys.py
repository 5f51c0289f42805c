"""API keys: created, changed, rotated, revoked, and looked up without a query of the database.

A key is `mem_` and 32 hexadecimal digits. It is shown once, when it is created; only its SHA-256 is stored, which is
enough for a random key. Lookups read a map in memory, which is reloaded after every change and before the change is
answered, so a revoked key stops at once. A restore keeps the present keys; a service that never had one gets those of
the backup.

Invariant: admin access is always possible. While the service has no API_KEY, the first key is an admin's, and the last
admin key cannot be revoked or demoted.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock

from souvenir.access.request_rates import RequestRates
from souvenir.core.background import Maintenance
from souvenir.core.concurrency import frees_space
from souvenir.core.errors import Conflict, KeyNotFound, KeyNotUsable, NothingToDo, Overloaded, Unavailable
from souvenir.core.quotas import UNLIMITED_QUOTAS, Quotas
from souvenir.core.timestamps import utc_now
from souvenir.core.types import DEFAULT_NAMESPACE, Role, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store import meta
from souvenir.store.admin import audit, jobs
from souvenir.store.admin import keys as rows
from souvenir.store.admin.audit import AuditEvent
from souvenir.store.admin.keys import ApiKey, DailyUsage, StoredUsage, Usage, daily_usage, stored_usage
from souvenir.store.sql import Connection

KEY_BEGIN = "mem_"
SHOWN_CHARS = 8
"""Number of characters of a key that are stored to recognise it; 16 of its 128 bits."""

USAGE_INTERVAL_S = 60.0
"""The interval of usage writes: a kill loses only the usage since the last one."""

PRINCIPAL_PATTERN = r"^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$"
_SLUG = re.compile(PRINCIPAL_PATTERN)
_REVISION = "keys_revision"
"""The key in `meta` of a value that every change of a key replaces."""

_SECRET = re.compile(KEY_BEGIN + "[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class KeyDraft:
    """The fields of a new key."""

    name: str
    role: Role
    prefixes: tuple[str, ...] = ()
    namespace: str | None = None
    principal_id: str | None = None
    quotas: Quotas = UNLIMITED_QUOTAS


@dataclass(frozen=True, slots=True)
class KeyPatch:
    """A change of some fields; `None` leaves a field as it is. Quotas replace all quotas of the key."""

    name: str | None = None
    role: Role | None = None
    prefixes: tuple[str, ...] | None = None
    namespace: str | None = None
    principal_id: str | None = None
    quotas: Quotas | None = None


@dataclass(frozen=True, slots=True)
class KeyUsage:
    """The quotas of a key, defaults included, and what it has used of them.

    :param requests: Requests of the last minute, counted if the key has a quota of them.
    """

    key: ApiKey | None
    quotas: Quotas
    requests: int
    stored: StoredUsage
    today: DailyUsage


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key and its secret, which cannot be read a second time."""

    key: ApiKey
    secret: str


class ApiKeys:
    """Thread-safe.

    :param has_env_key: Whether API_KEY is set, which always gives admin access.
    :param default_quotas: Quotas of keys without the admin role, where a key sets none.
    """

    def __init__(self, engine: MemoryEngine, *, has_env_key: bool, default_quotas: Quotas = UNLIMITED_QUOTAS) -> None:
        self._engine = engine
        self._default_quotas = default_quotas
        self._quotas: Mapping[str, Quotas] = {}
        self._rates = RequestRates()
        self._has_env_key = has_env_key
        self._reloading = Lock()
        self._living: Mapping[str, ApiKey] = {}
        self.any_made = False
        """True if any key ever existed, revoked ones included."""
        self.generation = 0
        """Changes with every change of a key, so that an equal value means unchanged keys."""
        self._using = Lock()
        self._used: dict[str, Usage] = {}
        self._revision: str | None = None
        self._reload()
        engine.when_restored(self._reload)
        engine.when_others_commit(self._reload_if_changed)
        engine.limit_by(self.quotas_of)
        self._maintenance = Maintenance(self.write_usage, interval_s=USAGE_INTERVAL_S)
        self._maintenance.start()

    def close(self) -> None:
        """Write the usage; the engine must still be open. If it cannot, that usage is lost."""
        self._maintenance.close()
        with suppress(Overloaded, Unavailable):
            self.write_usage()

    def holder_of(self, secret: bytes) -> ApiKey | None:
        """Return the key with this secret, unless it was revoked."""
        return self._living.get(_hash(secret))

    def named(self, name: str) -> Sequence[ApiKey]:
        """Return the keys with this name that were not revoked."""
        return [key for key in self._living.values() if key.name == name]

    def quotas_of(self, actor: str) -> Quotas:
        """Return the quotas of an actor, defaults included; only managed keys have quotas."""
        return self._quotas.get(actor, UNLIMITED_QUOTAS)

    def admit(self, key: ApiKey) -> None:
        """Count a request towards the quota of requests.

        :raises RequestQuotaExceeded: If the key sent too many in the last minute.
        """
        limit = self.quotas_of(key.actor).requests_per_minute
        if limit is not None:
            self._rates.admit(key.id, limit)

    def usage_of(self, key_id: str | None) -> KeyUsage:
        """:param key_id: None for callers without a managed key, who have no quotas.

        :raises KeyNotFound: If there is no such key, or it was revoked.
        """
        if key_id is None:
            return KeyUsage(None, UNLIMITED_QUOTAS, 0, StoredUsage(), DailyUsage())
        with self._engine.namespace(Scope()) as (connection, _):
            key = _living(connection, key_id)
            stored = stored_usage(connection, key.actor)
            today = daily_usage(connection, key.actor, utc_now())
        return KeyUsage(key, self.quotas_of(key.actor), self._rates.count(key_id), stored, today)

    def use(self, key: ApiKey) -> None:
        """Count a request."""
        with self._using:
            before = self._used.get(key.id)
            self._used[key.id] = Usage(1 if before is None else before.count + 1, utc_now())

    def write_usage(self) -> None:
        """Write the usage since the last write; it is kept if that fails."""
        with self._using:
            used, self._used = self._used, {}
        if not used:
            return
        try:
            self._engine.write_rows(lambda connection: rows.add_usage(connection, used), alone=False)
        except BaseException:
            with self._using:
                for key_id, usage in used.items():
                    later = self._used.get(key_id)
                    self._used[key_id] = usage if later is None else replace(later, count=later.count + usage.count)
            raise

    def all(self) -> Sequence[ApiKey]:
        """Return all keys, oldest first, revoked ones included, with their current usage."""
        with self._engine.namespace(Scope()) as (connection, _):
            stored = rows.all_keys(connection)
        with self._using:
            used = dict(self._used)
        return [_with_use(key, used.get(key.id)) for key in stored]

    def create(self, draft: KeyDraft, *, by: Scope, secret: str | None = None, only_first: bool = False) -> NewKey:
        """:param secret: A result of `new_secret`; by default a new one.

        :param only_first: Whether it must be the first key.

        :raises KeyNotUsable: If an admin key has prefixes or a namespace, or another key has neither.
        :raises Conflict: If no admin would remain to create keys, or it is not the first one.
        """
        _require_usable(draft.role, draft.prefixes, draft.namespace)
        secret = secret or new_secret()
        key = ApiKey(
            id=str(uuid.uuid4()),
            name=draft.name,
            principal_id=draft.principal_id or (draft.name if _SLUG.fullmatch(draft.name) else None),
            key_hash=_hash(secret.encode()),
            key_prefix=secret[:SHOWN_CHARS],
            role=draft.role,
            namespace=_namespace_of(draft.role, draft.namespace),
            prefixes=draft.prefixes,
            created_at=utc_now(),
            quotas=draft.quotas,
        )

        def work(connection: Connection) -> ApiKey:
            if only_first and rows.all_keys(connection):
                raise Conflict("There are keys already; ask an admin for one")
            if key.role is not Role.ADMIN:
                self._require_other_admin(connection, key.id, "Make an admin key first")
            rows.put(connection, key)
            return key

        return NewKey(self._change(work, "key.create", by), secret)

    def update(self, key_id: str, patch: KeyPatch, *, by: Scope) -> ApiKey:
        """Change some fields. A key that becomes an admin's loses its prefixes and its namespace.

        :raises NothingToDo: If the patch changes nothing.
        :raises KeyNotFound: If there is no such key, or it was revoked.
        :raises KeyNotUsable: If such a key could not be created.
        :raises Conflict: If no admin would remain to create keys.
        """
        if patch == KeyPatch():
            raise NothingToDo("Nothing to update; give name, role, prefixes, namespace, principal_id or quotas")

        def work(connection: Connection) -> ApiKey:
            before = _living(connection, key_id)
            after = _patched(before, patch)
            if before.role is Role.ADMIN and after.role is not Role.ADMIN:
                self._require_other_admin(connection, key_id, "Make another admin key first")
            rows.put(connection, after)
            if (before.role, before.prefixes, before.namespace) != (after.role, after.prefixes, after.namespace):
                jobs.request_cancel_of(connection, before.actor)
            return after

        return self._change(work, "key.update", by)

    def rotate(self, key_id: str, *, by: Scope) -> NewKey:
        """Replace the secret of a key; the old one is invalid at once.

        :raises KeyNotFound: If there is no such key, or it was revoked.
        """
        secret = new_secret()

        def work(connection: Connection) -> ApiKey:
            before = _living(connection, key_id)
            after = replace(before, key_hash=_hash(secret.encode()), key_prefix=secret[:SHOWN_CHARS])
            rows.put(connection, after)
            return after

        return NewKey(self._change(work, "key.rotate", by), secret)

    @frees_space()
    def revoke(self, key_id: str, *, by: Scope) -> None:
        """Revoke a key at once, and cancel its jobs at their next step.

        :raises KeyNotFound: If there is no such key, or it was revoked already.
        :raises Conflict: If no admin would remain to create keys.
        """

        def work(connection: Connection) -> ApiKey:
            before = _living(connection, key_id)
            if before.role is Role.ADMIN:
                self._require_other_admin(connection, key_id, "Make another admin key first")
            after = replace(before, revoked_at=utc_now())
            rows.put(connection, after)
            jobs.request_cancel_of(connection, before.actor)
            return after

        self._change(work, "key.revoke", by)

    def _change(self, work: Callable[[Connection], ApiKey], action: str, by: Scope) -> ApiKey:
        """Make the change and record the action, in one transaction."""

        def audited(connection: Connection) -> ApiKey:
            key = work(connection)
            audit.record(connection, [AuditEvent(utc_now(), action, by.actor, resource_id=key.id)])
            meta.put(connection, _REVISION, uuid.uuid4().hex)
            return key

        changed = self._engine.write_rows(audited)
        self._reload()
        return changed

    def _reload(self) -> None:
        """Under a lock, so that after two concurrent changes the map equals the table."""
        with self._reloading:
            with self._engine.namespace(Scope()) as (connection, _):
                stored, self._revision = rows.all_keys(connection), meta.get(connection, _REVISION)
            self._living = {key.key_hash: key for key in stored if key.revoked_at is None}
            self._quotas = {key.actor: self._effective(key) for key in self._living.values()}
            self._rates.keep({key.id for key in self._living.values()})
            self.any_made = bool(stored)
            self.generation += 1

    def _reload_if_changed(self) -> None:
        """Follow the changes of other replicas."""
        with self._engine.namespace(Scope()) as (connection, _):
            revision = meta.get(connection, _REVISION)
        if revision != self._revision:
            self._reload()

    def _effective(self, key: ApiKey) -> Quotas:
        return key.quotas if key.role is Role.ADMIN else key.quotas.or_else(self._default_quotas)

    def _require_other_admin(self, connection: Connection, key_id: str, advice: str) -> None:
        if not self._has_env_key and not rows.other_admin_exists(connection, key_id):
            raise Conflict(f"{advice}, or set API_KEY: otherwise nobody could manage keys any more")


def _hash(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()


def new_secret() -> str:
    return KEY_BEGIN + secrets.token_hex(16)


def is_secret(text: str) -> bool:
    """Return whether `new_secret` could have created it."""
    return _SECRET.fullmatch(text) is not None


def _with_use(key: ApiKey, usage: Usage | None) -> ApiKey:
    if usage is None:
        return key
    return replace(key, usage_count=key.usage_count + usage.count, last_used_at=usage.last_used_at)


def _living(connection: Connection, key_id: str) -> ApiKey:
    key = rows.active_key(connection, key_id)
    if key is None:
        raise KeyNotFound(key_id)
    return key


def _namespace_of(role: Role, namespace: str | None) -> str | None:
    return None if role is Role.ADMIN else namespace or DEFAULT_NAMESPACE


def _require_usable(role: Role, prefixes: Sequence[str] | None, namespace: str | None) -> None:
    if role is Role.ADMIN and (prefixes or namespace):
        raise KeyNotUsable("An admin key sees every namespace and source; leave prefixes and namespace out")
    if role is not Role.ADMIN and not prefixes and not namespace:
        raise KeyNotUsable(f"A {role} key needs prefixes, the source paths that it may see, or a namespace of its own")


def _patched(before: ApiKey, patch: KeyPatch) -> ApiKey:
    role = patch.role or before.role
    if role is Role.ADMIN:
        _require_usable(role, patch.prefixes, patch.namespace)
    prefixes = before.prefixes if patch.prefixes is None else patch.prefixes
    if role is not Role.ADMIN:
        # Removing the prefixes would widen the key to its whole namespace, which must therefore be named.
        was_whole = before.role is not Role.ADMIN and not before.prefixes
        _require_usable(role, prefixes, patch.namespace or (before.namespace if was_whole else None))
    return replace(
        before,
        name=patch.name or before.name,
        principal_id=patch.principal_id or before.principal_id,
        role=role,
        prefixes=() if role is Role.ADMIN else prefixes,
        namespace=_namespace_of(role, patch.namespace or before.namespace),
        quotas=before.quotas if patch.quotas is None else patch.quotas,
    )
