"""The content of a line of an export or import, independent of its wire format, which belongs to the HTTP layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from souvenir.core.labels import lies_in
from souvenir.core.types import HistoryEntry, JsonObject, Memory, MemoryDraft, Origin


class ExportFormat(Protocol):
    """Serialises an export: bytes that end with a line feed."""

    def header(self, count: int) -> bytes: ...

    def line(self, memory: Memory, history: Sequence[HistoryEntry] | None) -> bytes: ...


class ImportFormat(Protocol):
    """Parses an import."""

    def check_header(self, first_line: bytes) -> None:
        """:raises InvalidRequest: If it is a header of an unknown format."""

    def read(self, line: bytes) -> ImportLine | None:
        """Parse a line; return None for a header.

        :raises InvalidRequest: If the line is invalid; the message is for the report.
        """


@dataclass(frozen=True, slots=True)
class LineLink:
    """A link to the memory that has this id in the file."""

    to_id: int
    type: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ImportLine:
    """A memory in a file; `origin.id` and the ids of links are those of the file.

    :param links_dropped: The number of its links whose ends the file does not name.
    """

    draft: MemoryDraft
    origin: Origin
    links: tuple[LineLink, ...] = ()
    links_dropped: int = 0


@dataclass(frozen=True, slots=True)
class SourceRemap:
    """Moves sources below the path `old` to below `new`; other sources are unchanged."""

    old: str
    new: str

    def line(self, line: ImportLine) -> ImportLine:
        """Return the line with its source, and the sources in its history, moved."""
        draft = replace(line.draft, source=self.source(line.draft.source))
        history = tuple(
            replace(entry, before=self._state(entry.before), after=self._state(entry.after))
            for entry in line.origin.history
        )
        return replace(line, draft=draft, origin=replace(line.origin, history=history))

    def source(self, source: str) -> str:
        return self.new + source[len(self.old) :] if lies_in(source, self.old) else source

    def _state(self, state: Mapping[str, object] | None) -> JsonObject | None:
        return None if state is None else {**state, "source": self.source(str(state["source"]))}
