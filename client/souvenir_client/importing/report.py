"""The report of an import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from souvenir_client.importing.kinds import Kind
from souvenir_client.importing.records import Altered, Missing, Skipped

MAX_PLACES = 20
"""Maximum number of places listed for each reason."""

MAX_REASONS = 200
OTHER_REASONS = "other reasons"


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one type of record: new, updated and already stored."""

    imported: int = 0
    updated: int = 0
    unchanged: int = 0


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why records were skipped or altered, with their number and the first places."""

    reason: str
    count: int
    places: Sequence[str]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an import in lines, files or conversations; `total` is None while unknown."""

    done: int
    total: int | None
    imported: int
    skipped: int


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import.

    :param concepts: Names, descriptions and relations of concepts, each counted.
    :param skipped: Records that were not imported.
    :param altered: Records that were imported with changes.
    :param gone: Memories of an earlier import of the same source that are no longer in the file; they are kept.
    :param links_dropped: Links to memories that are not part of the import.
    :param missing: Records that the header of an export counts and the file does not contain.
    :param backup: The backup that the service made before an import of exported memories.
    """

    kind: Kind
    memories: Counts = Counts()
    sessions: Counts = Counts()
    messages: Counts = Counts()
    blocks: Counts = Counts()
    concepts: Counts = Counts()
    skipped: Sequence[Reason] = ()
    altered: Sequence[Reason] = ()
    gone: int = 0
    links: int = 0
    links_dropped: int = 0
    backup: str | None = None
    missing: Sequence[Missing] = ()

    @property
    def _stored(self) -> Sequence[Counts]:
        return self.memories, self.messages, self.blocks, self.concepts

    @property
    def imported(self) -> int:
        """Number of new memories, messages, blocks and statements about concepts."""
        return sum(counts.imported for counts in self._stored)

    @property
    def updated(self) -> int:
        return sum(counts.updated for counts in self._stored)

    @property
    def unchanged(self) -> int:
        return sum(counts.unchanged for counts in self._stored)

    @property
    def skipped_count(self) -> int:
        return sum(reason.count for reason in self.skipped)


@dataclass(slots=True)
class Count:
    """Mutable `Counts`."""

    imported: int = 0
    updated: int = 0
    unchanged: int = 0

    def frozen(self) -> Counts:
        return Counts(self.imported, self.updated, self.unchanged)


@dataclass(slots=True)
class Tally:
    """A mutable report."""

    memories: Count = field(default_factory=Count)
    sessions: Count = field(default_factory=Count)
    messages: Count = field(default_factory=Count)
    blocks: Count = field(default_factory=Count)
    concepts: Count = field(default_factory=Count)
    gone: int = 0
    links: int = 0
    links_dropped: int = 0
    backup: str | None = None
    skipped_count: int = 0
    missing: list[Missing] = field(default_factory=list)
    _skipped: dict[str, list[str]] = field(default_factory=dict)
    _altered: dict[str, list[str]] = field(default_factory=dict)
    _numbers: dict[tuple[bool, str], int] = field(default_factory=dict)

    def note(self, what: Skipped | Altered, count: int = 1) -> None:
        skipped = isinstance(what, Skipped)
        reasons = self._skipped if skipped else self._altered
        reason = what.reason if what.reason in reasons or len(reasons) < MAX_REASONS else OTHER_REASONS
        places = reasons.setdefault(reason, [])
        if len(places) < MAX_PLACES:
            places.append(what.place)
        self._numbers[skipped, reason] = self._numbers.get((skipped, reason), 0) + count
        self.skipped_count += count if skipped else 0

    def progress(self, done: int, total: int | None) -> Progress:
        counted = (self.memories, self.messages, self.blocks, self.concepts)
        imported = sum(one.imported for one in counted)
        return Progress(done, None if total is None else max(done, total), imported, self.skipped_count)

    def report(self, kind: Kind) -> ImportReport:
        return ImportReport(
            kind,
            self.memories.frozen(),
            self.sessions.frozen(),
            self.messages.frozen(),
            self.blocks.frozen(),
            self.concepts.frozen(),
            self._reasons(self._skipped, skipped=True),
            self._reasons(self._altered, skipped=False),
            self.gone,
            self.links,
            self.links_dropped,
            self.backup,
            tuple(self.missing),
        )

    def _reasons(self, places: dict[str, list[str]], *, skipped: bool) -> Sequence[Reason]:
        """Return the reasons, most common first."""
        found = [Reason(reason, self._numbers[skipped, reason], tuple(places[reason])) for reason in places]
        return tuple(sorted(found, key=lambda one: -one.count))
