"""Background splitting of memories into facts: memories that no model has split yet, or that changed since.

The queue is a table, so a crash loses nothing. The thread submits a job for each namespace with waiting memories, every
`POLL_INTERVAL_S` and when it is woken: one at a time, and none within `BACK_OFF_S` after a failed one. A job asks the
model about one memory after the other. While the model does not answer, the job is retried for about a minute and then
fails with the model's error, and the memories stay in the queue. A memory that changes in between is left to the next
job. Without a model, memories are split by sentences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from threading import Event, Thread

import structlog

from souvenir.core.errors import LLMUnavailable, Overloaded, ServiceClosing
from souvenir.core.settings import Settings
from souvenir.core.stored_json import StoredJson
from souvenir.core.timestamps import utc_now
from souvenir.core.types import FactsBy, JsonObject, Memory, Scope, SourceFilter
from souvenir.jobs.handler import RunningJob
from souvenir.jobs.worker import Jobs
from souvenir.memories.fact_splitting import Split, asked
from souvenir.memories.fact_writes import allowed, write_facts
from souvenir.memories.indexed_store import IndexedStore
from souvenir.models.llm.provider import LLMProvider
from souvenir.store.admin import jobs as job_rows
from souvenir.store.admin.jobs import SPLIT
from souvenir.store.memories import facts, reads
from souvenir.store.transaction import Transaction

POLL_INTERVAL_S = 30.0
"""Polling interval of the queue: imports, merges and extractions add to it without waking it."""

BACK_OFF_S = 900.0
"""Back-off of a namespace after a failed job: an outage of a model can be long."""

ACTOR = "souvenir"
"""The actor of jobs that no caller submitted."""

CLOSE_TIMEOUT_S = 10.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _State:
    """`after_id`: the last memory processed. `changed`: skipped, because another request changed them.

    `unanswered`: why memories were skipped for lack of an answer; `in_a_row`: the last one was skipped.
    """

    after_id: int = 0
    by_model: int = 0
    by_sentences: int = 0
    changed: int = 0
    unanswered: str | None = None
    in_a_row: bool = False

    @property
    def done(self) -> int:
        return self.by_model + self.by_sentences + self.changed

    def after(self, memory_id: int, found: Split | None) -> _State:
        """:param found: The facts written; None if another request changed the memory."""
        now = replace(self, after_id=memory_id, in_a_row=False)
        if found is None:
            return replace(now, changed=self.changed + 1)
        if found.made_by is FactsBy.MODEL:
            return replace(now, by_model=self.by_model + 1)
        return replace(now, by_sentences=self.by_sentences + 1)

    def skipping(self, memory_id: int, reason: str) -> _State:
        return replace(self, after_id=memory_id, unanswered=reason, in_a_row=True)


_STATE = StoredJson(_State)


class SplitQueue:
    """Runs the jobs of its kind in a queue of their own; jobs wait until `start`."""

    kind = SPLIT

    def __init__(self, store: IndexedStore, provider: LLMProvider | None, settings: Settings) -> None:
        """:param provider: Closed by its owner before this object."""
        self._store = store
        self._provider = provider
        self._woken = Event()
        self._closing = Event()
        self._thread = Thread(target=self._poll, name="souvenir-split-later", daemon=True)
        self.jobs = Jobs(
            store, [self], queue_max=settings.job_queue_max, retention_days=settings.job_retention_days, lane=SPLIT
        )

    def start(self) -> None:
        self.jobs.start()
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join(CLOSE_TIMEOUT_S)
        self.jobs.close()

    def wake(self) -> None:
        """Process the queue soon, because a memory was added to it."""
        self._woken.set()

    # --- queueing ----------------------------------------------------------------------------------------------

    def submit_jobs(self) -> None:
        """Submit a job for each namespace with waiting memories, unless it has one or pauses."""
        with self._store.namespace(Scope()) as (connection, _):
            names = facts.namespaces_to_split(connection)
            since = utc_now() - timedelta(seconds=BACK_OFF_S)
            may = [name for name in names if job_rows.may_be_queued(connection, SPLIT, name, none_failed_since=since)]
        for name in filter(self._store.owns, may):
            self.jobs.submit(SPLIT, Scope(name, ACTOR), {"waiting_only": True, "source": "", "limit": None})

    def _poll(self) -> None:
        while not self._closing.is_set():
            self._woken.clear()
            try:
                self.submit_jobs()
            except (Overloaded, ServiceClosing) as error:
                log.warning("splitting_waits", reason=error.message)
            except Exception:  # the boundary of a thread; it looks again later
                log.exception("splitting_not_queued")
            self._woken.wait(POLL_INTERVAL_S)

    # --- the job -----------------------------------------------------------------------------------------------

    def run(self, job: RunningJob) -> JsonObject:
        """:return: The numbers split by the model and by sentences, and `has_more` if there are others.

        :raises LLMUnavailable: If the model did not answer for some; the others are done.
        """
        state = _STATE.load(job.state)
        limit = job.parameters["limit"]
        while limit is None or state.done < limit:
            following = self._next(job, state)
            if following is None:
                break
            try:
                state = self._split(job, following, state)
            except LLMUnavailable as error:
                # If it answers for the next one, this one alone is too slow, and must not block the others.
                if not job.last_try or state.in_a_row:
                    raise
                state = state.skipping(following.id, error.message)
                job.checkpoint(done=state.done, total=None, state=_STATE.dump(state))
        if state.unanswered is not None:
            raise LLMUnavailable(state.unanswered)
        has_more = self._next(job, state) is not None
        counts = {"by_model": state.by_model, "by_sentences": state.by_sentences, "changed": state.changed}
        return {"split": state.by_model + state.by_sentences, **counts, "has_more": has_more}

    def _next(self, job: RunningJob, state: _State) -> Memory | None:
        source = job.parameters["source"]
        with self._store.namespace(job.scope) as (connection, namespace):
            if namespace is None:
                return None
            ids = facts.next_to_split(
                connection,
                namespace,
                source=SourceFilter(source) if source else None,
                waiting_only=job.parameters["waiting_only"],
                after_id=state.after_id,
                limit=1,
            )
            return next(iter(reads.memories(connection, namespace, ids).values()), None)

    def _split(self, job: RunningJob, memory: Memory, before: _State) -> _State:
        """Split one memory, and write its facts in one transaction with the progress."""
        found = allowed(self._store, job.scope, asked(memory.text, self._provider, self._store.analyser.terms))

        def save_progress(tx: Transaction, written: Memory | None) -> None:
            after = before.after(memory.id, found if written else None)
            job.save(tx.connection, done=after.done, total=None, state=_STATE.dump(after))

        written = write_facts(self._store, job.scope, memory, found, job_id=job.id, also=save_progress)
        return before.after(memory.id, found if written else None)
