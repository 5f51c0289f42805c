"""Run parts of a request concurrently, each in its own thread, and wait for them until a deadline.

A late part keeps running for a short time, because waits in the engine respect the deadline. Its result is ignored, and
an unexpected failure is logged.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from threading import BoundedSemaphore, Thread
from typing import TypeVar

import structlog

from souvenir.core.concurrency import Deadline, deadline, time_left
from souvenir.core.errors import DeadlineExceeded, SouvenirError

T = TypeVar("T")

MAX_S = 3_600.0
"""Deadline of a part that was started without one."""

MAX_PARTS = 64
"""Maximum number of threads, including those of late parts."""

log = structlog.get_logger(__name__)


class TimedParts:
    """Thread-safe."""

    def __init__(self, max_parts: int = MAX_PARTS) -> None:
        self._places = BoundedSemaphore(max_parts)

    def start(self, name: str, part: Callable[[], T]) -> Future[T]:
        """Start a part under the deadline of this thread; its failure is set on the future.

        The future also fails if the part cannot start in time, because late parts occupy all threads.
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
    """Return the result of a part; raises its failure.

    :raises DeadlineExceeded: If it is not done in time.
    """
    if not wait([part], timeout=max(until.left_s, 0.0)).done:
        raise DeadlineExceeded(until.timeout_s)
    return part.result()
