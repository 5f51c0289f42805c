"""Exports: one state of the database, streamed without holding the database for a slow client.

A thread reads the exported rows in one read transaction and writes the lines to an unnamed temporary file at full
speed; the answer is read from that file concurrently. So the duration of the read transaction does not depend on the
client, and the file is deleted with the answer or the process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryFile
from threading import Condition, Semaphore, Thread
from weakref import WeakSet, finalize

import structlog

from souvenir.core.errors import Overloaded, SouvenirError, Unavailable
from souvenir.core.types import Filters, HistoryEntry, Memory, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import transfers
from souvenir.store.namespaces import Namespace
from souvenir.store.sql import Connection
from souvenir.transfer.lines import ExportFormat

PAGE_SIZE = 200
CHUNK_BYTES = 256 * 1024

MAX_READING = 2
"""Maximum number of exports that read the database concurrently; searches need its few read connections too."""

MAX_OPEN = 8
"""Maximum number of concurrent exports, each with a file as large as its answer."""

STALLED_S = 60.0
"""How long an answer waits for the next lines."""

log = structlog.get_logger(__name__)


class Exports:
    """Creates the exports of one engine."""

    def __init__(self, engine: MemoryEngine, directory: Path) -> None:
        self._engine = engine
        self._directory = directory
        self._reading = Semaphore(MAX_READING)
        self._open: WeakSet[_Export] = WeakSet()

    def stream(self, scope: Scope, filters: Filters, written_as: ExportFormat, *, history: bool) -> Iterator[bytes]:
        """Return the header with the exact count, then the visible memories in the order of their ids.

        :raises Overloaded: If too many exports run.
        :raises Unavailable: If the database cannot be read, or the disk is full.
        """
        return self.stream_lines(self._lines(scope, filters, written_as, history=history))

    def stream_lines(self, lines: Generator[bytes]) -> Iterator[bytes]:
        """Stream the output of a generator that reads the database on a separate thread.

        :raises Overloaded: If too many exports run.
        :raises SouvenirError: If the generator raises before its first line.
        """
        if len(self._open) >= MAX_OPEN or not self._reading.acquire(blocking=False):
            raise Overloaded("Too many exports run; try again when one is done", retry_after_s=10)
        try:
            export = _Export(self._directory)
            self._open.add(export)
            Thread(target=self._fill, args=(export, lines), name="souvenir-export", daemon=True).start()
        except BaseException as error:
            self._reading.release()
            if isinstance(error, OSError):
                raise Unavailable("The export could not be begun; look at the space in DATA_DIR") from error
            raise
        return export.chunks(first=export.next_chunk(0))

    def _fill(self, export: _Export, lines: Generator[bytes]) -> None:
        try:
            with closing(lines):
                export.fill(lines)
        finally:
            self._reading.release()

    def _lines(self, scope: Scope, filters: Filters, written_as: ExportFormat, *, history: bool) -> Generator[bytes]:
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                yield written_as.header(0)
                return
            yield written_as.header(transfers.count_selected(connection, namespace, filters))
            yield from memory_lines(connection, namespace, filters, written_as.line, history=history)


def memory_lines(
    connection: Connection,
    namespace: Namespace,
    filters: Filters,
    write: Callable[[Memory, Sequence[HistoryEntry] | None], bytes],
    *,
    history: bool,
) -> Iterator[bytes]:
    """Yield the visible memories in the order of their ids, each serialised with its history or None."""
    after_id = 0
    while page := transfers.selected(connection, namespace, filters, after_id=after_id, limit=PAGE_SIZE):
        entries = transfers.histories(connection, namespace, [memory.id for memory in page]) if history else {}
        for memory in page:
            yield write(memory, entries.get(memory.id))
        after_id = page[-1].id


class _Export:
    """A file that one thread writes while another reads it. Deleted when both have closed it."""

    def __init__(self, directory: Path) -> None:
        with TemporaryFile(dir=directory) as file:
            self._descriptor = os.dup(file.fileno())
        finalize(self, os.close, self._descriptor)
        self._changed = Condition()
        self._written = 0
        self._finished = False
        self._abandoned = False
        self._failure: SouvenirError | None = None

    def fill(self, lines: Iterator[bytes]) -> None:
        """Write the lines in large chunks; the first chunk is written at once."""
        failure: SouvenirError | None = None
        try:
            self._append(bytearray(next(lines)))
            gathered = bytearray()
            for line in lines:
                gathered += line
                if len(gathered) >= CHUNK_BYTES:
                    self._append(gathered)
                    gathered = bytearray()
                if self._abandoned:
                    break
            self._append(gathered)
        except SouvenirError as error:
            failure = error
        except OSError as error:
            failure = Unavailable("The export could not be written to disk; look at the space in DATA_DIR")
            failure.__cause__ = error
        except Exception as error:  # the boundary of a thread; the reader raises the error
            log.exception("export_failed")
            failure = Unavailable("The export failed; look at the service's log")
            failure.__cause__ = error
        with self._changed:
            self._failure, self._finished = failure, True
            self._changed.notify_all()

    def _append(self, piece: bytearray) -> None:
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        with self._changed:
            self._written += len(piece)
            self._changed.notify_all()

    def next_chunk(self, offset: int) -> bytes:
        """Return the next bytes from this offset; empty after the last.

        :raises SouvenirError: The error that ended the export.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._written > offset or self._finished, STALLED_S):
                raise Unavailable("The export waited too long for the database; try again in a moment")
            if self._failure is not None:
                raise self._failure
        return os.pread(self._descriptor, CHUNK_BYTES, offset)

    def chunks(self, first: bytes) -> Iterator[bytes]:
        try:
            offset, chunk = 0, first
            while chunk:
                yield chunk
                offset += len(chunk)
                chunk = self.next_chunk(offset)
        finally:
            self._abandoned = True
