"""Extraction: learn memories from a transcript, and correct the memories that it contradicts.

An extraction is a job in a queue of its own, in three stages: facts are proposed, decided and applied. The ledger is
the source of truth for each fact. Each step is written with the job's progress in one transaction, so that a crash
loses at most the answer in progress. Invariants: a transcript is stored as redacted by the privacy policy; a finished
job leaves nothing in memory; a failing model changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from souvenir.core.errors import ExtractionNotConfigured, ExtractQueueFull, JobNotFound, KeyNotUsable, LLMError
from souvenir.core.ledger import FactRow, FactStage, Phase
from souvenir.core.settings import Settings
from souvenir.core.types import JsonObject, Scope
from souvenir.jobs.handler import TRANSIENT, JobCancelled, RunningJob
from souvenir.jobs.worker import Jobs, Within
from souvenir.learning import results
from souvenir.learning.application import FALLBACK_ADD, Applying
from souvenir.learning.decisions import decide_again, decide_next
from souvenir.learning.guards import GUIDANCE_JSON, NO_SOURCE, Guidance, job_scope, require_learnable, serial_key
from souvenir.learning.ledger import MODEL, Ledger
from souvenir.learning.novelty import decided_without_model, settled
from souvenir.learning.proposals import OVERLAP_TURNS, WINDOW_CHARS, Source, propose, propose_without_model
from souvenir.learning.questions import AUDN, spent
from souvenir.learning.questions import EXTRACT as EXTRACT_STAGE
from souvenir.learning.quoted_turns import FoundQuote, message_of, quoted_turns
from souvenir.learning.results import DEBUG, DRY_RUN, GUIDANCE, LLM, MODE
from souvenir.learning.transcripts.json_form import redacted
from souvenir.learning.transcripts.transcript import read_transcript
from souvenir.learning.transcripts.windows import windows
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.provider import LLMProvider, provider_of
from souvenir.store.admin.jobs import EXTRACT, Job, JobStatus
from souvenir.store.learning import extractions
from souvenir.store.learning.extractions import LEARNED_WITH, ExtractionSummary, provenance_of
from souvenir.store.learning.extractions import ExtractionRecord as Row
from souvenir.store.learning.profiles import profile_for
from souvenir.store.sql import Connection
from souvenir.store.transaction import require_writable

RETRY_AFTER_S = 15
"""Typical duration of one extraction."""

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """:param messages: The transcript, in any supported form.

    :param context: The client's reason for sending it; `pre_compact` keeps more facts.
    :param document_at: Default time of the turns that have none.
    :param user: The user that the agent talks with. :param session: The session of the conversation. Deleting either
        deletes what was learned with it.
    """

    messages: str
    source: str = ""
    context: str = "stop"
    dry_run: bool = False
    debug: bool = False
    document_at: datetime | None = None
    user: str | None = None
    session: str | None = None


def _nothing(*_: object) -> None:
    return None


class Extraction:
    """Runs the jobs of kind "extract". Opened with the service; jobs wait until `start`."""

    kind = EXTRACT

    def __init__(
        self,
        engine: MemoryEngine,
        provider: LLMProvider | None,
        settings: Settings,
        *,
        on_end: Callable[[], None] = _nothing,
        on_calls: Callable[[Scope, Sequence[JsonObject]], None] = _nothing,
        named: Callable[[Settings], LLMProvider | None] = provider_of,
    ) -> None:
        """:param provider: Closed by its owner before this object, so that closing waits for no call.

        :param on_end: Called after jobs end.
        :param on_calls: Called with the scope of a job and its calls of a model, after they were stored.
        :param named: Creates the provider of a job that uses another model.
        """
        self._engine = engine
        self._provider = provider
        self._settings = settings
        self._named = named
        self._on_calls = on_calls
        self._applying = Applying(engine, settings)
        self.jobs = Jobs(
            engine,
            [self],
            queue_max=settings.extract_queue_max,
            retention_days=settings.extract_job_retention_sec / DAY_S,
            on_end=on_end,
            lane=EXTRACT,
            workers=settings.extract_max_inflight,
            when_full=self._queue_full,
        )
        self.ledger = Ledger(engine, settings, self.jobs)

    def start(self) -> None:
        self.jobs.start()

    def close(self) -> None:
        """Stop; jobs in progress resume at the next start."""
        self.jobs.close()

    @property
    def enabled(self) -> bool:
        """True if transcripts are accepted."""
        return self._provider is not None or self._settings.extract_fallback_add

    def get(self, scope: Scope, job_id: str, *, all_actors: bool = False) -> tuple[Job, Row]:
        """:param all_actors: Include extractions of other actors in the namespace.

        :raises JobNotFound: If the scope may see no extraction with this id.
        """
        job = self.jobs.get(scope, job_id, all_actors=all_actors)
        if job.kind != EXTRACT:
            raise JobNotFound(job_id)
        return job, self._read(job.namespace, job_id)[0]

    def page(
        self,
        scope: Scope,
        *,
        status: JobStatus | None = None,
        waiting: bool = False,
        all_actors: bool = False,
        limit: int,
        offset: int,
    ) -> tuple[list[tuple[Job, ExtractionSummary]], int]:
        """Return extractions, newest first, and their total number.

        :param waiting: Only those that wait for an approval.
        """
        found, total = self.jobs.list(
            scope,
            all_actors=all_actors,
            status=status,
            kind=EXTRACT,
            waits_for_approval=waiting,
            limit=limit,
            offset=offset,
        )
        with self._engine.namespace(scope) as (connection, _):
            kept = extractions.summaries(connection, [job.id for job in found])
        return [(job, kept[job.id]) for job in found if job.id in kept], total

    def quotes(self, scope: Scope, job_id: str, *, all_actors: bool = False) -> dict[int, FoundQuote]:
        """Return the quotes of an extraction by ordinal, as far as the transcript is kept.

        A scope that is limited to some sources is not shown in which stored message they are.

        :raises JobNotFound: If the scope may see no extraction with this id.
        """
        self.get(scope, job_id, all_actors=all_actors)
        with self._engine.namespace(scope) as (connection, namespace):
            found = extractions.find(connection, job_id)
            if found is None or namespace is None:
                raise JobNotFound(job_id)
            turns = quoted_turns(connection, found, extractions.facts(connection, job_id))
            if scope.sources is not None:
                return {ordinal: FoundQuote.of(turn) for ordinal, turn in turns.items()}
            return {
                ordinal: FoundQuote.of(turn, message_of(connection, namespace.id, turn))
                for ordinal, turn in turns.items()
            }

    def submit(self, scope: Scope, request: ExtractionRequest, *, within: Within | None = None) -> Job:
        """Queue a transcript for extraction.

        :param within: See `Jobs.submit`.

        :raises KeyNotUsable: If the key is limited to some sources, and the request names none.
        :raises SourceForbidden: If the caller may not write to the source.
        :raises SourceReserved: If the source is in `project/` and the caller's key has a principal.
        :raises ExtractionNotConfigured: If there is neither a model nor the fallback.
        :raises Conflict: If the source's profile disables extraction.
        :raises ExtractQueueFull: If the queue is full.
        """
        if scope.sources is not None and not request.source:
            raise KeyNotUsable("source is required for scoped keys")
        require_writable(scope, request.source or NO_SOURCE)
        require_learnable(scope, request.source)
        if not self.enabled:
            raise ExtractionNotConfigured
        with self._engine.namespace(scope) as (connection, namespace):
            profile = profile_for(connection, namespace, request.source)
        profile.require_enabled()
        options = {
            DRY_RUN: request.dry_run,
            DEBUG: request.debug,
            MODE: FALLBACK_ADD if self._provider is None else LLM,
            GUIDANCE: GUIDANCE_JSON.dump(Guidance.of(self._settings, profile, request.context)),
        }
        transcript = redacted(request.messages, self._engine.screening.applied(scope, refuse=False))

        def row(connection: Connection, job_id: str) -> Row:
            learned_with = provenance_of(connection, scope.namespace, request.user, request.session)
            return Row(
                job_id,
                scope.namespace,
                request.source,
                request.context,
                len(request.messages),
                transcript,
                request.document_at,
                {**options, LEARNED_WITH: learned_with} if learned_with else options,
            )

        return self.jobs.submit(
            EXTRACT,
            scope,
            {},
            serial_key=serial_key(scope.namespace, request.source),
            in_transaction=lambda connection, job_id: extractions.insert(connection, row(connection, job_id)),
            within=within,
        )

    def result_of(self, job: Job) -> JsonObject | None:
        """Return the client-visible result of a completed job, else None."""
        if job.outcome is None:
            return None
        found, ledger = self._read(job.namespace, job.id)
        return results.result_of(job.outcome, found, ledger)

    def run(self, job: RunningJob) -> JsonObject:
        try:
            with self._asking(job) as provider:
                return self._run(job, provider)
        except LLMError as error:
            if isinstance(error, TRANSIENT) and not job.last_try:
                raise
            return self._failed(job, error)

    # --- the stages --------------------------------------------------------------------------------------------

    @contextmanager
    def _asking(self, job: RunningJob) -> Iterator[LLMProvider | None]:
        """Yield the provider of a job; a provider created for this job is closed afterwards.

        :raises ExtractionNotConfigured: If the job names a model, and the settings name no provider.
        """
        found, _ = self._read(job.scope.namespace, job.id)
        if MODEL not in found.options:
            yield self._provider
            return
        provider = self._named(self._settings.model_copy(update={"extract_model": found.options[MODEL]}))
        if provider is None:
            raise ExtractionNotConfigured
        with closing(provider):
            yield provider

    def _run(self, job: RunningJob, provider: LLMProvider | None) -> JsonObject:
        """:raises ExtractionNotConfigured:

        If the job was accepted, but there is neither a model nor the fallback any more.
        """
        while True:
            found, ledger = self._read(job.scope.namespace, job.id)
            scope = job_scope(job.scope, found)
            match found.phase:
                case Phase.PROPOSING | Phase.DECIDING if provider is None and not self.enabled:
                    raise ExtractionNotConfigured
                case Phase.PROPOSING:
                    if not self._propose(job, provider, scope, found, ledger):
                        return results.empty_result(found, "empty_after_hygiene")
                case Phase.DECIDING:
                    self._decide(job, provider, scope, found, ledger)
                case Phase.DECIDED if found.options.get(DRY_RUN):
                    excess = self._applying.excess(scope, ledger)
                    return {**results.waiting_result(found, ledger), **({"removing": excess} if excess else {})}
                case Phase.DECIDED:
                    applied = self._applying.apply(
                        job, ledger, redecide=partial(self._redecide, job.id, provider, scope, found)
                    )
                    if applied.approval is not None:
                        waiting = results.waiting_result(found, applied.rows)
                        return {**waiting, "approval": applied.approval, "removing": list(applied.removing)}
                case Phase.APPLIED | Phase.UNDONE:
                    return results.kept_result(self._engine, scope, found, ledger)

    def _propose(
        self, job: RunningJob, provider: LLMProvider | None, scope: Scope, found: Row, ledger: Sequence[FactRow]
    ) -> bool:
        """Propose facts from the remaining windows; False if the transcript is empty."""
        if found.transcript is None:
            raise JobCancelled
        transcript = read_transcript(found.transcript, document_at=found.document_at)
        if transcript.is_empty:
            return False
        source = Source(scope, transcript, found.document_at, GUIDANCE_JSON.load(found.options[GUIDANCE]))
        if provider is None or found.options[MODE] == FALLBACK_ADD:
            proposed = propose_without_model(self._engine, source)
            self._save(job, proposed.rows, proposed.calls, Phase.DECIDING, done=1, total=2)
            return True
        shown = windows(transcript, max_chars=WINDOW_CHARS, overlap_turns=OVERLAP_TURNS)
        # Another release may cut windows differently. Then all windows are read again, and known facts are
        # deduplicated.
        first = job.state.get("read", 0) if job.state.get("windows") == len(shown) else 0
        rows = list(ledger)
        for number, window in enumerate(shown[first:], start=first + 1):
            proposed = propose(self._engine, provider, source, window, rows)
            rows += proposed.rows
            phase = Phase.DECIDING if number == len(shown) else Phase.PROPOSING
            state = {"windows": len(shown), "read": number}
            self._save(job, proposed.rows, proposed.calls, phase, done=number, total=len(shown) + 2, state=state)
        return True

    def _decide(
        self, job: RunningJob, provider: LLMProvider | None, scope: Scope, found: Row, ledger: Sequence[FactRow]
    ) -> None:
        """Decide some facts; if none are left, apply the novelty check."""
        guidance = GUIDANCE_JSON.load(found.options[GUIDANCE])
        read = job.state.get("windows", 0)
        state = {**job.state, "asked": job.state.get("asked", 0) + 1}
        progress = {"done": read, "total": read + 2, "state": state}
        if provider is None or found.options[MODE] == FALLBACK_ADD:
            reason = "Stored as it was said, since no language model is set up"
            rows = [decided_without_model(row, reason) for row in ledger if row.stage is FactStage.PROPOSED]
            self._save(job, settled(self._engine, scope, rows), (), Phase.DECIDED, **progress)
            return
        step = decide_next(self._engine, provider, scope, guidance, ledger)
        if step is not None:
            self._save(job, step.rows, step.calls, Phase.DECIDING, **progress)
            return
        decided = [row for row in ledger if row.stage is FactStage.DECIDED]
        self._save(job, settled(self._engine, scope, decided), (), Phase.DECIDED, **progress)

    def _redecide(
        self, job_id: str, provider: LLMProvider | None, scope: Scope, found: Row, rows: Sequence[FactRow]
    ) -> Sequence[FactRow]:
        """Decide facts again whose memories have changed."""
        if provider is None:
            return [decided_without_model(row, "Its memory was changed meanwhile") for row in rows]
        guidance = GUIDANCE_JSON.load(found.options[GUIDANCE])
        step = decide_again(self._engine, provider, scope, guidance, rows)
        self._engine.write_rows(lambda connection: extractions.add_calls(connection, job_id, step.calls))
        self._on_calls(scope, step.calls)
        return settled(self._engine, scope, step.rows)

    # --- the ledger --------------------------------------------------------------------------------------------

    def _read(self, namespace: str, job_id: str) -> tuple[Row, Sequence[FactRow]]:
        """:raises JobNotFound: If the job no longer exists."""
        with self._engine.namespace(Scope(namespace)) as (connection, _):
            found = extractions.find(connection, job_id)
            ledger = extractions.facts(connection, job_id)
        if found is None:
            raise JobNotFound(job_id)
        return found, ledger

    def _save(
        self,
        job: RunningJob,
        rows: Sequence[FactRow],
        calls: Sequence[JsonObject],
        phase: Phase,
        *,
        done: int,
        total: int,
        state: JsonObject | None = None,
    ) -> None:
        """Save one step: its rows, its model calls and the job's progress.

        :raises JobCancelled: If the job was cancelled; then nothing of the step is stored.
        """
        state = job.state if state is None else state

        def work(connection: Connection) -> None:
            job.save(connection, done=done, total=total, state=state)
            forgotten = {row.ordinal for row in extractions.facts(connection, job.id) if row.fact is None}
            kept = [row for row in rows if row.ordinal not in forgotten]
            extractions.save_facts(connection, job.id, kept)
            extractions.add_calls(connection, job.id, calls)
            extractions.set_phase(connection, job.id, phase)

        self._engine.write_rows(work)
        self._on_calls(job.scope, calls)
        job.state = state

    def _failed(self, job: RunningJob, error: LLMError) -> JsonObject:
        found, ledger = self._read(job.scope.namespace, job.id)
        stage = EXTRACT_STAGE if found.phase is Phase.PROPOSING else AUDN
        model = found.options.get(MODEL) or (self._provider and self._provider.model)
        call = {"stage": stage, "model": model, **spent(error), "error": error.code}

        def work(connection: Connection) -> None:
            extractions.add_calls(connection, job.id, [call])
            extractions.blank_if_forgotten(connection, job.id)

        self._engine.write_rows(work)
        self._on_calls(job.scope, [call])
        return results.failed_result(found, ledger, stage, error)

    def _queue_full(self, waiting: int) -> ExtractQueueFull:
        return ExtractQueueFull(waiting, self._settings.extract_queue_max, retry_after_s=RETRY_AFTER_S)
