"""The client's own record of what the service acknowledged, and its comparison with what the service holds.

An item is a kind with its whole content: ("memory", text), ("block", "label=value"), ("key", name). A write is a
change: the items that it takes away and those that it adds. Every content is unique, so that an item is lost, doubled
or back whatever id it has. A change that was acknowledged holds; of one that was in flight when the service died
either the items before or those after it are there. Items of accepted jobs may be there at most once until the job has
ended.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from random import Random
from typing import Any, NamedTuple

from benchmarks.faults.part import Outcome

MARK = re.compile(rb"mark[0-9a-f]{32}")
WORDS = (
    "amber birch cedar delta ember fjord grove harbor island jasper kettle lagoon meadow nectar orchid pebble".split()
)


def marked(dice: Random, words: int = 10) -> str:
    """Some words, and one that no other text has."""
    return " ".join([*dice.choices(WORDS, k=words), f"mark{uuid.UUID(int=dice.getrandbits(128)).hex}"])


def marks_of(content: bytes | str) -> set[str]:
    found = MARK.findall(content.encode() if isinstance(content, str) else content)
    return {mark.decode() for mark in found}


WITH_OWN_ID = frozenset({"memory", "message", "block", "key"})
"""Kinds whose ids are theirs alone; a fact is recorded under the id of its memory."""


class Item(NamedTuple):
    kind: str
    content: str


class Repeat(NamedTuple):
    """A request that can be sent again after a restart, as it has an Idempotency-Key."""

    path: str
    body: Any
    key: str


@dataclass(frozen=True, slots=True)
class Change:
    """One write.

    :param removed: Items that it takes away. :param added: Items that it adds, in the order of the ids in its answer.
    :param erases: The removed items are erased for good: nothing may bring them back, and no file may hold them.
    :param atomic: It is done wholly or not at all; otherwise a job does it step by step.
    """

    removed: tuple[Item, ...] = ()
    added: tuple[Item, ...] = ()
    erases: bool = False
    atomic: bool = True
    repeat: Repeat | None = None


class JobChange(NamedTuple):
    change: Change
    namespace: str | None


@dataclass(slots=True)
class Ledger:
    """The record of one writer, which alone changes its items.

    :param there: Items that must be there, with the id that the service gave, if it gave one.
    :param gone: Items that must not be there. :param erased: Marks that neither an answer nor a file may have.
    :param maybe: Items that may be there once or not.
    :param in_flight: Changes that were sent and not answered. :param jobs: Changes of jobs that have not ended, by id.
    :param issued: Kind and id of every item that the service made; none may be there twice.
    """

    there: dict[Item, str | None] = field(default_factory=dict)
    gone: set[Item] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    maybe: set[Item] = field(default_factory=set)
    in_flight: list[Change] = field(default_factory=list)
    jobs: dict[str, JobChange] = field(default_factory=dict)
    issued: list[tuple[str, str]] = field(default_factory=list)
    acknowledged: int = 0

    def begin(self, change: Change) -> None:
        """Note a change before its request is sent."""
        for item in change.removed:
            del self.there[item]
        self.gone.difference_update(change.added)
        self.in_flight.append(change)

    def acknowledge(self, change: Change, ids: Sequence[object] = (), *, cleared: bool = True) -> None:
        """Note that the service answered that it did the change.

        :param cleared: An erasure said that no file holds the items any more.
        """
        self.in_flight.remove(change)
        self._done(change, [str(id_) for id_ in ids], cleared)

    def accept(self, change: Change, job_id: str, namespace: str | None = None) -> None:
        """Note that the service answered that a job of the namespace will do the change."""
        self.in_flight.remove(change)
        self.maybe.update(change.removed, change.added)
        self.jobs[job_id] = JobChange(change, namespace)

    def finish(self, job_id: str, *, cleared: bool = True) -> None:
        """Note that the service says that the job is completed; `cleared` as in `acknowledge`."""
        change = self.jobs.pop(job_id).change
        self.maybe.difference_update(change.removed, change.added)
        self._done(change, (), cleared)

    def refuse(self, change: Change) -> None:
        """Note that the service answered that it did not do the change."""
        self.in_flight.remove(change)
        self.there.update(dict.fromkeys(change.removed))

    def of_kind(self, kind: str) -> list[Item]:
        return [item for item in self.there if item.kind == kind]

    def _done(self, change: Change, ids: Sequence[str], cleared: bool) -> None:
        self.acknowledged += max(1, len(change.added))
        self.gone.update(change.removed)
        self.there.update(zip(change.added, ids or repeat(None), strict=False))
        if not change.removed:
            self._issue(zip(change.added, ids, strict=False))
        if change.erases and cleared:
            self.erased.update(*(marks_of(item.content) for item in change.removed))

    def settle(self, stored: Stored) -> None:
        """Note what became of the changes that were in flight."""
        for change in self.in_flight:
            for item in (*change.removed, *change.added):
                ids = stored.items.get(item)
                if not change.atomic or (ids is None and change.repeat is not None):
                    self.maybe.add(item)
                elif ids is None:
                    self.gone.add(item)
                else:
                    self.there[item] = ids[0]
                    if not change.removed:
                        self._issue([(item, ids[0])])
        self.in_flight.clear()

    def _issue(self, items: Iterable[tuple[Item, str]]) -> None:
        self.issued += [(item.kind, id_) for item, id_ in items if item.kind in WITH_OWN_ID]


@dataclass(slots=True)
class Stored:
    """The content of the service: the ids of each item."""

    items: dict[Item, list[str]] = field(default_factory=dict)

    def add(self, kind: str, content: str, id_: object) -> None:
        self.items.setdefault(Item(kind, content), []).append(str(id_))

    def count(self, item: Item) -> int:
        return len(self.items.get(item, ()))


def compare(ledgers: Iterable[Ledger], stored: Stored) -> Outcome:
    """Hold what is stored against the ledgers, and settle what was in flight.

    A settled change holds from now on; of one that is not atomic each item stays uncertain. Stored items that no ledger
    knows are answers to no request: they count as back.
    """
    lost, doubled, risen = list[str](), list[str](), list[str]()
    known = set[Item]()
    ledgers = list(ledgers)
    for ledger in ledgers:
        for item, id_ in ledger.there.items():
            ids = stored.items.get(item, [])
            if not ids:
                lost.append(f"{item.kind} {item.content!r}, acknowledged as {id_}, is lost")
            elif id_ is not None and id_ not in ids:
                doubled.append(f"{item.kind} {item.content!r} has the id {ids[0]} and was acknowledged as {id_}")
        risen += [f"{item.kind} {item.content!r} is back" for item in ledger.gone if stored.count(item)]
        known |= {*ledger.there, *ledger.gone, *ledger.maybe}
        for change in ledger.in_flight:
            known |= {*change.removed, *change.added}
            doubled += torn(change, stored)
    issued = Counter(one for ledger in ledgers for one in ledger.issued)
    doubled += [
        f"the id {id_} was given to {count} items of kind {kind}" for (kind, id_), count in issued.items() if count > 1
    ]
    doubled += [
        f"{item.kind} {item.content!r} is there {len(ids)} times: {', '.join(ids)}"
        for item, ids in stored.items.items()
        if len(ids) > 1
    ]
    risen += [f"{item.kind} {item.content!r} is there and was never asked for" for item in stored.items.keys() - known]
    for ledger in ledgers:
        ledger.settle(stored)
    return Outcome(0, sum(len(one.there) + len(one.gone) for one in ledgers), *map(tuple, (lost, doubled, risen)))


def torn(change: Change, stored: Stored) -> list[str]:
    """A sentence if an atomic change was done in part."""
    removed = {bool(stored.count(item)) for item in change.removed}
    added = {bool(stored.count(item)) for item in change.added}
    if not change.atomic or (removed <= {True} and added <= {False}) or (removed <= {False} and added <= {True}):
        return []
    there = sum(bool(stored.count(item)) for item in (*change.removed, *change.added))
    return [f"a change of {len(change.removed)} to {len(change.added)} items was done in part: {there} are there"]


def repeated(ledger: Ledger, change: Change, ids: Sequence[object]) -> list[str]:
    """Note the answer to a change that was settled and sent again; a sentence if its items were made twice."""
    ledger.maybe.difference_update(change.added)
    before = [ledger.there.get(item) for item in change.added]
    ledger.there.update(zip(change.added, map(str, ids), strict=True))
    ledger.acknowledged += len(change.added)
    if None not in before and before != [str(id_) for id_ in ids]:
        return [f"a request with an Idempotency-Key made {before}, and {list(ids)} when it was sent again"]
    return []


def silent(marks: Mapping[str, str], found: Iterable[str], where: str) -> tuple[str, ...]:
    """A sentence for each of the marks that was found and must not be.

    :param marks: Marks with the reason why they must not be there.
    """
    return tuple(f"{mark}, which is {marks[mark]}, is in {where}" for mark in sorted(marks.keys() & set(found)))
