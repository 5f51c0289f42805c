"""Operations timed alternately, so that other load on the machine affects them equally."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

Seconds = dict[str, list[float]]
"""Of every operation, by its name."""

Operation = Callable[[int], object]
"""Given the number of its turn."""


def in_turns(operations: Mapping[str, Operation], count: int, seldom: Mapping[str, int] | None = None) -> Seconds:
    """Each operation so many times, after once untimed.

    :param seldom: Slow ones: how many turns of the others go by for one of theirs.
    """
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for operation in operations.values():
        operation(count)
    for number in range(count):
        for name, operation in operations.items():
            if number % (seldom or {}).get(name, 1) == 0:
                seconds[name].append(_timed(operation, number))
    return dict(seconds)


def at_once(start: Callable[[], Operation], callers: int, count: int) -> tuple[list[float], float]:
    """Seconds of so many operations in all, by callers that each wait for their own; and how long it took.

    :param start: Called by each for an operation of its own.
    """

    def call(caller: int) -> list[float]:
        operation = start()
        return [_timed(operation, number) for number in range(caller, count, callers)]

    begin = time.perf_counter()
    with ThreadPoolExecutor(callers) as pool:
        seconds = [one for of_caller in pool.map(call, range(callers)) for one in of_caller]
    return seconds, time.perf_counter() - begin


def _timed(operation: Operation, number: int) -> float:
    begin = time.perf_counter()
    operation(number)
    return time.perf_counter() - begin
