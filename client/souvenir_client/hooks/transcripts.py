"""Reading a transcript on from where it was left, however long it is.

A transcript grows at its end; sometimes Claude Code takes back its last lines, or copies a whole one. `Cursor` says how
far one was read: an offset, with a digest of the bytes before it, which shows whether this is still the file that was
read, and the uuid of the last turn, by which the place is found again if it is not.

Invariants: windows end at the end of a line, and a line that is still being written is not read; a window read again
between the same offsets has the same turns; memory is bounded by the longest line that is read, `MAX_LINE_BYTES`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Container, Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from souvenir_client.hooks.turns import Turn, turns_of

MAX_LINE_BYTES = 8 * 1024 * 1024
"""A longer line carries pictures, and is passed over."""

WINDOW_TURNS = 100
WINDOW_CHARS = 400_000
WINDOW_BYTES = 32 * 1024 * 1024
"""Lines without turns, such as results of tools, end a window too, so that what was read is written down."""

TAIL_BYTES = 256
LAST_BYTES = 256 * 1024
"""Of the end of a transcript, where its last turns are looked for."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a transcript was read.

    :param offset: Everything before it is done.
    :param tail: Digest of the bytes before the offset.
    :param uuid: Of the last turn that is done; empty if there was none.
    :param until: Where the window ends that was tried and may be done or not: it is to be tried again as it was.
    """

    offset: int = 0
    tail: str = ""
    uuid: str = ""
    until: int | None = None

    @classmethod
    def of(cls, value: Any) -> Cursor | None:
        """As it was written down; None if it was not, or is damaged."""
        match value:
            case {"offset": int(offset), "tail": str(tail), "uuid": str(uuid), "until": int() | None as until}:
                return cls(offset, tail, uuid, until)
        return None


@dataclass(frozen=True, slots=True)
class Window:
    """Turns that follow each other, and the cursor behind them."""

    start: int
    turns: tuple[Turn, ...]
    after: Cursor

    @property
    def is_end(self) -> bool:
        """There is nothing more to read."""
        return self.after.offset == self.start


class Transcript:
    """An open transcript of a session, for as long as the block of `with` lasts.

    :param session_id: As the hook was told; the file's name is one too, since a resumed session may keep its file.
    :raises OSError: If it cannot be read, or is no regular file: a pipe or a device may never end.
    """

    def __init__(self, path: Path, session_id: str) -> None:
        self._sessions: Set[str] = {session_id, path.stem}
        self._file = _regular(path)

    def __enter__(self) -> Transcript:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def holds(self, cursor: Cursor) -> bool:
        """Whether this is the file that was read up to the cursor."""
        return self._tail(cursor.offset) == cursor.tail

    @property
    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def behind(self, uuid: str) -> Cursor | None:
        """The place after the line of that uuid; None if there is none."""
        wanted = uuid.encode()
        for end, line in self._lines(0, None):
            if uuid and wanted in line and any(turn.uuid == uuid for turn in turns_of(line, self._sessions)):
                return Cursor(end, self._tail(end), uuid)
        return None

    def before_others(self, known: Container[str]) -> Cursor:
        """The place before the first turn whose uuid is not among these."""
        place, uuid = 0, ""
        for end, line in self._lines(0, None):
            found = turns_of(line, self._sessions)
            if any(turn.uuid not in known for turn in found):
                break
            place, uuid = end, found[0].uuid if found else uuid
        return Cursor(place, self._tail(place), uuid)

    def window(
        self,
        cursor: Cursor,
        *,
        until: int | None = None,
        max_chars: int = WINDOW_CHARS,
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> Window:
        """What follows the cursor.

        :param until: An offset behind which nothing is read.
        :param max_chars: A turn that goes beyond ends the window.
        :param may_go_on: Asked between lines; where it says no, the window ends.
        """
        turns: list[Turn] = []
        seen: set[str] = set()
        chars, offset, uuid = 0, cursor.offset, cursor.uuid
        for end, line in self._lines(cursor.offset, until):
            found = [turn for turn in turns_of(line, self._sessions) if not turn.uuid or turn.uuid not in seen]
            turns += found
            offset = end
            chars += sum(len(turn.text) for turn in found)
            if found and found[0].uuid:
                uuid = found[0].uuid
                seen.add(uuid)
            full = len(turns) >= WINDOW_TURNS or chars >= max_chars or offset - cursor.offset >= WINDOW_BYTES
            if full or not may_go_on():
                break
        return Window(cursor.offset, tuple(turns), Cursor(offset, self._tail(offset), uuid))

    def last(self, role: str) -> str:
        """The last text of that role near the end of the file; empty if there is none."""
        size = self._file.seek(0, 2)
        found = ""
        for _, line in self._lines(max(0, size - LAST_BYTES), None):
            for turn in turns_of(line, self._sessions):
                if turn.role == role and not turn.tool_calls:
                    found = turn.text
        return found

    def _lines(self, start: int, until: int | None) -> Iterator[tuple[int, bytes]]:
        """Whole lines with the offsets behind them; of one that is too long, nothing."""
        self._file.seek(start)
        offset = start
        while until is None or offset < until:
            line = self._file.readline(MAX_LINE_BYTES)
            offset += len(line)
            too_long = False
            while len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                too_long = True
                line = self._file.readline(MAX_LINE_BYTES)
                offset += len(line)
            if not line.endswith(b"\n"):
                return
            yield offset, b"" if too_long else line

    def _tail(self, offset: int) -> str:
        start = max(0, offset - TAIL_BYTES)
        self._file.seek(start)
        read = self._file.read(offset - start)
        return hashlib.sha256(read).hexdigest()[:32] if len(read) == offset - start else ""


def _regular(path: Path) -> BinaryIO:
    """Opened without waiting for whoever writes into a pipe."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "This is no regular file", str(path))
    return os.fdopen(file, "rb")
