"""Circuit breaker: after failures of a provider, calls fail immediately for some time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

import structlog

from souvenir.core.errors import DeadlineExceeded, Unavailable

Failure = TypeVar("Failure", bound=Unavailable)

log = structlog.get_logger(__name__)


class CircuitBreaker(Generic[Failure]):
    """Opens after consecutive failures; after a pause one probe call is allowed, and its result closes or reopens it.

    A call that ended because its caller's deadline passed counts neither as success nor as failure.

    :param provider: Its name in the log.
    :param of: Errors that count as failures; other errors count as success.
    :param unless: Subclasses of `of` that count as success.
    :param open_error: Creates the error of a rejected call from the last failure and the remaining seconds.
    :param rest_s: How long it stays open.
    :param after: Consecutive failures that open it.
    """

    def __init__(
        self,
        provider: str,
        of: type[Failure],
        open_error: Callable[[Failure, float], Failure],
        *,
        rest_s: float,
        after: int = 1,
        unless: type[Failure] | None = None,
    ) -> None:
        self._provider = provider
        self._of = of
        self._open_error = open_error
        self._rest_s = rest_s
        self._after = after
        self._unless = unless
        self._failure: Failure | None = None
        self._failures = 0
        self._until = 0.0
        self._probed = False
        self._lock = Lock()

    @property
    def failure(self) -> Failure | None:
        """The last failure, if no call has succeeded since."""
        return self._failure

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Guard a call.

        :raises Unavailable: The last failure, while the breaker is open.
        """
        self._before_call()
        failure: Failure | None = None
        given_up = False
        try:
            yield
        except self._of as error:
            if self._unless is None or not isinstance(error, self._unless):
                failure = error
            raise
        except DeadlineExceeded:
            given_up = True
            raise
        finally:
            if given_up:
                self._probed = False
            else:
                self._after_call(failure)

    def _before_call(self) -> None:
        with self._lock:
            if self._failure is None or self._failures < self._after:
                return
            left_s = self._until - monotonic()
            if self._probed or left_s > 0:
                raise self._open_error(self._failure, max(0.0, left_s))
            self._probed = True

    def _after_call(self, failure: Failure | None) -> None:
        with self._lock:
            before, self._failure, self._probed = self._failures, failure, False
            self._failures = before + 1 if failure is not None else 0
            self._until = monotonic() + self._rest_s
            began, ended = self._failures == self._after, failure is None and before >= self._after
        if failure is not None and began:
            log.warning("provider_failed", provider=self._provider, reason=failure.message)
        if ended:
            log.info("provider_is_back", provider=self._provider)
