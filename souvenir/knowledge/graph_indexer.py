"""Index new texts into the concept graph: a background thread finds the concepts that they mention.

The queue is a table, so nothing is lost in a crash; the mentions of a batch are stored in the same transaction that
removes it from the queue. Texts are analysed outside of every lock. A text that changes in
the meantime is queued again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread

import structlog

from souvenir.core.errors import SouvenirError
from souvenir.core.types import RecordKind, Scope
from souvenir.knowledge.claims import Claims
from souvenir.knowledge.concept_similarity import matching, store_matches
from souvenir.knowledge.entity_concepts import reading_of
from souvenir.knowledge.recognition.extraction import RULES_VERSION
from souvenir.knowledge.topic_assignment import TopicAssignment
from souvenir.memories.engine import MemoryEngine
from souvenir.store import meta
from souvenir.store.graph import concept_similarity, mention_queue, mentions
from souvenir.store.graph.mentions import Reading
from souvenir.store.graph.relations import named_memories
from souvenir.store.messages import agents
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction
from souvenir.store.vectors import MODEL

POLL_INTERVAL_S = 0.5
"""Polling interval of the queue."""

BACK_OFF_S = 5.0
"""Back-off after a failure, such as a model that cannot be loaded."""

BATCH_SIZE = 64
"""Messages and memories in one batch: some tenths of a second, so that other writes are not delayed."""

MATCHED_AT_ONCE = 1024
"""New concepts that are matched in one batch, since each batch reads the keys of the whole graph."""

CLOSE_TIMEOUT_S = 10.0

ACTOR = "souvenir"

_RULES, _MODEL = "graph_rules", "graph_model"
"""Keys: the version of the recognition rules, and the model of the compared vectors."""

log = structlog.get_logger(__name__)


class _NamespaceGone(Exception):
    """The namespace was deleted meanwhile, or recreated under the same name."""


class GraphIndexer:
    """Indexes in its own thread between `start` and `close`; `catch_up` indexes synchronously."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._closing = Event()
        self._working = Lock()
        self._topics = TopicAssignment(engine)
        self._thread = Thread(target=self._run, name="souvenir-graph", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(CLOSE_TIMEOUT_S)

    def catch_up(self) -> None:
        """Empty the queue of every namespace, match new concepts, and assign topics."""
        with self._working:
            self._read(everywhere=True)
            self._topics.assign()

    def _read(self, *, everywhere: bool = False) -> None:
        """:param everywhere: Also namespaces that another replica indexes."""
        self._begin()
        while not self._closing.is_set():
            with self._engine.namespace(Scope()) as (connection, _):
                names = mention_queue.namespaces(connection)
            if not names:
                return
            # Round-robin, so that a large import in one namespace does not block the others.
            own = [one for one in names if everywhere or self._engine.owns(one[1])]
            for namespace_id, name in own:
                self._read_some(namespace_id, Scope(name, ACTOR))
            if not own:
                return

    def _run(self) -> None:
        while not self._closing.is_set():
            wait_s = POLL_INTERVAL_S
            try:
                with self._working:
                    self._read()
                    self._topics.assign(only_due=True)
            except SouvenirError as error:
                log.warning("graph_indexing_postponed", reason=error.message)
                wait_s = BACK_OFF_S
            except Exception:  # the boundary of a thread; it retries after the back-off
                log.exception("graph_indexing_failed")
                wait_s = BACK_OFF_S
            self._closing.wait(wait_s)

    def _begin(self) -> None:
        """Queue everything again after a change of the rules, and sessions after one of the model."""
        model_id = self._engine.models.serving.embedder.model_id
        with self._engine.namespace(Scope()) as (connection, _):
            rules, model = meta.get(connection, _RULES), meta.get(connection, _MODEL)
        if rules is None or int(rules) < RULES_VERSION:
            self._engine.write_rows(_start_over)
        if model != model_id and self._engine.owns(_MODEL):
            self._engine.write_rows(lambda connection: _sort_again(connection, model_id))

    def _read_some(self, namespace_id: int, scope: Scope) -> None:
        with self._engine.namespace(scope) as (connection, _):
            waiting, unreadable = mention_queue.following(connection, namespace_id, limit=BATCH_SIZE)
            unmatched = concept_similarity.following_unmatched(connection, namespace_id, limit=MATCHED_AT_ONCE)
            memory_ids = [one.owner_id for one in waiting if one.kind is RecordKind.MEMORY]
            entities = named_memories(connection, namespace_id, memory_ids)
        if unreadable:
            # A repair queues them again.
            self._engine.write_rows(lambda connection: [mention_queue.take(connection, one) for one in unreadable])
        try:
            if waiting:
                self._store(namespace_id, scope, [reading_of(one, entities) for one in waiting])
            elif unmatched:
                with self._engine.namespace(scope) as (connection, _):
                    found = matching(connection, namespace_id, unmatched)
                self._write(namespace_id, scope, lambda tx: store_matches(tx.connection, namespace_id, found))
            else:
                self._write(namespace_id, scope, lambda tx: mentions.sweep(tx.connection, namespace_id))
        except _NamespaceGone:
            log.info("graph_namespace_deleted", namespace=scope.namespace)

    def _store(self, namespace_id: int, scope: Scope, readings: Sequence[Reading]) -> None:
        def work(tx: Transaction) -> None:
            mentions.write(tx.connection, namespace_id, readings)
            Claims.update_entities(tx, [one.owner_id for one in readings if one.kind is RecordKind.MEMORY])

        self._write(namespace_id, scope, work)

    def _write(self, namespace_id: int, scope: Scope, work: Callable[[Transaction], None]) -> None:
        def checked(tx: Transaction) -> None:
            if tx.namespace_id != namespace_id:
                raise _NamespaceGone
            work(tx)

        self._engine.write(scope, checked)


def _start_over(connection: Connection) -> None:
    rules = meta.get(connection, _RULES)
    if rules == str(RULES_VERSION):
        return
    # On the first run, all texts are queued already.
    if rules is not None:
        for namespace_id in agents.namespace_ids(connection):
            mention_queue.put_all(connection, namespace_id)
        concept_similarity.queue_all(connection)
    meta.put(connection, _RULES, str(RULES_VERSION))


def _sort_again(connection: Connection, model_id: str) -> None:
    # Another process may have changed the model meanwhile.
    if meta.get(connection, MODEL) == model_id:
        mentions.requeue_sessions(connection, "id > ?", 0)
        meta.put(connection, _MODEL, model_id)
