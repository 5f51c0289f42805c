"""Idle sessions are described without a request, within the daily budget."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from souvenir.core.errors import LLMRefused, LLMRejected
from souvenir.core.types import Scope
from souvenir.jobs.worker import Jobs
from souvenir.knowledge import description_schedule, model_answers
from souvenir.knowledge.description_schedule import ACTOR
from souvenir.knowledge.model_claims import ModelClaims
from souvenir.store.admin.jobs import DESCRIBE, Job, JobStatus
from tests.knowledge.agent import ANN, BEN, Agent
from tests.knowledge.model_claims_setup import MOVED, PATIENCE_S, WORKS, always, lives, stored, waiting
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


def said(ann: Agent, *texts: str, at: datetime = NOW - timedelta(days=1)) -> None:
    for text in texts:
        ann.tell(text, session=text[:9], at=at)


def scheduled(model_claims: ModelClaims) -> list[Job]:
    """Submit what is due, and wait for it; the jobs of both agents, oldest first."""
    jobs: Jobs = model_claims.jobs
    jobs.start()
    model_claims.schedule.submit_jobs()
    found = [one for scope in (ANN, BEN) for one in jobs.list(Scope(scope.namespace, "souvenir"), limit=20)[0]]
    done = [jobs.wait(one.id, PATIENCE_S) for one in found]
    return sorted(done, key=lambda one: one.created_at)


def test_idle_sessions_are_described_once_and_the_oldest_agent_first(ann: Agent, clock: Clock):
    said(ann, MOVED)
    said(ann.another(BEN), WORKS, at=NOW - timedelta(days=2))
    model = always(lives())
    model_claims = ann.model_claims(model, describe_requests_per_day=5)
    jobs = scheduled(model_claims)
    assert [(one.namespace, one.status) for one in jobs] == [(name, JobStatus.COMPLETED) for name in ("ben", "ann")]
    assert stored(ann.engine) == [("relation", "alice", "lives_in", "lisbon")]
    assert (waiting(ann.engine), model.count("describe")) == (0, 2)
    assert len(scheduled(model_claims)) == 2


def test_active_sessions_and_those_of_agents_with_a_job_wait(ann: Agent, clock: Clock):
    said(ann, MOVED, at=NOW - timedelta(minutes=29))
    model_claims = ann.model_claims(always(lives()), describe_requests_per_day=5)
    model_claims.schedule.submit_jobs()
    assert model_claims.jobs.list(Scope("ann", ACTOR), limit=9)[0] == []
    clock(NOW + timedelta(minutes=2))
    for _ in range(2):
        model_claims.schedule.submit_jobs()
    assert len(model_claims.jobs.list(Scope("ann", ACTOR), limit=9)[0]) == 1


def test_requests_of_a_day_are_limited_also_after_a_restart(ann: Agent, clock: Clock):
    said(ann, MOVED, WORKS, "Alice met Zelda in Lisbon")
    model = always()
    [first] = scheduled(ann.model_claims(model, describe_requests_per_day=2))
    assert first.result is not None
    assert (first.result["questions"], first.result["has_more"], model.count("describe")) == (2, True, 2)
    assert first.result["stopped"] == "The requests of DESCRIBE_REQUESTS_PER_DAY are used up until midnight UTC"
    again = ann.model_claims(model, describe_requests_per_day=2)
    assert [one.id for one in scheduled(again)] == [first.id]
    clock(NOW + timedelta(days=1))
    assert len(scheduled(again)) == 2
    assert (model.count("describe"), waiting(ann.engine)) == (3, 0)
    rows = ann.rows("SELECT key, value FROM meta WHERE key LIKE 'describe%'")
    assert rows == [("describe_requests:2026-03-02", "1")]


@pytest.mark.parametrize("requests", [0, 3])
def test_without_a_budget_or_a_model_nothing_is_submitted(ann: Agent, clock: Clock, requests: int):
    said(ann, MOVED)
    model_claims = ann.model_claims(None if requests else always(), describe_requests_per_day=requests)
    assert scheduled(model_claims) == []


def test_a_request_by_a_caller_does_not_count(ann: Agent, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(model_answers, "WINDOW_CHARS", 100)
    said(ann, MOVED)
    model_claims = ann.model_claims(always(lives()), describe_requests_per_day=1)
    model_claims.jobs.start()
    asked = model_claims.submit(ANN, session=None, limit=3)
    assert model_claims.jobs.wait(asked.id, PATIENCE_S).status is JobStatus.COMPLETED
    said(ann, WORKS)
    [done] = scheduled(model_claims)
    assert (done.result or {})["questions"] == 1


def test_messages_that_the_model_refuses_are_not_asked_about_again(ann: Agent, clock: Clock):
    said(ann, MOVED)
    model = ScriptedModel({"describe": lambda prompt: LLMRefused("It declined")})
    model_claims = ann.model_claims(model, describe_requests_per_day=5)
    [done] = scheduled(model_claims)
    assert ((done.result or {})["failed"], waiting(ann.engine)) == (1, 0)
    assert len(scheduled(model_claims)) == 1


def test_an_agent_whose_job_failed_pauses(ann: Agent, clock: Clock):
    said(ann, MOVED)
    model = ScriptedModel({"describe": lambda prompt: LLMRejected("Correct the key")})
    model_claims = ann.model_claims(model, describe_requests_per_day=5)
    clock(datetime.now(UTC))
    assert [one.status for one in scheduled(model_claims)] == [JobStatus.FAILED]
    assert len(scheduled(model_claims)) == 1
    clock(datetime.now(UTC) + timedelta(hours=1, minutes=1))
    assert len(scheduled(model_claims)) == 2


def test_an_undone_job_is_not_repeated(ann: Agent, clock: Clock):
    said(ann, MOVED)
    model_claims = ann.model_claims(always(lives()), describe_requests_per_day=5)
    [done] = scheduled(model_claims)
    undone = model_claims.undo(Scope("ann", "an admin"), done.id, all_actors=True)
    assert (undone.claims, undone.messages, stored(ann.engine)) == (1, 0, [])
    assert [one.kind for one in scheduled(model_claims)] == [DESCRIBE]
