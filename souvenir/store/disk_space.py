"""Disk space: how a full disk is recognised and reported."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from souvenir.core.errors import Unavailable

DISK_ERRORS = (OSError, apsw.FullError, apsw.IOError)
"""Errors of the disk, as Python and SQLite raise them: they say nothing of the content of a file."""

_MIB = 2**20


def is_full(error: BaseException | None) -> bool:
    """Return whether the disk, or the quota of the user, has no space left."""
    if isinstance(error, apsw.IOError):
        # The shared memory of the log could not be enlarged: SQLite does not tell the reason.
        return getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE
    return isinstance(error, apsw.FullError) or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)


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
    except DISK_ERRORS as error:
        if is_full(error):
            raise full(
                f"{doing} failed because the disk is full: {space_in(folder, needed)}; "
                "free some space and try again, nothing was changed"
            ) from error
        raise other(
            f"{doing} failed because a file could not be read or written ({error}); "
            "look at the disk and try again, nothing was changed"
        ) from error
