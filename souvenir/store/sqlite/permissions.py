"""Permissions of the data folder: only the user that the service runs as can read stored data.

New files are private because of the umask that the service sets, and the data folder because it is created so. Folders
and files of earlier releases, or of a program that embeds the engine, lose the permissions of group and others when the
store is opened. Only files of the store are changed: DATA_DIR may be a folder with other files too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import structlog

from souvenir.core.errors import StoreUnusable
from souvenir.core.files import PRIVATE_UMASK
from souvenir.core.settings import Settings

LOCK_NAME = "souvenir.lock"

REPLACED = ".replaced"
"""Part of the names of the files that a restore replaced or a start kept; only those of an online restore go."""

log = structlog.get_logger(__name__)


def require_usable(settings: Settings) -> None:
    """:raises StoreUnusable: If this user cannot read and write the database."""
    for path in settings.database_path.parent.glob(f"{settings.database_path.name}*"):
        if not os.access(path, os.R_OK | os.W_OK):
            raise StoreUnusable(
                f"{path} belongs to user {path.stat().st_uid}, and user {os.geteuid()}, as which this runs, cannot "
                f"use it; run chown -R {os.geteuid()} {path.parent}"
            )


def make_private(settings: Settings) -> None:
    """Take the permissions of group and others from the data folder and from every file of the store.

    A file of another user cannot be changed; it is reported, and used all the same.
    """
    tightened = 0
    left_open: list[Path] = []
    for path in _paths(settings):
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & PRIVATE_UMASK:
                path.chmod(mode & ~PRIVATE_UMASK)
                tightened += 1
        except OSError:
            left_open.append(path)
    if tightened:
        log.info("data_made_private", folder=str(settings.data_dir), changed=tightened)
    if left_open:
        log.warning(
            "data_not_private",
            path=str(left_open[0]),
            count=len(left_open),
            reason="other users can read stored data, and this user cannot change the permissions",
            action=f"chown -R {os.geteuid()} {settings.data_dir}, or mount a file system that has owners",
        )


def _paths(settings: Settings) -> Iterator[Path]:
    folder, database = settings.data_dir, settings.database_path
    if not _is_shared(settings):
        yield folder
    for directory in {folder.resolve(): folder, database.parent.resolve(): database.parent}.values():
        yield from directory.glob(LOCK_NAME)
    yield from database.parent.glob(f"{database.name}*")
    yield from folder.glob(f"{settings.first_key_path.name}*")
    for directory in (settings.index_dir, settings.backup_dir, settings.import_dir):
        # What cannot be read counts as missing.
        if os.path.isdir(directory):  # noqa: PTH112 - `Path.is_dir` raises then
            yield directory
            for parent, folders, files in os.walk(directory):
                inside = (Path(parent, name) for name in chain(folders, files))
                yield from (path for path in inside if not os.path.islink(path))  # noqa: PTH114 - as above


def _is_shared(settings: Settings) -> bool:
    """Return whether the folder is shared and keeps its permissions, for example if DB_PATH names only a file."""
    folder = settings.data_dir.resolve()
    is_of_database = settings.db_path is not None and folder == settings.db_path.parent.resolve()
    return is_of_database or folder in (folder.parent, Path.home()) or bool(folder.stat().st_mode & stat.S_ISVTX)
