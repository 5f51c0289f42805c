"""Idle sessions are described without a request, within the daily budget."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from souvenir.conversations.messages import Conversations
from souvenir.core.errors import LLMRefused, LLMRejected
from souvenir.core.types import MessageRole, Scope
from souvenir.jobs.worker import Jobs
from souvenir.knowledge import description_schedule, model_answers
from souvenir.knowledge.description_schedule import ACTOR
from souvenir.knowledge.model_claims import ModelClaims
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import DESCRIBE, Job, JobStatus
from souvenir.store.messages.messages import MessageDraft
from tests.knowledge.model_claims_setup import (
    ANN,
    BEN,
    MOVED,
    PATIENCE_S,
    WORKS,
    OpenModelClaims,
    always,
    lives,
    stored,
    waiting,
)
from tests.learning.scripted_model import ScriptedModel

Clock = Callable[[datetime], None]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Set the time of the schedule."""

    def set_to(at: datetime) -> None:
        monkeypatch.setattr(description_schedule, "utc_now", lambda: at)

    set_to(NOW)
    return set_to


def said(engine: MemoryEngine, *texts: str, scope: Scope = ANN, at: datetime = NOW - timedelta(days=1)) -> None:
    drafts = [MessageDraft(MessageRole.USER, text, session_id=text[:9], created_at=at) for text in texts]
    Conversations(engine).add(scope, drafts)
    KnowledgeServices.open(engine).indexer.catch_up()


def scheduled(model_claims: ModelClaims) -> list[Job]:
    """Submit what is due, and wait for it; the jobs of both agents, oldest first."""
    jobs: Jobs = model_claims.jobs
    jobs.start()
    model_claims.schedule.submit_jobs()
    found = [one for scope in (ANN, BEN) for one in jobs.list(Scope(scope.namespace, "souvenir"), limit=20)[0]]
    done = [jobs.wait(one.id, PATIENCE_S) for one in found]
    return sorted(done, key=lambda one: one.created_at)


def test_idle_sessions_are_described_once_and_the_oldest_agent_first(
    engine: MemoryEngine, open_model_claims: OpenModelClaims, clock: Clock
):
    said(engine, MOVED)
    said(engine, WORKS, scope=BEN, at=NOW - timedelta(days=2))
    model = always(lives())
    model_claims = open_model_claims(model, describe_requests_per_day=5)
    jobs = scheduled(model_claims)
    assert [(one.namespace, one.status) for one in jobs] == [
        ("ben", JobStatus.COMPLETED),
        ("ann", JobStatus.COMPLETED),
    ]
    assert (stored(engine), waiting(engine), model.count("describe")) == (
        [("relation", "alice", "lives_in", "lisbon")],
        0,
        2,
    )
    assert len(scheduled(model_claims)) == 2


def test_active_sessions_and_those_of_agents_with_a_job_wait(
    engine: MemoryEngine, open_model_claims: OpenModelClaims, clock: Clock
):
    said(engine, MOVED, at=NOW - timedelta(minutes=29))
    model_claims = open_model_claims(always(lives()), describe_requests_per_day=5)
    model_claims.schedule.submit_jobs()
    assert model_claims.jobs.list(Scope("ann", ACTOR), limit=9)[0] == []
    clock(NOW + timedelta(minutes=2))
    for _ in range(2):
        model_claims.schedule.submit_jobs()
    assert len(model_claims.jobs.list(Scope("ann", ACTOR), limit=9)[0]) == 1


def test_requests_of_a_day_are_limited_also_after_a_restart(
    engine: MemoryEngine, open_model_claims: OpenModelClaims, clock: Clock
):
    said(engine, MOVED, WORKS, "Alice met Zelda in Lisbon")
    model = always()
    [first] = scheduled(open_model_claims(model, describe_requests_per_day=2))
    assert first.result is not None
    assert (first.result["questions"], first.result["has_more"], model.count("describe")) == (2, True, 2)
    assert first.result["stopped"] == "The requests of DESCRIBE_REQUESTS_PER_DAY are used up until midnight UTC"
    again = open_model_claims(model, describe_requests_per_day=2)
    assert [one.id for one in scheduled(again)] == [first.id]
    clock(NOW + timedelta(days=1))
    assert len(scheduled(again)) == 2
    assert (model.count("describe"), waiting(engine)) == (3, 0)
    with engine.namespace(ANN) as (connection, _):
        rows = list(connection.execute("SELECT key, value FROM meta WHERE key LIKE 'describe%'"))
    assert rows == [("describe_requests:2026-03-02", "1")]


@pytest.mark.parametrize("requests", [0, 3])
def test_without_a_budget_or_a_model_nothing_is_submitted(
    engine: MemoryEngine, open_model_claims: OpenModelClaims, clock: Clock, requests: int
):
    said(engine, MOVED)
    model_claims = open_model_claims(None if requests else always(), describe_requests_per_day=requests)
    assert scheduled(model_claims) == []


def test_a_request_by_a_caller_does_not_count(
    engine: MemoryEngine, open_model_claims: OpenModelClaims, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(model_answers, "WINDOW_CHARS", 100)
    said(engine, MOVED)
    model_claims = open_model_claims(always(lives()), describe_requests_per_day=1)
    model_claims.jobs.start()
    asked = model_claims.submit(ANN, session=None, limit=3)
    assert model_claims.jobs.wait(asked.id, PATIENCE_S).status is JobStatus.COMPLETED
    said(engine, WORKS)
    [done] = scheduled(model_claims)
    assert (done.result or {})["questions"] == 1


def test_messages_that_the_model_refuses_are_not_asked_about_again(
    engine: MemoryEngine, open_model_claims: OpenModelClaims, clock: Clock
):
    said(engine, MOVED)
    model = ScriptedModel({"describe": lambda prompt: LLMRefused("It declined")})
    model_claims = open_model_claims(model, describe_requests_per_day=5)
    [done] = scheduled(model_claims)
    assert ((done.result or {})["failed"], waiting(engine)) == (1, 0)
    assert len(scheduled(model_claims)) == 1


def test_an_agent_whose_job_failed_pauses(engine: MemoryEngine, open_model_claims: OpenModelClaims, clock: Clock):
    said(engine, MOVED)
    model = ScriptedModel({"describe": lambda prompt: LLMRejected("Correct the key")})
    model_claims = open_model_claims(model, describe_requests_per_day=5)
    clock(datetime.now(UTC))
    assert [one.status for one in scheduled(model_claims)] == [JobStatus.FAILED]
    assert len(scheduled(model_claims)) == 1
    clock(datetime.now(UTC) + timedelta(hours=1, minutes=1))
    assert len(scheduled(model_claims)) == 2


def test_an_undone_job_is_not_repeated(engine: MemoryEngine, open_model_claims: OpenModelClaims, clock: Clock):
    said(engine, MOVED)
    model_claims = open_model_claims(always(lives()), describe_requests_per_day=5)
    [done] = scheduled(model_claims)
    undone = model_claims.undo(Scope("ann", "an admin"), done.id, all_actors=True)
    assert (undone.claims, undone.messages, stored(engine)) == (1, 0, [])
    assert [one.kind for one in scheduled(model_claims)] == [DESCRIBE]
