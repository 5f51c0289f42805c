"""Work that is waited for until a deadline and no longer: parts that run beside each other, each on its own thread.

A part that is not done by then goes on alone; the engine's own waits end soon after, since they know the deadline. What
it says is not asked for any more, and logged if it is a fault of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from threading import BoundedSemaphore, Thread
from typing import TypeVar

import structlog

from souvenir.deadlines import Deadline, deadline, time_left
from souvenir.errors import DeadlineExceeded, SouvenirError

T = TypeVar("T")

MAX_S = 3_600.0
"""Of a part that was begun without a deadline."""

MAX_PARTS = 64
"""Threads at once, those that were given up included."""

log = structlog.get_logger(__name__)


class InTime:
    """Safe to use from any thread."""

    def __init__(self, max_parts: int = MAX_PARTS) -> None:
        self._places = BoundedSemaphore(max_parts)

    def start(self, name: str, part: Callable[[], T]) -> Future[T]:
        """Begin a part within the deadline that this thread has; its failure is the future's.

        So is that it could not begin in time, since parts that were given up hold all the threads.
        """
        done: Future[T] = Future()
        try:
            left_s = time_left(MAX_S)
            if not self._places.acquire(timeout=left_s):
                raise DeadlineExceeded(left_s)
        except DeadlineExceeded as error:
            done.set_exception(error)
            return done

        def run() -> None:
            try:
                with deadline(left_s):
                    done.set_result(part())
            except SouvenirError as error:
                done.set_exception(error)
            except BaseException as error:
                log.exception("part_failed", part=name)
                done.set_exception(error)
            finally:
                self._places.release()

        Thread(target=copy_context().run, args=(run,), name=f"souvenir-{name}", daemon=True).start()
        return done


def result_of(part: Future[T], until: Deadline) -> T:
    """What a part says, or how it failed.

    :raises DeadlineExceeded: If it is not done in time.
    """
    if not wait([part], timeout=max(until.left_s, 0.0)).done:
        raise DeadlineExceeded(until.timeout_s)
    return part.result()
