"""Incremental reading of transcripts of any length.

A transcript grows at its end; sometimes Claude Code removes its last lines, or copies a whole one. `Cursor` records how
far it was read: an offset, with a digest of the bytes before it, which verifies that this is still the same file, and
the uuid of the last turn, by which the position is found if it is not.

Invariants: windows end at the end of a line, and an incomplete line is not read; a window read again between the same
offsets has the same turns; memory is bounded by the longest line that is read, `MAX_LINE_BYTES`.
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

from souvenir_client.hooks.turns import TranscriptTurn, turns_of

MAX_LINE_BYTES = 8 * 1024 * 1024
"""Longer lines contain images, and are skipped."""

WINDOW_TURNS = 100
WINDOW_CHARS = 400_000
WINDOW_BYTES = 32 * 1024 * 1024
"""Lines without messages, such as results of tools, also count towards a window, so that the cursor advances."""

TAIL_BYTES = 256
LAST_BYTES = 256 * 1024
"""Size of the end of a transcript that is searched for its last messages."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position up to which a transcript was processed.

    :param offset: Everything before it is processed.
    :param tail: Digest of the bytes before the offset.
    :param uuid: The uuid of the last processed message; empty if there was none.
    :param until: End of a window that was tried with unknown outcome, and is to be tried again unchanged.
    """

    offset: int = 0
    tail: str = ""
    uuid: str = ""
    until: int | None = None

    @classmethod
    def of(cls, value: Any) -> Cursor | None:
        """Parse a stored cursor; None if it is missing or damaged."""
        match value:
            case {"offset": int(offset), "tail": str(tail), "uuid": str(uuid), "until": int() | None as until}:
                return cls(offset, tail, uuid, until)
        return None


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive turns, and the cursor after them."""

    start: int
    turns: tuple[TranscriptTurn, ...]
    after: Cursor

    @property
    def is_end(self) -> bool:
        """True if nothing is left to read."""
        return self.after.offset == self.start


class Transcript:
    """The open transcript of a session.

    :param session_id: As given to the hook. The file's name is one too, since a resumed session may keep its file.
    :raises OSError: If it cannot be read, or is not a regular file: a pipe or a device may never end.
    """

    def __init__(self, path: Path, session_id: str) -> None:
        self._sessions: Set[str] = {session_id, path.stem}
        self._file = _regular(path)

    def __enter__(self) -> Transcript:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def holds(self, cursor: Cursor) -> bool:
        """Return True if this is the file that the cursor belongs to."""
        return self._tail(cursor.offset) == cursor.tail

    @property
    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def behind(self, uuid: str) -> Cursor | None:
        """Return the position after the line with that uuid; None if there is none."""
        wanted = uuid.encode()
        for end, line in self._lines(0, None):
            if uuid and wanted in line and any(turn.uuid == uuid for turn in turns_of(line, self._sessions)):
                return Cursor(end, self._tail(end), uuid)
        return None

    def before_others(self, known: Container[str]) -> Cursor:
        """Return the position before the first turn whose uuid is not known."""
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
        """The window after the cursor.

        :param until: An offset at which reading stops.
        :param max_chars: A message beyond this size ends the window.
        :param may_go_on: Called between lines; False ends the window.
        """
        turns: list[TranscriptTurn] = []
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
        """Complete lines with their end offsets; a line above the limit is empty."""
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
    """Open without blocking on the writer of a pipe."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "This is not a regular file", str(path))
    return os.fdopen(file, "rb")
