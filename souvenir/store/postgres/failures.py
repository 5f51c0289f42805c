"""Errors of the server and of the pool of connections, raised as those of the service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import structlog
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout

from souvenir.core.errors import DatabaseUnavailable, DiskFull, InvalidRequest, Overloaded, ServiceClosing
from souvenir.store.postgres.write_groups import WAITED_TOO_LONG

RETRIED = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation, errors.ForeignKeyViolation)
"""Errors of a write that another one made impossible, which may succeed when it begins again."""

LOST = (
    psycopg.OperationalError,
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
)
"""Errors of a connection or a server that is gone, or that does not accept writes any more."""

UNREACHABLE = "The database cannot be reached; try again in a moment"
UNCERTAIN = (
    "The connection broke, so it is unknown whether the write was stored; look, or repeat it with its Idempotency-Key"
)

log = structlog.get_logger(__name__)


@contextmanager
def raised_plainly(is_reachable: Callable[[], bool], statement_timeout_s: float) -> Iterator[None]:
    """Raise errors as those of the service, but `RETRIED` as they are.

    :param is_reachable: Whether the server answered lately, so that a wait for a connection was for other requests.
    """
    try:
        yield
    except PoolTimeout as error:
        if not is_reachable():
            raise DatabaseUnavailable(UNREACHABLE) from error
        raise Overloaded("Too many requests are waiting for the database; try again in a moment") from None
    except PoolClosed:
        raise ServiceClosing from None
    except RETRIED:
        raise
    except errors.LockNotAvailable:
        raise Overloaded(WAITED_TOO_LONG) from None
    except errors.QueryCanceled as error:
        message = f"The database needed more than {statement_timeout_s:g} s; ask for less"
        raise DatabaseUnavailable(message, retry_after_s=None) from error
    except errors.DiskFull as error:
        raise DiskFull("The disk of the database is full; nothing was written") from error
    except LOST as error:
        log.warning("database_unavailable", error=type(error).__name__, reason=str(error))
        raise DatabaseUnavailable(UNREACHABLE) from error
    except psycopg.DataError as error:
        if "NUL" not in str(error):
            raise
        raise InvalidRequest("PostgreSQL cannot store the character NUL (U+0000); leave it out") from error
