"""Loss of acknowledged commits: found at the start, and reported until an operator accepts it.

The database is compared with the marker (`souvenir.store.sqlite.generations`) and with the snapshots of the indexes.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import apsw
import structlog

from souvenir.core.array_file import header_of
from souvenir.core.files import sync
from souvenir.core.passages import CommitId
from souvenir.core.service_warnings import ServiceWarnings
from souvenir.core.settings import Settings
from souvenir.core.timestamps import from_us, to_us, utc_now
from souvenir.store.rows import first, select
from souvenir.store.sql import Connection
from souvenir.store.sqlite.backups import Backup
from souvenir.store.sqlite.generations import (
    COUNTED,
    Marked,
    is_replaced,
    issued,
    last_commit,
    marker_path,
    read_marker,
)
from souvenir.store.sqlite.permissions import REPLACED
from souvenir.store.sqlite.schema import has_table

COMMITS_MISSING = "commits_missing"

MISSING = "acknowledged commits are missing from the database"
"""Words of every message about a loss."""

NEWEST_SNAPSHOTS = 256
"""Snapshots whose commits are looked up at a start: there may be many thousands."""

log = structlog.get_logger(__name__)


def find_loss(connection: apsw.Connection, settings: Settings) -> Loss | None:
    """Return the commits that the database has lost, and keep a copy of its log; None if it has all.

    :param connection: Has written nothing since it was opened.
    """
    path = settings.database_path
    found = _compared(connection, read_marker(marker_path(path)), [*_snapshot_commits(settings.index_dir)])
    return None if found is None else replace(found, kept_log=_keep_log(path))


def record(connection: apsw.Connection, loss: Loss, newest: Backup | None) -> None:
    """Store a loss until it is accepted.

    :param newest: The newest backup.
    """
    message = f"{loss.sentence()}; there is no backup: run `python app.py accept-loss`"
    if newest is not None:
        message = (
            f"{loss.sentence()}; run `python app.py restore {newest.name}` if this newest backup has more, otherwise "
            "`python app.py accept-loss`"
        )
    connection.execute(
        "INSERT INTO incidents (at, code, message) VALUES (?, ?, ?)", (to_us(utc_now()), COMMITS_MISSING, message)
    )


def recorded(connection: Connection) -> list[str]:
    """Return the messages of the losses that are not accepted, oldest first."""
    return list(select(connection, str, "SELECT message FROM incidents ORDER BY id"))


def accept(connection: apsw.Connection) -> None:
    """Forget all losses."""
    connection.execute("DELETE FROM incidents")


def show(connection: apsw.Connection, warnings: ServiceWarnings) -> None:
    """Make the recorded losses a warning."""
    messages = recorded(connection)
    if messages:
        warnings.put(COMMITS_MISSING, " / ".join(messages))
    else:
        warnings.clear(COMMITS_MISSING)


def _keep_log(path: Path) -> Path | None:
    """Copy the write-ahead log of a database; return the copy, or None if the log is empty."""
    wal = path.with_name(path.name + "-wal")
    if not wal.exists() or not wal.stat().st_size:
        return None
    kept = wal.with_name(f"{wal.name}{REPLACED}-{uuid.uuid4().hex[:8]}")
    shutil.copyfile(wal, kept)
    sync(kept)
    return kept


def index_snapshots(index_dir: Path) -> Sequence[Path]:
    """Return the index snapshots in a folder, the newest first; none, with a log line, if it cannot be read."""
    try:
        found = [path for path in index_dir.iterdir() if path.suffix == ".index"]
        return sorted(found, key=lambda path: -path.stat().st_mtime_ns)
    except FileNotFoundError:
        return []
    except OSError as error:
        log.warning("index_folder_unreadable", folder=str(index_dir), reason=str(error))
        return []


def _snapshot_commits(index_dir: Path) -> Iterator[CommitId]:
    """Yield the commits of the newest index snapshots in a folder, which are the greatest.

    Unreadable ones are skipped, since they are not used.
    """
    for path in index_snapshots(index_dir)[:NEWEST_SNAPSHOTS]:
        try:
            stated = header_of(path)
            yield CommitId(str(stated["generation"]), int(stated["commit"]))
        except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
            log.info("index_snapshot_unreadable", path=str(path), reason=str(error))


@dataclass(frozen=True, slots=True)
class Loss:
    """Commits that were acknowledged and are not in the database.

    :param commits: Their number, at least. :param until_us: The time of the last acknowledged one; None if unknown.
    :param issued: The greatest ids that were issued, by table, as far as known; `present` those of the database.
    :param kept_log: The copy of the log, if there was one.
    """

    commits: int
    until_us: int | None = None
    issued: Mapping[str, int] = field(default_factory=dict)
    present: Mapping[str, int] = field(default_factory=dict)
    kept_log: Path | None = None

    def sentence(self) -> str:
        """Return what is missing, for operators."""
        until = "" if self.until_us is None else f", the last of {from_us(self.until_us).isoformat(timespec='seconds')}"
        named = [
            f"{table} with the ids {self.present[table] + 1} to {last}"
            for table, last in self.issued.items()
            if last > self.present[table]
        ]
        rows = f": {' and '.join(named)}, and changes and deletions of that time" if named else ""
        kept = "" if self.kept_log is None else f"; the log is kept as {self.kept_log}"
        return (
            f"At least {self.commits} {MISSING}{until}{rows}; its log was damaged or removed, or an older copy was put "
            f"back{kept}"
        )


def _compared(connection: apsw.Connection, marked: Marked | None, derived: Sequence[CommitId]) -> Loss | None:
    """Compare the database with records of its commits outside of it.

    :param marked: The marker. :param derived: The commits of index snapshots.
    """
    if not has_table(connection, "generations"):
        # A copy of an older release was put back, unless this is its upgrade.
        return None if marked is None else Loss(marked.number, marked.at_us)
    present = last_commit(connection)
    lost = [_lost_after(connection, present, commit, is_marker=False) for commit in derived]
    if marked is None:
        most = max(lost, default=0)
        return Loss(most) if most else None
    of_marker = _lost_after(connection, present, marked.commit, is_marker=True)
    most = max([*lost, of_marker])
    if not most:
        return None
    issued_ids, present_ids = (dict(zip(COUNTED, ids, strict=True)) for ids in (marked.ids, issued(connection)))
    return Loss(most, marked.at_us, issued_ids, present_ids)


def _lost_after(connection: apsw.Connection, present: CommitId, commit: CommitId, *, is_marker: bool) -> int:
    """Return how many commits up to this one the database lacks.

    A generation that the database does not know began after the database was copied, or belongs to a history that a
    restore replaced, whose snapshots may still be there.
    """
    last = first(connection, int, "SELECT last_commit FROM generations WHERE id = ?", (commit.generation,))
    if last is not None:
        return max(0, commit.number - last)
    if not is_marker or is_replaced(connection, commit.generation):
        return 0
    return max(1, commit.number - present.number)
