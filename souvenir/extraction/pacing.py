"""A job rests as long as it worked: its model takes seconds, while who searches waits for milliseconds of a core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, sleep

MAX_REST_S = 0.1
"""After a piece that took long because others had the cores."""


@contextmanager
def paced() -> Iterator[None]:
    """Do one piece of work, some milliseconds of a core, and rest. Never inside of a transaction or a lock."""
    began = perf_counter()
    yield
    sleep(min(perf_counter() - began, MAX_REST_S))
