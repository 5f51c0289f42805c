"""Puts what a job decided into effect: all of it in one transaction with the ledger and the job's progress, or nothing.

Texts are embedded before. In the transaction each memory that is to be changed is compared with what the model saw; if
one differs, nothing is written and those facts are asked about again, `MAX_ROUNDS` times at most. A fact that still has
no valid decision then is stored beside its memory and flagged, if it says anything new. Of a job that was approved only
what was shown is applied: what is decided anew waits for another approval. What may be done at all is said in
`souvenir.extraction.guards`, how it is done in `souvenir.extraction.effects`. Nothing is removed: what a job deletes is
archived, and can be taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import apsw

from memory_engine import MemoryEngine
from souvenir.decisions import DecidedBy, Decision, Fact, FactRow, FactStage, Phase, Verdict
from souvenir.engine.screening import AppliedPolicy
from souvenir.errors import PersonalDataRejected
from souvenir.extraction.commits import noted_as
from souvenir.extraction.effects import FALLBACK_ADD, Attempt, Changed, Text, Texts, Unapproved, removing_of, world_of
from souvenir.extraction.guards import new_text, plan
from souvenir.extraction.nearness import NOVELTY_SIMILARITY
from souvenir.extraction.preparing import prepared
from souvenir.extraction.reach import reach_of
from souvenir.jobs.running import JobCancelled, RunningJob
from souvenir.settings import Settings
from souvenir.store import extractions
from souvenir.store.extractions import Extraction
from souvenir.types import JsonObject, Scope

MAX_ROUNDS = 3
"""How often decisions are asked for again because their memories changed; somebody who writes all the time must not
keep a job, and the model's bill, going for good."""

APPROVAL_REQUIRED = "required"

Redecide = Callable[[Sequence[FactRow]], Sequence[FactRow]]


@dataclass(frozen=True, slots=True)
class Applied:
    """:param rows: The ledger as it stands.

    :param approval: `APPROVAL_REQUIRED` if nothing was applied, since too much would be removed or what was approved
        is decided otherwise now.
    :param removing: Facts that would remove something then, by ordinal.
    """

    rows: tuple[FactRow, ...]
    approval: str | None = None
    removing: tuple[int, ...] = ()


class Applying:
    """Safe for many jobs at once."""

    def __init__(self, engine: MemoryEngine, settings: Settings) -> None:
        self._engine = engine
        self._max_deletes = settings.extract_max_deletes

    def apply(self, job: RunningJob, rows: Sequence[FactRow], *, redecide: Redecide) -> Applied:
        """Apply the decided ones of a job's rows; those that ended before stay as they are.

        What was applied before is not applied again.

        :param redecide: Asks again about the facts of these rows, and returns the rows with their new decisions.
        :raises JobCancelled: If the job shall not go on; nothing was applied.
        """
        extraction = self._extraction(job)
        if extraction.phase in (Phase.APPLIED, Phase.UNDONE):
            return Applied(tuple(self._ledger(job)))
        scope, now = reach_of(job.scope, extraction), {row.ordinal: row for row in rows}
        beside: dict[int, bool] = {}
        rounds = 0
        while True:
            texts = self._texts(scope, extraction, now.values())
            attempt = Attempt(
                job, extraction, list(now.values()), texts, beside, self._max_deletes, self._engine.analyser.terms
            )
            try:
                return Applied(self._engine.write(scope, attempt.run))
            except Unapproved as unapproved:
                return self._waiting(job, list(now.values()), unapproved.removing)
            except Changed as changed:
                if rounds < MAX_ROUNDS:
                    rounds += 1
                    now.update((row.ordinal, row) for row in redecide(changed.rows))
                else:
                    beside |= {row.ordinal: self._is_novel(scope, texts[row.ordinal]) for row in changed.rows}

    def excess(self, scope: Scope, rows: Sequence[FactRow]) -> list[int]:
        """Facts that would remove something, by ordinal, if they are more than may be without an approval."""
        decided = [row for row in rows if row.stage is FactStage.DECIDED]
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return []
            world = world_of(connection, namespace, decided, {})
        removing = removing_of(plan(decided, world, terms=self._engine.analyser.terms))
        return removing if len(removing) > self._max_deletes else []

    def _extraction(self, job: RunningJob) -> Extraction:
        with self._engine.namespace(job.scope) as (connection, _):
            found = extractions.find(connection, job.id)
        if found is None:
            raise JobCancelled
        return found

    def _ledger(self, job: RunningJob) -> Sequence[FactRow]:
        with self._engine.namespace(job.scope) as (connection, _):
            return extractions.facts(connection, job.id)

    def _texts(self, scope: Scope, extraction: Extraction, rows: Iterable[FactRow]) -> dict[int, Texts]:
        """What may have to be stored for each decided row, screened and embedded, by ordinal."""
        policy = self._engine.screening.applied(scope)
        screened: dict[int, Texts] = {}
        for row in rows:
            if row.stage is FactStage.DECIDED and row.fact is not None and row.decision is not None:
                metadata = _metadata(row.fact, row.decision, extraction)
                beside, update = (new_text(row.fact, row.decision, verdict) for verdict in (None, Verdict.UPDATE))
                screened[row.ordinal] = Texts(_screened(policy, beside, metadata), _screened(policy, update, metadata))
        different = list({one.text: None for both in screened.values() for one in both if one.refused is None})
        passages = dict(zip(different, prepared(self._engine, different), strict=True))
        return {
            ordinal: Texts._make(replace(one, passages=passages.get(one.text, ())) for one in both)
            for ordinal, both in screened.items()
        }

    def _is_novel(self, scope: Scope, texts: Texts) -> bool:
        nearest = self._engine.nearest_of(scope, texts.beside.passages) if texts.beside.passages else None
        return nearest is None or nearest[1] < NOVELTY_SIMILARITY

    def _waiting(self, job: RunningJob, rows: Sequence[FactRow], removing: tuple[int, ...]) -> Applied:
        """Keep the decisions for whoever approves them."""

        def work(connection: apsw.Connection) -> tuple[FactRow, ...]:
            job.save(connection, done=len(rows), total=len(rows), state=job.state)
            stored = {row.ordinal: row for row in extractions.facts(connection, job.id) if row.fact is not None}
            kept = [row for row in rows if row.ordinal in stored]
            extractions.save_facts(connection, job.id, [noted_as(row, stored[row.ordinal]) for row in kept])
            return tuple(extractions.facts(connection, job.id))

        return Applied(self._engine.write_rows(work), APPROVAL_REQUIRED, removing)


def _screened(policy: AppliedPolicy, text: str, metadata: JsonObject) -> Text:
    """A text as the namespace's privacy policy lets it in."""
    if not text.strip():
        return Text("", refused="there is no text in it")
    try:
        safe, noted = policy.content(text, metadata)
    except PersonalDataRejected as rejected:
        return Text("", refused=rejected.message)
    return Text(safe, noted or {})


def _metadata(fact: Fact, decision: Decision, extraction: Extraction) -> JsonObject:
    """What a new memory says of where it comes from; `mode` marks what no model decided."""
    return {
        "category": fact.category.value,
        **({} if fact.speaker is None else {"speaker": fact.speaker}),
        **({} if fact.span is None else {"span": {"start": fact.span.start, "end": fact.span.end}}),
        **({"mode": FALLBACK_ADD} if decision.by is DecidedBy.FALLBACK else {}),
        "extract_source": extraction.context,
        "extraction_job_id": extraction.job_id,
    }
