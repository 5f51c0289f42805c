"""Scheduled backups are made once an interval, whatever the clock says."""

from __future__ import annotations

from datetime import datetime, timedelta

from souvenir.memories.backup_schedule import BackupSchedule
from souvenir.store.sqlite.backups import Backup
from tests.store.stored import NOW

DAY, YEAR = timedelta(days=1), timedelta(days=365)


class Service:
    """Runs a schedule with clocks that are set by the test; each turn, the store has changed."""

    def __init__(self, *made_at: datetime) -> None:
        self.backups: list[Backup] = []
        self.turns = 0
        for at in made_at:
            self._make(at)
        self.start()

    def start(self) -> None:
        self.elapsed_s = 0.0
        self.schedule = BackupSchedule(DAY, clock=lambda: self.elapsed_s)

    def turn(self, now: datetime, *, after: timedelta = timedelta(), changed: bool = True) -> bool:
        """Let time pass, and return whether a backup was made."""
        self.elapsed_s += after.total_seconds()
        self.turns += changed
        due = self.schedule.is_due(self.backups, first_write=NOW - 9 * YEAR, state=self.turns, now=now)
        if due:
            self.schedule.made(self._make(now))
        return due

    def _make(self, at: datetime) -> Backup:
        number = len(self.backups) + 1
        made = Backup(f"{number}", "scheduled", at.isoformat(), "", 0, 0, 0, 0, 0, number, self.turns)
        self.backups.insert(0, made)
        return made


def test_a_backup_is_made_once_an_interval_across_restarts():
    service = Service(NOW - DAY / 2)
    assert not service.turn(NOW)
    assert service.turn(NOW + DAY / 2, after=DAY / 2)
    service.start()
    assert not service.turn(NOW + DAY)
    assert service.turn(NOW + 2 * DAY, after=DAY)


def test_a_backup_from_the_future_does_not_stop_later_ones():
    service = Service(NOW - DAY, NOW + YEAR)
    assert service.turn(NOW)
    assert not service.turn(NOW, after=DAY / 2)
    assert service.turn(NOW, after=DAY / 2)


def test_only_backups_from_the_future_count_from_when_they_are_first_seen():
    service = Service(NOW + YEAR)
    assert not service.turn(NOW)
    assert service.turn(NOW, after=DAY)


def test_a_clock_that_jumps_makes_no_further_backups():
    service = Service(NOW)
    jumps = [service.turn(NOW + (YEAR if number % 2 else -DAY), after=DAY / 100) for number in range(99)]
    assert sum(jumps) == 0
    assert service.turn(NOW, after=DAY)


def test_an_unchanged_store_needs_no_backup_whatever_the_time_of_its_last_write():
    service = Service()
    assert service.turn(NOW)
    assert not service.turn(NOW + YEAR, after=9 * DAY, changed=False)
    assert service.turn(NOW - YEAR, after=DAY)
