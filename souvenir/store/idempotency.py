"""Idempotent requests: the ids that were created for an Idempotency-Key.

The lookup and the write are one transaction, so concurrent requests with one key, or a retry after a crash, create one
object. Only ids are stored, and the SHA-256 of the key and of the request: a replayed answer is read from the current
rows, and objects deleted since are not found. The id of an export by Mem0's routes contains its schema, and no memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, TypeAlias, TypeVar

from souvenir.core.errors import IdempotencyKeyReused
from souvenir.core.passages import PreparedPassage
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import MemoryDraft
from souvenir.store.rows import first
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction

T = TypeVar("T")

KEPT = timedelta(hours=24)
PRUNED_AT_ONCE = 20
"""Expired keys deleted with each new one: more than arrive, so they do not accumulate, and few enough to be cheap."""


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Once:
    """A request with an Idempotency-Key.

    :param replayed: Called when the answer is that of an earlier request.
    """

    route: str
    key_hash: str
    request_hash: str
    replayed: Callable[[], None] = _nothing

    @classmethod
    def of(cls, route: str, key: str, request: Any, replayed: Callable[[], None] = _nothing) -> Once:
        """:param request: The whole content of the request, as JSON; the order of keys does not count."""
        canonical = json.dumps(request, sort_keys=True, separators=(",", ":"))
        return cls(route, _hash(key), _hash(canonical), replayed)


def made_before(
    connection: Connection, namespace_id: int, actor: str, once: Once, now: datetime
) -> Sequence[str] | None:
    """Return the ids that the same request created before; None if the request is new.

    :raises IdempotencyKeyReused: If the key was used for another request.
    """
    row = first(
        connection,
        tuple[str, tuple[str, ...]],
        "SELECT request_hash, made FROM idempotency_keys WHERE namespace_id = ? AND actor = ? AND route = ? "
        "AND key_hash = ? AND created_at > ?",
        (namespace_id, actor, once.route, once.key_hash, to_us(now - KEPT)),
    )
    if row is None:
        return None
    request_hash, made = row
    if request_hash != once.request_hash:
        raise IdempotencyKeyReused
    return made


def do_once(
    tx: Transaction,
    once: Once | None,
    make: Callable[[], T],
    *,
    ids: Callable[[T], Sequence[str]],
    again: Callable[[Sequence[str]], T],
) -> T:
    """Return the result of `make`, or of the same request before.

    :param ids: Returns the ids of a result, from which `again` reads it.
    :raises IdempotencyKeyReused: If the key was used for another request.
    """
    if once is None:
        return make()
    before = made_before(tx.connection, tx.namespace_id, tx.scope.actor, once, tx.now)
    if before is not None:
        once.replayed()
        return again(before)
    made = make()
    keep(tx.connection, tx.namespace_id, tx.scope.actor, once, ids(made), tx.now)
    return made


def keep(connection: Connection, namespace_id: int, actor: str, once: Once, ids: Sequence[str], now: datetime) -> None:
    """Keep the ids that a request created, replacing those of an earlier request with the same key."""
    connection.execute(
        "DELETE FROM idempotency_keys WHERE (namespace_id, actor, route, key_hash) IN (SELECT namespace_id, actor, "
        "route, key_hash FROM idempotency_keys WHERE created_at <= ? ORDER BY created_at LIMIT ?)",
        (to_us(now - KEPT), PRUNED_AT_ONCE),
    )
    connection.execute(
        "INSERT INTO idempotency_keys VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (namespace_id, actor, route, key_hash) "
        "DO UPDATE SET request_hash = excluded.request_hash, made = excluded.made, created_at = excluded.created_at",
        (
            namespace_id,
            actor,
            once.route,
            once.key_hash,
            once.request_hash,
            to_json(list(ids)),
            to_us(now),
        ),
    )


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()


# --- new memories ----------------------------------------------------------------------------------------------------


PreparedDraft: TypeAlias = tuple[MemoryDraft, Sequence[PreparedPassage]]


def insert_once(tx: Transaction, prepared: Sequence[PreparedDraft], once: Once | None) -> list[int]:
    """Insert memories once and return their ids in order, or those of the same request before, which may be deleted.

    :raises IdempotencyKeyReused: If the key was used for another request.
    """
    return do_once(
        tx,
        once,
        lambda: [tx.insert(draft, passages).id for draft, passages in prepared],
        ids=lambda made: [str(one) for one in made],
        again=lambda made: [int(one) for one in made],
    )
