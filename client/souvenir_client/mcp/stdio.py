"""Standard input and output as lines: read and written by a thread each, so that neither holds up the event loop.

Invariants: a line is written whole and by itself; nothing else of the process reaches standard output; not more than a
few lines are read ahead of what is worked on.
"""

from __future__ import annotations

import asyncio
import os
import threading
from enum import Enum
from queue import SimpleQueue
from typing import Self

CHUNK_BYTES = 64 * 1024
MAX_LINE_BYTES = 32 * 1024 * 1024
"""As much as the service takes of one request."""
READ_AHEAD = 64


class Mark(Enum):
    """What stands in the place of a line."""

    TOO_LONG = "too long"
    END = "end"


class Lines:
    """Those of a file descriptor, without their ends; made on the loop that takes them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._loop = descriptor, asyncio.get_running_loop()
        self._taken: asyncio.Queue[bytes | Mark] = asyncio.Queue()
        self._room = threading.Semaphore(READ_AHEAD)
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def end(self) -> None:
        """Take no more lines than were read; may be called from a signal handler."""
        self._put(Mark.END)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes | Mark:
        """A line, or that there was one which is too long."""
        line = await self._taken.get()
        self._room.release()
        if line is Mark.END:
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        begun, is_too_long = bytearray(), False
        while chunk := os.read(self._descriptor, CHUNK_BYTES):
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                begun += piece
                self._hand_over(Mark.TOO_LONG if is_too_long else bytes(begun))
                begun, is_too_long = bytearray(), False
            begun += rest
            if len(begun) > MAX_LINE_BYTES:
                begun, is_too_long = bytearray(), True
        self._hand_over(bytes(begun))
        self.end()

    def _hand_over(self, line: bytes | Mark) -> None:
        if isinstance(line, Mark) or line.strip():
            self._room.acquire()
            self._put(line if isinstance(line, Mark) else line.strip())

    def _put(self, line: bytes | Mark) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._taken.put_nowait, line)


class Output:
    """Lines to a file descriptor; made on the loop that writes them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._loop = descriptor, asyncio.get_running_loop()
        self._lines: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        threading.Thread(target=self._write, name="stdout", daemon=True).start()

    async def write(self, line: bytes) -> None:
        """Write one line; when this returns its reader has it, or can have it.

        A line that was begun is written to its end also if the caller is cancelled.

        :raises OSError: If nobody reads.
        """
        written: asyncio.Future[None] = self._loop.create_future()
        self._lines.put((line + b"\n", written))
        await written

    def _write(self) -> None:
        while True:
            line, written = self._lines.get()
            failure: OSError | None = None
            rest = memoryview(line)
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError as error:
                failure = error
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(_settle, written, failure)


def _settle(written: asyncio.Future[None], failure: OSError | None) -> None:
    if written.done():
        return
    if failure is None:
        written.set_result(None)
    else:
        written.set_exception(failure)


def own_output() -> int:
    """Standard output for messages alone: whatever else this process prints goes to standard error from now on."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept
