"""Deadlines and costs of requests, and a readers-writer lock.

A deadline is passed on in the context of a thread or task. The HTTP boundary sets it, and ends it early if the client
disconnects; a wait asks how long it may still last, and a loop asks between two steps whether it may go on. It also
holds the caller that the work is charged to, and the tokens that a request may have embedded. Without a deadline, as in
a job or in maintenance, a wait has only its own limit. Within it, an answer can be due earlier (`answer_due`): a search
then omits parts that would end too late.

The lock admits many readers at once, or one writer alone, in fair turns. A waiting writer precedes readers that arrive
later, and the readers that waited for a writer precede the next one, so that neither a stream of searches nor a long
import blocks the other side (phase-fair locks, Brandenburg and Anderson 2010).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Condition, Lock
from time import monotonic
from typing import TypeVar

from souvenir.core.errors import DeadlineExceeded, TooManyTokens

T = TypeVar("T")

LOOK_EVERY_S = 0.25
"""A wait for a result looks at its deadline this often, because a deadline can be moved up."""

BACKGROUND = ""
"""The caller of work that no request waits for."""


_frees: ContextVar[bool] = ContextVar("souvenir_frees_space", default=False)


@contextmanager
def frees_space() -> Iterator[None]:
    """Let writes inside use the disk space that the store keeps in reserve: deletions, and what they need.

    It works as a decorator too, and on threads that inherit the context.
    """
    token = _frees.set(True)
    try:
        yield
    finally:
        _frees.reset(token)


def may_use_reserve() -> bool:
    """Return whether the current work frees space."""
    return _frees.get()


@dataclass(slots=True, eq=False)
class Deadline:
    """`timeout_s` from its creation or renewal, and never later than the deadline that it is `_within`.

    :param caller: Who is charged for the work.
    :param _max_tokens: Tokens that the request may have embedded.
    :param leave: Gives the request's place to the next one; called on any thread. None if it holds none.
    """

    timeout_s: float
    caller: str
    _within: Deadline | None
    _max_tokens: int | None
    _at: float
    leave: Callable[[], object] | None = None
    _spent_tokens: int = 0
    _ended: bool = False

    def renew(self) -> None:
        self._at = monotonic() + self.timeout_s

    def end(self) -> None:
        """Nobody waits any more."""
        self._ended = True

    def spend(self, tokens: int) -> None:
        """:raises TooManyTokens: If the texts of the request have more than one request may have."""
        self._spent_tokens += tokens
        if self._max_tokens is not None and self._spent_tokens > self._max_tokens:
            raise TooManyTokens(self._max_tokens)
        if self._within is not None:
            self._within.spend(tokens)

    @property
    def elapsed_s(self) -> float:
        """Seconds since its creation or renewal."""
        return monotonic() - self._at + self.timeout_s

    @property
    def left_s(self) -> float:
        own_s = -1.0 if self._ended else self._at - monotonic()
        return own_s if self._within is None else min(own_s, self._within.left_s)


_current: ContextVar[Deadline | None] = ContextVar("souvenir_deadline", default=None)


@contextmanager
def deadline(timeout_s: float, *, caller: str = BACKGROUND, max_tokens: int | None = None) -> Iterator[Deadline]:
    """Set a deadline for calls inside, also on threads that inherit the context.

    :param caller: Who is charged for the work; by default, as in the deadline outside.
    :param max_tokens: Tokens that the calls may have embedded.
    """
    outer = _current.get()
    charged = outer.caller if outer is not None and caller == BACKGROUND else caller
    made = Deadline(timeout_s, charged, outer, max_tokens, monotonic() + timeout_s)
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)


_due: ContextVar[float] = ContextVar("souvenir_due", default=math.inf)


@contextmanager
def answer_due(deadline_ms: int | None) -> Iterator[None]:
    """Set when the answer of a request is due, for calls inside, also on threads that inherit the context.

    Nothing fails when it passes: optional parts that would end later are omitted, and named as such.

    :param deadline_ms: Milliseconds from the start of the deadline in effect, or from now without one. None: no limit.
    """
    if deadline_ms is None:
        yield
        return
    current = _current.get()
    spent_s = 0.0 if current is None else current.elapsed_s
    token = _due.set(monotonic() - spent_s + deadline_ms / 1000)
    try:
        yield
    finally:
        _due.reset(token)


def left_until_due() -> float:
    """Return the seconds until the answer is due, negative when that has passed; infinity without `answer_due`."""
    return _due.get() - monotonic()


RISE, FALL = 0.12, 0.015
"""The share of itself by which an expected duration rises when a step took longer, and falls when it did not. So it
settles where about one search in nine is slower (a quantile by stochastic approximation, Robbins and Monro 1951). One
that is a hundred times as slow, such as the first in a cold index, moves it no more than any other."""

BEFORE_THE_FIRST_S = 0.005

OMITTED_DECAY = 0.9998
"""Factor of the expected duration for each search that omits the step for it. Without it, the step would be omitted
forever after a slow hour; with it, one that is too slow is tried again about once in 600 searches."""

LEAST_S = 0.001
"""A step that takes no time, such as waiting on an idle machine, is expected to take this long, so that the expectation
follows in some 30 searches when it begins to take longer."""


class Pace:
    """Expected durations of the steps of a search in one index, from those of earlier searches, in seconds.

    :ivar slot_s: Waiting for a slot.
    :ivar scan_s: The vector arm.
    :ivar late_s: Late interaction.
    :ivar rank_s: What follows late interaction.
    :ivar rest_s: All other steps from the slot to the ranking, `rank_s` included.
    """

    def __init__(self) -> None:
        self.slot_s = self.scan_s = self.late_s = self.rank_s = self.rest_s = BEFORE_THE_FIRST_S

    def waited(self, slot_s: float) -> None:
        self.slot_s = _moved(self.slot_s, slot_s)

    def omitted_scan(self) -> None:
        """Note that a search omitted the vector arm because it was expected to end too late."""
        self.scan_s *= OMITTED_DECAY

    def omitted_late(self) -> None:
        """Note the same of late interaction."""
        self.late_s *= OMITTED_DECAY

    def searched(self, *, scan_s: float | None, late_s: float | None, rank_s: float, rest_s: float) -> None:
        """Note the durations of a search; None: it omitted the step."""
        if scan_s is not None:
            self.scan_s = _moved(self.scan_s, scan_s)
        if late_s is not None:
            self.late_s = _moved(self.late_s, late_s)
        self.rank_s = _moved(self.rank_s, rank_s)
        self.rest_s = _moved(self.rest_s, rest_s)


def _moved(expected_s: float, latest_s: float) -> float:
    return max(LEAST_S, expected_s * (1 + RISE if latest_s > expected_s else 1 - FALL))


def time_left(bound_s: float) -> float:
    """Return the seconds that a wait may last: its own limit, or the remaining time if that is less.

    :raises DeadlineExceeded: If the deadline has passed, so that no useless work begins.
    """
    current = _current.get()
    if current is None:
        return bound_s
    left_s = current.left_s
    if left_s <= 0:
        raise DeadlineExceeded(current.timeout_s)
    return min(bound_s, left_s)


def require_time() -> None:
    """:raises DeadlineExceeded: If nobody waits for the work of this thread any more."""
    time_left(LOOK_EVERY_S)


def awaited(result: Future[T]) -> T:
    """Wait for a result until the deadline.

    :raises DeadlineExceeded: If it is not there in time.
    """
    while True:
        try:
            return result.result(time_left(LOOK_EVERY_S))
        except TimeoutError:
            if result.done():
                return result.result()


def spend_tokens(tokens: int) -> None:
    """Charge the request of this thread for tokens to embed; a job is not limited.

    :raises TooManyTokens: If its texts have more than one request may have.
    """
    current = _current.get()
    if current is not None:
        current.spend(tokens)


def leave_place() -> None:
    """Give the place of this thread's request to the next one, before a long wait that uses no core here."""
    current = _current.get()
    while current is not None:
        if current.leave is not None:
            current.leave()
        current = current._within


def current_caller() -> str:
    """The caller that the work of this thread is charged to."""
    current = _current.get()
    return BACKGROUND if current is None else current.caller


class _ReadSide:
    """The context of every reader of a lock; it has no state of its own."""

    __slots__ = ("_lock",)

    def __init__(self, lock: ReadersWriterLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.enter_as_reader()

    def __exit__(self, *_: object) -> None:
        self._lock.leave_as_reader()


class ReadersWriterLock:
    """Not reentrant: a thread that holds it for reading or writing must not acquire it again."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._changed = Condition(self._mutex)
        self._read_side = _ReadSide(self)
        self._readers = 0
        self._readers_waiting = 0
        self._readers_due = 0  # readers that waited for the last writer and precede the next one
        self._writing = False
        self._writers_waiting = 0
        self._writes = 0

    def read(self) -> _ReadSide:
        return self._read_side

    def enter_as_reader(self) -> None:
        with self._mutex:
            if self._writing or self._writers_waiting:
                self._wait_for_one_writer()
            self._readers += 1

    def leave_as_reader(self) -> None:
        with self._mutex:
            self._readers -= 1
            if not self._readers and self._writers_waiting:
                self._changed.notify_all()

    def _wait_for_one_writer(self) -> None:
        arrived_at = self._writes
        self._readers_waiting += 1
        while self._writes == arrived_at:
            self._changed.wait()
        self._readers_waiting -= 1
        self._readers_due -= 1

    @contextmanager
    def write(self, timeout_s: float | None = None) -> Iterator[None]:
        """:param timeout_s: Maximum wait, since arriving readers wait too.

        :raises TimeoutError: If readers did not release it in that time.
        """
        with self._changed:
            self._writers_waiting += 1
            free = self._changed.wait_for(self._is_free, timeout_s)
            self._writers_waiting -= 1
            if not free:
                if not self._writing:
                    self._admit_readers()
                raise TimeoutError
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._admit_readers()

    def _is_free(self) -> bool:
        return not (self._writing or self._readers or self._readers_due)

    def _admit_readers(self) -> None:
        """Admit the readers that waited for a writer."""
        self._writes += 1
        self._readers_due = self._readers_waiting
        self._changed.notify_all()
