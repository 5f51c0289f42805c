"""Extraction: what is worth keeping of a transcript becomes memories, and what it corrects is corrected.

An extraction is a job of a lane of its own, in three stages: facts are proposed, decided, applied. The truth of each is
the ledger; every step is written with the job's progress in one transaction, so that a kill loses at most the answer
that was under way. Invariants: a transcript is kept as the privacy rules leave it; nothing of a job stays in memory
when it is done; a model that fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import apsw

from souvenir.core.errors import ExtractionNotConfigured, ExtractQueueFull, JobNotFound, KeyNotUsable, LLMError
from souvenir.core.ledger import FactRow, FactStage, Phase
from souvenir.core.settings import Settings
from souvenir.core.types import JsonObject, Scope
from souvenir.jobs.handler import PASSING, JobCancelled, RunningJob
from souvenir.jobs.worker import Jobs, Within
from souvenir.learning import results
from souvenir.learning.application import FALLBACK_ADD, Applying
from souvenir.learning.decisions import decide_again, decide_next, decided_without_model
from souvenir.learning.guards import NO_SOURCE, reach_of, serial_key
from souvenir.learning.ledger import MODEL, Ledger
from souvenir.learning.novelty import settled
from souvenir.learning.proposals import OVERLAP_TURNS, WINDOW_CHARS, Source, propose, propose_without_model
from souvenir.learning.questions import AUDN, GUIDANCE_JSON, Guidance, spent
from souvenir.learning.questions import EXTRACT as EXTRACT_STAGE
from souvenir.learning.results import DEBUG, DRY_RUN, GUIDANCE, LLM, MODE
from souvenir.learning.transcripts.json_form import redacted
from souvenir.learning.transcripts.transcript import read_transcript
from souvenir.learning.transcripts.windows import windows
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.provider import LLMProvider, provider_of
from souvenir.store.admin.jobs import EXTRACT, Job
from souvenir.store.learning import extractions
from souvenir.store.learning.extractions import LEARNED_WITH, with_whom
from souvenir.store.learning.extractions import ExtractionRecord as Row
from souvenir.store.learning.profiles import profile_for
from souvenir.store.transaction import require_writable

RETRY_AFTER_S = 15
"""About what one extraction takes."""

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """:param messages: The transcript, in any form that clients send.

    :param context: Why it comes, in a client's word; `pre_compact` keeps more.
    :param document_at: When it was said, as far as it does not say so itself.
    :param user: Whom the agent talks with. :param session: The conversation's. What is learned is forgotten with them.
    """

    messages: str
    source: str = ""
    context: str = "stop"
    dry_run: bool = False
    debug: bool = False
    document_at: datetime | None = None
    user: str | None = None
    session: str | None = None


def _nothing() -> None:
    return None


class Extraction:
    """The jobs of kind "extract". Opened with the service; jobs wait until `start`."""

    kind = EXTRACT

    def __init__(
        self,
        engine: MemoryEngine,
        provider: LLMProvider | None,
        settings: Settings,
        *,
        on_end: Callable[[], None] = _nothing,
        named: Callable[[Settings], LLMProvider | None] = provider_of,
    ) -> None:
        """:param provider: Closed by its owner, before this is closed, so that no call is waited for.

        :param on_end: Called after jobs ended.
        :param named: Makes the provider of a job that asks another model.
        """
        self._engine = engine
        self._provider = provider
        self._settings = settings
        self._named = named
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
        """What is under way goes on at the next start."""
        self.jobs.close()

    @property
    def enabled(self) -> bool:
        """Whether transcripts are taken."""
        return self._provider is not None or self._settings.extract_fallback_add

    def get(self, scope: Scope, job_id: str, *, all_actors: bool = False) -> tuple[Job, Row]:
        """:param all_actors: Whether extractions of others in the namespace may be seen.

        :raises JobNotFound: If there is none of that id that the scope may see.
        """
        job = self.jobs.get(scope, job_id, all_actors=all_actors)
        if job.kind != EXTRACT:
            raise JobNotFound(job_id)
        return job, self._read(job.namespace, job_id)[0]

    def submit(self, scope: Scope, request: ExtractionRequest, *, within: Within | None = None) -> Job:
        """Take a transcript to learn from.

        :param within: As `Jobs.submit` has it.

        :raises KeyNotUsable: If the caller sees some sources only, and names none.
        :raises SourceForbidden: If the caller may not write to the source.
        :raises ExtractionNotConfigured: If there is nothing that could do it.
        :raises Conflict: If the source's profile switches it off.
        :raises ExtractQueueFull: If too many wait.
        """
        if scope.sources is not None and not request.source:
            raise KeyNotUsable("source is required for scoped keys")
        require_writable(scope, request.source or NO_SOURCE)
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

        def row(connection: apsw.Connection, job_id: str) -> Row:
            whom = with_whom(connection, scope.namespace, request.user, request.session)
            return Row(
                job_id,
                scope.namespace,
                request.source,
                request.context,
                len(request.messages),
                transcript,
                request.document_at,
                {**options, LEARNED_WITH: whom} if whom else options,
            )

        return self.jobs.submit(
            EXTRACT,
            scope,
            {},
            serial_key=serial_key(scope.namespace, request.source),
            beside=lambda connection, job_id: extractions.insert(connection, row(connection, job_id)),
            within=within,
        )

    def result_of(self, job: Job) -> JsonObject | None:
        """What clients are told of a job that is completed; None of any other."""
        if job.result is None:
            return None
        found, ledger = self._read(job.namespace, job.id)
        return results.result_of(job.result, found, ledger)

    def run(self, job: RunningJob) -> JsonObject:
        try:
            with self._asking(job) as provider:
                return self._run(job, provider)
        except LLMError as error:
            if isinstance(error, PASSING) and not job.last_try:
                raise
            return self._failed(job, error)

    # --- the stages --------------------------------------------------------------------------------------------

    @contextmanager
    def _asking(self, job: RunningJob) -> Iterator[LLMProvider | None]:
        """The model that a job asks; one that was named for it is closed afterwards.

        :raises ExtractionNotConfigured: If one was named, and the settings name no provider.
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
        """:raises ExtractionNotConfigured: If nothing is there to learn with, as there was when the job was taken."""
        while True:
            found, ledger = self._read(job.scope.namespace, job.id)
            scope = reach_of(job.scope, found)
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
        """Facts of the windows that are left; False if there is nothing to learn from."""
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
        # Another release may cut otherwise: then all windows are read again, and what is known is found again.
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
        """Decisions about some facts; if there are none left, what they come to."""
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
        """Decisions about facts whose memories were changed meanwhile."""
        if provider is None:
            return [decided_without_model(row, "Its memory was changed meanwhile") for row in rows]
        guidance = GUIDANCE_JSON.load(found.options[GUIDANCE])
        step = decide_again(self._engine, provider, scope, guidance, rows)
        self._engine.write_rows(lambda connection: extractions.add_calls(connection, job_id, step.calls))
        return settled(self._engine, scope, step.rows)

    # --- the ledger --------------------------------------------------------------------------------------------

    def _read(self, namespace: str, job_id: str) -> tuple[Row, Sequence[FactRow]]:
        """:raises JobNotFound: If it is gone."""
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
        calls: Iterable[JsonObject],
        phase: Phase,
        *,
        done: int,
        total: int,
        state: JsonObject | None = None,
    ) -> None:
        """One step: what it found, what it cost, and how far the job is.

        :raises JobCancelled: If it shall not go on; then nothing of the step is kept.
        """
        state = job.state if state is None else state

        def work(connection: apsw.Connection) -> None:
            job.save(connection, done=done, total=total, state=state)
            forgotten = {row.ordinal for row in extractions.facts(connection, job.id) if row.fact is None}
            kept = [row for row in rows if row.ordinal not in forgotten]
            extractions.save_facts(connection, job.id, kept)
            extractions.add_calls(connection, job.id, calls)
            extractions.set_phase(connection, job.id, phase)

        self._engine.write_rows(work)
        job.state = state

    def _failed(self, job: RunningJob, error: LLMError) -> JsonObject:
        found, ledger = self._read(job.scope.namespace, job.id)
        stage = EXTRACT_STAGE if found.phase is Phase.PROPOSING else AUDN
        call = {"stage": stage, **spent(error), "error": error.code}
        self._engine.write_rows(lambda connection: extractions.add_calls(connection, job.id, [call]))
        return results.failed_result(found, ledger, stage, error)

    def _queue_full(self, waiting: int) -> ExtractQueueFull:
        return ExtractQueueFull(waiting, self._settings.extract_queue_max, retry_after_s=RETRY_AFTER_S)
