"""Jobs in which a language model makes claims about concepts (relations, descriptions, aliases, kinds) and topics.

A job is submitted by a caller, or by `DescriptionSchedule` within a daily budget. It reads the messages that no model
has read yet, of sessions that have ended or are idle, with one call per part. Answers so far are its state, so a crash
loses at most the answer in progress; all claims are stored in one transaction, each with the message that supports it,
and `undo` deletes them. Messages that changed in the meantime are left to another job. Invariants: each item of an
answer is a claim or is counted as dropped; the job keeps no text of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from souvenir.core.errors import (
    Conflict,
    ExtractionNotConfigured,
    JobNotFound,
    LLMError,
    LLMOutputUnusable,
    LLMPromptTooLong,
    LLMRefused,
    Overloaded,
)
from souvenir.core.settings import Settings
from souvenir.core.stored_json import StoredJson
from souvenir.core.timestamps import utc_now
from souvenir.core.types import JsonObject, Scope, TopicClaimKind
from souvenir.jobs.handler import TRANSIENT, RunningJob
from souvenir.jobs.worker import Jobs
from souvenir.knowledge.claim_types import ProposedClaim
from souvenir.knowledge.claims import Claims
from souvenir.knowledge.description_schedule import SCHEDULED, BudgetSpent, DescriptionSchedule
from souvenir.knowledge.model_answers import (
    ClaimAnswer,
    ClaimMaterial,
    ShownTopic,
    asked,
    digest_of,
    first_of,
)
from souvenir.knowledge.topics import all_texts, named_topics
from souvenir.learning.questions import spent
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.provider import LLMProvider
from souvenir.store.admin import audit
from souvenir.store.admin.audit import AuditEvent
from souvenir.store.admin.jobs import DESCRIBE, Job
from souvenir.store.graph import claims, description_queue, topics
from souvenir.store.graph.claims import Claim, MessageRange, TopicClaim, TopicClaimDraft
from souvenir.store.graph.description_queue import Undescribed
from souvenir.store.messages import agents, sessions
from souvenir.store.privacy import NOTHING_HIDDEN
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction

CONTEXT_MESSAGES = 2
"""Earlier messages that are included as context, so that an answer is not separated from its question."""

GONE = "gone"
"""The reason for dropping a claim whose message or concept changed or was deleted."""

NAME_TAKEN = "name_taken"
"""The reason for dropping a name that another topic has."""

_NOT_THIS_ONE = (LLMOutputUnusable, LLMPromptTooLong, LLMRefused)
"""Failures of a single question; the next one may succeed."""

MAX_MESSAGES = 10_000
"""Maximum number of messages that one job reads."""

START = (0, -1)
"""Cursor before the first message of the first session."""


@dataclass(frozen=True, slots=True)
class _ClaimJobState:
    """:param after: The row of the session, and the position of the last message that was considered.

    :param read: Id and digest of each message that the model has read. :param failed: Number of messages that it has
        not.
    :param stopped: Why no further question was asked.
    """

    after: tuple[int, int] = START
    read: tuple[tuple[int, str], ...] = ()
    found: tuple[ProposedClaim, ...] = ()
    topics: tuple[TopicClaimDraft, ...] = ()
    dropped: tuple[tuple[str, str, int], ...] = ()
    calls: tuple[JsonObject, ...] = ()
    failed: int = 0
    stopped: str | None = None

    def behind(self, session: int, messages: Sequence[Undescribed]) -> _ClaimJobState:
        return replace(self, after=(session, messages[-1].position))

    def with_answer(self, messages: Sequence[Undescribed], answer: ClaimAnswer | None) -> _ClaimJobState:
        """:param answer: None if there was nothing to ask."""
        now = replace(self, read=(*self.read, *((one.id, digest_of([one.content])) for one in messages)))
        if answer is None:
            return now
        return replace(
            now.dropping(answer.dropped),
            found=(*self.found, *answer.found),
            topics=(*self.topics, *answer.topics),
            calls=(*self.calls, _call(answer.call)),
        )

    def with_failure(self, messages: Sequence[Undescribed], error: LLMError, *, is_final: bool) -> _ClaimJobState:
        """:param is_final: Whether the messages count as read, so that no later job asks about them again."""
        now = self.with_answer(messages, None) if is_final else self
        dropped = now.dropping({("", error.code): 1})
        return replace(dropped, failed=self.failed + len(messages), calls=(*self.calls, _call(spent(error))))

    def dropping(self, dropped: Mapping[tuple[str, str], int]) -> _ClaimJobState:
        both = Counter({(kind, reason): count for kind, reason, count in self.dropped}) + Counter(dropped)
        return replace(self, dropped=tuple((*key, count) for key, count in sorted(both.items())))


_STATE = StoredJson(_ClaimJobState)


@dataclass(frozen=True, slots=True)
class UndoneClaims:
    """:param claims: Number of deleted claims. :param messages: Number of messages that can be read again."""

    job_id: str
    claims: int
    messages: int


class ModelClaims:
    """Runs the jobs of its kind in a queue of its own; jobs wait until `start`."""

    kind = DESCRIBE

    def __init__(self, engine: MemoryEngine, provider: LLMProvider | None, settings: Settings) -> None:
        """:param provider: Closed by its owner, before this is closed."""
        self._engine = engine
        self._provider = provider
        self._quiet = timedelta(minutes=settings.session_idle_minutes)
        self.jobs = Jobs(
            engine, [self], queue_max=settings.job_queue_max, retention_days=settings.job_retention_days, lane=DESCRIBE
        )
        self.schedule = DescriptionSchedule(
            engine, self.jobs, quiet=self._quiet, requests_per_day=settings.describe_requests_per_day if provider else 0
        )

    def start(self) -> None:
        self.jobs.start()
        self.schedule.start()

    def close(self) -> None:
        self.schedule.close()
        self.jobs.close()

    def require_model(self) -> LLMProvider:
        """:raises ExtractionNotConfigured: If there is no model."""
        if self._provider is None:
            raise ExtractionNotConfigured
        return self._provider

    def submit(self, scope: Scope, *, session: str | None, limit: int) -> Job:
        """Queue a job that reads ended or idle sessions, or the named session in any state.

        :param limit: Maximum number of questions.
        :raises ExtractionNotConfigured: If there is no model. :raises AgentNotFound: If the namespace is no agent.
        :raises SessionNotFound: If there is no such session. :raises Overloaded: If the queue is full.
        """
        with self._engine.namespace(scope) as (connection, _):
            agent = agents.require_agent(connection, scope)
            if session is not None:
                sessions.require_row(connection, agent.namespace_id, session)
        self.require_model()
        return self.jobs.submit(DESCRIBE, scope, {"session": session, "limit": limit})

    # --- the job -----------------------------------------------------------------------------------------------

    def run(self, job: RunningJob) -> JsonObject:
        """Run the job.

        :return: The number of stored claims by kind, and of dropped ones by reason.
        :raises LLMError: If the model answered nothing.
        """
        if job.state.get("result"):
            result: JsonObject = job.state["result"]
            return result
        provider = self.require_model()
        state = _STATE.load(job.state)
        limit = job.parameters["limit"]
        while state.stopped is None and len(state.calls) < limit and len(state.read) < MAX_MESSAGES:
            found = self._next(job, state)
            if found is None:
                break
            state = self._ask(job, provider, state, *found)
            job.checkpoint(done=len(state.calls), total=None, state=_STATE.dump(state))
        return self._store(job, state)

    def _next(self, job: RunningJob, state: _ClaimJobState) -> tuple[int, ClaimMaterial] | None:
        """Return the next part of a session to read.

        :raises Overloaded: If the latest messages are not indexed or have no topics yet; a retry succeeds later.
        """
        with self._engine.namespace(job.scope) as (connection, namespace):
            if namespace is None:
                return None
            session = self._following(connection, namespace.id, job.parameters["session"], state.after)
            if session is None:
                unread = description_queue.has_queued_messages(connection, namespace.id)
                if unread and not state.read and not job.last_try:
                    raise Overloaded("The latest messages are still being indexed; retry in a minute")
                return None
            if description_queue.is_unassigned(connection, session) and not job.last_try:
                raise Overloaded("The topics of the latest messages are still being assigned; retry in a minute")
            return session, _material(connection, namespace.id, session, state)

    def _following(
        self, connection: Connection, namespace_id: int, only: str | None, after: tuple[int, int]
    ) -> int | None:
        quiet_since = utc_now() - self._quiet
        return description_queue.following_session(
            connection, namespace_id, after=after, quiet_since=quiet_since, only=only
        )

    def _ask(
        self, job: RunningJob, provider: LLMProvider, before: _ClaimJobState, session: int, material: ClaimMaterial
    ) -> _ClaimJobState:
        """:raises LLMError: If the model is temporarily unavailable, or has not answered any question."""
        screening = self._engine.screening
        strict, lenient = screening.applied(job.scope), screening.applied(job.scope, refuse=False)
        behind, is_scheduled = before.behind(session, material.messages), bool(job.parameters.get(SCHEDULED))
        spend = self.schedule.spend if is_scheduled else lambda: None
        try:
            return behind.with_answer(material.messages, asked(provider, material, strict, lenient, spend))
        except BudgetSpent as error:
            return replace(before, stopped=str(error))
        except _NOT_THIS_ONE as error:
            return behind.with_failure(material.messages, error, is_final=is_scheduled)
        except LLMError as error:
            if (isinstance(error, TRANSIENT) and not job.last_try) or not before.calls:
                raise
            # Answers so far have been paid for.
            return replace(before, stopped=error.message)

    def _store(self, job: RunningJob, state: _ClaimJobState) -> JsonObject:
        """Store all claims and mark the messages as read, in the transaction that ends the job."""

        def work(tx: Transaction) -> JsonObject:
            now = description_queue.still_undescribed(tx.connection, tx.namespace_id, [id_ for id_, _ in state.read])
            digests = dict(state.read)
            unchanged = {one.id for one in now if digests[one.id] == digest_of([one.content])}
            stored = Claims.apply(tx, job.id, [one for one in state.found if one.message_id in unchanged])
            free, taken = _free_names(tx, state.topics)
            stored += _name_topics(tx, job.id, free)
            kinds = [*(one.kind.value for one in state.found), *(one.kind.value for one in free)]
            gone = Counter(kinds) - stored
            lost = {(kind, GONE): number for kind, number in gone.items()} | taken
            dropped = state.dropping(lost).dropped
            description_queue.mark(tx.connection, tx.namespace_id, unchanged, job.id)
            following = self._following(tx.connection, tx.namespace_id, job.parameters["session"], START)
            unread = description_queue.has_queued_messages(tx.connection, tx.namespace_id)
            result = {
                "job_id": job.id,
                "messages": len(unchanged),
                "claims": dict(sorted(stored.items())),
                "dropped": [{"kind": kind or None, "reason": why, "count": number} for kind, why, number in dropped],
                "failed": state.failed,
                "stopped": state.stopped,
                "has_more": unread or following is not None,
                **_figures(state.calls),
            }
            job.save(tx.connection, done=len(state.calls), total=len(state.calls), state={"result": result})
            return result

        return self._engine.write(job.scope, work)

    # --- what came of it ---------------------------------------------------------------------------------------

    def get(self, scope: Scope, job_id: str, *, all_actors: bool = False) -> tuple[Job, list[Claim], list[TopicClaim]]:
        """Return a job, and its claims about concepts and topics that still exist; none from a hidden message.

        :param all_actors: Include jobs of other actors in the namespace.
        :raises JobNotFound: If the scope may see no job with this id.
        """
        job = self._job(scope, job_id, all_actors)
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return job, [], []
            agent = agents.find(connection, scope.namespace)
            hidden = NOTHING_HIDDEN if agent is None else self._engine.screening.hidden_texts(connection, agent)
            found = claims.of_job(connection, namespace.id, job_id, hidden)
            return job, found, claims.topic_claims_of_job(connection, namespace.id, job_id, hidden.messages)

    def undo(self, scope: Scope, job_id: str, *, all_actors: bool = False) -> UndoneClaims:
        """Delete the claims of a job; its messages can be read again, unless the schedule would do so by itself.

        :raises JobNotFound: If the scope may see no job with this id.
        :raises Conflict: If it is not finished, or nothing of it is left.
        """
        job = self._job(scope, job_id, all_actors)
        if not job.finished:
            raise Conflict(f"Job {job_id!r} is {job.status}; undo it when it is finished")

        def work(tx: Transaction) -> UndoneClaims:
            removed = Claims.undo(tx, job_id)
            removed += claims.delete_topic_claims_of_job(tx.connection, tx.namespace_id, job_id)
            messages = 0 if self.schedule.is_on else description_queue.unmark(tx.connection, tx.namespace_id, job_id)
            if not removed and not messages:
                raise Conflict(f"Nothing of job {job_id!r} is left; there is nothing to undo")
            event = AuditEvent(tx.now, "job.undo", scope.actor, scope.namespace, resource_id=job_id, detail=DESCRIBE)
            audit.record(tx.connection, [event])
            return UndoneClaims(job_id, removed, messages)

        return self._engine.write(scope, work)

    def _job(self, scope: Scope, job_id: str, all_actors: bool) -> Job:
        job = self.jobs.get(scope, job_id, all_actors=all_actors)
        if job.kind != DESCRIBE:
            raise JobNotFound(job_id)
        return job


def _material(connection: Connection, namespace_id: int, session: int, state: _ClaimJobState) -> ClaimMaterial:
    """Return the next messages of a session with what is known about them."""
    position = state.after[1] if state.after[0] == session else -1
    messages = first_of(description_queue.following_messages(connection, session, after_position=position))
    context = description_queue.before(connection, session, messages[0].position, limit=CONTEXT_MESSAGES)
    shown = MessageRange(session, min(one.position for one in (*context, *messages)), messages[-1].position)
    return ClaimMaterial(
        messages,
        context,
        description_queue.names_in(connection, session),
        description_queue.keys_by_message(connection, [one.id for one in messages]),
        _topics(connection, namespace_id, shown, messages, {one.topic_id for one in state.topics}),
        shown,
        digest_of(description_queue.contents(connection, shown)),
    )


def _topics(
    connection: Connection, namespace_id: int, shown: MessageRange, messages: Sequence[Undescribed], known: Set[int]
) -> list[ShownTopic]:
    """Return the topics of messages that have no name or no summary by a caller, without known ones."""
    of_topic = defaultdict[int, set[int]](set)
    for topic_id, first, last in description_queue.topics_between(connection, shown):
        of_topic[topic_id] |= {one.id for one in messages if first <= one.position <= last}
    found = [topics.find(connection, namespace_id, id_) for id_, own in of_topic.items() if own and id_ not in known]
    open_to_claims = [one for one in found if one is not None and (one.name is None or one.summary is None)]
    return [
        ShownTopic(one.topic.id, one.name, of_topic[one.topic.id])
        for one in named_topics(connection, namespace_id, open_to_claims, NOTHING_HIDDEN)
    ]


def _free_names(
    tx: Transaction, proposed: Sequence[TopicClaimDraft]
) -> tuple[list[TopicClaimDraft], dict[tuple[str, str], int]]:
    """Return the claims without names that another topic has, in any case, and the number of these."""
    texts = all_texts(tx.connection, tx.namespace_id, NOTHING_HIDDEN.messages) if proposed else {}
    names = [(topic_id, one.name.casefold()) for topic_id, one in texts.items()]
    free: list[TopicClaimDraft] = []
    for one in proposed:
        if one.kind is TopicClaimKind.NAME:
            name = one.text.casefold()
            if any(other == name and topic_id != one.topic_id for topic_id, other in names):
                continue
            names.append((one.topic_id, name))
        free.append(one)
    taken = len(proposed) - len(free)
    return free, {(TopicClaimKind.NAME.value, NAME_TAKEN): taken} if taken else {}


def _name_topics(tx: Transaction, job_id: str, proposed: Sequence[TopicClaimDraft]) -> Counter[str]:
    """Store names and summaries of topics whose messages are unchanged; return their number by kind."""
    stored = Counter[str]()
    for one in proposed:
        is_unchanged = digest_of(description_queue.contents(tx.connection, one.written_from)) == one.digest
        if is_unchanged and claims.insert_for_topic(tx.connection, tx.namespace_id, one, job_id=job_id, now=tx.now):
            stored[one.kind.value] += 1
    return stored


def _call(call: Mapping[str, Any]) -> JsonObject:
    return {name: call.get(name) for name in ("model", "attempts", "input_tokens", "output_tokens", "cost_usd")}


def _figures(calls: Sequence[JsonObject]) -> JsonObject:
    """Sum the usage of all questions; the cost is known only if it is known for each of them."""
    costs = [call["cost_usd"] for call in calls]
    known = None not in costs
    return {
        "questions": len(calls),
        "input_tokens": sum(call["input_tokens"] or 0 for call in calls),
        "output_tokens": sum(call["output_tokens"] or 0 for call in calls),
        "cost_usd": round(sum(costs), 6) if known else None,
        "model": next((call["model"] for call in reversed(calls) if call["model"]), None),
    }
