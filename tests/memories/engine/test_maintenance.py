"""Background maintenance: it runs on request and at intervals, survives failures, and ends when closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Event
from time import monotonic

import pytest
from structlog.testing import capture_logs

from souvenir.core.background import PAUSE_S, Maintenance
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, SearchQuery
from souvenir.index import registry
from souvenir.memories.engine import MemoryEngine
from souvenir.store.sqlite.backups import SCHEDULED
from tests.memories.engine.conftest import OpenEngine
from tests.memories.engine.verbs import ANN, DEFAULT

pytestmark = pytest.mark.usefixtures("unfiltered_logs")

PATIENCE_S = 20.0
NEVER_S = 1e6


class Turns:
    """Counts runs; the first ones fail."""

    def __init__(self, failures: int = 0) -> None:
        self.count = 0
        self._failures = failures
        self.happened = Event()

    def __call__(self) -> None:
        self.count += 1
        self.happened.set()
        if self.count <= self._failures:
            raise ZeroDivisionError


def happens(what: Callable[[], bool]) -> bool:
    """Return whether the condition becomes true in time."""
    deadline = monotonic() + PATIENCE_S
    while not what():
        if monotonic() > deadline:
            return False
        Event().wait(0.001)
    return True


@contextmanager
def running(turns: Turns, interval_s: float) -> Iterator[Maintenance]:
    maintenance = Maintenance(turns, interval_s=interval_s)
    maintenance.start()
    with closing(maintenance):
        yield maintenance


def test_maintenance_runs_soon_after_a_request_and_not_before():
    turns = Turns()
    with running(turns, NEVER_S) as maintenance:
        assert turns.count == 0
        maintenance.ask()
        assert turns.happened.wait(PATIENCE_S)
    assert turns.count == 1


def test_requests_run_other_work_and_do_not_delay_that_of_the_interval():
    turns, asked = Turns(), Turns()
    maintenance = Maintenance(turns, interval_s=0.5, when_asked=asked)
    maintenance.start()
    with closing(maintenance):
        while turns.count < 2:
            maintenance.ask()
            Event().wait(0.001)
    assert asked.count >= 2


def test_many_requests_do_not_keep_a_processor_busy():
    turns = Turns()
    with running(turns, NEVER_S) as maintenance:
        until = monotonic() + 3 * PAUSE_S
        while monotonic() < until:
            maintenance.ask()
    assert 1 <= turns.count <= 5


def test_maintenance_runs_at_intervals_and_continues_after_failures():
    turns = Turns(failures=3)
    with capture_logs() as logs, running(turns, 0.001):
        assert happens(lambda: turns.count > 5)
    assert [line["event"] for line in logs] == ["maintenance_failed"] * 3


def test_maintenance_does_not_run_after_closing():
    turns = Turns()
    with running(turns, 0.001) as maintenance:
        assert happens(lambda: turns.count > 0)
        maintenance.close()
        count = turns.count
        maintenance.ask()
    assert turns.count == count


@pytest.mark.parametrize("changes", [4, 5])
def test_an_index_with_many_changes_is_written_while_the_engine_runs(
    open_engine: OpenEngine, settings: Settings, monkeypatch: pytest.MonkeyPatch, changes: int
):
    monkeypatch.setattr(registry, "SNAPSHOT_MIN_CHANGES", 5)
    engine: MemoryEngine = open_engine(snapshot_interval_s=0.001)
    engine.search(DEFAULT, SearchQuery("garden"))
    engine.add_batch(DEFAULT, [MemoryDraft(f"garden {number}", "notes") for number in range(changes)])
    engine.search(DEFAULT, SearchQuery("garden"))
    snapshot = settings.index_dir / "1.index"
    if changes >= 5:
        assert happens(snapshot.exists)
    else:
        Event().wait(0.05)
        assert not snapshot.exists()
    engine.close()
    assert snapshot.exists()


def test_a_load_beyond_the_memory_budget_drops_the_other_index(open_engine: OpenEngine):
    engine = open_engine(index_memory_mb=0)
    for scope in (DEFAULT, ANN):
        engine.add(scope, MemoryDraft("garden", "notes"))
        assert engine.search(scope, SearchQuery("garden")).hits
    assert happens(lambda: engine.stats(DEFAULT).index_bytes == 0)
    assert engine.stats(ANN).index_bytes > 0
    assert engine.search(DEFAULT, SearchQuery("garden")).hits
    assert list(engine.check()) == []


AN_INSTANT_H = 1e-9
ALWAYS = {"snapshot_interval_s": 0.001, "backup_interval_hours": AN_INSTANT_H}


def scheduled(engine: MemoryEngine) -> list[int]:
    """Return the numbers of memories in the scheduled backups, newest first."""
    return [backup.memories for backup in engine.backups() if backup.reason == SCHEDULED]


def until_newest_is(engine: MemoryEngine, memories: int) -> None:
    assert happens(lambda: scheduled(engine)[:1] == [memories])


def test_a_due_backup_is_made_only_after_changes(open_engine: OpenEngine):
    engine = open_engine(**ALWAYS)
    for count in (1, 2):
        engine.add(DEFAULT, MemoryDraft(f"garden {count}", "notes"))
        until_newest_is(engine, count)
    Event().wait(0.05)  # some fifty turns
    assert scheduled(engine) == [2, 1]


def test_a_restart_does_not_repeat_a_scheduled_backup(open_engine: OpenEngine):
    engine = open_engine(**ALWAYS)
    engine.add(DEFAULT, MemoryDraft("garden", "notes"))
    assert happens(lambda: scheduled(engine) == [1])
    engine.close()
    engine = open_engine(snapshot_interval_s=0.001)
    engine.add(DEFAULT, MemoryDraft("greenhouse", "notes"))
    Event().wait(0.05)
    assert scheduled(engine) == [1]


def test_an_overdue_backup_is_made_after_the_start(open_engine: OpenEngine):
    engine = open_engine(backup_interval_hours=AN_INSTANT_H)
    engine.add(DEFAULT, MemoryDraft("garden", "notes"))
    engine.close()
    again = open_engine(**ALWAYS)
    assert happens(lambda: scheduled(again) == [1])


@pytest.mark.parametrize("hours", [0, 24])
def test_no_backup_is_made_early_or_if_disabled(open_engine: OpenEngine, hours: float):
    engine = open_engine(snapshot_interval_s=0.001, backup_interval_hours=hours)
    engine.add(DEFAULT, MemoryDraft("garden", "notes"))
    Event().wait(0.05)
    assert scheduled(engine) == []


def test_a_failed_backup_is_logged_and_retried(open_engine: OpenEngine, settings: Settings):
    settings.backup_dir.parent.mkdir()
    settings.backup_dir.touch()
    with capture_logs() as logs:
        engine = open_engine(**ALWAYS)
        engine.add(DEFAULT, MemoryDraft("garden", "notes"))
        assert happens(lambda: any(line["event"] == "maintenance_failed" for line in logs))
        settings.backup_dir.unlink()
        assert happens(lambda: scheduled(engine) == [1])


def test_scheduled_backups_are_evicted_before_named_ones(open_engine: OpenEngine):
    engine = open_engine(max_backups=2, **ALWAYS)
    engine.back_up(reason="manual")
    for count in (1, 2, 3):
        engine.add(DEFAULT, MemoryDraft(f"garden {count}", "notes"))
        until_newest_is(engine, count)
    assert happens(lambda: [backup.reason for backup in engine.backups()] == [SCHEDULED, "manual"])
