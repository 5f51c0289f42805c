"""A checker of register histories for linearizability (Wing and Gong 1993, with the memoisation of Lowe 2017).

A history is linearizable if every operation can be given a moment between its call and its answer, so that each read
returns what was written last before it. A write without an answer may have its moment at any time after its call, or
never. Values are unique, which settles these: one whose value was read took place, and one whose value was never read
can be left out, as whatever follows it in an order does not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on one register.

    :param value: What was written or read; None: the register was not there.
    :param called: Seconds of the clock that all clients share. :param answered: Infinite if there was no answer.
    :param where: The replica and the kind of request, for reports.
    """

    kind: Kind
    value: str | None
    called: float
    answered: float = math.inf
    where: str = ""

    def __str__(self) -> str:
        until = "no answer" if math.isinf(self.answered) else f"{self.answered:.4f}"
        return f"{self.called:.4f} to {until}: {self.kind.value} {self.value!r} {self.where}".rstrip()


def is_linearizable(history: Iterable[Operation], initial: str | None = None) -> bool:
    """:param initial: The value before the first write."""
    operations = _relevant(history)
    # An operation can be next in the order if none of those that are left was answered before it was called.
    everything = (1 << len(operations)) - 1
    seen = set[tuple[int, str | None]]()
    open_: list[tuple[int, str | None]] = [(0, initial)]
    while open_:
        placed, value = open_.pop()
        if placed == everything:
            return True
        if (placed, value) in seen:
            continue
        seen.add((placed, value))
        first_answer = min(one.answered for at, one in enumerate(operations) if not placed >> at & 1)
        for at, one in enumerate(operations):
            if one.called > first_answer:
                break
            if placed >> at & 1:
                continue
            if one.kind is Kind.WRITE:
                open_.append((placed | 1 << at, one.value))
            elif one.value == value:
                open_.append((placed | 1 << at, value))
    return False


def _relevant(history: Iterable[Operation]) -> Sequence[Operation]:
    """Return the operations by the time of their call, without reads and writes that nothing follows from."""
    operations = sorted(history, key=lambda one: one.called)
    read = {one.value for one in operations if one.kind is Kind.READ}
    return [one for one in operations if not math.isinf(one.answered) or (one.kind is Kind.WRITE and one.value in read)]


def shortest_violation(history: Sequence[Operation], initial: str | None = None) -> Sequence[Operation]:
    """Return the operations up to the answer of the first one that makes the history not linearizable, for reports."""
    ordered = sorted(history, key=lambda one: one.answered)
    for end in range(1, len(ordered) + 1):
        answered = ordered[end - 1].answered
        # Those that were under way by then may have taken place.
        begun = [
            Operation(one.kind, one.value, one.called, where=one.where)
            for one in ordered[end:]
            if one.called <= answered
        ]
        if not is_linearizable((*ordered[:end], *begun), initial):
            return ordered[:end]
    return ()
