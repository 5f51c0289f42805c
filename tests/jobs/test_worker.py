"""The life of a job: it runs, continues, ends, and is visible to those with access."""

from __future__ import annotations

from threading import Thread

import pytest

from souvenir.core.errors import Conflict, EmbeddingUnavailable, JobNotFound, NothingToDo, Overloaded
from souvenir.core.timestamps import to_us, utc_now
from souvenir.core.types import JsonObject, Scope
from souvenir.jobs import worker
from souvenir.jobs.handler import RunningJob
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import audit
from souvenir.store.admin import jobs as rows
from souvenir.store.admin.audit import AuditFilter
from souvenir.store.admin.jobs import Job, JobStatus
from tests.jobs.conftest import OpenJobs
from tests.jobs.handlers import PATIENCE_S, Busy, Counting, Failing, Gate

ANN, BEN = Scope(actor="ann"), Scope(actor="ben")


def ended(jobs: Jobs, job: Job) -> Job:
    after = jobs.wait(job.id, PATIENCE_S)
    assert after.finished, after
    return after


def test_a_job_runs_and_keeps_its_result_and_its_times(open_jobs: OpenJobs):
    jobs = open_jobs(Counting())
    submitted = jobs.submit("counting", ANN, {"until": 3})
    assert (submitted.status, submitted.done, submitted.total) == (JobStatus.QUEUED, 0, None)
    job = ended(jobs, submitted)
    assert (job.status, job.done, job.total, job.result) == (JobStatus.COMPLETED, 3, 3, {"counted": 3})
    assert job.started_at is not None
    assert job.finished_at is not None
    assert job.created_at <= job.started_at <= job.finished_at
    assert (job.actor, job.namespace, job.error) == ("ann", "default", None)


def test_jobs_run_one_at_a_time_in_the_order_in_which_they_came(open_jobs: OpenJobs):
    told: list[tuple[str, int]] = []
    jobs = open_jobs(Counting(lambda job, number: told.append((job.id, number))), start=False)
    ids = [jobs.submit("counting", ANN, {"until": 2}).id for _ in range(3)]
    jobs.start()
    jobs.wait(ids[-1], PATIENCE_S)
    assert told == [(id_, number) for id_ in ids for number in (1, 2)]


@pytest.mark.sqlite_only(
    reason="a replica's own job is taken over only after its end, which tests/jobs/test_kill.py has"
)
def test_a_job_that_was_interrupted_goes_on_where_it_stood(open_jobs: OpenJobs):
    gate, told = Gate(at=3), list[int]()
    first = open_jobs(Counting(gate))
    job = first.submit("counting", ANN, {"until": 5})
    waiting = first.submit("counting", ANN, {"until": 1})
    assert gate.reached.wait(PATIENCE_S)
    closing = Thread(target=first.close)
    closing.start()
    gate.open.set()
    closing.join()
    assert first.get(ANN, job.id).status is JobStatus.RUNNING
    second = open_jobs(Counting(lambda job, number: told.append(number)))
    assert ended(second, job).result == {"counted": 5}
    assert ended(second, waiting).result == {"counted": 1}
    assert told == [4, 5, 1]


def test_who_asked_for_a_job_and_who_cancelled_it_is_written_down_with_it(open_jobs: OpenJobs, engine: MemoryEngine):
    jobs = open_jobs(Counting(), start=False)
    job = jobs.submit("counting", ANN, {"until": 1})
    jobs.cancel(BEN, job.id, all_actors=True)
    with engine.namespace(ANN) as (connection, _):
        found = audit.page(connection, AuditFilter(resource_id=job.id), limit=9, offset=0)
    acts = [(entry.event.action, entry.event.actor, entry.event.detail) for entry in found]
    assert acts == [("job.cancel", "ben", "counting"), ("job.submit", "ann", "counting")]


def test_a_job_that_waits_is_cancelled_at_once(open_jobs: OpenJobs):
    jobs = open_jobs(Counting(), start=False)
    job = jobs.submit("counting", ANN, {"until": 1})
    cancelled = jobs.cancel(ANN, job.id)
    assert (cancelled.status, cancelled.cancel_requested) == (JobStatus.CANCELLED, True)
    assert cancelled.finished_at is not None
    with pytest.raises(Conflict, match="is cancelled already"):
        jobs.cancel(ANN, job.id)


def test_a_job_that_runs_is_cancelled_at_its_next_checkpoint(open_jobs: OpenJobs):
    gate, told = Gate(at=2), list[int]()

    def tell(job: RunningJob, number: int) -> None:
        told.append(number)
        gate(job, number)

    jobs = open_jobs(Counting(tell))
    job = jobs.submit("counting", ANN, {"until": 5})
    assert gate.reached.wait(PATIENCE_S)
    asked = jobs.cancel(ANN, job.id)
    assert (asked.status, asked.cancel_requested) == (JobStatus.RUNNING, True)
    gate.open.set()
    cancelled = ended(jobs, job)
    assert (cancelled.status, cancelled.done, cancelled.error) == (JobStatus.CANCELLED, 1, None)
    assert told == [1, 2]


def test_a_begun_job_that_is_cancelled_before_it_goes_on_still_meets_its_handler(
    open_jobs: OpenJobs, engine: MemoryEngine
):
    jobs = open_jobs(Counting(), start=False)
    job = jobs.submit("counting", ANN, {"until": 5})
    engine.write_rows(lambda connection: rows.claim(connection, utc_now()))
    assert jobs.cancel(ANN, job.id).status is JobStatus.RUNNING
    jobs.start()
    assert ended(jobs, job).status is JobStatus.CANCELLED


def test_a_failure_of_ours_keeps_its_sentence_and_the_next_job_runs(open_jobs: OpenJobs):
    jobs = open_jobs(Failing(NothingToDo("There is nothing to do; ask for something")), Counting())
    failed, next_one = jobs.submit("failing", ANN, {}), jobs.submit("counting", ANN, {"until": 1})
    job = ended(jobs, failed)
    assert (job.status, job.error) == (JobStatus.FAILED, "There is nothing to do; ask for something")
    assert ended(jobs, next_one).status is JobStatus.COMPLETED


@pytest.mark.parametrize("kind", ["failing", "unwritable"])
def test_any_other_failure_is_reported_in_the_log_only(open_jobs: OpenJobs, kind: str):
    class Unwritable(Counting):
        kind = "unwritable"

        def run(self, job: RunningJob) -> dict[str, object]:
            return {"result": object()}

    jobs = open_jobs(Failing(ValueError("a secret")), Unwritable())
    job = ended(jobs, jobs.submit(kind, ANN, {}))
    assert (job.status, job.error) == (
        JobStatus.FAILED,
        f"internal error; look at the service's log for job {job.id}",
    )


def test_a_kind_that_nobody_handles_fails_with_a_sentence(open_jobs: OpenJobs):
    jobs = open_jobs()
    assert "does not know jobs of the kind 'strange'" in str(ended(jobs, jobs.submit("strange", ANN, {})).error)


def test_a_job_that_is_tried_again_says_why_until_it_gets_on(open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch):
    seen: list[str | None] = []

    class Looking(Busy):
        def run(self, job: RunningJob) -> JsonObject:
            seen.append(jobs.get(ANN, job.id).waits_for)
            return super().run(job)

    monkeypatch.setattr(worker, "RETRY_PAUSES_S", (0.0, 0.0))
    jobs = open_jobs(Looking(EmbeddingUnavailable("No model"), times=2), start=False)
    submitted = jobs.submit("busy", ANN, {})
    jobs.start()
    job = ended(jobs, submitted)
    assert seen == [None, "No model", "No model"]
    assert (job.status, job.waits_for, job.failure) == (JobStatus.COMPLETED, None, None)


@pytest.mark.parametrize("error", [Overloaded("Too busy"), EmbeddingUnavailable("No model")])
def test_an_overloaded_service_is_retried_a_limited_number_of_times(
    open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch, error: Overloaded
):
    monkeypatch.setattr(worker, "RETRY_PAUSES_S", (0.0, 0.0))
    handler = Busy(error, times=2)
    jobs = open_jobs(handler)
    assert ended(jobs, jobs.submit("busy", ANN, {})).status is JobStatus.COMPLETED
    handler.times = 3
    job = ended(jobs, jobs.submit("busy", ANN, {}))
    assert (job.status, job.error) == (JobStatus.FAILED, error.message)


def test_more_jobs_than_may_wait_are_refused(open_jobs: OpenJobs):
    jobs = open_jobs(Counting(), queue_max=2, start=False)
    first, _ = (jobs.submit("counting", ANN, {"until": 1}) for _ in range(2))
    with pytest.raises(Overloaded, match="Too many jobs"):
        jobs.submit("counting", ANN, {"until": 1})
    jobs.cancel(ANN, first.id)
    jobs.submit("counting", ANN, {"until": 1})


def test_waiting_ends_in_time_when_the_job_does_not(open_jobs: OpenJobs):
    jobs = open_jobs(Counting(), start=False)
    job = jobs.submit("counting", ANN, {"until": 1})
    assert jobs.wait(job.id, 0.01) == job
    with pytest.raises(JobNotFound):
        jobs.wait("no such job", 0.01)


def test_closing_lets_those_go_who_wait(open_jobs: OpenJobs):
    jobs = open_jobs(Counting(), start=False)
    job = jobs.submit("counting", ANN, {"until": 1})
    closing = Thread(target=jobs.close)
    closing.start()
    assert jobs.wait(job.id, PATIENCE_S) == job
    closing.join()


def test_a_job_is_visible_to_its_actor_and_to_keys_for_the_whole_namespace(open_jobs: OpenJobs):
    jobs = open_jobs(Counting(), start=False)
    job = jobs.submit("counting", ANN, {"until": 1})
    narrower = Scope(actor="ann", sources=("a",))
    assert jobs.get(ANN, job.id) == jobs.get(BEN, job.id, all_actors=True) == job
    for scope, all_actors in (
        (BEN, False),
        (narrower, False),
        (Scope("elsewhere", "ann"), False),
        (Scope("elsewhere", "ann"), True),
    ):
        with pytest.raises(JobNotFound):
            jobs.get(scope, job.id, all_actors=all_actors)
        with pytest.raises(JobNotFound):
            jobs.cancel(scope, job.id, all_actors=all_actors)
        assert jobs.list(scope, all_actors=all_actors, limit=10) == ([], 0)
    assert jobs.get(ANN, job.id).status is JobStatus.QUEUED
    assert jobs.list(ANN, limit=10) == jobs.list(BEN, all_actors=True, limit=10) == ([job], 1)


def test_jobs_are_listed_newest_first_by_page_status_and_kind(open_jobs: OpenJobs):
    jobs = open_jobs(Counting(), start=False)
    ids = [jobs.submit(kind, ANN, {"until": 1}).id for kind in ("counting", "counting", "other")]
    jobs.cancel(ANN, ids[0])
    found, total = jobs.list(ANN, limit=2)
    assert ([job.id for job in found], total) == ([ids[2], ids[1]], 3)
    assert [job.id for job in jobs.list(ANN, limit=2, offset=2)[0]] == [ids[0]]
    assert [job.id for job in jobs.list(ANN, status=JobStatus.CANCELLED, limit=9)[0]] == [ids[0]]
    assert [job.id for job in jobs.list(ANN, kind="counting", limit=9)[0]] == [ids[1], ids[0]]


def test_finished_jobs_are_forgotten_after_their_days_and_beyond_their_number(
    open_jobs: OpenJobs, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
):
    jobs = open_jobs(Counting(), retention_days=2)
    old, *younger = [ended(jobs, jobs.submit("counting", ANN, {"until": 1})).id for _ in range(3)]
    two_days_us = 2 * 86_400 * 1_000_000
    engine.write_rows(
        lambda connection: connection.execute(
            "UPDATE jobs SET finished_at = ? WHERE id = ?", (to_us(utc_now()) - two_days_us, old)
        )
    )
    monkeypatch.setattr(rows, "MAX_FINISHED", 2)
    newest = ended(jobs, jobs.submit("counting", ANN, {"until": 1})).id
    assert [job.id for job in jobs.list(ANN, limit=10)[0]] == [newest, younger[1]]
