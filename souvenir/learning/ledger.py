"""Operations on a finished extraction: approve, commit chosen decisions, undo, run again, compare.

The caller must see the job and may write to its source. Each operation is one transaction; long work is a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from souvenir.core.errors import Conflict, JobNotFound, NothingToDo
from souvenir.core.ledger import FactRow, Phase
from souvenir.core.settings import Settings
from souvenir.core.types import JsonObject, Scope
from souvenir.jobs.worker import Jobs
from souvenir.learning.application import APPROVAL_REQUIRED, APPROVED, approval_of
from souvenir.learning.choices import Choice, ChosenAction, chosen, note_taken
from souvenir.learning.guards import GUIDANCE_JSON, Guidance, job_scope, require_learnable, serial_key
from souvenir.learning.novelty import prepared
from souvenir.learning.results import DRY_RUN, GUIDANCE, LLM, MODE
from souvenir.learning.undo import UNDONE_AT, Undone, undo
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.similarity import NOVELTY_SIMILARITY, unit_vectors, words_key
from souvenir.store.admin.jobs import EXTRACT, Job
from souvenir.store.learning import extractions
from souvenir.store.learning.extractions import LEARNED_WITH, RERUN_OF, TAKEN, ExtractionRecord, together
from souvenir.store.learning.profiles import profile_for
from souvenir.store.sql import Connection

MODEL = "model"
"""Key of options: the model to use instead of the configured one."""

COMMIT = "commit"
"""The context of a job that applies chosen decisions."""


class Ledger:
    """Thread-safe. `all_actors` includes jobs of other actors in the namespace.

    Every method raises `JobNotFound` if the scope may not see the job, and `SourceForbidden` if it may not write.
    """

    def __init__(self, engine: MemoryEngine, settings: Settings, jobs: Jobs) -> None:
        """:param jobs: The queue of extractions."""
        self._engine = engine
        self._settings = settings
        self._jobs = jobs

    def approve(self, scope: Scope, job_id: str, *, all_actors: bool = False) -> Job:
        """Approve a job that waits because it would remove much. The approval covers its current decisions only.

        :raises Conflict: If the job does not wait for an approval.
        """

        def write(connection: Connection, job: Job) -> None:
            found = _found(connection, scope, job_id)
            if found.phase is not Phase.DECIDED or (job.outcome or {}).get("approval") != APPROVAL_REQUIRED:
                raise Conflict(f"Job {job_id!r} does not wait for an approval; look at GET /memory/extract/{job_id}")
            approved = [list(approval_of(row)) for row in extractions.facts(connection, job_id)]
            extractions.set_options(connection, job_id, {**found.options, APPROVED: approved})

        return self._jobs.reopen(scope, job_id, write, all_actors=all_actors)

    def commit(self, scope: Scope, actions: Sequence[ChosenAction], source: str, *, all_actors: bool = False) -> Job:
        """Queue a job that applies the chosen actions.

        :raises NothingToDo: If there are none.
        :raises MemoryNotFound: If an action refers to a memory that is not in the source.
        :raises InvalidRequest: If an action lacks a required field.
        :raises PersonalDataRejected: If the privacy policy rejects a text.
        :raises SourceReserved: If the source is in `project/` and the caller's key has a principal.
        :raises Conflict: If a fact can no longer be taken from its dry run.
        :raises Overloaded: If the queue is full.
        """
        require_learnable(scope, source)
        if not actions:
            raise NothingToDo("Nothing was chosen; name the actions that shall be done")
        for dry_run in {action.job_id for action in actions if action.job_id is not None}:
            self._jobs.get(scope, dry_run, all_actors=all_actors)
        with self._engine.namespace(scope) as (connection, namespace):
            guidance = Guidance.of(self._settings, profile_for(connection, namespace, source), COMMIT)
        options = {DRY_RUN: False, MODE: LLM, GUIDANCE: GUIDANCE_JSON.dump(guidance)}
        row = ExtractionRecord("", scope.namespace, source, COMMIT, 0, None, None, options, Phase.DECIDED)
        reach = job_scope(scope, row)
        policy = self._engine.screening.applied(reach)
        safe = [one if one.text is None else replace(one, text=policy.text(one.text)) for one in actions]

        def write(connection: Connection, job_id: str) -> None:
            choice = chosen(connection, reach, source, safe)
            extractions.insert(
                connection,
                replace(
                    row,
                    job_id=job_id,
                    options={**options, **_provenance(connection, choice), TAKEN: _taken_from(safe)},
                ),
            )
            extractions.save_facts(connection, job_id, choice.rows)
            note_taken(connection, choice, job_id)

        return self._jobs.submit(
            EXTRACT, scope, {}, serial_key=serial_key(scope.namespace, source), in_transaction=write
        )

    def undo(self, scope: Scope, job_id: str, *, all_actors: bool = False) -> Undone:
        """Undo what a job applied, byte for byte.

        :raises Conflict: If the job is not finished, applied nothing, or was undone before.
        :raises UndoBlocked: If newer changes depend on what it wrote.
        """
        return undo(self._engine, self._jobs, scope, job_id, all_actors=all_actors)

    def rerun(self, scope: Scope, job_id: str, *, model: str | None = None, all_actors: bool = False) -> Job:
        """Queue a dry run over the transcript of a finished job.

        :param model: The provider's name of the model; None for the configured one.
        :raises Conflict: If the job is not finished, or its transcript is forgotten.
        :raises Overloaded: If the queue is full.
        """
        job = self._jobs.get(scope, job_id, all_actors=all_actors)
        if not job.finished:
            raise Conflict(f"Job {job_id!r} is {job.status}; run it again when it is finished")

        def write(connection: Connection, rerun_id: str) -> None:
            found = _found(connection, scope, job_id)
            if found.kept_transcript is None:
                raise Conflict(f"The transcript of job {job_id!r} is not kept any more; send it again")
            kept = {key: value for key, value in found.options.items() if key not in (APPROVED, MODEL, UNDONE_AT)}
            named = {} if model is None else {MODEL: model, MODE: LLM}
            options = {**kept, **named, DRY_RUN: True, RERUN_OF: found.options.get(RERUN_OF, job_id)}
            extractions.insert(
                connection, replace(found, job_id=rerun_id, options=options, phase=Phase.PROPOSING, calls=())
            )

        with self._engine.namespace(scope) as (connection, _):
            source = _found(connection, scope, job_id).source
        return self._jobs.submit(
            EXTRACT, scope, {}, serial_key=serial_key(scope.namespace, source), in_transaction=write
        )

    def diff(self, scope: Scope, job_id: str, other_id: str, *, all_actors: bool = False) -> Difference:
        """Compare the ledgers of two finished jobs of one transcript.

        :raises Conflict: If one of them is not finished.
        """
        ledgers: list[Sequence[FactRow]] = []
        for one in (job_id, other_id):
            job = self._jobs.get(scope, one, all_actors=all_actors)
            if not job.finished:
                raise Conflict(f"Job {one!r} is {job.status}; compare them when both are finished")
            with self._engine.namespace(scope) as (connection, _):
                _found(connection, scope, one)
                ledgers.append(extractions.facts(connection, one))
        return compared(self._engine, *ledgers)


def _provenance(connection: Connection, choice: Choice) -> JsonObject:
    """Return the provenance option of a commit: the union over its dry runs, which counts as learned together."""
    dry_runs = [extractions.find(connection, dry_run) for dry_run in choice.taken]
    learned_with = together(found.learned_with for found in dry_runs if found is not None)
    return {LEARNED_WITH: learned_with} if learned_with else {}


def _taken_from(actions: Sequence[ChosenAction]) -> JsonObject:
    """Return the facts of dry runs that were taken, by ordinal in the ledger of the commit."""
    return {
        str(number): [action.job_id, action.ordinal]
        for number, action in enumerate(actions)
        if action.job_id is not None
    }


def _found(connection: Connection, scope: Scope, job_id: str) -> ExtractionRecord:
    """:raises JobNotFound: If the job is no extraction.

    :raises SourceForbidden: If the scope may not write to its source.
    """
    found = extractions.find(connection, job_id)
    if found is None:
        raise JobNotFound(job_id)
    job_scope(scope, found)
    return found


# --- comparison of two ledgers ---------------------------------------------------------------------------------------


Pair = tuple[FactRow, FactRow]


@dataclass(frozen=True, slots=True)
class Difference:
    """Facts of two ledgers.

    :param agreed: In both, with the same decision. :param decided_otherwise: In both, with another verdict or memory.
    """

    agreed: tuple[Pair, ...]
    decided_otherwise: tuple[Pair, ...]
    only_first: tuple[FactRow, ...]
    only_second: tuple[FactRow, ...]


def compared(engine: MemoryEngine, first: Sequence[FactRow], second: Sequence[FactRow]) -> Difference:
    """Pair each fact with the nearest equivalent fact of the other ledger; forgotten facts are omitted."""
    left = [row for row in first if row.fact is not None]
    right = [row for row in second if row.fact is not None]
    pairs = _pairs(engine, left, right)
    paired = {row.ordinal for row, _ in pairs}, {row.ordinal for _, row in pairs}
    return Difference(
        tuple(pair for pair in pairs if _verdict(pair[0]) == _verdict(pair[1])),
        tuple(pair for pair in pairs if _verdict(pair[0]) != _verdict(pair[1])),
        tuple(row for row in left if row.ordinal not in paired[0]),
        tuple(row for row in right if row.ordinal not in paired[1]),
    )


def _pairs(engine: MemoryEngine, left: Sequence[FactRow], right: Sequence[FactRow]) -> list[Pair]:
    if not left or not right:
        return []
    texts = [row.fact.text for row in (*left, *right) if row.fact is not None]
    vectors = np.array(unit_vectors(prepared(engine, texts)))
    keys = np.array([words_key(text) for text in texts])
    theirs, their_keys = vectors[len(left) :], keys[len(left) :]
    near: list[tuple[float, int, int]] = []
    for i in range(len(left)):
        likeness = np.where(their_keys == keys[i], 1.0, theirs @ vectors[i])
        near += [(-float(likeness[j]), i, int(j)) for j in np.flatnonzero(likeness >= NOVELTY_SIMILARITY)]
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for _, i, j in sorted(near):
        if i not in pairs and j not in taken:
            pairs[i] = j
            taken.add(j)
    return [(left[i], right[pairs[i]]) for i in sorted(pairs)]


def _verdict(row: FactRow) -> tuple[str | None, int | None]:
    """Return the decision about a fact, and the memory that it refers to."""
    decision = row.decision
    if decision is None:
        return row.stage.value, None
    return decision.verdict.value, None if decision.target is None else decision.target.memory_id
