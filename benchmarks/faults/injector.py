"""Errors of the disk, injected into the calls of a process: the n-th write, sync or change of a folder fails.

SQLite's files go through a VFS that inherits the default one, those of Python through wrappers around the functions of
`os` and `open`. A process that installs it keeps it for good; nothing fails while it is not armed.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any

import apsw


class DiskError(Enum):
    """An error as Python and as SQLite's VFS report it."""

    FULL = errno.ENOSPC
    BROKEN = errno.EIO

    def of_python(self, path: str) -> OSError:
        return OSError(self.value, os.strerror(self.value), path)

    def of_sqlite(self) -> apsw.Error:
        return apsw.FullError("injected") if self is DiskError.FULL else apsw.IOError("injected")


class Injector:
    """Counts the calls that change files below a folder, and makes some fail. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.resolve()) + "/"
        self._lock = Lock()
        self._calls = 0
        self._fails_from: int | None = None
        self._fails_until = 0
        self._error = DiskError.FULL
        self._vfs: apsw.VFS | None = None

    def install(self) -> None:
        self._vfs = _FailingVFS(self)
        builtins.open = io.open = self._guarded(builtins.open, _opens_for_writing)
        os.open = self._guarded(os.open, lambda flags, *_, **__: bool(flags & (os.O_WRONLY | os.O_RDWR)))
        for name in (
            "write",
            "pwrite",
            "fsync",
            "posix_fallocate",
            "truncate",
            "ftruncate",
            "rename",
            "replace",
            "mkdir",
        ):
            setattr(os, name, self._guarded(getattr(os, name), lambda *_, **__: True))

    @contextmanager
    def failing(self, error: DiskError, first: int, count: int) -> Iterator[None]:
        """Let `count` calls fail, from the `first` one in this block on."""
        with self._lock:
            self._calls, self._error = 0, error
            self._fails_from, self._fails_until = first, first + count
        try:
            yield
        finally:
            with self._lock:
                self._fails_from = None

    @property
    def calls(self) -> int:
        """The number of calls since the last block began."""
        return self._calls

    def due(self, path: Any) -> DiskError | None:
        """Count a call on a path, and return the error that it gets."""
        if isinstance(path, int):
            path = str(Path(f"/proc/self/fd/{path}").readlink())
        if not os.path.abspath(os.fsdecode(path)).startswith(self._folder):  # noqa: PTH100 - without following links
            return None
        with self._lock:
            self._calls += 1
            if self._fails_from is None or not self._fails_from <= self._calls < self._fails_until:
                return None
            return self._error

    def _guarded(self, real: Callable[..., Any], changes: Callable[..., bool]) -> Any:
        @wraps(real)
        def wrapped(path: Any, *arguments: Any, **named: Any) -> Any:
            if named.get("dir_fd") is None and changes(*arguments, **named) and (error := self.due(path)):
                raise error.of_python(str(path))
            return real(path, *arguments, **named)

        return wrapped


def _opens_for_writing(mode: str = "r", *_: Any, **__: Any) -> bool:
    return mode.strip("bt") != "r"


class _FailingVFS(apsw.VFS):
    def __init__(self, injector: Injector) -> None:
        self._injector = injector
        super().__init__("failing", "", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return _FailingFile(self._injector, name, flags)


class _FailingFile(apsw.VFSFile):
    def __init__(self, injector: Injector, name: Any, flags: list[int]) -> None:
        self._injector = injector
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name
        super().__init__("unix", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._fail()
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._fail()
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._fail()
        super().xSync(flags)

    def _fail(self) -> None:
        if self._path is not None and (error := self._injector.due(self._path)):
            raise error.of_sqlite()
