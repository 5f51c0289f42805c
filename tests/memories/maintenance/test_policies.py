"""Archiving by the policies of extraction profiles, and its exceptions."""

from __future__ import annotations

from contextlib import closing

import pytest

from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.core.types import JsonObject, MemoryPatch
from souvenir.jobs.handler import AtOnce, JobInterrupted
from souvenir.memories import retention
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.extraction_profiles import ExtractionProfiles
from souvenir.memories.retention import PolicyEnforcement
from souvenir.store.admin.jobs import JobStatus
from tests.fake_embedder import FakeEmbedder
from tests.jobs.conftest import OpenJobs
from tests.jobs.handlers import PATIENCE_S
from tests.memories.engine.verbs import ANN, DEFAULT, memory, stored
from tests.memories.maintenance.aged import NOW, aged


def enforce(engine: MemoryEngine, *, dry_run: bool, progress: AtOnce | None = None) -> JsonObject:
    return PolicyEnforcement(engine).enforce(DEFAULT, at=NOW, dry_run=dry_run, progress=progress or AtOnce({}))


def archived(engine: MemoryEngine) -> list[int]:
    return [one.id for one in stored(engine) if one.archived]


def summary(scanned: int, *, ttl: int = 0, confidence: int = 0, pinned: int = 0, young: int = 0) -> JsonObject:
    return {
        "candidates_scanned": scanned,
        "archived": ttl + confidence,
        "by_rule": {"ttl": ttl, "confidence": confidence},
        "excluded_pinned": pinned,
        "excluded_young": young,
    }


def test_a_memory_older_than_its_ttl_is_archived_with_a_reason(engine: MemoryEngine):
    ExtractionProfiles(engine).put(DEFAULT, "wip/", {"ttl_days": 30})
    old = aged(engine, "old", "wip/x", created=31)
    young = aged(engine, "young", "wip/x", created=29)
    changed = aged(engine, "changed", "wip", created=31, changed=1)
    pinned = aged(engine, "pinned", "wip/y", created=31, pinned=True)
    elsewhere = aged(engine, "elsewhere", "wiper", created=31)
    before = stored(engine)
    dry = enforce(engine, dry_run=True)
    action = {"memory_id": old, "rule": "ttl", "source_prefix": "wip/", "measured": 31.0, "limit": 30}
    assert dry["actions"] == [action]
    assert dry["summary"]["would_archive"] == 1
    assert stored(engine) == before
    done = enforce(engine, dry_run=False)
    assert (done["actions"], done["summary"]) == ([action], summary(4, ttl=1, pinned=1))
    assert archived(engine) == [old]
    evidence = memory(engine, old).metadata
    assert evidence == {
        "_policy_archived_at": NOW.isoformat(),
        "_policy_archived_rule": "ttl",
        "_policy_archived_prefix": "wip/",
        "_policy_archived_measured": 31.0,
        "_policy_archived_limit": 30,
    }
    assert enforce(engine, dry_run=False)["summary"] == summary(3, pinned=1)
    assert [one.id for one in stored(engine) if not one.archived] == [young, changed, pinned, elsewhere]
    assert list(engine.check()) == []


@pytest.mark.parametrize(
    ("profile", "created", "changed", "rule"),
    [
        ({"confidence_threshold": 0.5}, 91, 91, "confidence"),
        ({"confidence_threshold": 0.5}, 89, 89, None),
        ({"confidence_threshold": 0.5}, 91, 10, None),
        ({"confidence_threshold": 0.5, "confidence_half_life_days": 10}, 11, 11, "confidence"),
        ({"confidence_threshold": 0.25, "confidence_half_life_days": 10}, 19, 19, None),
        ({"confidence_threshold": 0.25, "confidence_half_life_days": 10}, 21, 21, "confidence"),
        ({"confidence_threshold": 0.0}, 10_000, 10_000, None),
        ({"confidence_threshold": 0.5, "ttl_days": 80}, 91, 91, "ttl"),
        ({}, 10_000, 10_000, None),
    ],
)
def test_the_reason_names_the_rule_that_applies(engine: MemoryEngine, profile, created, changed, rule):
    ExtractionProfiles(engine).put(DEFAULT, "wip/", profile)
    aged(engine, "text", "wip/x", created=created, changed=changed)
    assert [action["rule"] for action in enforce(engine, dry_run=False)["actions"]] == [rule] * (rule is not None)
    assert len(archived(engine)) == (rule is not None)


def test_young_memories_are_not_archived_for_low_confidence(engine: MemoryEngine):
    fields = {"confidence_threshold": 0.5, "confidence_half_life_days": 1, "min_age_days": 30}
    ExtractionProfiles(engine).put(DEFAULT, "wip/", fields)
    aged(engine, "young", "wip/x", created=29)
    old = aged(engine, "old", "wip/x", created=30)
    assert enforce(engine, dry_run=False)["summary"] == summary(2, confidence=1, young=1)
    assert archived(engine) == [old]


def test_a_longer_prefix_without_a_policy_overrides_a_shorter_one(engine: MemoryEngine):
    profiles = ExtractionProfiles(engine)
    profiles.put(DEFAULT, "wip/", {"ttl_days": 30})
    profiles.put(DEFAULT, "wip/keep/", {"max_facts": 3})
    aged(engine, "kept", "wip/keep/x", created=100)
    for source in ("wip/a", "wip/z"):
        aged(engine, "old", source, created=100)
    assert enforce(engine, dry_run=False)["summary"] == summary(2, ttl=2)


def test_policies_are_limited_to_their_namespace(engine: MemoryEngine):
    ExtractionProfiles(engine).put(ANN, "wip/", {"ttl_days": 1})
    aged(engine, "old", "wip/a", created=100)
    theirs = aged(engine, "old", "wip/a", created=100, scope=ANN)
    assert enforce(engine, dry_run=False)["summary"] == summary(0)
    assert not memory(engine, theirs, ANN).archived


def test_an_interrupted_enforcement_resumes_and_archives_each_memory_once(
    engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(retention, "LOOKED_AT_ONCE", 2)
    ExtractionProfiles(engine).put(DEFAULT, "wip/", {"ttl_days": 30})
    for number in range(12):
        aged(engine, f"text {number}", f"wip/{number % 3}", created=20 + 20 * (number % 2))

    class BrokenOff(AtOnce):
        steps = 0

        def checkpoint(self, *, done, total, state):
            self._step()
            super().checkpoint(done=done, total=total, state=state)

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
            result = enforce(engine, dry_run=False, progress=progress)
        except JobInterrupted:
            broken += 1
            progress = BrokenOff(progress.state)
    assert broken == 5
    assert result["summary"] == summary(12, ttl=6)
    assert len(result["actions"]) == len(archived(engine)) == 6
    assert list(engine.check()) == []


class Pinning(MemoryEngine):
    """Pins a memory after it was found, just before it is archived."""

    to_pin: int | None = None

    def write(self, scope, work):
        pinned, self.to_pin = self.to_pin, None
        if pinned is not None:
            self.update(DEFAULT, pinned, MemoryPatch(pinned=True))
        return super().write(scope, work)


def test_policies_apply_to_the_current_state_of_a_memory(settings: Settings):
    with closing(Pinning.open(settings, FakeEmbedder())) as engine:
        assert isinstance(engine, Pinning)
        engine.warm_up()
        ExtractionProfiles(engine).put(DEFAULT, "wip/", {"ttl_days": 30})
        first, second = (aged(engine, f"text {number}", "wip/x", created=40) for number in range(2))
        engine.to_pin = second
        assert enforce(engine, dry_run=False)["summary"]["archived"] == 1
        assert archived(engine) == [first]


def test_a_job_enforces_policies_and_is_recorded_in_the_history(engine: MemoryEngine, open_jobs: OpenJobs):
    ExtractionProfiles(engine).put(DEFAULT, "wip/", {"ttl_days": 30})
    old = aged(engine, "old", "wip/x", created=31)
    jobs = open_jobs(PolicyEnforcement(engine))
    job = jobs.submit("enforce_policies", DEFAULT, {"at": utc_now().isoformat()})
    done = jobs.wait(job.id, PATIENCE_S)
    assert done.status is JobStatus.COMPLETED
    assert done.result is not None
    assert done.result["summary"] == summary(1, ttl=1)
    with engine.namespace(DEFAULT) as (connection, _):
        rows = connection.execute("SELECT memory_id, action FROM history WHERE job_id = ?", (job.id,)).fetchall()
    assert rows == [(old, "archive")]
