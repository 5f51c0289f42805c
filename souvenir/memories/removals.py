"""Removal from the live store: targets are written first, then removed in parts, so that other writes can interleave.

The caller waits until everything is removed. A background thread resumes removals that a crash, a deadline or a busy
database interrupted, at the next start or soon after. Removed rows are in no index, list or cache any more; backups
still contain them, and a restore brings them back.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from threading import Event, Lock

import structlog

from souvenir.core.background import Maintenance
from souvenir.core.concurrency import frees_space
from souvenir.core.errors import (
    AgentNotFound,
    BlockNotFound,
    DatabaseUnavailable,
    MemoryNotFound,
    MessageNotFound,
    NotFound,
    Overloaded,
    ServiceClosing,
    SessionNotFound,
    UserNotFound,
)
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store import pending_removals, tombstones
from souvenir.store.admin.jobs import unfinished
from souvenir.store.cascade import RemovedRows
from souvenir.store.learning import extractions
from souvenir.store.messages import agents
from souvenir.store.pending_removals import RemovalStep
from souvenir.store.selection import KINDS, Chooses, Selection, resolve
from souvenir.store.sql import Connection

TURN_INTERVAL_S = 300.0
"""Polling interval for interrupted removals; a start, a restore and a failure trigger it at once."""

CLOCK_MARGIN_S = 60.0
"""The most by which the clocks of replicas are expected to differ."""

RETRY_PAUSE_S = 0.2
"""Pause before a part is retried when the database was too busy."""

log = structlog.get_logger(__name__)


def not_found(selection: Selection) -> NotFound:
    """Return the error for a selection that matches nothing."""
    text = str(selection.value)
    match selection.chooses:
        case Chooses.MEMORIES | Chooses.MESSAGES:
            return NotFound("None of these ids is stored; GET /memories and GET /messages/AGENT list those that are")
        case Chooses.AGENT:
            return AgentNotFound(text)
        case Chooses.USER:
            return UserNotFound(text)
        case Chooses.SESSION:
            return SessionNotFound(text)
        case Chooses.MESSAGE:
            return MessageNotFound(text)
        case Chooses.MEMORY:
            return MemoryNotFound(text)
        case Chooses.BLOCK:
            return BlockNotFound(text)
        case Chooses.SOURCE:
            return NotFound(f"Nothing of the source {text!r} is stored; GET /memories lists what is")


class Removals:
    """Create it before the first request, `start` it with the service, and close it before the engine."""

    def __init__(self, engine: MemoryEngine, *, on_jobs_gone: Callable[[], None]) -> None:
        """:param on_jobs_gone: Called after jobs were removed, to clean up their leftovers."""
        self._engine = engine
        self._on_jobs_gone = on_jobs_gone
        self._lock = Lock()
        self._at_work: set[str] = set()
        self._closing = Event()
        self._swept_before = 0.0
        self._maintenance = Maintenance(self.finish, interval_s=TURN_INTERVAL_S)
        engine.when_restored(self._maintenance.ask)

    def start(self) -> None:
        """Resume the removals of an earlier process."""
        self._maintenance.start()
        self._maintenance.ask()

    def close(self) -> None:
        """Stop between two parts; the rest is removed after the next start."""
        self._closing.set()
        self._maintenance.close()

    @frees_space()
    def remove(self, scope: Scope, chooses: Chooses, value: str | None = None) -> RemovedRows:
        """Remove an agent, or a part of the agent of the scope's namespace.

        :return: The number of removed rows, once all are removed.
        :raises NotFound: If there is none, or it is being removed already.
        :raises DeadlineExceeded: If it takes longer than the request may; the removal continues.
        """
        selection = Selection(scope.namespace, chooses, scope.namespace if value is None else value)
        with self.working() as work:
            return self.rest(work, self._engine.models.remove(partial(_begin, selection=selection, work=work)))

    @frees_space()
    def clear(self, scope: Scope) -> RemovedRows:
        """Remove everything that the scope's agent has; the agent keeps its id, metadata, policy and access levels.

        :return: The number of removed rows, once all are removed.
        :raises AgentNotFound: If the namespace is no agent.
        :raises DeadlineExceeded: If it takes longer than the request may; the removal continues.
        """
        selection = Selection(scope.namespace, Chooses.AGENT, scope.namespace)
        with self.working() as work:
            return self.rest(work, self._engine.models.remove(partial(_begin_clearing, selection=selection, work=work)))

    @contextmanager
    def working(self) -> Iterator[str]:
        """Yield an id for a removal that the background thread leaves alone in the meantime."""
        work = self._engine.replica + uuid.uuid4().hex
        with self._lock:
            self._at_work.add(work)
        try:
            yield work
        except BaseException:
            self._release(work)
            self._maintenance.ask()
            raise
        self._release(work)

    def rest(self, work: str, begun: RemovalStep | None) -> RemovedRows:
        """Remove all written targets, part by part; returns the number of rows, including those of `begun`."""
        removed, step = RemovedRows(), begun
        while step is not None:
            removed += step.removed
            if step.removed.jobs:
                self._on_jobs_gone()
            step = self._advance(work)
        return removed

    @frees_space()
    def finish(self) -> None:
        """Resume removals in which no thread is active: remaining rows, and bytes that erasures left in files."""
        with self._engine.namespace(Scope()) as (connection, _), self._lock:
            busy = self._at_work | unfinished(connection).keys()
            left, marked = (
                {work for work in pending_removals.pending_works(connection) - busy if self._is_left(work)},
                {work for work in tombstones.uncleared(connection).keys() - busy if self._is_left(work)},
            )
            erased_at = tombstones.last_erased_at(connection)
        if self._engine.is_shared and erased_at is not None:
            self._forget_erased_elsewhere(erased_at)
        with suppress(ServiceClosing):
            for work in sorted(left):
                removed = self.rest(work, RemovalStep())
                log.info("removal_finished", messages=removed.messages, memories=removed.memories)
            self._engine.models.sweep_snapshots()
            if not clear(self._engine, marked):
                log.warning(
                    "erased_bytes_left", reason="a long read or the index folder prevents it", action="tried again soon"
                )

    def _is_left(self, work: str) -> bool:
        """Return whether this replica is to finish what no thread of a running one removes."""
        begun_by = work[: -len(uuid.uuid4().hex)]
        if begun_by:
            return begun_by == self._engine.replica or (not self._engine.runs(begun_by) and self._engine.owns(work))
        return self._engine.owns(work)

    def _forget_erased_elsewhere(self, erased_at: datetime) -> None:
        """Remove the snapshots of this replica that may hold what another one erased; they are written again later."""
        before = erased_at.timestamp() + CLOCK_MARGIN_S
        if self._swept_before < before and self._engine.models.sweep_old_snapshots(before) and time.time() > before:
            self._swept_before = before

    def _advance(self, work: str) -> RemovalStep | None:
        while not self._closing.is_set():
            try:
                return self._engine.models.remove(partial(pending_removals.advance, work=work, now=utc_now()))
            except (Overloaded, DatabaseUnavailable):
                self._closing.wait(RETRY_PAUSE_S)
        raise ServiceClosing

    def _release(self, work: str) -> None:
        with self._lock:
            self._at_work.discard(work)


def clear(engine: MemoryEngine, works: Collection[str]) -> bool:
    """Overwrite the bytes that these erasures left in files; False if long reads prevent it."""
    with engine.namespace(Scope()) as (connection, _):
        marked = tombstones.uncleared(connection)
    namespaces = {namespace_id for work in works for namespace_id in marked.get(work, ())}
    if not marked.keys() & works:
        return True
    if not engine.models.clear_unused(namespaces):
        return False
    engine.write_rows(lambda connection: tombstones.mark_cleared(connection, works))
    return True


def forget_extractions(connection: Connection, selections: Sequence[Selection]) -> int:
    """End the extractions of conversations with the selected users and sessions; return their number."""
    return sum(
        extractions.forget_learned_with(connection, namespace, party, name)
        for namespace, party, name in parties_of(selections)
    )


def parties_of(selections: Sequence[Selection]) -> Iterator[tuple[str, extractions.Party, str]]:
    """Yield the namespaces and names of the selected users and sessions."""
    for selection in selections:
        party = pending_removals.PARTIES.get(KINDS[selection.chooses])
        if party is not None:
            yield selection.namespace, party, str(selection.value)


def _begin_clearing(connection: Connection, selection: Selection, work: str) -> RemovalStep:
    """Write the removal of the agent's namespace, and create another one for the agent, in one transaction."""
    agent = agents.find(connection, selection.namespace)
    step = _begin(connection, selection, work)
    if agent is not None:
        agents.recreate(connection, agent, utc_now())
    return step


def _begin(connection: Connection, selection: Selection, work: str) -> RemovalStep:
    """Write the removal targets and remove the first part, or all of it if it is small.

    :raises NotFound: If there is none, or it is being removed already.
    """
    if agents.find(connection, selection.namespace) is None:
        raise AgentNotFound(selection.namespace)
    targets = resolve(connection, selection)
    kind = KINDS[selection.chooses]
    if pending_removals.any_pending(connection, [target for target in targets if target.kind is kind]):
        raise not_found(selection)
    # An extraction that waits would store its user and its session later.
    if not forget_extractions(connection, [selection]) and not targets:
        raise not_found(selection)
    return pending_removals.begin_with_first_part(connection, targets, work, utc_now())
