"""Checks of the server, the role and the history of the database, at the start and for every new connection."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from souvenir.core.errors import StoreUnusable
from souvenir.core.network_settings import is_loopback
from souvenir.core.service_warnings import ServiceWarnings
from souvenir.core.settings import Settings
from souvenir.store import meta
from souvenir.store.memories import reads
from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.postgres.schema import SCHEMA
from souvenir.store.sql import Connection
from souvenir.store.vectors import MODEL, MODEL_SPEC

T = TypeVar("T")

MIN_VERSION = 160_000
DATABASE_NOT_DURABLE = "database_not_durable"
DATABASE_NOT_ENCRYPTED = "database_not_encrypted"

_DEFAULTS = {
    "application_name": "souvenir",
    "connect_timeout": 5,
    # A replica notices within seconds that the server's machine is gone.
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    # Of several hosts, the one that can be written.
    "target_session_attrs": "read-write",
}
_TIMELINE = "timeline"
"""The key in `meta` of the server and its timeline, of which the history in `generations` is."""

Raw = psycopg.Connection[tuple[Any, ...]]


def address_of(settings: Settings) -> str:
    """Return the address with defaults for what it does not say.

    :raises StoreUnusable: If it is malformed.
    """
    url = "" if settings.database_url is None else settings.database_url.get_secret_value()
    try:
        parameters: dict[str, Any] = {**_DEFAULTS, **conninfo_to_dict(url)}
        return make_conninfo(**parameters)
    except psycopg.ProgrammingError:
        # The message of the library repeats the URL, with its password.
        raise StoreUnusable("DATABASE_URL is malformed; write postgresql://USER:PASSWORD@HOST/DATABASE") from None


def require_usable(connection: Raw, warnings: ServiceWarnings) -> None:
    """Check version, encoding, role and durability of the server.

    :raises StoreUnusable: If it must not be used; the message says what to do.
    """
    info = connection.info
    if info.server_version < MIN_VERSION:
        raise StoreUnusable(
            f"The server is PostgreSQL {info.server_version // 10_000} and {MIN_VERSION // 10_000} is the oldest that "
            "can be used; upgrade it"
        )
    encoding = info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreUnusable(f"The database has the encoding {encoding}; create one with ENCODING 'UTF8'")
    is_created, may_create, is_owner = _row(
        connection,
        "SELECT to_regnamespace(%s) IS NOT NULL, has_database_privilege(current_database(), 'CREATE'), "
        "coalesce((SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = %s), FALSE)",
        (SCHEMA, SCHEMA),
    )
    if not (is_owner if is_created else may_create):
        raise StoreUnusable(
            f"The role {info.user!r} may not create or change the schema {SCHEMA!r}; "
            + ("make it the owner of the schema" if is_created else "grant it CREATE on the database")
        )
    [fsync, full_pages] = _row(connection, "SELECT current_setting('fsync'), current_setting('full_page_writes')")
    if "off" in (fsync, full_pages):
        warnings.put(
            DATABASE_NOT_DURABLE,
            "The server runs with fsync or full_page_writes off, so a crash of its machine loses acknowledged writes; "
            "set both to on",
        )
    is_local = not info.host or info.host.startswith("/") or is_loopback(info.host)
    if not is_local and not connection.pgconn.ssl_in_use:
        warnings.put(
            DATABASE_NOT_ENCRYPTED,
            f"The connection to the database on {info.host} is not encrypted; add sslmode=verify-full to DATABASE_URL",
        )


def require_model(connection: PostgresConnection, model_id: str, spec: str | None) -> None:
    """Require that the vectors were made by this model, and store it if there are none. No write may run meanwhile.

    :param spec: The configuration from which it is created again, if that is known.
    :raises StoreUnusable: If another one made them.
    """
    meta.require_no_migration(connection)
    connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", (MODEL, model_id))
    stored = meta.get(connection, MODEL)
    if stored != model_id:
        if reads.counts(connection).passages:
            raise StoreUnusable(
                f"The vectors in the database were made by {stored} and EMBED_MODEL is {model_id}; set EMBED_MODEL "
                "back, or DATABASE_URL to another database; if the model was changed just now, start again"
            )
        meta.put(connection, MODEL, model_id)
    if spec is not None:
        meta.put(connection, MODEL_SPEC, spec)


def configure(connection: Raw, settings: Settings) -> None:
    """Set what every connection needs."""
    connection.autocommit = True
    connection.execute(f"SET search_path = {SCHEMA}")
    connection.execute(f"SET statement_timeout = {int(settings.database_statement_timeout_s * 1000)}")
    connection.execute(f"SET lock_timeout = {int(settings.write_timeout_s * 1000)}")
    connection.execute(f"SET idle_in_transaction_session_timeout = {int(settings.database_statement_timeout_s * 1000)}")
    # An acknowledged write is on disk; a stricter setting, for standbys, stays.
    [commit] = _row(connection, "SHOW synchronous_commit")
    if commit == "off":
        connection.execute("SET synchronous_commit = on")


def history_of(connection: Raw) -> str:
    """Return the id of the database's history, after beginning a new one if the server has another timeline.

    A failover or a restore to a point in time may have lost commits, whose numbers are given again. What was derived
    from the lost ones, such as snapshots of indexes, is of the former history and is not used any more.
    """
    [timeline] = _row(
        connection,
        "SELECT system_identifier || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) "
        "FROM pg_control_system()",
    )
    history = _stored_history(connection, timeline)
    if history is None:
        with connection.transaction():
            connection.execute("SELECT 1 FROM generations FOR UPDATE")
            history = _stored_history(connection, timeline)
            if history is None:
                history = uuid.uuid4().hex
                connection.execute("UPDATE generations SET id = %s", (history,))
                connection.execute(
                    "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    (_TIMELINE, timeline),
                )
    return history


def _stored_history(connection: Raw, timeline: str) -> str | None:
    found = connection.execute(
        "SELECT id FROM generations WHERE (SELECT value FROM meta WHERE key = %s) = %s", (_TIMELINE, timeline)
    ).fetchone()
    return None if found is None else str(found[0])


def _row(connection: Raw, query: str, parameters: tuple[object, ...] = ()) -> tuple[Any, ...]:
    found = connection.execute(query.encode(), parameters).fetchone()
    return () if found is None else found


def connected(settings: Settings, read: Callable[[Connection], T]) -> T | None:
    """Return what `read` returns of the database; None if it cannot be used, which opening it reports."""
    try:
        with psycopg.connect(address_of(settings), autocommit=True) as connection:
            connection.execute(f"SET search_path = {SCHEMA}")
            return read(PostgresConnection(connection))
    except psycopg.Error:
        return None
