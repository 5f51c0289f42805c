"""Fairness between callers: which job runs next, which one yields, and each caller's share of queue and records."""

from __future__ import annotations

import pytest

from souvenir.core.errors import EmbeddingUnavailable, Overloaded
from souvenir.core.types import JsonObject, Scope
from souvenir.jobs import worker
from souvenir.jobs.handler import RunningJob
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import jobs as rows
from souvenir.store.admin.jobs import ERASE, JobStatus
from tests.jobs.conftest import OpenJobs
from tests.jobs.handlers import PATIENCE_S, Busy, Counting, Gate

GREEDY, MODEST = Scope("a", "key:greedy"), Scope("b", "key:modest")


class Yielding(Counting):
    """Gives way after each number."""

    def run(self, job: RunningJob) -> JsonObject:
        for number in range(job.state.get("counted", 0) + 1, job.parameters["until"] + 1):
            self._told(job, number)
            job.checkpoint(done=number, total=job.parameters["until"], state={"counted": number})
            job.give_way()
        return {}


def count_to(jobs: Jobs, scope: Scope, until: int = 1) -> str:
    return jobs.submit("counting", scope, {"until": until}).id


def all_ended(jobs: Jobs, *ids: str) -> None:
    assert {jobs.wait(one, PATIENCE_S).status for one in ids} == {JobStatus.COMPLETED}


@pytest.mark.parametrize("other", [MODEST, Scope("a", "key:modest"), Scope("b", "key:greedy")])
def test_callers_take_turns_independent_of_queued_jobs(open_jobs: OpenJobs, other: Scope):
    order: list[str] = []
    jobs = open_jobs(Counting(lambda job, _: order.append(job.id)), start=False)
    greedy = [count_to(jobs, GREEDY) for _ in range(4)]
    modest = [count_to(jobs, other) for _ in range(2)]
    jobs.start()
    all_ended(jobs, *greedy, *modest)
    assert order == [greedy[0], modest[0], greedy[1], modest[1], *greedy[2:]]


def test_a_caller_who_was_served_before_does_not_go_first_after_its_queue_was_empty(open_jobs: OpenJobs):
    order: list[str] = []
    gate = Gate(at=2)

    def told(job: RunningJob, number: int) -> None:
        order.append(job.id)
        gate(job, number)

    jobs = open_jobs(Counting(told))
    first = count_to(jobs, GREEDY)
    all_ended(jobs, first)
    held = count_to(jobs, Scope("c", "key:third"), until=2)
    assert gate.reached.wait(PATIENCE_S)
    again, modest = count_to(jobs, GREEDY), count_to(jobs, MODEST)
    gate.open.set()
    all_ended(jobs, held, again, modest)
    assert order == [first, held, held, modest, again]


def test_a_long_job_yields_between_steps_and_resumes(open_jobs: OpenJobs):
    order: list[tuple[str, int]] = []
    jobs = open_jobs(Yielding(lambda job, number: order.append((job.id, number))), start=False)
    long, next_one = count_to(jobs, GREEDY, until=4), count_to(jobs, GREEDY)
    modest = count_to(jobs, MODEST, until=2)
    jobs.start()
    all_ended(jobs, long, next_one, modest)
    # It makes way to other callers only: not to another job of its own.
    assert order == [(long, 1), (modest, 1), (long, 2), (modest, 2), (long, 3), (long, 4), (next_one, 1)]


def test_a_job_that_waits_for_its_model_does_not_hold_up_those_of_others(
    open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(worker, "RETRY_PAUSES_S", (10_000.0,))
    jobs = open_jobs(Busy(EmbeddingUnavailable("No model"), times=1), Counting(), start=False)
    waits = jobs.submit("busy", GREEDY, {}).id
    modest = [count_to(jobs, MODEST) for _ in range(2)]
    jobs.start()
    all_ended(jobs, *modest)
    resting = jobs.get(GREEDY, waits)
    assert (resting.status, resting.waits_for) == (JobStatus.QUEUED, "No model")
    jobs.cancel(GREEDY, waits)
    assert jobs.wait(waits, PATIENCE_S).finished


def test_a_key_fills_its_share_of_the_queue_and_no_more(open_jobs: OpenJobs):
    jobs = open_jobs(Counting(), queue_max=12, start=False)
    for _ in range(3):
        count_to(jobs, GREEDY)
    with pytest.raises(Overloaded, match="3 jobs of this key are waiting"):
        count_to(jobs, Scope("elsewhere", GREEDY.actor))
    count_to(jobs, MODEST)


def test_a_key_without_a_job_can_always_queue_one(open_jobs: OpenJobs):
    jobs = open_jobs(Counting(), queue_max=4, start=False)
    for number in range(4):
        count_to(jobs, Scope(actor=f"key:{number}"))
    count_to(jobs, MODEST)
    with pytest.raises(Overloaded):
        count_to(jobs, MODEST)


def test_a_caller_without_a_managed_key_may_fill_the_queue(open_jobs: OpenJobs):
    jobs = open_jobs(Counting(), queue_max=4, start=False)
    for _ in range(4):
        count_to(jobs, Scope(actor="anonymous"))
    with pytest.raises(Overloaded, match="Too many jobs are waiting"):
        count_to(jobs, Scope(actor="anonymous"))


def test_records_beyond_the_limit_go_from_the_key_that_has_most(open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rows, "MAX_FINISHED", 4)
    jobs = open_jobs(Counting())
    modest = [count_to(jobs, MODEST) for _ in range(2)]
    all_ended(jobs, *modest)
    greedy = [count_to(jobs, GREEDY) for _ in range(9)]
    jobs.wait(greedy[-1], PATIENCE_S)
    assert [job.id for job in jobs.list(MODEST, limit=9)[0]] == modest[::-1]
    assert [job.id for job in jobs.list(GREEDY, limit=9)[0]] == greedy[:-3:-1]


def test_records_of_cancelled_jobs_do_not_pile_up(open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rows, "MAX_FINISHED", 3)
    jobs = open_jobs(Counting(), start=False)
    for _ in range(9):
        jobs.cancel(GREEDY, count_to(jobs, GREEDY))
    assert jobs.list(GREEDY, limit=99)[1] == 3


def test_erasures_do_not_wait_behind_other_jobs(open_jobs: OpenJobs, engine: MemoryEngine):
    gate = Gate(at=1)
    common = open_jobs(Counting(gate))

    class Erasing(Counting):
        kind = ERASE

    lane = open_jobs(Erasing(), lane=ERASE)
    held = count_to(common, GREEDY)
    assert gate.reached.wait(PATIENCE_S)
    erased = lane.submit(ERASE, MODEST, {"until": 1})
    assert lane.wait(erased.id, PATIENCE_S).status is JobStatus.COMPLETED
    gate.open.set()
    all_ended(common, held)
