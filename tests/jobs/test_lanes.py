"""A job kind with a separate queue: its workers, its limit, and the order of serial keys."""

from __future__ import annotations

from threading import Event, Lock, Thread

import pytest

from souvenir.core.errors import Overloaded
from souvenir.core.types import JsonObject, Scope
from souvenir.jobs.handler import RunningJob
from souvenir.jobs.queue_rows import JobFigures
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import jobs as rows
from souvenir.store.admin.jobs import EXTRACT, JobStatus
from tests.jobs.conftest import OpenJobs
from tests.jobs.handlers import PATIENCE_S, Counting

ANN = Scope(actor="ann")


class Together:
    """Tells which of its jobs are at work; each waits until so many are, or until it is let go."""

    kind = EXTRACT

    def __init__(self, until: int) -> None:
        self._until = until
        self._lock = Lock()
        self.at_work: set[str] = set()
        self.most = 0
        self.ended: list[str] = []
        self.enough = Event()

    def run(self, job: RunningJob) -> JsonObject:
        name: str = job.parameters["name"]
        with self._lock:
            self.at_work.add(name)
            self.most = max(self.most, len(self.at_work))
            if len(self.at_work) >= self._until:
                self.enough.set()
        assert self.enough.wait(PATIENCE_S)
        with self._lock:
            self.at_work.remove(name)
            self.ended.append(name)
        return {}


def submitted(jobs: Jobs, name: str, serial_key: str | None = None) -> str:
    return jobs.submit(EXTRACT, ANN, {"name": name}, serial_key=serial_key).id


def test_jobs_of_a_lane_run_as_many_at_once_as_it_has_workers(open_jobs: OpenJobs):
    handler = Together(until=2)
    jobs = open_jobs(handler, lane=EXTRACT, workers=2)
    ids = [submitted(jobs, str(number)) for number in range(5)]
    assert {jobs.wait(job_id, PATIENCE_S).status for job_id in ids} == {JobStatus.COMPLETED}
    assert handler.most == 2


def test_jobs_of_one_serial_key_run_one_after_another_in_the_order_in_which_they_came(open_jobs: OpenJobs):
    handler = Together(until=2)
    jobs = open_jobs(handler, lane=EXTRACT, workers=4, start=False)
    ids = [submitted(jobs, f"{key}{number}", key) for number in range(4) for key in ("a", "b")]
    jobs.start()
    assert {jobs.wait(job_id, PATIENCE_S).status for job_id in ids} == {JobStatus.COMPLETED}
    assert handler.most == 2
    for key in ("a", "b"):
        assert [name for name in handler.ended if name.startswith(key)] == [f"{key}{number}" for number in range(4)]


def test_a_cancelled_job_holds_nobody_of_its_serial_key_up(open_jobs: OpenJobs):
    handler = Together(until=1)
    jobs = open_jobs(handler, lane=EXTRACT, workers=2, start=False)
    first, second = submitted(jobs, "first", "a"), submitted(jobs, "second", "a")
    jobs.cancel(ANN, first)
    jobs.start()
    assert jobs.wait(second, PATIENCE_S).status is JobStatus.COMPLETED
    assert handler.ended == ["second"]


def test_lanes_leave_each_others_jobs_alone(open_jobs: OpenJobs, engine: MemoryEngine):
    handler = Together(until=1)
    lane = open_jobs(handler, lane=EXTRACT, queue_max=1, start=False)
    common = open_jobs(Counting(), queue_max=1)
    job_id = submitted(lane, "waits")
    counted = common.submit("counting", ANN, {"until": 1})
    assert common.wait(counted.id, PATIENCE_S).status is JobStatus.COMPLETED
    assert (lane.waiting, common.waiting) == (1, 0)
    with pytest.raises(Overloaded):
        submitted(lane, "one too many")
    lane.start()
    assert lane.wait(job_id, PATIENCE_S).status is JobStatus.COMPLETED


def test_jobs_left_by_a_stopped_queue_run_once_in_the_next(open_jobs: OpenJobs, engine: MemoryEngine):
    handler = Together(until=2)
    jobs = open_jobs(handler, lane=EXTRACT, workers=2, start=False)
    left, waits = submitted(jobs, "left"), submitted(jobs, "waits")
    engine.write_rows(lambda connection: rows.claim(connection, jobs.get(ANN, left).created_at, EXTRACT))
    jobs.start()
    assert {jobs.wait(job_id, PATIENCE_S).status for job_id in (left, waits)} == {JobStatus.COMPLETED}
    assert sorted(handler.ended) == ["left", "waits"]


def test_rows_of_a_job_are_written_atomically_with_it(open_jobs: OpenJobs):
    jobs = open_jobs(Counting(), start=False)

    def fails(*_: object) -> None:
        raise Overloaded("no room for what belongs to it")

    with pytest.raises(Overloaded, match="no room"):
        jobs.submit("counting", ANN, {"until": 1}, in_transaction=fails)
    assert jobs.waiting == 0


def test_a_lane_tells_what_waits_in_it_and_what_of_it_can_be_looked_at(open_jobs: OpenJobs):
    jobs = open_jobs(Together(until=1), lane=EXTRACT, workers=3, queue_max=7, start=False)
    open_jobs(Counting(), start=False).submit(Counting.kind, ANN, {"until": 1})
    assert jobs.figures == JobFigures(waiting=0, waiting_max=7, workers=3, kept=0)
    ids = [submitted(jobs, str(number)) for number in range(2)]
    assert jobs.figures == JobFigures(waiting=2, waiting_max=7, workers=3, kept=2)
    jobs.start()
    for job_id in ids:
        jobs.wait(job_id, PATIENCE_S)
    assert jobs.figures == JobFigures(waiting=0, waiting_max=7, workers=3, kept=2)


def test_closing_a_lane_ends_all_of_its_workers(open_jobs: OpenJobs):
    handler = Together(until=2)
    jobs = open_jobs(handler, lane=EXTRACT, workers=3)
    job_id = submitted(jobs, "one")
    closing = Thread(target=jobs.close)
    closing.start()
    handler.enough.set()
    closing.join(PATIENCE_S)
    assert not closing.is_alive()
    assert jobs.get(ANN, job_id).status in (JobStatus.COMPLETED, JobStatus.QUEUED)
