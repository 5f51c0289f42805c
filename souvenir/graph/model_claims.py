"""What a language model says of an agent's concepts: relations between them, descriptions, other names, kinds.

A job that somebody asks for reads sessions that have ended or are quiet, as far as no model has read them, and asks
once for each part. What it found so far is its state, so a kill loses at most the answer that was under way; all of its
claims are stored in one transaction, each with the message that it rests on, and `undo` takes them back. A message that
was changed meanwhile is left for another job. Invariants: what a model says is a claim or is counted as dropped; no
text of it stays in the job.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

import apsw

from llm_provider import LLMProvider
from memory_engine import MemoryEngine
from souvenir.errors import (
    Conflict,
    ExtractionNotConfigured,
    JobNotFound,
    LLMError,
    LLMOutputUnusable,
    LLMPromptTooLong,
    LLMRefused,
    Overloaded,
    SessionNotFound,
)
from souvenir.extraction.asking import spent
from souvenir.graph.claiming import Answer, Found, Material, asked, counted, first_of
from souvenir.jobs.running import PASSING, RunningJob
from souvenir.jobs.worker import Jobs
from souvenir.moments import utc_now
from souvenir.settings import Settings
from souvenir.store import agents, audit, claims, described, mentions, near, sessions
from souvenir.store.audit import AuditEvent
from souvenir.store.claims import Claim, ClaimDraft
from souvenir.store.described import Undescribed
from souvenir.store.jobs import DESCRIBE, Job
from souvenir.store.transaction import Transaction
from souvenir.types import ClaimedBy, ClaimKind, JsonObject, Scope

CONTEXT_MESSAGES = 2
"""That are shown before those that are read: an answer is not parted from its question."""

GONE = "gone"
"""Why a claim is dropped whose message or concept is not what it was."""

_NOT_THIS_ONE = (LLMOutputUnusable, LLMPromptTooLong, LLMRefused)
"""Failures that are about one question; the next one may well be answered."""

MAX_MESSAGES = 10_000
"""That one job reads, however few of them have to be asked about."""

START = (0, -1)
"""Before the first message of the first session."""


@dataclass(frozen=True, slots=True)
class _State:
    """:param after: The session's row and the position of the last message that was looked at.

    :param read: Id and digest of each message that the model has read. :param failed: How many it has not.
    :param stopped: Why no further question was asked.
    """

    after: tuple[int, int] = START
    read: tuple[tuple[int, str], ...] = ()
    found: tuple[Found, ...] = ()
    dropped: tuple[tuple[str, str, int], ...] = ()
    calls: tuple[JsonObject, ...] = ()
    failed: int = 0
    stopped: str | None = None

    @classmethod
    def of(cls, state: JsonObject) -> _State:
        found = tuple(Found(**{**one, "kind": ClaimKind(one["kind"])}) for one in state["found"])
        lists = {name: tuple(tuple(one) for one in state[name]) for name in ("read", "dropped")}
        return cls(**{**state, **lists, "after": tuple(state["after"]), "found": found, "calls": tuple(state["calls"])})

    def behind(self, session: int, messages: Sequence[Undescribed]) -> _State:
        return replace(self, after=(session, messages[-1].position))

    def with_answer(self, messages: Sequence[Undescribed], answer: Answer | None) -> _State:
        """:param answer: None: there was nothing to ask."""
        now = replace(self, read=(*self.read, *((one.id, _digest(one.content)) for one in messages)))
        if answer is None:
            return now
        known = {(one.kind, one.concept, one.other, one.text, one.message_id) for one in self.found}
        fresh = [
            one for one in answer.found if (one.kind, one.concept, one.other, one.text, one.message_id) not in known
        ]
        return replace(
            now.dropping(answer.dropped), found=(*self.found, *fresh), calls=(*self.calls, _call(answer.call))
        )

    def with_failure(self, messages: Sequence[Undescribed], error: LLMError) -> _State:
        dropped = self.dropping({("", error.code): 1})
        return replace(dropped, failed=self.failed + len(messages), calls=(*self.calls, _call(spent(error))))

    def dropping(self, dropped: Mapping[tuple[str, str], int]) -> _State:
        both = Counter({(kind, reason): count for kind, reason, count in self.dropped}) + Counter(dropped)
        return replace(self, dropped=tuple((*key, count) for key, count in sorted(both.items())))


@dataclass(frozen=True, slots=True)
class Undone:
    """:param claims: How many were removed. :param messages: How many wait to be read again."""

    job_id: str
    claims: int
    messages: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim of a job with the names of what it is about."""

    claim: Claim
    concept: str
    other: str | None


class Describing:
    """Handles the jobs of its kind, and has their lane; they wait until `start`."""

    kind = DESCRIBE

    def __init__(self, engine: MemoryEngine, provider: LLMProvider | None, settings: Settings) -> None:
        """:param provider: Closed by its owner, before this is closed."""
        self._engine = engine
        self._provider = provider
        self._quiet = timedelta(minutes=settings.session_idle_minutes)
        self.jobs = Jobs(
            engine, [self], queue_max=settings.job_queue_max, retention_days=settings.job_retention_days, lane=DESCRIBE
        )

    def start(self) -> None:
        self.jobs.start()

    def close(self) -> None:
        self.jobs.close()

    def require_model(self) -> LLMProvider:
        """:raises ExtractionNotConfigured: If there is none."""
        if self._provider is None:
            raise ExtractionNotConfigured
        return self._provider

    def submit(self, scope: Scope, *, session: str | None, limit: int) -> Job:
        """Queue a job that reads sessions that have ended or are quiet, or the one of that name as it is.

        :param limit: Questions at most.
        :raises ExtractionNotConfigured: If there is no model. :raises AgentNotFound: If the namespace is no agent.
        :raises SessionNotFound: If there is no such session. :raises Overloaded: If too many jobs wait.
        """
        self.require_model()
        with self._engine.namespace(scope) as (connection, _):
            agent = agents.known(connection, scope)
            if session is not None and sessions.row_of(connection, agent.namespace_id, session) is None:
                raise SessionNotFound(session)
        return self.jobs.submit(DESCRIBE, scope, {"session": session, "limit": limit})

    # --- the job -----------------------------------------------------------------------------------------------

    def run(self, job: RunningJob) -> JsonObject:
        """:return: How many claims of which kind were stored, and how many were dropped for which reason.

        :raises LLMError: If the model answered nothing.
        """
        if job.state.get("result"):
            result: JsonObject = job.state["result"]
            return result
        provider = self.require_model()
        state = _State.of(job.state) if job.state else _State()
        limit = job.parameters["limit"]
        while state.stopped is None and len(state.calls) < limit and len(state.read) < MAX_MESSAGES:
            found = self._next(job, state)
            if found is None:
                break
            state = self._ask(job, provider, state, *found)
            job.checkpoint(done=len(state.calls), total=None, state=asdict(state))
        return self._store(job, state)

    def _next(self, job: RunningJob, state: _State) -> tuple[int, Material] | None:
        """The next part of a session that waits.

        :raises Overloaded: If it is still to be found what messages mention; it will be in a while.
        """
        with self._engine.namespace(job.scope) as (connection, namespace):
            if namespace is None:
                return None
            session = self._following(connection, namespace.id, job.parameters["session"], state.after)
            if session is None:
                unread = described.waiting_to_be_read(connection, namespace.id)
                if unread and not state.read and not job.last_try:
                    raise Overloaded("It is still being found what the last messages mention; try again in a minute")
                return None
            position = state.after[1] if state.after[0] == session else -1
            messages = first_of(described.following_messages(connection, session, after_position=position))
            return session, Material(
                messages,
                described.before(connection, session, messages[0].position, limit=CONTEXT_MESSAGES),
                described.names_in(connection, session),
                described.keys_by_message(connection, [one.id for one in messages]),
            )

    def _following(
        self, connection: apsw.Connection, namespace_id: int, only: str | None, after: tuple[int, int]
    ) -> int | None:
        quiet_since = utc_now() - self._quiet
        return described.following_session(connection, namespace_id, after=after, quiet_since=quiet_since, only=only)

    def _ask(self, job: RunningJob, provider: LLMProvider, before: _State, session: int, material: Material) -> _State:
        """:raises LLMError: If the model cannot be asked, and may be later, or has said nothing before."""
        screening = self._engine.screening
        strict, lenient = screening.applied(job.scope), screening.applied(job.scope, refuse=False)
        behind = before.behind(session, material.messages)
        try:
            return behind.with_answer(material.messages, asked(provider, material, strict, lenient))
        except _NOT_THIS_ONE as error:
            return behind.with_failure(material.messages, error)
        except LLMError as error:
            if (isinstance(error, PASSING) and not job.last_try) or not before.calls:
                raise
            # What was answered until now was paid for.
            return replace(before, stopped=error.message)

    def _store(self, job: RunningJob, state: _State) -> JsonObject:
        """Store all claims, and that the messages were read, with the end of the job."""

        def work(tx: Transaction) -> JsonObject:
            now = described.as_they_are(tx.connection, tx.namespace_id, [id_ for id_, _ in state.read])
            digests = dict(state.read)
            unchanged = {one.id for one in now if digests[one.id] == _digest(one.content)}
            stored, dropped = _insert(tx, job.id, [one for one in state.found if one.message_id in unchanged])
            lost = Counter((one.kind.value, GONE) for one in state.found if one.message_id not in unchanged)
            described.mark(tx.connection, tx.namespace_id, unchanged, job.id)
            following = self._following(tx.connection, tx.namespace_id, job.parameters["session"], START)
            unread = described.waiting_to_be_read(tx.connection, tx.namespace_id)
            result = {
                "job_id": job.id,
                "messages": len(unchanged),
                "claims": dict(sorted(stored.items())),
                "dropped": list(counted({(k, r): n for k, r, n in state.dropping(dropped + lost).dropped})),
                "failed": state.failed,
                "stopped": state.stopped,
                "has_more": unread or following is not None,
                **_figures(state.calls),
            }
            job.save(tx.connection, done=len(state.calls), total=len(state.calls), state={"result": result})
            return result

        return self._engine.write(job.scope, work)

    # --- what came of it ---------------------------------------------------------------------------------------

    def get(self, scope: Scope, job_id: str, *, all_actors: bool = False) -> tuple[Job, list[Claimed]]:
        """A job, and what it claimed as far as it still stands.

        :param all_actors: Whether jobs of others in the namespace may be seen.
        :raises JobNotFound: If there is none of that id that the scope may see.
        """
        job = self._job(scope, job_id, all_actors)
        with self._engine.namespace(scope) as (connection, namespace):
            found = [] if namespace is None else claims.of_job(connection, namespace.id, job_id)
            ids = {id_ for one in found for id_ in (one.concept_id, one.other_id) if id_ is not None}
            keys = near.keys(connection, ids)
        return job, [
            Claimed(one, keys[one.concept_id], None if one.other_id is None else keys[one.other_id]) for one in found
        ]

    def undo(self, scope: Scope, job_id: str, *, all_actors: bool = False) -> Undone:
        """Remove all that a job claimed; the messages that it read can be read again.

        :raises JobNotFound: If there is none of that id that the scope may see.
        :raises Conflict: If it is not finished, or nothing of it is left.
        """
        job = self._job(scope, job_id, all_actors)
        if not job.finished:
            raise Conflict(f"Job {job_id!r} is {job.status}; undo it when it is finished")

        def work(tx: Transaction) -> Undone:
            found = claims.of_job(tx.connection, tx.namespace_id, job_id)
            removed = claims.delete(tx.connection, [one.id for one in found])
            messages = described.unmark(tx.connection, tx.namespace_id, job_id)
            if not removed and not messages:
                raise Conflict(f"Nothing is left of what job {job_id!r} did; there is nothing to undo")
            event = AuditEvent(tx.now, "job.undo", scope.actor, scope.namespace, resource_id=job_id, detail=DESCRIBE)
            audit.record(tx.connection, [event])
            return Undone(job_id, removed, messages)

        return self._engine.write(scope, work)

    def _job(self, scope: Scope, job_id: str, all_actors: bool) -> Job:
        job = self.jobs.get(scope, job_id, all_actors=all_actors)
        if job.kind != DESCRIBE:
            raise JobNotFound(job_id)
        return job


def _insert(tx: Transaction, job_id: str, found: Sequence[Found]) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """How many claims of a kind were stored, and which were not, since there is no such concept any more."""
    keys = {key for one in found for key in (one.concept, one.other) if key is not None}
    ids = mentions.known_keys(tx.connection, tx.namespace_id, keys)
    stored, dropped = Counter[str](), Counter[tuple[str, str]]()
    for one in found:
        if one.concept not in ids or (one.other is not None and one.other not in ids):
            dropped[one.kind.value, GONE] += 1
            continue
        draft = ClaimDraft(
            kind=one.kind,
            concept_id=ids[one.concept],
            text=one.text,
            made_by=ClaimedBy.MODEL,
            other_id=None if one.other is None else ids[one.other],
            confidence=one.confidence,
            message_id=one.message_id,
            job_id=job_id,
        )
        claims.insert(tx.connection, tx.namespace_id, draft, tx.now)
        stored[one.kind.value] += 1
    return stored, dropped


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _call(call: Mapping[str, Any]) -> JsonObject:
    return {name: call.get(name) for name in ("model", "attempts", "input_tokens", "output_tokens", "cost_usd")}


def _figures(calls: Sequence[JsonObject]) -> JsonObject:
    """What the questions took; what they cost is known if it is of all."""
    costs = [call["cost_usd"] for call in calls]
    known = None not in costs
    return {
        "questions": len(calls),
        "input_tokens": sum(call["input_tokens"] or 0 for call in calls),
        "output_tokens": sum(call["output_tokens"] or 0 for call in calls),
        "cost_usd": round(sum(costs), 6) if known else None,
        "model": next((call["model"] for call in reversed(calls) if call["model"]), None),
    }
