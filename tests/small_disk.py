"""A real file system of some MiB, for tests of a full disk."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, *, mib: int) -> Iterator[Path]:
    """Mount an empty file system at a new folder; the test is skipped where mounting is refused."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", folder], capture_output=True, check=False, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path, *, leave: int = 0) -> Path:
    """Write a file that takes all space but this many bytes; deleting it frees the space again."""
    path = folder / "filler"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 65_536)
        except OSError:
            file.truncate(max(0, file.tell() - leave))
    return path
