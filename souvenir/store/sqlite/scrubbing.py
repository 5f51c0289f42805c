"""Secure erasure: truncates the write-ahead log and overwrites unused bytes in the database file.

`secure_delete` zeroes a deleted row in place. But SQLite moves rows when pages are split and joined, and the copies
that this leaves in the unallocated middle of a page remain when the row is deleted later (measured: of 26,000 deleted
words, 40 were still in the file). SQLite's only remedy is VACUUM, which blocks all writers while it copies the whole
database. So the areas that, by the file format, are never read are overwritten here, a few pages at a time.

This runs between two writes with an empty log, so that the file is the whole database and has no other writer. A crash
leaves some unused bytes unchanged and others zero. The file is opened through SQLite's VFS, since closing it in any
other way would release the locks that this process holds on it.

https://sqlite.org/fileformat2.html, sections 1.3 (header), 1.5 (free pages) and 1.6 (b-tree pages)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from souvenir.core.errors import Unavailable

PAGES_AT_ONCE = 2_048
"""Pages processed between two writes: 8 MiB, some 50 ms."""

MAX_PAGES = 1 << 25
"""Below this page count, only b-tree pages begin with the byte of a page type: others begin with a page number."""

LOG_WAIT_MS = 200
"""Time that writers wait for readers that still need the log."""

_HEADER_BYTES = 100
_INTERIOR_INDEX, _INTERIOR_TABLE, _LEAF_INDEX, _LEAF_TABLE = 2, 5, 10, 13


class _Pages(NamedTuple):
    """Layout of the file: bytes per page, usable bytes per page, and the number of pages."""

    size: int
    usable: int
    total: int


def empty_log(connection: apsw.Connection, busy_timeout_ms: int) -> bool:
    """Checkpoint the write-ahead log and truncate it; return False if a reader still uses it.

    :param busy_timeout_ms: The connection's own timeout, which is restored afterwards.
    """
    connection.set_busy_timeout(LOG_WAIT_MS)
    try:
        busy, _, _ = next(iter(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")))
    finally:
        connection.set_busy_timeout(busy_timeout_ms)
    return not busy


def scrub(connection: apsw.Connection, path: Path, first: int) -> int | None:
    """Overwrite the unused bytes of the next pages; return the number of the following page, or None at the end.

    The log must be empty, and `connection` must be the only writer, now and later.

    :param first: Counts from 1.
    :raises Unavailable: If the database has too many pages for their types to be recognised.
    """
    # The cache must not write an old version of a page back.
    connection.execute("PRAGMA shrink_memory")
    with _open_file(path) as file:
        pages = _pages(file)
        if pages.total >= MAX_PAGES:
            raise Unavailable(f"The database has more than {MAX_PAGES} pages; VACUUM it to clear what it left")
        count = min(PAGES_AT_ONCE, pages.total - first + 1)
        if count > 0:
            _scrub_pages(file, pages, first, count)
        file.xSync(apsw.SQLITE_SYNC_FULL)
    following = first + count
    return following if following <= pages.total else None


@contextmanager
def _open_file(path: Path) -> Iterator[apsw.VFSFile]:
    file = apsw.VFSFile("", str(path.resolve()), [apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_DB, 0])
    try:
        yield file
    finally:
        file.xClose()


def _pages(file: apsw.VFSFile) -> _Pages:
    header = file.xRead(_HEADER_BYTES, 0)
    [size] = struct.unpack_from(">H", header, 16)
    size = 65_536 if size == 1 else size
    return _Pages(size, size - header[20], file.xFileSize() // size)


def _scrub_pages(file: apsw.VFSFile, pages: _Pages, first: int, count: int) -> None:
    offset = (first - 1) * pages.size
    stored = np.frombuffer(bytearray(file.xRead(count * pages.size, offset)), np.uint8).reshape(count, pages.size)
    unused = _unallocated(stored, pages, first)
    _mark_free(unused, file, pages, first)
    dirty = np.flatnonzero(((stored != 0) & unused).any(axis=1))
    stored[unused] = 0
    for row in dirty.tolist():
        file.xWrite(stored[row].tobytes(), offset + row * pages.size)


def _unallocated(stored: NDArray[np.uint8], pages: _Pages, first: int) -> NDArray[np.bool_]:
    """Return a mask of the bytes between cell pointers and cells of each page, shape (count, size)."""
    wide = stored.astype(np.int64)
    begins = np.zeros(len(stored), np.int64)
    begins[: first == 1] = _HEADER_BYTES
    at = begins[:, None] + np.arange(7)
    header = np.take_along_axis(wide, at, axis=1)
    kind, cells = header[:, 0], header[:, 3] << 8 | header[:, 4]
    content = header[:, 5] << 8 | header[:, 6]
    content[content == 0] = 65_536
    interior = (kind == _INTERIOR_INDEX) | (kind == _INTERIOR_TABLE)
    leaf = (kind == _LEAF_INDEX) | (kind == _LEAF_TABLE)
    pointers_end = begins + np.where(interior, 12, 8) + 2 * cells
    sound = (interior | leaf) & (pointers_end <= content) & (content <= pages.usable)
    column = np.arange(pages.size)
    unused: NDArray[np.bool_] = (column >= pointers_end[:, None]) & (column < content[:, None]) & sound[:, None]
    return unused


def _mark_free(unused: NDArray[np.bool_], file: apsw.VFSFile, pages: _Pages, first: int) -> None:
    """Add free pages, and the unused rest of pages that list free pages, to the mask."""
    following = first + len(unused)
    [trunk] = struct.unpack(">I", file.xRead(4, 32))
    for _ in range(pages.total):
        if not trunk:
            return
        numbers = np.frombuffer(file.xRead(pages.size, (trunk - 1) * pages.size), ">u4").astype(np.int64)
        listed = int(numbers[1])
        leaves = numbers[2 : 2 + listed]
        unused[leaves[(leaves >= first) & (leaves < following)] - first] = True
        if first <= trunk < following:
            unused[trunk - first] = np.arange(pages.size) >= 4 * (2 + listed)
        trunk = int(numbers[0])
