"""An engine, and jobs over it with the handlers of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from souvenir.jobs.handler import JobHandler
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine

OpenJobs = Callable[..., Jobs]


@pytest.fixture
def open_jobs(engine: MemoryEngine) -> Iterator[OpenJobs]:
    """Jobs that run; closed before the engine."""
    with ExitStack() as opened:

        def open_them(
            *handlers: JobHandler,
            queue_max: int = 100,
            retention_days: float = 7.0,
            start: bool = True,
            lane: str | None = None,
            workers: int = 1,
        ) -> Jobs:
            jobs = Jobs(
                engine, handlers, queue_max=queue_max, retention_days=retention_days, lane=lane, workers=workers
            )
            opened.enter_context(closing(jobs))
            if start:
                jobs.start()
            return jobs

        yield open_them
