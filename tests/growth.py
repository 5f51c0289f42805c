"""Whether work grows with its input like a line, on whatever machine: no test holds a number of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

TIMES_LONGER = 8
LIMIT = 3 * TIMES_LONGER
"""A quadratic step takes 64 times as long for a text that is 8 times as long."""
TRIES = 3


def assert_linear(work: Callable[[str], object], text: str) -> None:
    """Compare the processor time for the text with that for its first eighth; no run has a text that a cache knows."""

    def seconds(part: str) -> float:
        begin = time.thread_time()
        work(part)
        return time.thread_time() - begin

    short = min(seconds(f"{number} {text[: len(text) // TIMES_LONGER]}") for number in range(TRIES))
    long = 0.0
    for number in range(TRIES):
        long = seconds(f"{number} {text}")
        if long < LIMIT * short:
            return
    raise AssertionError(f"{text[:40]!r} took {long:.4f} s, its first eighth {short:.4f} s")
