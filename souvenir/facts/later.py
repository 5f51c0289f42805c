"""Splitting in the background: what no model was there for, what changed since it was split, and what never was.

What waits is a table, so nothing is lost by a kill. A look every `LOOK_S`, and one whenever somebody says that
something waits, queues a job for each namespace that has some: one at a time, and after one that failed none for
`REST_S`. A job asks the model about one memory after the other; while it cannot be asked, the job is tried again for a
minute and then fails with the model's sentence, and what waits goes on waiting. A memory that changes meanwhile is left
for the next job. Without a model memories are split by sentences.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from threading import Event, Thread

import structlog

from llm_provider import LLMProvider
from memory_engine import MemoryEngine
from souvenir.errors import LLMUnavailable, Overloaded, ServiceClosing
from souvenir.facts.splitting import Split, asked
from souvenir.facts.writing import allowed, write_facts
from souvenir.jobs.running import RunningJob
from souvenir.jobs.worker import Jobs
from souvenir.moments import utc_now
from souvenir.settings import Settings
from souvenir.store import jobs as job_rows
from souvenir.store import reads, unsplit
from souvenir.store.jobs import SPLIT
from souvenir.store.transaction import Transaction
from souvenir.types import FactsBy, JsonObject, Memory, Scope, SourceFilter

LOOK_S = 30.0
"""From one look at what waits to the next: memories also begin to wait by imports, merges and extractions."""

REST_S = 900.0
"""That a namespace is left alone after a job of it failed: a model that is away may be so for long."""

ACTOR = "souvenir"
"""Whose jobs those are that nobody asked for."""

CLOSE_TIMEOUT_S = 10.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _State:
    """`after_id`: the last memory that was looked at. `changed`: left alone, since they were changed meanwhile.

    `unanswered`: why some were passed over, since the model did not answer about them; `in_a_row`: the last one was.
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
        """:param found: What was written; None: the memory was changed."""
        now = replace(self, after_id=memory_id, in_a_row=False)
        if found is None:
            return replace(now, changed=self.changed + 1)
        if found.made_by is FactsBy.MODEL:
            return replace(now, by_model=self.by_model + 1)
        return replace(now, by_sentences=self.by_sentences + 1)

    def passing_over(self, memory_id: int, reason: str) -> _State:
        return replace(self, after_id=memory_id, unanswered=reason, in_a_row=True)


class SplitLater:
    """Handles the jobs of its kind, and has their lane; they wait until `start`."""

    kind = SPLIT

    def __init__(self, engine: MemoryEngine, provider: LLMProvider | None, settings: Settings) -> None:
        """:param provider: Closed by its owner, before this is closed."""
        self._engine = engine
        self._provider = provider
        self._woken = Event()
        self._closing = Event()
        self._thread = Thread(target=self._look, name="souvenir-split-later", daemon=True)
        self.jobs = Jobs(
            engine, [self], queue_max=settings.job_queue_max, retention_days=settings.job_retention_days, lane=SPLIT
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
        """Something began to wait."""
        self._woken.set()

    # --- queueing ----------------------------------------------------------------------------------------------

    def queue_what_waits(self) -> None:
        """Queue a job for each namespace where something waits, but for those that have one or are left alone."""
        with self._engine.namespace(Scope()) as (connection, _):
            names = unsplit.namespaces(connection)
            since = utc_now() - timedelta(seconds=REST_S)
            may = [name for name in names if job_rows.may_be_queued(connection, SPLIT, name, none_failed_since=since)]
        for name in may:
            self.jobs.submit(SPLIT, Scope(name, ACTOR), {"waiting_only": True, "source": "", "limit": None})

    def _look(self) -> None:
        while not self._closing.is_set():
            self._woken.clear()
            try:
                self.queue_what_waits()
            except (Overloaded, ServiceClosing) as error:
                log.warning("splitting_waits", reason=error.message)
            except Exception:  # the boundary of a thread; it looks again in a while
                log.exception("splitting_not_queued")
            self._woken.wait(LOOK_S)

    # --- the job -----------------------------------------------------------------------------------------------

    def run(self, job: RunningJob) -> JsonObject:
        """:return: How many were split by the model and by sentences; `has_more`: there are others.

        :raises LLMUnavailable: If the model did not answer about some; the others are done.
        """
        state = _State(**job.state) if job.state else _State()
        limit = job.parameters["limit"]
        while limit is None or state.done < limit:
            following = self._next(job, state)
            if following is None:
                break
            try:
                state = self._split(job, following, state)
            except LLMUnavailable as error:
                # If it answers about the next one, this one takes it too long, and must not keep the others waiting.
                if not job.last_try or state.in_a_row:
                    raise
                state = state.passing_over(following.id, error.message)
                job.checkpoint(done=state.done, total=None, state=asdict(state))
        if state.unanswered is not None:
            raise LLMUnavailable(state.unanswered)
        has_more = self._next(job, state) is not None
        counts = {"by_model": state.by_model, "by_sentences": state.by_sentences, "changed": state.changed}
        return {"split": state.by_model + state.by_sentences, **counts, "has_more": has_more}

    def _next(self, job: RunningJob, state: _State) -> Memory | None:
        source = job.parameters["source"]
        with self._engine.namespace(job.scope) as (connection, namespace):
            if namespace is None:
                return None
            ids = unsplit.to_split(
                connection,
                namespace,
                source=SourceFilter(source) if source else None,
                waiting_only=job.parameters["waiting_only"],
                after_id=state.after_id,
                limit=1,
            )
            return next(iter(reads.memories(connection, namespace, ids).values()), None)

    def _split(self, job: RunningJob, memory: Memory, before: _State) -> _State:
        """Ask about one memory, and write what came of it with the progress."""
        found = allowed(self._engine, job.scope, asked(memory.text, self._provider, self._engine.analyser.terms))

        def beside(tx: Transaction, written: Memory | None) -> None:
            after = before.after(memory.id, found if written else None)
            job.save(tx.connection, done=after.done, total=None, state=asdict(after))

        written = write_facts(self._engine, job.scope, memory, found, job_id=job.id, beside=beside)
        return before.after(memory.id, found if written else None)
