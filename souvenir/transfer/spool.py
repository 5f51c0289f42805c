"""Import bodies on disk, from their arrival until their job has ended, so that no body is held in memory.

A spool is a file `<job id>.ndjson`. While it arrives it has another suffix, and it is completely on disk before its
job exists. It contains texts, so it never outlives its job: see `sweep`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from threading import Lock

import structlog

from souvenir.core.errors import Overloaded, PayloadTooLarge, Unavailable
from souvenir.core.files import make_folder, sync
from souvenir.core.types import Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import has_place, unfinished

WRITE_BYTES = 1024 * 1024
"""Buffer size: the part of a body that is held in memory before it is written to the file."""

MAX_LINE_BYTES = 32 * 1024 * 1024
"""Maximum length of a line: the largest memory takes some 0.3 MB, and as much again for every entry of its history."""

MAX_HEADER_BYTES = 64 * 1024

MAX_SPOOLS = 8
"""Maximum number of arriving or waiting imports, each with up to IMPORT_MAX_BYTES on disk; a key may have a share."""

log = structlog.get_logger(__name__)

_WHOLE, _ARRIVING = ".ndjson", ".arriving"


@dataclass(frozen=True, slots=True)
class Spool:
    """A completely received body. `line_count` includes empty lines."""

    job_id: str
    path: Path
    line_count: int


@dataclass(frozen=True, slots=True)
class SpooledLine:
    """`number` counts from 1, `end` is the offset of the next line; `content` is None if the line is too long."""

    number: int
    size: int
    end: int
    content: bytes | None


class Spools:
    """The folder of spools."""

    def __init__(self, engine: MemoryEngine, directory: Path, *, max_bytes: int) -> None:
        self._engine = engine
        self._directory = directory
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._mine: dict[str, str] = {}
        """The actors of active requests, by the job ids of their spools."""

    def path(self, job_id: str) -> Path:
        return self._directory / f"{job_id}{_WHOLE}"

    async def receive(self, body: AsyncIterator[bytes], actor: str) -> Spool:
        """Write a body to disk as it arrives; nothing deletes it until `until_submitted` ends.

        :raises PayloadTooLarge: If it is larger than IMPORT_MAX_BYTES.
        :raises Overloaded: If too many imports arrive or wait already, of all callers or of this actor.
        :raises Unavailable: If it cannot be written to disk.
        """
        job_id = await asyncio.to_thread(self._reserve, actor)
        try:
            return await self._write(job_id, body)
        except OSError as error:
            await asyncio.to_thread(self._remove, job_id)
            raise Unavailable("The import could not be written to disk; look at the space in DATA_DIR") from error
        except BaseException:
            await asyncio.to_thread(self._remove, job_id)
            raise

    async def _write(self, job_id: str, body: AsyncIterator[bytes]) -> Spool:
        arriving = self.path(job_id).with_suffix(_ARRIVING)
        received_bytes = line_feeds = 0
        last = b""
        with await asyncio.to_thread(arriving.open, "wb") as file:
            gathered = bytearray()
            async for chunk in body:
                received_bytes += len(chunk)
                if received_bytes > self._max_bytes:
                    raise PayloadTooLarge(self._max_bytes)
                gathered += chunk
                if len(gathered) >= WRITE_BYTES:
                    line_feeds += gathered.count(b"\n")
                    last = bytes(gathered[-1:])
                    await asyncio.to_thread(file.write, gathered)
                    gathered = bytearray()
            line_feeds += gathered.count(b"\n")
            last = bytes(gathered[-1:]) or last
            await asyncio.to_thread(file.write, gathered)
        await asyncio.to_thread(self._finish, arriving, self.path(job_id))
        return Spool(job_id, self.path(job_id), line_feeds + (last not in (b"", b"\n")))

    def _reserve(self, actor: str) -> str:
        job_id = uuid.uuid4().hex
        with self._lock:
            try:
                make_folder(self._directory)
                on_disk = {path.stem for path in self._directory.iterdir()}
            except OSError as error:
                raise Unavailable(
                    f"The folder {self._directory} cannot be made or read ({error.strerror}); give it to the service's "
                    "user, or free space in DATA_DIR, and send the import again"
                ) from error
            actors = {**self._unfinished(), **self._mine}
            waiting = self._mine.keys() | on_disk
            own = sum(actors.get(one) == actor for one in waiting)
            if not has_place(actor, own=own, waiting=len(waiting), places=MAX_SPOOLS):
                full = len(waiting) >= MAX_SPOOLS
                which = f"{len(waiting)} imports" if full else f"{own} imports of this key"
                raise Overloaded(f"{which} wait already; try again when one is done", retry_after_s=30)
            self._mine[job_id] = actor
        return job_id

    def _finish(self, arriving: Path, whole: Path) -> None:
        sync(arriving)
        arriving.rename(whole)
        sync(self._directory)

    @contextmanager
    def until_submitted(self, job_id: str) -> Iterator[None]:
        """A context in which its job is submitted; afterwards the spool is kept only if it has an unfinished job."""
        try:
            yield
        finally:
            self._disown(job_id)
            self.sweep()

    def _disown(self, job_id: str) -> None:
        with self._lock:
            self._mine.pop(job_id, None)

    def _remove(self, job_id: str) -> None:
        self.path(job_id).with_suffix(_ARRIVING).unlink(missing_ok=True)
        self.path(job_id).unlink(missing_ok=True)
        self._disown(job_id)

    def sweep(self) -> None:
        """Delete every spool that belongs neither to an unfinished job nor to an active request.

        If the folder cannot be read, that is logged, and the next sweep deletes them.
        """
        with self._lock:
            try:
                # In this order, so that a spool that gets a job in between is still in `_mine`.
                paths = list(self._directory.iterdir()) if self._directory.is_dir() else []
                kept = self._mine.keys() | self._unfinished().keys() if paths else set()
                for path in paths:
                    if path.stem not in kept:
                        path.unlink(missing_ok=True)
            except OSError as error:
                log.warning("imports_not_cleared", reason=str(error), action=f"give {self._directory} to this user")

    def _unfinished(self) -> dict[str, str]:
        with self._engine.namespace(Scope()) as (connection, _):
            return unfinished(connection)


def first_line(path: Path) -> bytes:
    """The first line that is not blank, up to the length of a header."""
    with path.open("rb") as file:
        line = b"\n"
        while line and not line.strip():
            _skip_blank_lines(file)
            line = file.readline(MAX_HEADER_BYTES)
        return line


def spooled_lines(path: Path, *, offset: int = 0, number: int = 0) -> Iterator[SpooledLine]:
    """Yield the non-blank lines of a file without line feeds, from an offset after this number of lines.

    Blank lines are counted, so that `number` is the line number in the file.
    """
    with _opened(path) as file:
        file.seek(offset)
        number += _skip_blank_lines(file)
        while content := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            too_long = len(content) > MAX_LINE_BYTES
            if too_long:
                _skip_line(file, content)
            if too_long or content.strip():
                yield SpooledLine(number, len(content), file.tell(), None if too_long else content.rstrip(b"\r\n"))
            number += _skip_blank_lines(file)


def _opened(path: Path) -> BufferedReader:
    try:
        return path.open("rb")
    except OSError as error:
        raise Unavailable("The file of this import is gone or cannot be read; send it again") from error


def _skip_blank_lines(file: BufferedReader) -> int:
    """Skip the following blank lines, a buffer at a time, and return their number."""
    number = 0
    while ahead := file.peek():
        blank = len(ahead) - len(ahead.lstrip())
        lines_end = ahead.rfind(b"\n", 0, blank) + 1
        if not lines_end:
            break
        number += ahead.count(b"\n", 0, lines_end)
        file.read(lines_end)
    return number


def _skip_line(file: BufferedReader, content: bytes) -> None:
    while content and not content.endswith(b"\n"):
        content = file.readline(WRITE_BYTES)
