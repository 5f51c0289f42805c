"""Runs the service or one of its commands, and exits at the n-th file operation of a restore.

    python -m benchmarks.faults.interrupted NUMBER COUNT_FILE ORDER [ARGUMENTS OF app.py]

Renames, replacements, links, deletions and syncs count, in the thread that restores. After a restore the number of its
operations is in COUNT_FILE; 0 as NUMBER interrupts none. ORDER is `shipped`, or `log-first` for the order of earlier
releases, which moves the log aside before the database and does not note that it began.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from souvenir import command_line
from souvenir.store.sqlite import restore
from souvenir.store.sqlite.database import SqliteDatabase
from souvenir.store.sqlite.permissions import REPLACED

INTERRUPTED = 97
OPERATIONS = ("replace", "rename", "link", "unlink", "fsync")
LOG_FIRST = "log-first"


class Counter:
    """Counts the operations of the thread that restores, and exits at one of them."""

    def __init__(self, number: int, file: Path) -> None:
        self._number = number
        self._file = file
        self._thread: int | None = None
        self._done = 0
        for name in OPERATIONS:
            setattr(os, name, self._counted(getattr(os, name)))

    @contextmanager
    def restoring(self) -> Iterator[None]:
        self._thread = threading.get_ident()
        yield
        self._thread = None
        self._file.write_text(str(self._done))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def counted(*arguments: Any, **options: Any) -> Any:
            if threading.get_ident() == self._thread:
                self._done += 1
                if self._done == self._number:
                    os._exit(INTERRUPTED)
            return call(*arguments, **options)

        return counted


def log_first(path: Path, _: object) -> list[Path]:
    """Move the files aside in the order of earlier releases."""
    for suffix in ("-wal", "-shm", ""):
        old = restore.sibling(path, suffix)
        if old.exists():
            old.rename(restore.sibling(path, f"{suffix}{REPLACED}-0"))
    os.replace(restore.sibling(path, restore.STAGED), path)
    return []


def main() -> None:
    number, file, order, *arguments = sys.argv[1:]
    counter = Counter(int(number), Path(file))
    if order == LOG_FIRST:
        vars(restore)["_finish_restore"] = log_first
        vars(restore)["write_private"] = lambda *_: None
    for owner, name in ((SqliteDatabase, "restore"), (command_line, "restore_offline")):
        setattr(owner, name, counter.restoring()(getattr(owner, name)))
    sys.argv = ["app.py", *arguments]
    runpy.run_path("app.py", run_name="__main__")


if __name__ == "__main__":
    main()
