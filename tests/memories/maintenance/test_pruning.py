"""Memories that a pruning deletes, and those that it keeps."""

from __future__ import annotations

from souvenir.core.types import MemoryPatch, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.retention import Pruning
from souvenir.store.admin.jobs import JobStatus
from tests.jobs.conftest import OpenJobs
from tests.jobs.handlers import PATIENCE_S
from tests.memories.engine.verbs import ANN, DEFAULT, add, stored
from tests.memories.maintenance.aged import aged, days_ago

BEFORE = {"before": days_ago(90).isoformat()}


def test_only_old_archived_unpinned_memories_are_pruned(engine: MemoryEngine, open_jobs: OpenJobs):
    gone = [aged(engine, f"old {number}", created=200, archived=True) for number in range(3)]
    kept = [
        aged(engine, "lives", created=200),
        aged(engine, "pinned", created=200, archived=True, pinned=True),
        aged(engine, "archived lately", created=200, changed=80, archived=True),
    ]
    theirs = aged(engine, "old", created=200, archived=True, scope=ANN)
    assert Pruning(engine).candidates(DEFAULT, days_ago(90)) == 3
    jobs = open_jobs(Pruning(engine))
    done = jobs.wait(jobs.submit("prune", DEFAULT, BEFORE).id, PATIENCE_S)
    assert (done.status, done.done, done.total) == (JobStatus.COMPLETED, 3, 3)
    assert done.result == {"candidates": 3, "pruned": 3}
    assert [one.id for one in stored(engine)] == kept
    assert [one.id for one in stored(engine, ANN)] == [theirs]
    assert [backup.reason for backup in engine.backups()] == ["pre_prune"] * engine.keeps_backups
    with engine.namespace(DEFAULT) as (connection, _):
        rows = connection.execute("SELECT memory_id, job_id FROM history WHERE action = 'delete'").fetchall()
    assert rows == [(id_, done.id) for id_ in gone]
    assert list(engine.check()) == []


def test_pruning_nothing_makes_no_backup(engine: MemoryEngine, open_jobs: OpenJobs):
    add(engine, "lives")
    jobs = open_jobs(Pruning(engine))
    for scope in (DEFAULT, Scope("nobody")):
        done = jobs.wait(jobs.submit("prune", scope, BEFORE).id, PATIENCE_S)
        assert done.result == {"candidates": 0, "pruned": 0}
    assert engine.backups() == []


def test_a_memory_unarchived_during_a_pruning_is_kept(engine: MemoryEngine, open_jobs: OpenJobs):
    """The backup runs between the count and the deletion."""
    gone, revived = (aged(engine, f"old {number}", created=200, archived=True) for number in range(2))

    class Reviving(Pruning):
        def _begin(self, job, before):
            state = super()._begin(job, before)
            engine.update(DEFAULT, revived, MemoryPatch(archived=False))
            return state

    jobs = open_jobs(Reviving(engine))
    done = jobs.wait(jobs.submit("prune", DEFAULT, BEFORE).id, PATIENCE_S)
    assert done.result == {"candidates": 2, "pruned": 1}
    assert [one.id for one in stored(engine)] == [revived]
    assert gone not in engine.get(DEFAULT, [gone])
