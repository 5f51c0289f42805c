"""Jobs during a restore: those of the backup are ended, and a running one writes nothing more."""

from __future__ import annotations

from contextlib import closing

import pytest

from souvenir.core.settings import Settings
from souvenir.core.types import JsonObject, MemoryDraft, Scope
from souvenir.jobs.handler import RunningJob
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import JobStatus
from souvenir.store.sqlite.restore import restore_offline
from tests.fake_embedder import FakeEmbedder
from tests.jobs.conftest import OpenJobs
from tests.jobs.handlers import PATIENCE_S, Counting, Gate, Storing

pytestmark = pytest.mark.sqlite_only(reason="restores a backup")
SCOPE = Scope()


class HeldStoring(Storing):
    """Waits before it begins."""

    def __init__(self, engine: MemoryEngine, gate: Gate) -> None:
        super().__init__(engine)
        self._gate = gate

    def run(self, job: RunningJob) -> JsonObject:
        self._gate(job, 1)
        return super().run(job)


def test_unfinished_jobs_of_a_restored_backup_are_cancelled(open_jobs: OpenJobs, engine: MemoryEngine):
    gate = Gate(at=2)
    jobs = open_jobs(Counting(gate))
    running, queued = (jobs.submit("counting", SCOPE, {"until": 3}) for _ in range(2))
    assert gate.reached.wait(PATIENCE_S)
    backup = engine.back_up(reason="manual")
    engine.restore(backup.name)
    gate.open.set()
    for job in (running, queued):
        after = jobs.wait(job.id, PATIENCE_S)
        assert (after.status, after.error) == (JobStatus.CANCELLED, "a backup was restored")
    new = jobs.submit("counting", SCOPE, {"until": 1})
    assert jobs.wait(new.id, PATIENCE_S).status is JobStatus.COMPLETED
    assert jobs.get(SCOPE, running.id).status is JobStatus.CANCELLED


def test_a_job_that_runs_writes_nothing_into_what_was_restored(open_jobs: OpenJobs, engine: MemoryEngine):
    """Also if the backup was made before the job was there at all."""
    engine.add(SCOPE, MemoryDraft("in the backup", "s"))
    backup = engine.back_up(reason="manual")
    gate = Gate(at=1)
    jobs = open_jobs(HeldStoring(engine, gate), Counting())
    jobs.submit("storing", SCOPE, {"until": 3})
    assert gate.reached.wait(PATIENCE_S)
    engine.restore(backup.name)
    gate.open.set()
    following = jobs.submit("counting", SCOPE, {"until": 1})
    assert jobs.wait(following.id, PATIENCE_S).status is JobStatus.COMPLETED
    assert [memory.text for memory in engine.page(SCOPE, offset=0, limit=10).memories] == ["in the backup"]
    assert list(engine.check()) == []


def test_a_restore_while_no_service_runs_cancels_them_too(
    open_jobs: OpenJobs, settings: Settings, engine: MemoryEngine
):
    jobs = open_jobs(Counting(), start=False)
    job = jobs.submit("counting", SCOPE, {"until": 3})
    backup = engine.back_up(reason="manual")
    jobs.close()
    engine.close()
    restore_offline(settings, backup.name)
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as restored, restored.namespace(SCOPE) as (connection, _):
        found = connection.execute("SELECT status, error FROM jobs WHERE id = ?", (job.id,)).fetchall()
    assert found == [("cancelled", "a backup was restored")]
