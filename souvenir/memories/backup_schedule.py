"""When a scheduled backup is due: by elapsed time, so that a wrong clock neither stops backups nor multiplies them.

The date of a backup counts only once, when this process first sees the backup, and only if it is not in the future.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from souvenir.store.sqlite.backups import Backup


class BackupSchedule:
    """Used by one thread."""

    def __init__(self, interval: timedelta, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval.total_seconds()
        self._clock = clock
        self._newest: str | None = None
        self._began_s: float | None = None
        """The time, by `clock`, from which the interval counts after the backup `_newest`."""

    def is_due(self, backups: Sequence[Backup], *, first_write: datetime, state: int, now: datetime) -> bool:
        """Count from the newest scheduled backup, or else from the first write, so that a restart has no effect.

        :param backups: The scheduled ones, newest first.
        :param state: That of the store: an unchanged store needs no further backup.
        """
        newest = backups[0].name if backups else None
        if self._began_s is None or newest != self._newest:
            times = [datetime.fromisoformat(backup.created_at) for backup in backups] or [first_write]
            age = next((now - one for one in times if one <= now), timedelta())
            self._newest, self._began_s = newest, self._clock() - age.total_seconds()
        if backups and backups[0].state == state:
            return False
        return self._clock() - self._began_s >= self._interval_s

    def made(self, backup: Backup) -> None:
        """Count from a backup that was just made."""
        self._newest, self._began_s = backup.name, self._clock()
