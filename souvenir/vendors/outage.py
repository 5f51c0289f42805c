"""Leaves a provider that failed alone for a while, so that nobody waits for what will fail again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

import structlog

from souvenir.errors import DeadlineExceeded, Unavailable

Failure = TypeVar("Failure", bound=Unavailable)

log = structlog.get_logger(__name__)


class Outage(Generic[Failure]):
    """After failures in a row, calls fail at once for a while; then one goes through, and what it meets counts for all.

    A call that was given up since its caller's time was over says nothing of the provider, and counts for neither.

    :param provider: Its name in the log.
    :param of: What counts as a failure; of other errors the provider is well.
    :param unless: A kind of it that does not count either.
    :param resting: The error of a call that is not made: from what failed last, and the seconds that are left.
    :param rest_s: How long the provider is left alone.
    :param after: Failures in a row before it is.
    """

    def __init__(
        self,
        provider: str,
        of: type[Failure],
        resting: Callable[[Failure, float], Failure],
        *,
        rest_s: float,
        after: int = 1,
        unless: type[Failure] | None = None,
    ) -> None:
        self._provider = provider
        self._of = of
        self._resting = resting
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
        """What failed last, if nothing has succeeded since."""
        return self._failure

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Around a call.

        :raises Unavailable: What failed last, if the provider is to be left alone.
        """
        self._enter()
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
                self._leave(failure)

    def _enter(self) -> None:
        with self._lock:
            if self._failure is None or self._failures < self._after:
                return
            left_s = self._until - monotonic()
            if self._probed or left_s > 0:
                raise self._resting(self._failure, max(0.0, left_s))
            self._probed = True

    def _leave(self, failure: Failure | None) -> None:
        with self._lock:
            before, self._failure, self._probed = self._failures, failure, False
            self._failures = before + 1 if failure is not None else 0
            self._until = monotonic() + self._rest_s
            began, ended = self._failures == self._after, failure is None and before >= self._after
        if failure is not None and began:
            log.warning("provider_failed", provider=self._provider, reason=failure.message)
        if ended:
            log.info("provider_is_back", provider=self._provider)
