"""Memories that contradict each other, and letting the newer one win where that can be left to a rule.

What loses is archived and linked, and was so until the winner is: nothing is deleted, and its history says who did it.
What a rule cannot tell is left as it is, with the reason, for somebody to decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import apsw

from souvenir.core.errors import Forbidden
from souvenir.core.types import Link, Memory, MemoryPatch, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store import namespaces
from souvenir.store.admin import transfers
from souvenir.store.memories import links as rows
from souvenir.store.memories import reads
from souvenir.store.memories.links import ConflictPair, remove_link
from souvenir.store.transaction import Transaction

NEWEST_WINS = "newest_wins"

RESOLUTION = "conflict_resolution"
"""The metadata key under which a memory that carried a flag says how that ended."""

MAX_AT_ONCE = 10_000
"""Contradictions that one call looks at: it changes all of them in one transaction."""


class Review(StrEnum):
    """Why no rule decides between two memories."""

    CROSS_SOURCE = "cross_source"
    UNDATED = "undated"
    PINNED_LOSER = "pinned_loser"
    LESS_TRUSTED = "less_trusted"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """:param flagger: Carries the flag; it need not be the newer one."""

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
        """Why the newer one does not win by itself; None: it does.

        Who says when something happened and who does not cannot be compared: the time of storing is no time of
        happening for a text that was imported late.
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
class Settled:
    kept: Memory
    archived: Memory
    flag: ConflictPair


@dataclass(frozen=True, slots=True)
class Resolution:
    """:param orphaned: Flags that mean nothing any more, since one end is archived."""

    settled: tuple[Settled, ...] = ()
    needs_review: tuple[tuple[ConflictPair, Review], ...] = ()
    orphaned: tuple[ConflictPair, ...] = ()


def resolved(found: Iterable[Contradiction], *, limit: int) -> Resolution:
    """Who wins, from the oldest to the newest, so that what is contradicted twice ends with the last word.

    :param limit: At most so many are settled.
    """
    settled: list[Settled] = []
    needs_review: list[tuple[ConflictPair, Review]] = []
    orphaned: list[ConflictPair] = []
    archived: set[int] = set()
    for one in sorted(found, key=lambda one: (one.newer_and_older[0].occurred_at, one.flag)):
        newer, older = one.newer_and_older
        if one.flagger.archived or one.other.archived or archived & {newer.id, older.id}:
            orphaned.append(one.flag)
        elif (review := one.review) is not None:
            needs_review.append((one.flag, review))
        elif len(settled) < limit:
            settled.append(Settled(newer, older, one.flag))
            archived.add(older.id)
    return Resolution(tuple(settled), tuple(needs_review), tuple(orphaned))


class Conflicts:
    """Safe to call from any thread."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def page(self, scope: Scope, *, limit: int, offset: int) -> tuple[Sequence[Contradiction], int]:
        """Contradictions between living memories, the newest flag first, and how many there are."""
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return [], 0
            flags = rows.open_conflicts(connection, namespace, limit=limit, offset=offset)
            return _between(connection, namespace, flags), rows.count_open_conflicts(connection, namespace)

    def resolve(self, scope: Scope, *, dry_run: bool, limit: int | None = None) -> Resolution:
        """Let the newer one of each two win where a rule can say so; all of it is one transaction.

        :param limit: At most so many are settled; None: MAX_AT_ONCE.
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
        if dry_run or not (planned.settled or planned.orphaned):
            return planned
        return self._engine.write(scope, lambda tx: _apply(tx, _resolution(tx.connection, tx.namespace, at_most)))


def _resolution(connection: apsw.Connection, namespace: namespaces.Namespace, limit: int) -> Resolution:
    return resolved(
        _between(connection, namespace, rows.conflicts(connection, namespace, limit=MAX_AT_ONCE)), limit=limit
    )


def _between(
    connection: apsw.Connection, namespace: namespaces.Namespace, flags: Sequence[ConflictPair]
) -> list[Contradiction]:
    memories = reads.memories(connection, namespace, {one for flag in flags for one in flag})
    return [Contradiction(memories[flagger], memories[other]) for flagger, other in flags]


def _apply(tx: Transaction, resolution: Resolution) -> Resolution:
    for one in resolution.settled:
        tx.archive(one.archived, action="superseded", valid_to=one.kept.occurred_at)
        transfers.insert_link(tx.connection, Link(one.kept.id, one.archived.id, reads.SUPERSEDES, tx.now))
        remove_link(tx.connection, *one.flag, reads.CONFLICTS_WITH)
        said = {"policy": NEWEST_WINS, "kept": one.kept.id, "archived": one.archived.id, "at": tx.now.isoformat()}
        tx.update(one.flag[0], MemoryPatch(metadata={RESOLUTION: said}), ())
    for flag in resolution.orphaned:
        remove_link(tx.connection, *flag, reads.CONFLICTS_WITH)
    return resolution
