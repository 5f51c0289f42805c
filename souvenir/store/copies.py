"""The copies of the database that lie in the data folder: backups, and the files that an offline restore replaced.

What was erased is looked for here, and removed here too if that is asked for. A copy that cannot be read may hold it.
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
from souvenir.store.backups import Backups
from souvenir.store.connections import open_reader
from souvenir.store.restore import REPLACED, rewrite_backup
from souvenir.store.tombstones import Tombstone

T = TypeVar("T")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Copies:
    """Of one database. What is asked of all backups is asked of those that are there at that moment."""

    backups: Backups
    database_path: Path

    def ask(self, question: Callable[[apsw.Connection], T]) -> Iterator[tuple[str, T | None]]:
        """What each backup answers, by its name; None from one that cannot be read."""
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
        """The backups that hold something that has one of these tombstones, or that cannot be read."""
        targets = [row.target for row in rows]
        return [
            name
            for name, held in self.ask(lambda one: bool(pending_removals.present(one, targets)))
            if held is not False
        ]

    def forget(self, name: str, rows: Sequence[Tombstone]) -> bool:
        """Remove what has a tombstone from a backup; False if it had to be dropped instead, since it cannot be used."""
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
        """The files that offline restores put aside; nothing reads them any more."""
        return sorted(self.database_path.parent.glob(f"{self.database_path.name}*{REPLACED}-*"))
