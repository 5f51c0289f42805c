"""When a request's answer is not waited for any more, known wherever its thread stands.

The HTTP boundary sets it; a wait asks how long it may still last. Without one, as in a job or in maintenance, a wait
has its own bound alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

from souvenir.errors import DeadlineExceeded


class Deadline:
    """`timeout_s` from when it was made, or renewed."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.renew()

    def renew(self) -> None:
        self._at = monotonic() + self.timeout_s

    @property
    def left_s(self) -> float:
        return self._at - monotonic()


_current: ContextVar[Deadline | None] = ContextVar("souvenir_deadline", default=None)


@contextmanager
def deadline(timeout_s: float) -> Iterator[Deadline]:
    """What is called inside, also on threads that inherit the context, has this long."""
    made = Deadline(timeout_s)
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)


def time_left(bound_s: float) -> float:
    """Seconds that a wait may last: its own bound, or less.

    :raises DeadlineExceeded: If the time is over, so that nothing is begun that nobody waits for.
    """
    current = _current.get()
    if current is None:
        return bound_s
    if current.left_s <= 0:
        raise DeadlineExceeded(current.timeout_s)
    return min(bound_s, current.left_s)
