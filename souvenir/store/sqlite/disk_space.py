"""Disk space: how a full disk is recognised and reported, and the space that is kept in reserve for deletions."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from souvenir.core.errors import DiskFull, Unavailable
from souvenir.core.service_warnings import ServiceWarnings

DISK_ERRORS = (OSError, apsw.FullError, apsw.IOError)
"""Errors of the disk, as Python and SQLite raise them: they say nothing of the content of a file."""

RESERVE = ".reserve"
"""The suffix of the file that takes up the space in reserve."""

RESERVE_BYTES = 16 * 2**20
"""Measured on a database of 50 MB: the largest deletion, of 500 memories by id, writes 6.3 MiB to the log, a step of an
erasure 2.7 MiB, and one memory 0.07 MiB. Copying an earlier log to the database takes up to 4 MiB."""

DISK_FULL = "disk_full"
NO_RESERVE = "no_reserve"

_MIB = 2**20


def disk_error(error: BaseException | None) -> BaseException | None:
    """Return the error of the disk from which another one follows; None if there is none.

    After some errors SQLite ends the transaction itself, so that the rollback that follows fails too.
    """
    while error is not None and not isinstance(error, DISK_ERRORS):
        error = error.__context__
    return error


def is_full(error: BaseException | None) -> bool:
    """Return whether the disk, or the quota of the user, has no space left."""
    if isinstance(error, apsw.IOError):
        # The shared memory of the log could not be enlarged: SQLite does not tell the reason.
        return getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE
    return isinstance(error, apsw.FullError | DiskFull) or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)


def space_in(folder: Path, needed: int) -> str:
    """Return a part of a sentence: the bytes that something needs in a folder, and those that are free."""
    free = shutil.disk_usage(folder).free
    return f"about {needed / _MIB:.1f} MiB are needed in {folder} and {free / _MIB:.1f} MiB are free"


@contextmanager
def disk_errors(
    doing: str, folder: Path, needed: int, *, full: type[Unavailable], other: type[Unavailable]
) -> Iterator[None]:
    """Replace errors of the disk by a sentence.

    :param doing: The subject of the sentence, for example "The restore".
    :param needed: The approximate number of bytes that it writes.
    """
    try:
        yield
    except (OSError, apsw.Error) as error:
        cause = disk_error(error)
        if cause is None:
            raise
        if is_full(cause):
            raise full(
                f"{doing} failed because the disk is full: {space_in(folder, needed)}; "
                "free some space and try again, nothing was changed"
            ) from error
        raise other(
            f"{doing} failed because a file could not be read or written ({cause}); "
            "look at the disk and try again, nothing was changed"
        ) from error


class Reserve:
    """A file of `RESERVE_BYTES` next to the database, deleted when a deletion needs the space. For one thread.

    :param path: Of the database.
    """

    def __init__(self, path: Path, warnings: ServiceWarnings) -> None:
        self._path = path.with_name(path.name + RESERVE)
        self._warnings = warnings
        self._made = False
        self.is_spent = False

    def disk_full(self, *, frees: bool) -> DiskFull:
        """Return the error of a write that needs more space than there is, even with the reserve if it frees some."""
        remedy = "free some space there" if frees else "free some space there, or delete memories, which still works"
        return DiskFull(f"The disk of {self._path.parent} is full, so nothing was written; {remedy}")

    def spend(self) -> None:
        """Free the space."""
        self.report()
        self._path.unlink(missing_ok=True)
        self._made, self.is_spent = False, True

    def report(self) -> None:
        """Warn that a write failed because the disk is full."""
        self._warnings.put(
            DISK_FULL, f"The disk of {self._path.parent} is full, at most deletions work; free some space there"
        )

    def make(self) -> None:
        """Take up the space again if it is there; otherwise warn."""
        try:
            if not self._made:
                self._allocate()
            free = shutil.disk_usage(self._path.parent).free
        except OSError as error:
            self._warnings.put(
                NO_RESERVE,
                f"There is no space to keep {RESERVE_BYTES // _MIB} MiB in reserve in {self._path.parent} "
                f"({error.strerror}), so deletions may fail when the disk is full; free some space there",
            )
            return
        self._made, self.is_spent = True, False
        self._warnings.clear(NO_RESERVE)
        if free >= RESERVE_BYTES // 4:
            self._warnings.clear(DISK_FULL)

    def _allocate(self) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        except OSError:
            self._path.unlink()
            raise
        finally:
            os.close(descriptor)
