"""The time limit of a hook.

On Linux it counts from the start of the process, so it includes the start of the interpreter. Every wait of a hook is
bounded by the remaining time; operations without a limit of their own (a name server, a service that sends a byte a
second) are ended by `enforce`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

OWN_WORK_S = 0.15
"""Reserved from every wait, to save the state and to exit."""

LAST_WORDS_S = 0.1

_STARTED_FIELD = 19
"""Index in /proc/self/stat, after the program's name, of the start time in clock ticks since boot (proc(5), field 22).
"""


class Budget:
    """A time limit in seconds that counts down.

    :param spent_s: Seconds that have passed already.
    """

    def __init__(self, total_s: float, *, spent_s: float = 0.0) -> None:
        self.total_s = total_s
        self._end_s = time.monotonic() + total_s - spent_s

    @property
    def left_s(self) -> float:
        """Return the seconds until the hook must end; 0 if they are over."""
        return max(0.0, self._end_s - time.monotonic())

    @property
    def wait_s(self) -> float:
        """Return the maximum duration of the next wait."""
        return max(0.0, self.left_s - OWN_WORK_S)


def process_age_s() -> float:
    """Return the seconds since this process was started; 0 if the system does not provide them."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        started_s = int(fields[_STARTED_FIELD]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started_s)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def enforce(budget: Budget, last_words: Callable[[], None]) -> threading.Timer:
    """End the process successfully when the budget is spent, unless the returned timer is cancelled.

    The files of a hook are replaced atomically, so none is left incomplete.

    :param last_words: Called before the end, for at most `LAST_WORDS_S`, because a disk or a pipe may block.
    """

    def leave() -> None:
        try:
            speaking = threading.Thread(target=last_words, daemon=True)
            speaking.start()
            speaking.join(LAST_WORDS_S)
        finally:
            os._exit(0)

    timer = threading.Timer(budget.left_s, leave)
    timer.daemon = True
    timer.start()
    return timer
