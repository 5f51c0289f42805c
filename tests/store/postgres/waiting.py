"""Helpers of tests with several replicas."""

from __future__ import annotations

import time
from collections.abc import Callable

from souvenir.memories.engine import MemoryEngine

WAIT_S = 20.0
Open = Callable[..., MemoryEngine]
"""Opens an engine by the name of its folder."""


def eventually(is_so: Callable[[], bool]) -> bool:
    """Return whether it becomes so within `WAIT_S`."""
    until = time.monotonic() + WAIT_S
    while not (found := is_so()) and time.monotonic() < until:
        time.sleep(0.02)
    return found
