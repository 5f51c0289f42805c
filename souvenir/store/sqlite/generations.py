"""Numbered commits in generations, and the file by which a start sees that the database lost some.

A generation is one run of the writer. It has a random id, stored with its first commit, so two histories that continue
from one copy of the database differ. Data derived from the database, such as a snapshot of an index, records the commit
of its state, and is used only if the history of the database includes that commit.

SQLite cannot know that the end of its log was lost or that a copy was put back. So the last acknowledged commit is also
in a file next to the database, written in place after each commit and before its answer. It is not synced then: after a
power cut it may be older than the database, which is harmless, but never newer.
"""

from __future__ import annotations

import json
import os
import uuid
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import apsw
import structlog

from souvenir.core.passages import CommitId
from souvenir.core.service_warnings import ServiceWarnings
from souvenir.core.timestamps import to_us, utc_now
from souvenir.store import index_changes, meta
from souvenir.store.rows import only, select
from souvenir.store.sql import Connection

MARKER_SUFFIX = ".commit"
MARKER_UNWRITABLE = "commit_marker_unwritable"

COUNTED = ("memories", "messages")
"""Tables whose greatest issued ids are in the marker, so that a loss can be named."""

_MARKER_BYTES = 512
"""A disk writes a sector of this size whole."""

_RESTORED_OVER = "restored_over"
"""The key in `meta` of the generations that a restore replaced, as JSON."""

log = structlog.get_logger(__name__)


def last_commit(connection: Connection) -> CommitId:
    """Return the last commit of the database's history."""
    return only(connection, CommitId, "SELECT id, last_commit FROM generations ORDER BY first_commit DESC LIMIT 1")


def history_id(connection: Connection) -> str:
    """Return an id that every restore changes."""
    return only(connection, str, "SELECT id FROM generations ORDER BY first_commit LIMIT 1")


def includes(connection: Connection, commit: CommitId) -> bool:
    """Return whether the history of the database contains a commit."""
    query = "SELECT EXISTS (SELECT 1 FROM generations WHERE id = ? AND ? BETWEEN first_commit AND last_commit)"
    return bool(connection.execute(query, commit).get)


def is_replaced(connection: Connection, generation: str) -> bool:
    """Return whether the database was restored over one of that generation."""
    return generation in json.loads(meta.get(connection, _RESTORED_OVER) or "[]")


def begin_history(connection: Connection, over: Iterable[CommitId]) -> None:
    """Begin a new history, for a restored or renumbered database; losses of the old one are forgotten.

    :param over: The last commits of the replaced database, as far as they are known.
    """
    replaced = [last_commit(connection), *over]
    number = 1 + max(commit.number for commit in replaced)
    with connection:
        connection.execute("DELETE FROM generations")
        connection.execute("INSERT INTO generations VALUES (?, ?, ?)", (uuid.uuid4().hex, number, number))
        connection.execute("DELETE FROM incidents")
        index_changes.clear(connection)
        over_ids = json.dumps([commit.generation for commit in replaced])
        meta.put(connection, _RESTORED_OVER, over_ids)


class Marked(NamedTuple):
    """The content of a marker: a commit, its time in microseconds, and the greatest ids of `COUNTED`."""

    generation: str
    number: int
    at_us: int
    ids: tuple[int, ...]

    @property
    def commit(self) -> CommitId:
        return CommitId(self.generation, self.number)


def marker_path(database_path: Path) -> Path:
    return database_path.with_name(database_path.name + MARKER_SUFFIX)


def read_marker(path: Path) -> Marked | None:
    """Return the content of a marker; None if there is none, or, with a log line, if it is unreadable.

    A power cut soon after the first start can leave it empty.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("commit_marker_unreadable", path=str(path), reason=str(error))
        return None
    if not content.strip(b"\0"):
        return None
    text, _, checksum = content.strip().rpartition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(text):
            raise ValueError("its checksum differs")
        stated = json.loads(text)
        return Marked(str(stated["generation"]), int(stated["number"]), int(stated["at_us"]), tuple(stated["ids"]))
    except (ValueError, KeyError, TypeError) as error:
        log.warning("commit_marker_unreadable", path=str(path), reason=str(error))
        return None


class CommitLog:
    """Numbers the commits of one run of the writer, and writes the marker. Used by the writer's thread only."""

    def __init__(self, connection: apsw.Connection, path: Path, warnings: ServiceWarnings) -> None:
        """:param path: The marker, whose earlier content has been judged."""
        self._path = path
        self._warnings = warnings
        self._generation = uuid.uuid4().hex
        self._numbered = self._marked(connection, last_commit(connection))
        self._descriptor: int | None = None
        self._is_failing = False
        self.committed()

    @property
    def last(self) -> CommitId:
        """The last commit that is durable."""
        return self._last

    def number(self, connection: apsw.Connection) -> None:
        """Give the open transaction its number."""
        following = "UPDATE generations SET last_commit = last_commit + 1 WHERE id = ? RETURNING last_commit"
        number = connection.execute(following, (self._generation,)).get
        if number is None:
            number = connection.execute(
                "INSERT INTO generations SELECT ?, max(last_commit) + 1, max(last_commit) + 1 FROM generations "
                "RETURNING last_commit",
                (self._generation,),
            ).get
        self._numbered = self._marked(connection, CommitId(self._generation, int(number)))

    def committed(self) -> None:
        """Record that the numbered transaction is durable. The write succeeds even if the marker cannot be written."""
        self._last = self._numbered.commit
        text = json.dumps(self._numbered._asdict(), separators=(",", ":")).encode()
        content = b"%s %08x\n" % (text, zlib.crc32(text))
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.pwrite(self._descriptor, content.rjust(_MARKER_BYTES), 0)
        except OSError as error:
            self._is_failing = True
            self._warnings.put(
                MARKER_UNWRITABLE,
                f"{self._path} cannot be written ({error.strerror}), so a loss of commits would not be noticed; "
                "make it writable",
            )
        else:
            if self._is_failing:
                self._is_failing = False
                self._warnings.clear(MARKER_UNWRITABLE)

    def sync(self) -> None:
        """Make the marker durable, so that a power cut leaves a recent one. Does not wrap OSError."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Make the marker durable, and close it. If that fails, a power cut may leave an older one."""
        if self._descriptor is not None:
            try:
                self.sync()
            except OSError as error:
                log.warning("commit_marker_not_synced", path=str(self._path), reason=str(error))
            finally:
                os.close(self._descriptor)
                self._descriptor = None

    def _marked(self, connection: apsw.Connection, commit: CommitId) -> Marked:
        return Marked(*commit, to_us(utc_now()), issued(connection))


def issued(connection: Connection) -> tuple[int, ...]:
    """Return the greatest ids that were ever given to rows of `COUNTED`."""
    issued = dict(
        select(connection, tuple[str, int], f"SELECT name, seq FROM sqlite_sequence WHERE name IN {COUNTED!r}")
    )
    return tuple(issued.get(table, 0) for table in COUNTED)
