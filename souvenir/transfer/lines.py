"""What a line of an export or import says, whatever it looks like on the wire: that is the HTTP boundary's business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from souvenir.core.labels import lies_in
from souvenir.core.types import HistoryEntry, JsonObject, Memory, MemoryDraft, Origin


class ExportFormat(Protocol):
    """How an export is written: bytes that end with a line feed."""

    def header(self, count: int) -> bytes: ...

    def line(self, memory: Memory, history: Sequence[HistoryEntry] | None) -> bytes: ...


class ImportFormat(Protocol):
    """How an import is read."""

    def check_header(self, first_line: bytes) -> None:
        """:raises InvalidRequest: If it is a header of a format that this release does not know."""

    def read(self, line: bytes) -> ImportLine | None:
        """What a line says; None for a header.

        :raises InvalidRequest: With the sentence for the report.
        """


@dataclass(frozen=True, slots=True)
class LineLink:
    """A link to the memory that has this id in the file."""

    to_id: int
    type: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ImportLine:
    """A memory of a file; `origin.id` and the ids of links are those of the file."""

    draft: MemoryDraft
    origin: Origin
    links: tuple[LineLink, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceRemap:
    """Puts what lies in the path `old` below `new`; other sources stay."""

    old: str
    new: str

    def line(self, line: ImportLine) -> ImportLine:
        """The line with its source, and those that its history names, put elsewhere."""
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
