"""When the service backs itself up: some hours after the last time, and only what changed since."""

from __future__ import annotations

from datetime import datetime, timedelta

from souvenir.moments import utc_now
from souvenir.settings import Settings
from souvenir.store import reads
from souvenir.store.backups import SCHEDULED
from souvenir.store.database import Database


def back_up_if_due(database: Database, settings: Settings) -> None:
    """Make a scheduled backup if it is time for one.

    Counted from the newest scheduled backup that is there, or else from the first write, so that a restart neither
    repeats nor puts off one. A store that did not change keeps its older backups.

    :raises Unavailable: If it cannot be written; it is still due then.
    """
    now = utc_now()
    if settings.backup_interval_hours and _is_due(database, timedelta(hours=settings.backup_interval_hours), now):
        database.back_up(reason=SCHEDULED, now=now)


def _is_due(database: Database, interval: timedelta, now: datetime) -> bool:
    with database.read() as connection:
        written = reads.first_and_last_write(connection)
    if written is None:
        return False
    first, last = written
    made = (backup.created_at for backup in database.backups.all() if backup.reason == SCHEDULED)
    newest = next((datetime.fromisoformat(created_at) for created_at in made), None)
    if newest is None:
        return now - first >= interval
    return last > newest and now - newest >= interval
