"""Contradicting memories, and their resolution by rule: the newer one wins where a rule can decide.

The losing memory is archived and linked, and becomes valid until the time of the winner: nothing is deleted, and its
history records who did it. Pairs that no rule can decide are kept, with the reason, for a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from souvenir.core.errors import Forbidden, LinkNotUsable, MemoryArchived, MemoryNotFound
from souvenir.core.types import Link, Memory, MemoryPatch, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.links import note_link
from souvenir.store import namespaces
from souvenir.store.admin import transfers
from souvenir.store.memories import links as rows
from souvenir.store.memories import reads
from souvenir.store.memories.links import ConflictPair, remove_link
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction, require_writable

NEWEST_WINS = "newest_wins"

RESOLUTION = "conflict_resolution"
"""Metadata key with the outcome, in the memory that had the flag."""

MAX_AT_ONCE = 10_000
"""Maximum number of contradictions per call, which changes all of them in one transaction."""


class Review(StrEnum):
    """Why no rule decides between two memories."""

    CROSS_SOURCE = "cross_source"
    UNDATED = "undated"
    PINNED_LOSER = "pinned_loser"
    LESS_TRUSTED = "less_trusted"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """:param flagger: The memory with the flag, not necessarily the newer one."""

    flagger: Memory
    other: Memory

    @property
    def flag(self) -> ConflictPair:
        return self.flagger.id, self.other.id

    @property
    def newer_and_older(self) -> tuple[Memory, Memory]:
        newer, older = sorted((self.flagger, self.other), key=lambda one: (one.occurred_at, one.id), reverse=True)
        return newer, older

    @property
    def review(self) -> Review | None:
        """Why the newer one does not win automatically; None if it does.

        A stated date and a missing one cannot be compared: for a text that was imported late, the time of storing is
        not the time of the event.
        """
        newer, older = self.newer_and_older
        dated = {newer.document_at is not None, older.document_at is not None}
        if newer.source != older.source:
            return Review.CROSS_SOURCE
        if len(dated) > 1 or newer.occurred_at == older.occurred_at:
            return Review.UNDATED
        if older.pinned:
            return Review.PINNED_LOSER
        if newer.origin_class.trust < older.origin_class.trust:
            return Review.LESS_TRUSTED
        return None


@dataclass(frozen=True, slots=True)
class ResolvedConflict:
    kept: Memory
    archived: Memory
    flag: ConflictPair


@dataclass(frozen=True, slots=True)
class Resolution:
    """:param orphaned: Flags without meaning, because one end is archived."""

    resolved: tuple[ResolvedConflict, ...] = ()
    needs_review: tuple[tuple[ConflictPair, Review], ...] = ()
    orphaned: tuple[ConflictPair, ...] = ()


def resolution_of(found: Iterable[Contradiction], *, limit: int) -> Resolution:
    """Decide the pairs from oldest to newest, so that the last of several contradictions wins.

    :param limit: Maximum number of pairs to decide.
    """
    resolved: list[ResolvedConflict] = []
    needs_review: list[tuple[ConflictPair, Review]] = []
    orphaned: list[ConflictPair] = []
    archived: set[int] = set()
    for one in sorted(found, key=lambda one: (one.newer_and_older[0].occurred_at, one.flag)):
        newer, older = one.newer_and_older
        if one.flagger.archived or one.other.archived or archived & {newer.id, older.id}:
            orphaned.append(one.flag)
        elif (review := one.review) is not None:
            needs_review.append((one.flag, review))
        elif len(resolved) < limit:
            resolved.append(ResolvedConflict(newer, older, one.flag))
            archived.add(older.id)
    return Resolution(tuple(resolved), tuple(needs_review), tuple(orphaned))


class Conflicts:
    """Thread-safe."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def page(self, scope: Scope, *, limit: int, offset: int) -> tuple[Sequence[Contradiction], int]:
        """Return contradictions between memories that are not archived, newest flag first, and their total number."""
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return [], 0
            flags = rows.open_conflicts(connection, namespace, limit=limit, offset=offset)
            return _between(connection, namespace, flags), rows.count_open_conflicts(connection, namespace)

    def flag(self, scope: Scope, memory_id: int, other_id: int) -> bool:
        """Flag two memories as contradicting each other; return False if they are flagged already.

        :raises MemoryNotFound: If there is no memory `memory_id`.
        :raises LinkNotUsable: If both ids are equal, or the other memory does not exist.
        :raises SourceForbidden: If one of them is another principal's.
        :raises MemoryArchived: If one of them is archived: only conflicts of active memories are listed.
        """
        if memory_id == other_id:
            raise LinkNotUsable("A memory does not contradict itself; send the id of another one")

        def work(tx: Transaction) -> bool:
            memory = tx.memory(memory_id)
            try:
                other = tx.memory(other_id)
            except MemoryNotFound:
                raise LinkNotUsable(f"There is no memory {other_id}; send the id of one that exists") from None
            for one in (memory, other):
                require_writable(tx.scope, one.source)
                if one.archived:
                    raise MemoryArchived(one.id, "only conflicts of active memories are flagged, so restore it first")
            flags = rows.links_of(tx.connection, tx.namespace, other_id, link_type=reads.CONFLICTS_WITH, incoming=False)
            link = Link(memory_id, other_id, reads.CONFLICTS_WITH, tx.now)
            if any(flag.to_id == memory_id for flag in flags) or not transfers.insert_link(tx.connection, link):
                return False
            note_link(tx, "link.add", link)
            return True

        return self._engine.write(scope, work)

    def dismiss(self, scope: Scope, memory_id: int, other_id: int) -> bool:
        """Remove the flag between two memories, which both hold; return True if there was one.

        :raises MemoryNotFound: If there is no memory `memory_id`.
        :raises SourceForbidden: If one of them is another principal's.
        """

        def work(tx: Transaction) -> bool:
            tx.memory(memory_id)
            found = reads.visible_ids(tx.connection, tx.namespace, [memory_id, other_id])
            for source in reads.sources(tx.connection, found):
                require_writable(tx.scope, source)
            if other_id not in found:
                return False
            pairs = (memory_id, other_id), (other_id, memory_id)
            removed = [pair for pair in pairs if remove_link(tx.connection, *pair, reads.CONFLICTS_WITH)]
            for from_id, to_id in removed:
                note_link(tx, "link.remove", Link(from_id, to_id, reads.CONFLICTS_WITH, tx.now))
            return bool(removed)

        return self._engine.write(scope, work)

    def resolve(self, scope: Scope, *, dry_run: bool, limit: int | None = None) -> Resolution:
        """Let the newer memory of each pair win where a rule can decide; all in one transaction.

        :param limit: Maximum number of pairs to decide; None for MAX_AT_ONCE.
        :raises Forbidden: If the scope does not see the whole namespace.
        """
        if scope.sources is not None:
            raise Forbidden(
                "Contradictions are resolved with a key of the whole namespace, and yours is for some sources"
            )
        at_most = MAX_AT_ONCE if limit is None else min(limit, MAX_AT_ONCE)
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return Resolution()
            planned = _resolution(connection, namespace, at_most)
        if dry_run or not (planned.resolved or planned.orphaned):
            return planned
        return self._engine.write(scope, lambda tx: _apply(tx, _resolution(tx.connection, tx.namespace, at_most)))


def _resolution(connection: Connection, namespace: namespaces.Namespace, limit: int) -> Resolution:
    return resolution_of(
        _between(connection, namespace, rows.conflicts(connection, namespace, limit=MAX_AT_ONCE)), limit=limit
    )


def _between(
    connection: Connection, namespace: namespaces.Namespace, flags: Sequence[ConflictPair]
) -> list[Contradiction]:
    memories = reads.memories(connection, namespace, {one for flag in flags for one in flag})
    return [Contradiction(memories[flagger], memories[other]) for flagger, other in flags]


def _apply(tx: Transaction, resolution: Resolution) -> Resolution:
    for one in resolution.resolved:
        tx.archive(one.archived, action="superseded", valid_to=one.kept.occurred_at)
        transfers.insert_link(tx.connection, Link(one.kept.id, one.archived.id, reads.SUPERSEDES, tx.now))
        remove_link(tx.connection, *one.flag, reads.CONFLICTS_WITH)
        said = {"policy": NEWEST_WINS, "kept": one.kept.id, "archived": one.archived.id, "at": tx.now.isoformat()}
        tx.update(one.flag[0], MemoryPatch(metadata={RESOLUTION: said}), ())
    for flag in resolution.orphaned:
        remove_link(tx.connection, *flag, reads.CONFLICTS_WITH)
    return resolution
