"""Webhooks and the log of their deliveries. Each function takes a connection inside a transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.store.rows import first, select
from souvenir.store.sql import Connection

LOGGED = 100
"""Deliveries of a webhook that its log keeps."""


class DeliveryStatus(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Webhook:
    """:param events: The types that it gets; empty for all.

    :param last_event_id: The last event that was delivered, failed or does not concern it.
    :param failures: Events that failed one after another. :param reason: Why it was disabled.
    """

    id: str
    namespace: str
    url: str
    events: tuple[str, ...]
    secret: str
    actor: str
    created_at: datetime
    last_event_id: int
    failures: int
    disabled_at: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """The delivery of one event; `status` is `waiting` until it succeeds or is given up."""

    id: int
    event_id: int
    status: DeliveryStatus
    attempts: int
    response_status: int | None
    error: str | None
    next_attempt_at: datetime | None
    created_at: datetime
    finished_at: datetime | None


_COLUMNS = (
    "w.id, n.name, w.url, w.events, w.secret, w.actor, w.created_at, w.last_event_id, w.failures, w.disabled_at, "
    "w.reason FROM webhooks w JOIN namespaces n ON n.id = w.namespace_id"
)
_DELIVERY = (
    "id, event_id, status, attempts, response_status, error, next_attempt_at, created_at, finished_at "
    "FROM webhook_deliveries"
)


def insert(connection: Connection, namespace_id: int, hook: Webhook) -> None:
    connection.execute(
        "INSERT INTO webhooks (id, namespace_id, url, events, secret, actor, created_at, last_event_id) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            hook.id,
            namespace_id,
            hook.url,
            to_json(list(hook.events)),
            hook.secret,
            hook.actor,
            to_us(hook.created_at),
            hook.last_event_id,
        ),
    )


def count(connection: Connection) -> int:
    """Count the webhooks of all namespaces."""
    return int(connection.execute("SELECT count(*) FROM webhooks").get)


def find(connection: Connection, webhook_id: str) -> Webhook | None:
    return first(connection, Webhook, f"SELECT {_COLUMNS} WHERE w.id = ?", (webhook_id,))


def of_namespace(connection: Connection, namespace: str, actor: str | None) -> list[Webhook]:
    """:param actor: None for those of all actors."""
    where = "n.name = ? AND (CAST(? AS TEXT) IS NULL OR w.actor = ?) ORDER BY w.created_at, w.id"
    return list(select(connection, Webhook, f"SELECT {_COLUMNS} WHERE {where}", (namespace, actor, actor)))


def active_ids(connection: Connection) -> list[str]:
    return list(select(connection, str, "SELECT id FROM webhooks WHERE disabled_at IS NULL", ()))


def delete(connection: Connection, webhook_id: str) -> None:
    connection.execute("DELETE FROM webhooks WHERE id = ?", (webhook_id,))


def change(connection: Connection, hook: Webhook) -> None:
    """Write the address, the types and the cursor of a webhook; the cursor does not move back."""
    connection.execute(
        "UPDATE webhooks SET url = ?1, events = ?2, "
        "last_event_id = CASE WHEN last_event_id < ?3 THEN ?3 ELSE last_event_id END WHERE id = ?4",
        (hook.url, to_json(list(hook.events)), hook.last_event_id, hook.id),
    )


def move_to(connection: Connection, webhook_id: str, event_id: int, failures: int) -> None:
    """Go on after an event, unless another replica went on to a later one."""
    connection.execute(
        "UPDATE webhooks SET last_event_id = ?, failures = ? WHERE id = ? AND last_event_id <= ?",
        (event_id, failures, webhook_id, event_id),
    )


def disable(connection: Connection, webhook_id: str, at: datetime, reason: str) -> None:
    connection.execute(
        "UPDATE webhooks SET disabled_at = ?, reason = ? WHERE id = ? AND disabled_at IS NULL",
        (to_us(at), reason, webhook_id),
    )


def forgotten_to(connection: Connection, namespace: str) -> int:
    """Return the id of the last event of a namespace that the feed does not keep."""
    query = "SELECT f.last_id FROM forgotten_events f JOIN namespaces n ON n.id = f.namespace_id WHERE n.name = ?"
    return first(connection, int, query, (namespace,)) or 0


# --- deliveries ------------------------------------------------------------------------------------------------------


def waiting(connection: Connection, webhook_id: str) -> Delivery | None:
    """Return the delivery that is tried again, of which a webhook has one at most."""
    where = "webhook_id = ? AND status = 'waiting' ORDER BY id LIMIT 1"
    return first(connection, Delivery, f"SELECT {_DELIVERY} WHERE {where}", (webhook_id,))


def put(connection: Connection, webhook_id: str, delivery: Delivery) -> None:
    """Write a delivery, which is new if its id is 0, and delete the oldest ones beyond `LOGGED`."""
    finished_at = None if delivery.finished_at is None else to_us(delivery.finished_at)
    next_at = None if delivery.next_attempt_at is None else to_us(delivery.next_attempt_at)
    state = (delivery.status.value, delivery.attempts, delivery.response_status, delivery.error, next_at, finished_at)
    if delivery.id:
        connection.execute(
            "UPDATE webhook_deliveries SET status = ?, attempts = ?, response_status = ?, error = ?, "
            "next_attempt_at = ?, finished_at = ? WHERE id = ?",
            (*state, delivery.id),
        )
    else:
        connection.execute(
            "INSERT INTO webhook_deliveries (webhook_id, event_id, created_at, status, attempts, response_status, "
            "error, next_attempt_at, finished_at) SELECT id, ?, ?, ?, ?, ?, ?, ?, ? FROM webhooks WHERE id = ?",
            (delivery.event_id, to_us(delivery.created_at), *state, webhook_id),
        )
    connection.execute(
        "DELETE FROM webhook_deliveries WHERE webhook_id = ?1 AND id <= "
        "(SELECT id FROM webhook_deliveries WHERE webhook_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        (webhook_id, LOGGED),
    )


def deliveries(connection: Connection, webhook_id: str, *, limit: int) -> list[Delivery]:
    """Return the last deliveries, newest first."""
    where = "webhook_id = ? ORDER BY id DESC LIMIT ?"
    return list(select(connection, Delivery, f"SELECT {_DELIVERY} WHERE {where}", (webhook_id, limit)))
