"""Faults of the index folder that the operating system reports: no permission, another file in its place, EIO."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
CAPABILITY_VERSION_3 = 0x20080522


@contextmanager
def unreadable(folder: Path) -> Iterator[None]:
    """Take all permissions of the folder, also from root in this thread and in those that it starts meanwhile."""
    mode = folder.stat().st_mode
    with without_override():
        folder.chmod(0)
        try:
            with pytest.raises(PermissionError):
                list(folder.iterdir())
            yield
        finally:
            folder.chmod(mode)


@contextmanager
def replaced_by_a_file(folder: Path) -> Iterator[None]:
    """Replace the folder by a file."""
    aside = folder.with_name(folder.name + ".aside")
    folder.rename(aside)
    folder.write_bytes(b"not a folder")
    try:
        yield
    finally:
        folder.unlink()
        aside.rename(folder)


@contextmanager
def failing_reads(folder: Path) -> Iterator[None]:
    """Fail every opening of a file in the folder with EIO, as a bad disk does."""
    with pytest.MonkeyPatch.context() as patch:
        opened = Path.open

        def fail(path: Path, *arguments: Any, **named: Any) -> Any:
            if path.parent == folder:
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
            return opened(path, *arguments, **named)

        patch.setattr(Path, "open", fail)
        yield


@contextmanager
def without_override() -> Iterator[None]:
    """Take from this thread the capabilities by which root ignores permissions."""
    if os.geteuid():
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, threading.get_native_id())
    held = (ctypes.c_uint32 * 6)()
    if libc.capget(header, held):
        pytest.skip("this system does not tell the capabilities of a thread")
    less = type(held)(*held)
    less[0] &= ~(1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH)
    if libc.capset(header, less):
        pytest.skip("this system does not change the capabilities of a thread")
    try:
        yield
    finally:
        libc.capset(header, held)
