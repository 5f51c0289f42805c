"""Leaves a provider that failed alone for a while, so that nobody waits for what will fail again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic

import structlog

from souvenir.errors import EmbeddingUnavailable

log = structlog.get_logger(__name__)


class RequestRefused(EmbeddingUnavailable):
    """The provider answered that it does not take this request; it may well take the next."""


class Outage:
    """After a failure, calls fail at once for `rest_s`; then one goes through, and what it meets counts for all."""

    def __init__(self, rest_s: float) -> None:
        self._rest_s = rest_s
        self._failure: EmbeddingUnavailable | None = None
        self._until = 0.0
        self._probed = False
        self._lock = Lock()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Around a call.

        :raises EmbeddingUnavailable: What failed last, if the provider is to be left alone.
        """
        self._enter()
        failure: EmbeddingUnavailable | None = None
        try:
            yield
        except RequestRefused:
            raise
        except EmbeddingUnavailable as error:
            failure = error
            raise
        finally:
            self._leave(failure)

    def _enter(self) -> None:
        with self._lock:
            if self._failure is None:
                return
            if self._probed or monotonic() < self._until:
                raise EmbeddingUnavailable(self._failure.message)
            self._probed = True

    def _leave(self, failure: EmbeddingUnavailable | None) -> None:
        with self._lock:
            before, self._failure, self._probed = self._failure, failure, False
            self._until = monotonic() + self._rest_s
        if failure is not None and before is None:
            log.warning("embedding_provider_failed", reason=failure.message)
        if failure is None and before is not None:
            log.info("embedding_provider_is_back")
