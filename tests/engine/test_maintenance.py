"""The background turn: it runs when asked and now and then, survives its failures, and ends when closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Event
from time import monotonic

import pytest
from structlog.testing import capture_logs

from memory_engine import MemoryEngine
from souvenir.engine.maintenance import Maintenance
from souvenir.index import registry
from souvenir.settings import Settings
from souvenir.types import MemoryDraft, SearchQuery
from tests.engine.conftest import OpenEngine
from tests.engine.verbs import ANN, DEFAULT

PATIENCE_S = 20.0
NEVER_S = 1e6


class Turns:
    """Counts turns; the first ones fail."""

    def __init__(self, failures: int = 0) -> None:
        self.count = 0
        self._failures = failures
        self.happened = Event()

    def __call__(self) -> None:
        self.count += 1
        self.happened.set()
        if self.count <= self._failures:
            raise ZeroDivisionError


def until(happened: Callable[[], bool]) -> None:
    deadline = monotonic() + PATIENCE_S
    while not happened():
        assert monotonic() < deadline, "it did not happen in time"
        Event().wait(0.001)


@contextmanager
def running(turns: Turns, interval_s: float) -> Iterator[Maintenance]:
    maintenance = Maintenance(turns, interval_s=interval_s)
    maintenance.start()
    with closing(maintenance):
        yield maintenance


def test_a_turn_comes_soon_after_it_is_asked_for_and_not_before():
    turns = Turns()
    with running(turns, NEVER_S) as maintenance:
        assert turns.count == 0
        maintenance.ask()
        assert turns.happened.wait(PATIENCE_S)
    assert turns.count == 1


def test_turns_come_by_themselves_and_go_on_after_failures():
    turns = Turns(failures=3)
    with capture_logs() as logs, running(turns, 0.001):
        until(lambda: turns.count > 5)
    assert [line["event"] for line in logs] == ["maintenance_failed"] * 3


def test_no_turn_begins_after_closing():
    turns = Turns()
    with running(turns, 0.001) as maintenance:
        until(lambda: turns.count > 0)
        maintenance.close()
        count = turns.count
        maintenance.ask()
    assert turns.count == count


@pytest.mark.parametrize("changes", [4, 5])
def test_an_index_that_changed_much_is_written_while_the_engine_runs(
    open_engine: OpenEngine, settings: Settings, monkeypatch: pytest.MonkeyPatch, changes: int
):
    monkeypatch.setattr(registry, "SNAPSHOT_MIN_CHANGES", 5)
    engine: MemoryEngine = open_engine(snapshot_interval_s=0.001)
    engine.search(DEFAULT, SearchQuery("garden"))
    engine.add_batch(DEFAULT, [MemoryDraft(f"garden {number}", "notes") for number in range(changes)])
    engine.search(DEFAULT, SearchQuery("garden"))
    manifest = settings.index_dir / "1.json"
    if changes >= 5:
        until(manifest.exists)
    else:
        Event().wait(0.05)
        assert not manifest.exists()
    engine.close()
    assert manifest.exists()


def test_without_room_the_index_of_the_other_namespace_is_dropped_after_a_load(open_engine: OpenEngine):
    engine = open_engine(index_memory_mb=0)
    for scope in (DEFAULT, ANN):
        engine.add(scope, MemoryDraft("garden", "notes"))
        assert engine.search(scope, SearchQuery("garden")).hits
    until(lambda: engine.stats(DEFAULT).index_bytes == 0)
    assert engine.stats(ANN).index_bytes > 0
    assert engine.search(DEFAULT, SearchQuery("garden")).hits
    assert list(engine.check()) == []
