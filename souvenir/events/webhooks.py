"""Webhooks: each event of the feed is sent to the addresses that asked for its type.

Delivery is at least once and in order: a webhook's cursor moves past an event only after a 2xx answer, or when the
event is given up. The id of a message is that of its webhook and event, so a repetition, also after a kill, has the
same one. The feed is the queue, and retries are rows, so both survive a restart, and nothing piles up behind a receiver
that fails: what the feed no longer keeps is skipped, and the log says so.

Not jobs: those write events themselves, have a bounded queue, and are given up after a minute.

A webhook may see what its key may see at the time of each delivery, and ends with its key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import math
import random
import secrets
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from threading import Condition, Thread
from time import monotonic
from typing import Any

import structlog

from souvenir.core.errors import Conflict, DatabaseUnavailable, InvalidRequest, ServiceClosing, WebhookNotFound
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from souvenir.events.webhook_addresses import AddressPolicy, DeliveryFailed, post
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import events
from souvenir.store.admin import webhooks as rows
from souvenir.store.admin.events import TYPES, Event, EventFilter
from souvenir.store.admin.webhooks import Delivery, DeliveryStatus, Webhook
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction

PAUSES_S = (5.0, 30.0, 120.0, 600.0, 1_800.0, 3_600.0, 10_800.0, 21_600.0, 43_200.0)
"""Pauses between the attempts to deliver an event, about a day in all; a fifth is added or taken away at random."""

DISABLED_AFTER = 3
"""Events that fail one after another until the webhook is disabled."""

TIMEOUT_S = 10.0
WORKERS = 4
FOR_FAILING = 2
"""Workers that also take webhooks whose last attempt failed; the others are always free for the rest."""

READ_AT_ONCE = 100
SKIPPED_UNSAVED = 1_000
"""Events of no concern that are read again after a restart, at most."""

MAX_WEBHOOKS = 100
SECRET_BEGIN = "whsec_"
SECRET_BYTES = range(24, 65)
AFTER_ERROR_S = 60.0
DATABASE_PAUSE_S = 2.0
CLOSE_TIMEOUT_S = 2.0
GONE = 410

FilterFor = Callable[[str, str], EventFilter | None]
"""The filter of what an actor may see in a namespace now; None if it may see nothing any more."""

log = structlog.get_logger(__name__)


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Sign a message (https://www.standardwebhooks.com)."""
    key = base64.b64decode(secret.removeprefix(SECRET_BEGIN))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def payload(event: Event) -> bytes:
    """Return the body of a message, which has no stored text."""
    shown: dict[str, Any] = {
        "id": event.id,
        "type": event.type,
        "timestamp": event.at.isoformat(timespec="microseconds"),
        "namespace": event.namespace,
        "data": dict(event.data),
    }
    return to_json(shown).encode()


@dataclass(slots=True)
class _Turn:
    """The schedule of a webhook.

    :param position: The event up to which the feed was read. :param due: The monotonic time of the next look at it.
    :param failing: Whether it waits for a retry. :param woken: Whether events were written since the last look.
    """

    position: int = 0
    due: float = 0.0
    failing: bool = False
    busy: bool = False
    woken: bool = False


@dataclass(slots=True)
class Webhooks:
    """Thread-safe. :param count: Called with the outcome of each attempt, `delivered` or `failed`."""

    engine: MemoryEngine
    policy: AddressPolicy
    filter_for: FilterFor
    count: Callable[[str], None]
    pauses_s: Sequence[float] = field(default_factory=lambda: PAUSES_S)
    timeout_s: float = field(default_factory=lambda: TIMEOUT_S)
    _turns: dict[str, _Turn] = field(default_factory=dict)
    _changed: Condition = field(default_factory=Condition)
    _threads: list[Thread] = field(default_factory=list)
    _closing: bool = False
    _listening: bool = False

    # --- management ----------------------------------------------------------------------------------------------

    def create(self, scope: Scope, url: str, types: Sequence[str], secret: str | None) -> Webhook:
        """Register an address for the events from now on.

        :param types: The types of events; empty for all. :param secret: By default a new random one.
        :raises AddressNotAllowed: If the address is not public, and not allowed by the operator.
        :raises InvalidRequest: If a type is unknown, or the secret malformed. :raises Conflict: If there are too many.
        """
        self._require_usable(url, types)
        key = new_secret() if secret is None else checked_secret(secret)

        def work(tx: Transaction) -> Webhook:
            if rows.count(tx.connection) >= MAX_WEBHOOKS:
                raise Conflict(f"There are {MAX_WEBHOOKS} webhooks, the most that are kept; delete one first")
            made = Webhook(
                id=uuid.uuid4().hex,
                namespace=scope.namespace,
                url=url,
                events=tuple(dict.fromkeys(types)),
                secret=key,
                actor=scope.actor,
                created_at=tx.now,
                last_event_id=events.last_of(tx.connection, scope.namespace),
                failures=0,
                disabled_at=None,
                reason=None,
            )
            rows.insert(tx.connection, tx.namespace_id, made)
            return made

        hook = self.engine.write(scope, work)
        self.reload()
        return hook

    def list(self, scope: Scope, *, all_actors: bool) -> Sequence[Webhook]:
        """:param all_actors: Whether webhooks of other callers are included."""
        with self.engine.namespace(scope) as (connection, _):
            return rows.of_namespace(connection, scope.namespace, None if all_actors else scope.actor)

    def update(
        self, scope: Scope, webhook_id: str, *, all_actors: bool, url: str | None, types: Sequence[str] | None
    ) -> Webhook:
        """Change the address of a webhook from its next delivery on, or its types; a disabled one stays disabled.

        New types are those of later events, unless events of the previous types were not delivered yet.

        :param url: None to keep it. :param types: None to keep them; empty for all.
        :raises WebhookNotFound: If no visible webhook has this id. :raises AddressNotAllowed: As `create` does.
        :raises InvalidRequest: If a type is unknown.
        """
        before = self._visible(scope, webhook_id, all_actors=all_actors)
        self._require_usable(before.url if url is None else url, types or ())
        chosen = self.filter_for(before.actor, before.namespace)

        def work(connection: Connection) -> Webhook:
            hook = rows.find(connection, webhook_id)
            if hook is None:
                raise WebhookNotFound(webhook_id)
            after = replace(hook, url=hook.url if url is None else url)
            if types is not None:
                done = not _waits(connection, hook, chosen)
                last_id = events.last_of(connection, hook.namespace) if done else hook.last_event_id
                after = replace(after, events=tuple(dict.fromkeys(types)), last_event_id=last_id)
            rows.change(connection, after)
            return after

        hook = self.engine.write_rows(work)
        self.reload()
        return hook

    def namespace_of(self, webhook_id: str) -> str | None:
        """Return the namespace of a webhook of any actor."""
        with self.engine.namespace(Scope()) as (connection, _):
            hook = rows.find(connection, webhook_id)
        return None if hook is None else hook.namespace

    def delete(self, scope: Scope, webhook_id: str, *, all_actors: bool) -> None:
        """:raises WebhookNotFound: If no visible webhook has this id."""
        self._visible(scope, webhook_id, all_actors=all_actors)
        self.engine.write_rows(lambda connection: rows.delete(connection, webhook_id))
        self.reload()

    def deliveries(self, scope: Scope, webhook_id: str, *, all_actors: bool, limit: int) -> Sequence[Delivery]:
        """Return the last deliveries, newest first.

        :raises WebhookNotFound: If no visible webhook has this id.
        """
        self._visible(scope, webhook_id, all_actors=all_actors)
        with self.engine.namespace(scope) as (connection, _):
            return rows.deliveries(connection, webhook_id, limit=limit)

    def _visible(self, scope: Scope, webhook_id: str, *, all_actors: bool) -> Webhook:
        for hook in self.list(scope, all_actors=all_actors):
            if hook.id == webhook_id:
                return hook
        raise WebhookNotFound(webhook_id)

    def _require_usable(self, url: str, types: Sequence[str]) -> None:
        """:raises AddressNotAllowed: If the address is not. :raises InvalidRequest: If a type is unknown."""
        unknown = sorted(set(types) - set(TYPES))
        if unknown:
            raise InvalidRequest(f"There are no events of the type {unknown[0]!r}; the types are {', '.join(TYPES)}")
        try:
            self.policy.checked(url)
        except OSError:
            log.warning("webhook_host_unknown", action="its name has no address now; each delivery resolves it again")

    # --- schedule ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to deliver, with what a previous process left."""
        self.reload()
        self.engine.when_restored(self.reload)
        self.engine.when_others_commit(self._reload_if_changed)
        with self._changed:
            if self._closing:
                return
            for number in range(WORKERS):
                name, takes_failing = f"souvenir-webhooks-{number}", number < FOR_FAILING
                self._threads.append(Thread(target=self._work, args=(takes_failing,), name=name, daemon=True))
                self._threads[-1].start()

    def close(self) -> None:
        """Stop. A delivery without an answer is repeated by the next process."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        deadline = monotonic() + CLOSE_TIMEOUT_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))

    def reload(self) -> None:
        """Read which webhooks there are, and look at each soon."""
        with self.engine.namespace(Scope()) as (connection, _):
            ids = rows.active_ids(connection)
        with self._changed:
            self._turns = {webhook_id: self._turns.get(webhook_id) or _Turn() for webhook_id in ids}
            for turn in self._turns.values():
                turn.position, turn.woken = 0, True
            if self._turns and not self._listening:
                # Commits cost nothing as long as there are no webhooks.
                self._listening = True
                self.engine.when_committed(self._wake)
            self._changed.notify_all()

    def _reload_if_changed(self) -> None:
        """Follow what other replicas registered and deleted."""
        with self.engine.namespace(Scope()) as (connection, _):
            ids = rows.active_ids(connection)
        with self._changed:
            is_known = self._turns.keys() == set(ids)
        if not is_known:
            self.reload()

    def _wake(self) -> None:
        with self._changed:
            for turn in self._turns.values():
                turn.woken = True
            if self._turns:
                self._changed.notify_all()

    def _work(self, takes_failing: bool) -> None:
        while True:
            with self._changed:
                found = self._next(takes_failing)
                while found is None:
                    if self._closing:
                        return
                    self._changed.wait(self._wait_s(takes_failing))
                    found = self._next(takes_failing)
                webhook_id, turn = found
                turn.busy, turn.woken = True, False
            try:
                pause_s = self._step(webhook_id, turn)
            except ServiceClosing:
                return
            except DatabaseUnavailable as error:
                log.warning("webhooks_wait", reason=error.message)
                pause_s = DATABASE_PAUSE_S
            except Exception:  # the boundary of a thread; it is tried again
                log.exception("webhook_not_delivered", webhook_id=webhook_id, action=f"again in {AFTER_ERROR_S:g} s")
                turn.failing, pause_s = True, AFTER_ERROR_S
            with self._changed:
                turn.busy, turn.due = False, monotonic() + pause_s
                self._changed.notify_all()

    def _next(self, takes_failing: bool) -> tuple[str, _Turn] | None:
        """Return the webhook that is due longest. The caller holds the lock."""
        if self._closing:
            return None
        now = monotonic()
        for webhook_id, turn in self._turns.items():
            if not (turn.busy or self.engine.owns(webhook_id)):
                # Another replica delivers, and moves what was read here.
                turn.position, turn.due, turn.failing, turn.woken = 0, 0.0, False, True
        due = [
            (webhook_id, turn)
            for webhook_id, turn in self._turns.items()
            if not turn.busy
            and self.engine.owns(webhook_id)
            and (takes_failing or not turn.failing)
            and (turn.due <= now or (turn.woken and not turn.failing))
        ]
        return min(due, key=lambda one: one[1].due, default=None)

    def _wait_s(self, takes_failing: bool) -> float | None:
        times = [
            turn.due
            for webhook_id, turn in self._turns.items()
            if not turn.busy and (takes_failing or not turn.failing) and self.engine.owns(webhook_id)
        ]
        left = min(times, default=math.inf) - monotonic()
        return None if math.isinf(left) else max(0.0, left)

    # --- delivery ------------------------------------------------------------------------------------------------

    def _step(self, webhook_id: str, turn: _Turn) -> float:
        """Deliver the next event of a webhook; return the seconds until the next look at it."""
        with self.engine.namespace(Scope()) as (connection, _):
            hook, waiting = rows.find(connection, webhook_id), rows.waiting(connection, webhook_id)
        if hook is None or hook.disabled_at is not None:
            return math.inf
        chosen = self.filter_for(hook.actor, hook.namespace)
        if chosen is None:
            return self._disable(hook, "its key was revoked, or may no longer read this namespace")
        if waiting is not None and waiting.next_attempt_at is not None:
            left_s = (waiting.next_attempt_at - utc_now()).total_seconds()
            if left_s > 0:
                turn.failing = True
                return left_s
        return self._deliver_next(hook, waiting, chosen, turn)

    def _deliver_next(self, hook: Webhook, waiting: Delivery | None, chosen: EventFilter, turn: _Turn) -> float:
        after = max(turn.position, hook.last_event_id) if waiting is None else waiting.event_id - 1
        with self.engine.namespace(Scope()) as (connection, _):
            is_complete = events.is_complete(connection, hook.namespace, after)
            kept_after = rows.forgotten_to(connection, hook.namespace)
            page = events.events_after(connection, hook.namespace, after, limit=READ_AT_ONCE, chosen=chosen)
        if not is_complete:
            turn.failing, turn.position = False, 0
            lost = waiting or _new_delivery(after)
            return self._give_up(hook, lost, "events were not kept until they could be delivered", move_to=kept_after)
        wanted = (event for event in page.events if not hook.events or event.type in hook.events)
        event = next(wanted, None)
        if waiting is not None and (event is None or event.id != waiting.event_id):
            turn.failing = False
            return self._give_up(hook, waiting, "the webhook may no longer see the event", move_to=waiting.event_id)
        if event is not None:
            return self._attempt(hook, event, waiting or _new_delivery(event.id), turn)
        turn.position = page.read_to
        if page.read_to - hook.last_event_id >= SKIPPED_UNSAVED:
            self.engine.write_rows(lambda tx: rows.move_to(tx, hook.id, page.read_to, hook.failures))
        return math.inf if page.is_last else 0.0

    def _attempt(self, hook: Webhook, event: Event, delivery: Delivery, turn: _Turn) -> float:
        message_id, timestamp, body = f"msg_{hook.id}_{event.id}", int(time.time()), payload(event)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "souvenir",
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(hook.secret, message_id, timestamp, body),
        }
        attempts = delivery.attempts + 1
        try:
            status = post(self.policy, hook.url, body, headers, timeout_s=self.timeout_s)
        except DeliveryFailed as failure:
            self.count("failed")
            failed = replace(delivery, attempts=attempts, response_status=failure.status, error=failure.message)
            return self._failed(hook, failed, turn)
        self.count("delivered")
        turn.failing = False
        self._finish(hook, replace(delivery, attempts=attempts, response_status=status, error=None), failures=0)
        return 0.0

    def _failed(self, hook: Webhook, failed: Delivery, turn: _Turn) -> float:
        """Plan the next attempt, or give the event up."""
        log.warning("webhook_failed", webhook_id=hook.id, event_id=failed.event_id, reason=failed.error)
        if failed.response_status == GONE:
            self._finish(hook, failed, failures=hook.failures + 1)
            return self._disable(hook, "its receiver answered 410, which ends it")
        if failed.attempts > len(self.pauses_s):
            turn.failing = False
            self._finish(hook, failed, failures=hook.failures + 1)
            if hook.failures + 1 >= DISABLED_AFTER:
                return self._disable(hook, f"{DISABLED_AFTER} events one after another could not be delivered")
            return 0.0
        pause_s = self.pauses_s[failed.attempts - 1] * random.uniform(0.8, 1.2)  # noqa: S311 - only spreads retries
        planned = replace(failed, next_attempt_at=utc_now() + timedelta(seconds=pause_s))
        turn.failing = True
        self.engine.write_rows(lambda connection: rows.put(connection, hook.id, planned))
        return pause_s

    def _give_up(self, hook: Webhook, delivery: Delivery, error: str, *, move_to: int) -> float:
        log.warning("webhook_gave_up", webhook_id=hook.id, event_id=delivery.event_id, reason=error)
        given_up = replace(delivery, response_status=None, error=error)
        self._finish(hook, given_up, failures=hook.failures, move_to=move_to)
        return 0.0

    def _finish(self, hook: Webhook, delivery: Delivery, *, failures: int, move_to: int | None = None) -> None:
        """Log the end of a delivery and move the cursor past its event, in one transaction."""
        status = DeliveryStatus.DELIVERED if delivery.error is None else DeliveryStatus.FAILED
        ended = replace(delivery, status=status, next_attempt_at=None, finished_at=utc_now())
        event_id = delivery.event_id if move_to is None else move_to

        def work(connection: Connection) -> None:
            rows.put(connection, hook.id, ended)
            rows.move_to(connection, hook.id, event_id, failures)

        self.engine.write_rows(work)

    def _disable(self, hook: Webhook, reason: str) -> float:
        log.warning("webhook_disabled", webhook_id=hook.id, reason=reason)
        self.engine.write_rows(lambda connection: rows.disable(connection, hook.id, utc_now(), reason))
        with self._changed:
            self._turns.pop(hook.id, None)
        return math.inf


def _waits(connection: Connection, hook: Webhook, chosen: EventFilter | None) -> bool:
    """Return whether there is an event that the webhook did not get yet."""
    page = events.EventPage([], hook.last_event_id, is_last=chosen is None)
    while chosen is not None and not page.is_last:
        page = events.events_after(connection, hook.namespace, page.read_to, limit=READ_AT_ONCE, chosen=chosen)
        if any(not hook.events or event.type in hook.events for event in page.events):
            return True
    return False


def new_secret() -> str:
    return SECRET_BEGIN + base64.b64encode(secrets.token_bytes(SECRET_BYTES[0])).decode()


def checked_secret(secret: str) -> str:
    """:raises InvalidRequest: If it is not `whsec_` and 24 to 64 bytes in base64."""
    try:
        size = len(base64.b64decode(secret.removeprefix(SECRET_BEGIN), validate=True))
    except (binascii.Error, ValueError):
        size = 0
    if not secret.startswith(SECRET_BEGIN) or size not in SECRET_BYTES:
        raise InvalidRequest("A secret is whsec_ and 24 to 64 random bytes in base64; leave it out to get a new one")
    return secret


def _new_delivery(event_id: int) -> Delivery:
    return Delivery(0, event_id, DeliveryStatus.WAITING, 0, None, None, None, utc_now(), None)
