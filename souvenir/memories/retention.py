"""Retention: jobs that archive memories by the policies of extraction profiles, and delete long-archived ones.

`PolicyEnforcement` archives memories that are too old (counted from their last change) or of too little confidence. The
metadata of an archived memory records the rule and the measured value; unarchiving it reverts that. A dry run takes the
same steps without the writes.

`Pruning` deletes archived memories that did not change within the retention period, and never unarchived or pinned
ones. A backup is made first. Deletions are in small transactions, each with its progress, so that a killed job resumes
and deletes nothing twice.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from souvenir.core.concurrency import frees_space
from souvenir.core.stored_json import StoredJson
from souvenir.core.types import JsonObject, MemoryPatch, Scope
from souvenir.jobs.handler import Progress, RunningJob
from souvenir.memories.engine import MemoryEngine
from souvenir.store.learning import profiles
from souvenir.store.learning.profiles import ExtractionProfile, profile_for
from souvenir.store.memories import retention as rows
from souvenir.store.memories.retention import Aged
from souvenir.store.namespaces import Namespace
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction

LOOKED_AT_ONCE = 256
"""Memories processed in one transaction."""

ACTIONS_SHOWN = 100

_DAY = timedelta(days=1)


class PolicyRule(StrEnum):
    TTL = "ttl"
    CONFIDENCE = "confidence"


@dataclass(frozen=True, slots=True)
class RetentionAction:
    """The application of a policy to a memory.

    :param measured: Its age in days, or its confidence.
    :param limit: The limit that it exceeded.
    """

    memory_id: int
    rule: PolicyRule
    source_prefix: str
    measured: float
    limit: float

    def evidence(self, at: datetime) -> JsonObject:
        """Return the entries for the metadata of the memory."""
        return {
            "_policy_archived_at": at.isoformat(),
            "_policy_archived_rule": self.rule.value,
            "_policy_archived_prefix": self.source_prefix,
            "_policy_archived_measured": self.measured,
            "_policy_archived_limit": self.limit,
        }


@dataclass(frozen=True, slots=True)
class _State:
    """`source` is the current source, `last` the id of its last memory that was processed."""

    source: str = ""
    last: int = 0
    scanned: int = 0
    ttl: int = 0
    confidence: int = 0
    excluded_pinned: int = 0
    excluded_young: int = 0
    actions: tuple[JsonObject, ...] = ()

    def with_verdicts(self, verdicts: _Verdicts) -> _State:
        shown = [asdict(action) for action in verdicts.actions]
        rules = [action.rule for action in verdicts.actions]
        return replace(
            self,
            last=verdicts.last,
            scanned=self.scanned + verdicts.scanned,
            ttl=self.ttl + rules.count(PolicyRule.TTL),
            confidence=self.confidence + rules.count(PolicyRule.CONFIDENCE),
            excluded_pinned=self.excluded_pinned + verdicts.pinned,
            excluded_young=self.excluded_young + verdicts.young,
            actions=(*self.actions, *shown)[:ACTIONS_SHOWN],
        )


_STATE = StoredJson(_State)


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """The results for some memories of a source, in the order of their ids."""

    last: int
    scanned: int
    actions: tuple[RetentionAction, ...]
    pinned: int
    young: int


class PolicyEnforcement:
    """Runs the jobs of its kind."""

    kind = "enforce_policies"

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def run(self, job: RunningJob) -> JsonObject:
        at = datetime.fromisoformat(job.parameters["at"])
        return self.enforce(job.scope, at=at, dry_run=False, progress=job, job_id=job.id)

    def enforce(
        self, scope: Scope, *, at: datetime, dry_run: bool, progress: Progress, job_id: str | None = None
    ) -> JsonObject:
        """Process the sources that have a policy, in order.

        :param at: The time from which ages are counted.
        :return: The first `actions`, and a `summary` of all.
        """
        state = _STATE.load(progress.state)
        while True:
            with self._engine.namespace(scope) as (connection, namespace):
                found = None if namespace is None else _verdicts(connection, namespace, state, at)
                following = None if namespace is None else _next_source(connection, namespace, state.source)
            if found is None and following is None:
                return _result(state, dry_run=dry_run)
            if found is None:
                state = replace(state, source=following or "", last=0)
                continue
            if dry_run or not found.actions:
                state = state.with_verdicts(found)
                progress.checkpoint(done=state.scanned, total=None, state=_STATE.dump(state))
            else:
                state = self._archive(scope, state, at, progress, job_id)
            progress.give_way()

    def _archive(self, scope: Scope, state: _State, at: datetime, progress: Progress, job_id: str | None) -> _State:
        """Apply the policies to the next memories, in one transaction with the progress."""

        def work(tx: Transaction) -> _State:
            tx.job_id = job_id
            found = _verdicts(tx.connection, tx.namespace, state, at)
            if found is None:
                return state
            for action in found.actions:
                patch = MemoryPatch(archived=True, metadata=action.evidence(at))
                tx.update(action.memory_id, patch, (), action="archive")
            after = state.with_verdicts(found)
            progress.save(tx.connection, done=after.scanned, total=None, state=_STATE.dump(after))
            return after

        return self._engine.write(scope, work)


def _next_source(connection: Connection, namespace: Namespace, after: str) -> str | None:
    prefixes = [one.source_prefix for one in profiles.every(connection, namespace) if _has_policy(one)]
    return rows.next_source_below(connection, namespace, prefixes, after=after) if prefixes else None


def _verdicts(connection: Connection, namespace: Namespace, state: _State, at: datetime) -> _Verdicts | None:
    """Judge the next memories of the source; None if it has no more memories, or no longer a policy."""
    profile = profile_for(connection, namespace, state.source)
    if not _has_policy(profile):
        return None
    memories = rows.aged(connection, namespace, state.source, after=state.last, limit=LOOKED_AT_ONCE)
    if not memories:
        return None
    actions, pinned, young = [], 0, 0
    for memory in memories:
        action, is_young = _judged(memory, profile, at)
        young += is_young
        if action is not None and memory.pinned:
            pinned += 1
        elif action is not None:
            actions.append(action)
    return _Verdicts(memories[-1].id, len(memories), tuple(actions), pinned, young)


def _judged(memory: Aged, profile: ExtractionProfile, at: datetime) -> tuple[RetentionAction | None, bool]:
    """Return the action of the profile's policies for a memory, and True if only its young age keeps it."""
    age_days = (at - memory.updated_at) / _DAY
    prefix = profile.source_prefix
    if profile.ttl_days is not None and age_days > profile.ttl_days:
        return RetentionAction(memory.id, PolicyRule.TTL, prefix, round(age_days, 4), profile.ttl_days), False
    if profile.confidence_threshold is None:
        return None, False
    confidence = 0.5 ** (max(age_days, 0.0) / profile.confidence_half_life_days)
    if confidence >= profile.confidence_threshold:
        return None, False
    if (at - memory.created_at) / _DAY < profile.min_age_days:
        return None, True
    rule = PolicyRule.CONFIDENCE
    return RetentionAction(memory.id, rule, prefix, round(confidence, 4), profile.confidence_threshold), False


def _has_policy(profile: ExtractionProfile) -> bool:
    return profile.ttl_days is not None or profile.confidence_threshold is not None


def _result(state: _State, *, dry_run: bool) -> JsonObject:
    return {
        "dry_run": dry_run,
        "actions": list(state.actions),
        "summary": {
            "candidates_scanned": state.scanned,
            "would_archive" if dry_run else "archived": state.ttl + state.confidence,
            "by_rule": {"ttl": state.ttl, "confidence": state.confidence},
            "excluded_pinned": state.excluded_pinned,
            "excluded_young": state.excluded_young,
        },
    }


DELETED_AT_ONCE = 256
"""Memories deleted in one transaction: other writes wait for some tens of milliseconds."""


@dataclass(frozen=True, slots=True)
class _PruningState:
    candidates: int = 0
    pruned: int = 0
    backup: str | None = None


_PRUNING_STATE = StoredJson(_PruningState)


class Pruning:
    """Runs the jobs of its kind."""

    kind = "prune"

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def candidates(self, scope: Scope, before: datetime) -> int:
        """Return the number of memories that a job would delete now."""
        with self._engine.namespace(scope) as (connection, namespace):
            return 0 if namespace is None else rows.count_prunable(connection, namespace, before)

    @frees_space()
    def run(self, job: RunningJob) -> JsonObject:
        before = datetime.fromisoformat(job.parameters["before"])
        state = _PRUNING_STATE.load(job.state) if job.state else self._begin(job, before)
        more = state.candidates > 0
        while more:

            def work(tx: Transaction, state: _PruningState = state) -> tuple[_PruningState, bool]:
                tx.job_id = job.id
                ids = rows.prunable(tx.connection, tx.namespace, before, limit=DELETED_AT_ONCE)
                tx.delete(ids)
                after = replace(state, pruned=state.pruned + len(ids))
                job.save(tx.connection, done=after.pruned, total=after.candidates, state=_PRUNING_STATE.dump(after))
                return after, bool(ids)

            state, more = self._engine.write(job.scope, work)
        return {"candidates": state.candidates, "pruned": state.pruned}

    def _begin(self, job: RunningJob, before: datetime) -> _PruningState:
        state = _PruningState(candidates=self.candidates(job.scope, before))
        if state.candidates:
            state = replace(state, backup=self._engine.back_up_first("pre_prune"))
        job.checkpoint(done=0, total=state.candidates, state=_PRUNING_STATE.dump(state))
        return state
