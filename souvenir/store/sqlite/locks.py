"""Locks that keep a second process from using a store: of its folders, and of the database file.

The lock of the database file holds even if a lock file was deleted. It is an flock, of which SQLite's own locks (POSIX
locks) are independent. But closing any descriptor of a file releases all POSIX locks that its process has on it, so the
descriptor that holds the lock is closed only after SQLite's connections.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from souvenir.core.errors import StoreUnusable
from souvenir.core.files import make_folder
from souvenir.core.settings import Settings
from souvenir.store.sqlite.permissions import LOCK_NAME, require_usable


def lock_folder(data_dir: Path) -> IO[str]:
    """Lock the folder until the returned file is closed or the process ends.

    :raises StoreUnusable: If the folder cannot be written, or another process has locked it.
    """
    try:
        make_folder(data_dir)
        lock_file = os.fdopen(os.open(data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600), "w")
    except OSError as error:
        raise StoreUnusable(
            f"DATA_DIR {data_dir} cannot be written ({error}); give it to user {os.geteuid()}, as which this runs, or "
            "set another folder"
        ) from error
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock_file.close()
        raise StoreUnusable(f"Another process uses DATA_DIR {data_dir}; stop it, or set another folder") from error
    return lock_file


class StoreLock:
    """The locks of DATA_DIR, of the folder of the database if it is another one, and of the database file if it exists.

    Held from construction until `close`.

    :raises StoreUnusable: As `lock_folder`, or if this user cannot use the database, or another process uses it.
    """

    def __init__(self, settings: Settings) -> None:
        self._path = settings.database_path
        self._database: int | None = None
        with ExitStack() as held:
            folders = {folder.resolve(): folder for folder in (self._path.parent, settings.data_dir)}
            for folder in folders.values():
                held.enter_context(lock_folder(folder))
            require_usable(settings)
            if self._path.exists():
                self._database = _locked(self._path)
            self._folders = held.pop_all()

    def lock_database(self) -> None:
        """Lock the database file, and create an empty one if there is none."""
        if self._database is None:
            self._database = _locked(self._path, os.O_CREAT)

    @contextmanager
    def replacing(self, staged: Path) -> Iterator[None]:
        """A context in which `staged` becomes the database; both are locked, and in the end the one that is it."""
        locked = _locked(staged)
        try:
            yield
        except BaseException:
            os.close(locked)
            raise
        if self._database is not None:
            os.close(self._database)
        self._database = locked

    def close(self) -> None:
        """Release all locks; SQLite's connections to the database must be closed."""
        if self._database is not None:
            os.close(self._database)
            self._database = None
        self._folders.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _locked(path: Path, flags: int = 0) -> int:
    """Open a file and lock it until the returned descriptor is closed."""
    try:
        # SQLite gives the log and its index the permissions of the database.
        descriptor = os.open(path, os.O_RDWR | flags, 0o600)
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be opened ({error}); look at the disk and at the file's owner") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise StoreUnusable(f"Another process uses {path}; stop it, or set another folder") from error
    return descriptor
