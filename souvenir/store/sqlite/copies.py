"""Copies of the database in the data folder: backups, and the files that an offline restore replaced.

An erasure searches them for erased data and removes it on request. An unreadable copy counts as holding it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import apsw
import structlog

from souvenir.core.errors import BackupDamaged, BackupNotFound
from souvenir.store import pending_removals
from souvenir.store.sqlite.backups import Backups
from souvenir.store.sqlite.connections import open_reader
from souvenir.store.sqlite.permissions import REPLACED
from souvenir.store.sqlite.restore import rewrite_backup
from souvenir.store.tombstones import Tombstone

T = TypeVar("T")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies of one database. A query of all backups covers those that exist when it runs."""

    backups: Backups
    database_path: Path

    def query(self, question: Callable[[apsw.Connection], T]) -> Iterator[tuple[str, T | None]]:
        """Yield each backup's name and the result of a query on it; None for a backup that cannot be read."""
        for name, path in self.backups.databases():
            try:
                with closing(open_reader(path)) as connection:
                    answer = question(connection)
            except apsw.Error as error:
                if path.exists():
                    log.warning("backup_unreadable", backup=name, reason=str(error))
                    yield name, None
            else:
                yield name, answer

    def holding(self, rows: Sequence[Tombstone]) -> list[str]:
        """Return the backups that hold a target of one of these tombstones, or that cannot be read."""
        targets = [row.target for row in rows]
        return [
            name
            for name, held in self.query(lambda one: bool(pending_removals.present(one, targets)))
            if held is not False
        ]

    def forget(self, name: str, rows: Sequence[Tombstone]) -> bool:
        """Remove the targets of tombstones from a backup; return False if it was unusable and had to be dropped."""
        try:
            rewrite_backup(self.backups, name, rows)
        except BackupNotFound:
            # It was evicted meanwhile.
            return True
        except BackupDamaged as error:
            log.warning("backup_dropped", backup=name, reason=error.message)
            self.backups.drop(name)
            return False
        return True

    def replaced(self) -> list[Path]:
        """Return the files that offline restores put aside; they are no longer read."""
        return sorted(self.database_path.parent.glob(f"{self.database_path.name}*{REPLACED}-*"))
