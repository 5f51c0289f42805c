"""The advisory locks of writes, which last as long as their transaction, and how a write begins."""

from __future__ import annotations

from souvenir.store.vectors import MODEL, NEXT_MODEL

WRITER_IDLE_S = 5
"""A replica that stops in the middle of a write loses its connection, and with it its locks, after so long."""

# The first numbers of the locks.
_OF_ALL, _OF_NAMESPACES = 0x534F5501, 0x534F5502

ALONE = f"pg_advisory_xact_lock({_OF_ALL}, 0)"
"""An expression of SQL that takes the lock of all, so that no other write runs."""

SHARED = f"pg_advisory_xact_lock_shared({_OF_ALL}, 0)"
"""An expression that shares the lock of all."""


def of_namespace(number: int) -> str:
    """Return expressions that take the lock of the namespaces with a number, and share that of all."""
    return f"{SHARED}, pg_advisory_xact_lock({_OF_NAMESPACES}, {number})"


def begin(locks: str, wait_ms: int) -> str:
    """Return the statements with which a write begins; the last one returns the ids of the model and the next one.

    It sees what was committed before the write had its locks.

    :param wait_ms: The time that it may wait for each lock.
    """
    return (
        f"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '{WRITER_IDLE_S}s'; "
        f"SET LOCAL lock_timeout = {wait_ms}; SELECT {locks}; "
        f"SELECT max(value) FILTER (WHERE key = '{MODEL}'), max(value) FILTER (WHERE key = '{NEXT_MODEL}') FROM meta "
        f"WHERE key IN ('{MODEL}', '{NEXT_MODEL}')"
    )
