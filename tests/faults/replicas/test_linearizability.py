"""The checker of register histories agrees with hand-made histories, and with one that tries every order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, permutations
from random import Random

import pytest

from benchmarks.replica_faults.linearizability import Kind, Operation, is_linearizable, shortest_violation


def write(value: str, called: float, answered: float = math.inf) -> Operation:
    return Operation(Kind.WRITE, value, called, answered)


def read(value: str | None, called: float, answered: float) -> Operation:
    return Operation(Kind.READ, value, called, answered)


GOOD = {
    "empty": [],
    "one after the other": [write("a", 0, 1), read("a", 2, 3), write("b", 4, 5), read("b", 6, 7)],
    "a read during a write sees the old value": [write("a", 0, 1), write("b", 2, 9), read("a", 3, 4)],
    "a read during a write sees the new value": [write("a", 0, 1), write("b", 2, 9), read("b", 3, 4)],
    "concurrent writes in any order": [write("a", 0, 9), write("b", 1, 8), read("b", 10, 11)],
    "one order explains reads of both": [write("a", 0, 9), write("b", 1, 8), read("b", 2, 3), read("a", 10, 11)],
    "an unanswered write that nobody saw": [write("a", 0, 1), write("b", 2), read("a", 3, 4)],
    "an unanswered write that is seen late": [write("a", 0, 1), write("b", 2), read("a", 3, 4), read("b", 5, 6)],
    "an unanswered write after an answered one": [write("b", 0), write("a", 1, 2), read("a", 3, 4), read("b", 5, 6)],
    "the initial value": [read(None, 0, 1), write("a", 2, 3)],
}

BAD = {
    "a stale read": [write("a", 0, 1), write("b", 2, 3), read("a", 4, 5)],
    "a value that was never written": [write("a", 0, 1), read("b", 2, 3)],
    "a read before the write was called": [write("a", 0, 1), read("b", 2, 3), write("b", 4, 5)],
    "a new value and then the old one": [write("a", 0, 1), write("b", 2, 9), read("b", 3, 4), read("a", 5, 6)],
    "an acknowledged write that is lost": [write("a", 0, 1), read(None, 2, 3)],
    "reads of concurrent writes in two orders": [
        write("a", 0, 1),
        write("b", 0, 1),
        read("a", 2, 3),
        read("b", 4, 5),
    ],
    "an unanswered write that takes effect twice": [
        write("a", 0),
        write("b", 1, 2),
        read("a", 3, 4),
        write("c", 5, 6),
        read("a", 7, 8),
    ],
    "an unanswered write that is seen before its call": [write("a", 0, 1), read("b", 2, 3), write("b", 4)],
}


@pytest.mark.parametrize("history", GOOD.values(), ids=list(GOOD))
def test_a_history_with_an_order_is_linearizable(history):
    assert is_linearizable(history)
    assert shortest_violation(history) == ()


@pytest.mark.parametrize("history", BAD.values(), ids=list(BAD))
def test_a_history_without_an_order_is_reported(history):
    assert not is_linearizable(history)
    assert shortest_violation(history)


def test_the_report_ends_with_the_read_that_has_no_place():
    history = [write("a", 0, 1), write("b", 2, 3), read("a", 4, 5), read("b", 6, 7)]
    assert shortest_violation(history) == history[:3]


def test_operations_between_the_fault_and_the_answers_stay_in_the_report():
    history = [write("a", 0, 1), write("b", 2, 9), read("b", 3, 4), read("a", 5, 6), read("a", 7, 8)]
    assert shortest_violation(history) == [history[0], history[2], history[3]]


def some_order_explains(history: Sequence[Operation]) -> bool:
    """Try every order of the answered operations and of each selection of the others."""
    answered = [one for one in history if not math.isinf(one.answered)]
    maybe = [one for one in history if math.isinf(one.answered) and one.kind is Kind.WRITE]
    return any(
        any(map(is_order, permutations([*answered, *chosen])))
        for number in range(len(maybe) + 1)
        for chosen in combinations(maybe, number)
    )


def is_order(order: Sequence[Operation]) -> bool:
    value: str | None = None
    for place, one in enumerate(order):
        if any(later.answered < one.called for later in order[place + 1 :]):
            return False
        if one.kind is Kind.WRITE:
            value = one.value
        elif one.value != value:
            return False
    return True


def random_history(dice: Random) -> list[Operation]:
    history = list[Operation]()
    for number in range(dice.randint(2, 6)):
        called = dice.uniform(0, 10)
        answered = called + dice.uniform(0, 5)
        if dice.random() < 0.5:
            history.append(write(f"{number}", called, answered if dice.random() < 0.7 else math.inf))
        else:
            history.append(read(dice.choice([None, "0", "1", "2", "3"]), called, answered))
    return history


def test_random_histories_are_judged_as_by_trying_every_order():
    dice = Random(7)
    judged = [(is_linearizable(one), some_order_explains(one)) for one in (random_history(dice) for _ in range(1_500))]
    assert all(ours is theirs for ours, theirs in judged)
    assert 100 < sum(ours for ours, _ in judged) < 1_400


def test_a_long_history_of_many_clients_is_judged_quickly():
    dice, history, value, now = Random(7), list[Operation](), "0", 0.0
    history.append(write("0", 0.0, 0.1))
    for number in range(1, 150):
        now += dice.uniform(0.1, 0.3)
        begin, end = now - dice.uniform(0, 1.5), now + dice.uniform(0, 1.5)
        if dice.random() < 0.4:
            value = f"{number}"
            history.append(write(value, begin, end if dice.random() < 0.8 else math.inf))
        else:
            history.append(read(value, begin, end))
    assert is_linearizable(history)
    assert not is_linearizable([*history, read("0", now + 10, now + 11)])
