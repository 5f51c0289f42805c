"""Deduplication, as a job and synchronously."""

from __future__ import annotations

import pytest

from souvenir.core.types import JsonObject, MemoryDraft, MemoryPatch, Scope
from souvenir.jobs.handler import AtOnce, JobInterrupted
from souvenir.memories import deduplication
from souvenir.memories import similarity as sweeping
from souvenir.memories.deduplication import Deduplication
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import JobStatus
from tests.jobs.conftest import OpenJobs
from tests.jobs.handlers import PATIENCE_S
from tests.memories.engine.verbs import DEFAULT, add, stored

# Twenty words; with one more of its own, two texts have the cosine 20/21.
STEM = " ".join(f"common{number}" for number in range(20))
COSINE = round(20 / 21, 6)


def sweep(engine: MemoryEngine, *, dry_run: bool, progress: AtOnce | None = None) -> JsonObject:
    return Deduplication(engine).sweep(DEFAULT, threshold=0.9, dry_run=dry_run, progress=progress or AtOnce({}))


def fill(engine: MemoryEngine, sources: int, per_source: int) -> None:
    """In every source one text and what repeats it."""
    drafts = [
        MemoryDraft(f"{STEM} s{source}n{number}", f"source {source}")
        for number in range(per_source)
        for source in range(sources)
    ]
    engine.add_batch(DEFAULT, drafts)


def test_the_sweep_shows_first_and_deletes_all_but_the_first_of_each(engine: MemoryEngine):
    first = add(engine, STEM + " one", "a")
    pinned = add(engine, STEM + " two", "a", pinned=True)
    archived = add(engine, STEM + " three", "a", archived=True)
    elsewhere = add(engine, STEM + " four", "b")
    second, third = add(engine, STEM + " five", "a"), add(engine, STEM + " six", "a")
    longer = add(engine, STEM + " " + "at length " * 200, "a")
    pairs = [[first, second, pytest.approx(COSINE)], [first, third, pytest.approx(COSINE)]]
    dry = sweep(engine, dry_run=True)
    assert dry == {"found": 2, "pairs": pairs, "removed": 0, "remaining": 7, "dry_run": True}
    assert engine.backups() == []
    done = sweep(engine, dry_run=False)
    assert done == {"found": 2, "pairs": pairs, "removed": 2, "remaining": 5, "dry_run": False}
    assert [found.id for found in stored(engine)] == [first, pinned, archived, elsewhere, longer]
    assert [backup.reason for backup in engine.backups()] == ["pre_deduplicate"] * engine.keeps_backups
    assert sweep(engine, dry_run=False)["found"] == 0
    assert len(engine.backups()) == int(engine.keeps_backups)
    assert list(engine.check()) == []


def test_nobody_s_namespace_has_no_duplicates(engine: MemoryEngine):
    nobody = Scope("nobody")
    swept = Deduplication(engine).sweep(nobody, threshold=0.9, dry_run=False, progress=AtOnce({}))
    assert (swept["found"], swept["remaining"]) == (0, 0)


@pytest.mark.sqlite_only(reason="the changes are made at the checkpoint of the backup")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda engine, kept, repeat: engine.update(DEFAULT, repeat, MemoryPatch(text="new")), id="repeat"),
        pytest.param(lambda engine, kept, repeat: engine.update(DEFAULT, kept, MemoryPatch(text="new")), id="kept"),
        pytest.param(
            lambda engine, kept, repeat: engine.update(DEFAULT, repeat, MemoryPatch(pinned=True)), id="pinned"
        ),
        pytest.param(lambda engine, kept, repeat: engine.archive(DEFAULT, [kept]), id="archived"),
        pytest.param(lambda engine, kept, repeat: engine.delete(DEFAULT, kept), id="deleted"),
    ],
)
def test_a_memory_changed_after_its_comparison_is_not_deleted(engine: MemoryEngine, change):
    """The backup stands between the comparison and the deletion, and takes its time."""
    kept, repeat, other = (add(engine, f"{STEM} {word}", "a") for word in ("one", "two", "three"))
    changed: list[object] = []

    class ChangingAtTheBackup(AtOnce):
        def checkpoint(self, *, done, total, state):
            if not changed:
                changed.append(change(engine, kept, repeat))

    result = sweep(engine, dry_run=False, progress=ChangingAtTheBackup({}))
    assert engine.get(DEFAULT, [repeat])
    assert result["found"] == 2
    assert result["removed"] == len({other} - set(engine.get(DEFAULT, [other])))
    assert list(engine.check()) == []


def test_a_sweep_that_is_broken_off_at_any_save_goes_on_and_ends_as_one_that_was_not(
    engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(deduplication, "DELETED_AT_ONCE", 2)
    monkeypatch.setattr(sweeping, "BLOCK_ROWS", 3)
    fill(engine, sources=3, per_source=6)

    class BrokenOff(AtOnce):
        """Ends after its first step, as a closing service does."""

        steps = 0

        def checkpoint(self, *, done, total, state):
            super().checkpoint(done=done, total=total, state=state)
            self._step()

        def save(self, connection, *, done, total, state):
            self._step()
            self.state = state

        def _step(self):
            if self.steps:
                raise JobInterrupted
            self.steps += 1

    progress, broken = BrokenOff({}), 0
    result: JsonObject | None = None
    while result is None:
        try:
            result = sweep(engine, dry_run=False, progress=progress)
        except JobInterrupted:
            broken += 1
            progress = BrokenOff(progress.state)
    assert broken > 6
    assert (result["found"], result["removed"], result["remaining"]) == (15, 15, 3)
    assert [memory.id for memory in stored(engine)] == [1, 2, 3]
    assert len(engine.backups()) == int(engine.keeps_backups)
    assert list(engine.check()) == []


def test_a_job_sweeps_and_says_how_far_it_is(open_jobs: OpenJobs, engine: MemoryEngine):
    fill(engine, sources=2, per_source=3)
    jobs = open_jobs(Deduplication(engine))
    job = jobs.submit("deduplicate", DEFAULT, {"threshold": 0.9, "dry_run": False})
    after = jobs.wait(job.id, PATIENCE_S)
    assert (after.status, after.done, after.total) == (JobStatus.COMPLETED, 6, 6)
    assert after.result is not None
    assert (after.result["found"], after.result["removed"], after.result["remaining"]) == (4, 4, 2)
