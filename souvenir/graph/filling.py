"""The graph fills itself: a thread reads what was stored since, and finds what it mentions.

What waits is a table, so nothing is left out after a kill, and what a batch found is stored in the transaction in which
it ceases to wait. Texts are analysed and new concepts embedded outside of every lock. What changed meanwhile waits at
another place of the queue, and is read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Event, Lock, Thread

import apsw
import structlog

from memory_engine import MemoryEngine
from souvenir.concepts.extraction import RULES_VERSION
from souvenir.errors import Overloaded, SouvenirError
from souvenir.graph.matching import near_to, settle
from souvenir.graph.said import mentions_in
from souvenir.graph.sorting import Sorting
from souvenir.passages import PreparedPassage
from souvenir.store import agents, mentions, near, reads, unread
from souvenir.store.mentions import NotPrepared, Reading
from souvenir.store.transaction import Transaction
from souvenir.store.vectors import note
from souvenir.types import Scope

LOOK_S = 0.5
"""From one look at what waits to the next."""

REST_S = 5.0
"""Before the next look after one that failed, as when the model cannot be loaded."""

BATCH_SIZE = 64
"""Messages and memories that are read at once: some tenths of a second, so that others come between."""

TRIES = 10
"""Of a batch whose concepts come and go while they are embedded."""

CLOSE_TIMEOUT_S = 10.0

ACTOR = "souvenir"

_RULES, _MODEL = "graph_rules", "graph_model"
"""By which rules texts were read, and whose vectors say what is near."""

log = structlog.get_logger(__name__)


class _NamespaceGone(Exception):
    """The namespace was removed meanwhile, or is another one of its name."""


class Filling:
    """Reads in a thread of its own from `start` to `close`; `catch_up` does it at once."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._closing = Event()
        self._working = Lock()
        self._sorting = Sorting(engine)
        self._thread = Thread(target=self._run, name="souvenir-graph", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(CLOSE_TIMEOUT_S)

    def catch_up(self) -> None:
        """Read all that waits in every namespace, match what is new, and find its topics."""
        with self._working:
            self._read()
            self._sorting.sort()

    def _read(self) -> None:
        self._begin()
        while not self._closing.is_set():
            with self._engine.namespace(Scope()) as (connection, _):
                names = unread.namespaces(connection)
            if not names:
                return
            # In turns, so that one which imports much keeps no other one waiting.
            for namespace_id, name in names:
                self._read_some(namespace_id, Scope(name, ACTOR))

    def _run(self) -> None:
        while not self._closing.is_set():
            rest_s = LOOK_S
            try:
                with self._working:
                    self._read()
                    self._sorting.sort(only_due=True)
            except SouvenirError as error:
                log.warning("graph_waits", reason=error.message)
                rest_s = REST_S
            except Exception:  # the boundary of a thread; it looks again in a while
                log.exception("graph_not_filled")
                rest_s = REST_S
            self._closing.wait(rest_s)

    def _begin(self) -> None:
        """Let everything be read again by new rules, and matched again by another model's vectors."""
        model_id = self._engine.models.serving.embedder.model_id
        with self._engine.namespace(Scope()) as (connection, _):
            rules, model = reads.meta(connection, _RULES), reads.meta(connection, _MODEL)
        if rules != str(RULES_VERSION):
            self._engine.write_rows(lambda connection: _start_over(connection, first=rules is None))
        if model != model_id:
            self._engine.write_rows(lambda connection: _match_again(connection, model_id))

    def _read_some(self, namespace_id: int, scope: Scope) -> None:
        with self._engine.namespace(scope) as (connection, _):
            waiting = unread.following(connection, namespace_id, limit=BATCH_SIZE)
            unmatched = near.following_unmatched(connection, namespace_id, limit=BATCH_SIZE)
        try:
            if waiting:
                readings = [
                    Reading(one.id, one.kind, one.owner_id, one.at, mentions_in(one.text, one.role)) for one in waiting
                ]
                self._store(namespace_id, scope, readings)
            elif unmatched:
                self._match(namespace_id, scope, unmatched)
            else:
                self._engine.write(scope, lambda tx: _sweep(tx, namespace_id))
        except _NamespaceGone:
            log.info("graph_gone", namespace=scope.namespace)

    def _store(self, namespace_id: int, scope: Scope, readings: Sequence[Reading]) -> None:
        keys = {said.key for one in readings for said in one.mentions}
        for _ in range(TRIES):
            with self._engine.namespace(scope) as (connection, _):
                known = mentions.known_keys(connection, namespace_id, keys)
                new = sorted(keys - known.keys() - mentions.hidden_keys(connection, namespace_id, keys - known.keys()))
            prepared = dict(zip(new, self._engine.prepare(new), strict=True)) if new else {}

            def work(tx: Transaction, prepared: Mapping[str, Sequence[PreparedPassage]] = prepared) -> None:
                _require_same(tx, namespace_id)
                mentions.write(tx.passages, readings, prepared, tx.now)

            # A concept may go meanwhile, with the last message that mentioned it; then it is new.
            with suppress(NotPrepared):
                return self._engine.write(scope, work)
        raise Overloaded("Concepts come and go at this very moment; they are read again in a while")

    def _match(self, namespace_id: int, scope: Scope, ids: Sequence[int]) -> None:
        found = near_to(self._engine, namespace_id, ids)

        def work(tx: Transaction) -> None:
            _require_same(tx, namespace_id)
            settle(tx.connection, {**{id_: [] for id_ in ids}, **found})

        self._engine.write(scope, work)


def _sweep(tx: Transaction, namespace_id: int) -> None:
    _require_same(tx, namespace_id)
    mentions.sweep(tx.passages)


def _require_same(tx: Transaction, namespace_id: int) -> None:
    if tx.namespace_id != namespace_id:
        raise _NamespaceGone


def _start_over(connection: apsw.Connection, *, first: bool) -> None:
    """:param first: Nothing was read before; what there is waits already."""
    if not first:
        for namespace_id in agents.namespace_ids(connection):
            unread.put_all(connection, namespace_id)
    note(connection, _RULES, str(RULES_VERSION))


def _match_again(connection: apsw.Connection, model_id: str) -> None:
    near.forget_all(connection)
    note(connection, _MODEL, model_id)
