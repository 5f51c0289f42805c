"""An engine and the extraction queue over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from souvenir.core.settings import Settings
from souvenir.jobs.handler import JobHandler
from souvenir.jobs.worker import Jobs
from souvenir.learning.extraction import Extraction
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.provider import LLMProvider
from souvenir.store.admin.jobs import EXTRACT
from tests.learning.ledgers import ANN, SOURCE, Applier
from tests.learning.pipeline import OpenExtraction
from tests.memories.engine.verbs import add

OpenLane = Callable[..., Jobs]
Remember = Callable[..., int]


@pytest.fixture
def open_lane(engine: MemoryEngine) -> Iterator[OpenLane]:
    """The lane with a handler; what stands in database and indexes at the end agrees."""
    with ExitStack() as opened:

        def open_it(handler: JobHandler, *, workers: int = 2, start: bool = True) -> Jobs:
            jobs = Jobs(engine, [handler], queue_max=100, retention_days=1, lane=EXTRACT, workers=workers)
            opened.enter_context(closing(jobs))
            if start:
                jobs.start()
            return jobs

        yield open_it
    assert list(engine.check()) == []


@pytest.fixture
def applier(engine: MemoryEngine, settings: Settings) -> Applier:
    return Applier(engine, settings.model_copy(update={"extract_max_deletes": 2}))


@pytest.fixture
def jobs(open_lane: OpenLane, applier: Applier) -> Jobs:
    return open_lane(applier)


@pytest.fixture
def remember(engine: MemoryEngine) -> Remember:
    def remember_it(text: str, source: str = SOURCE, **fields: Any) -> int:
        return add(engine, text, source, scope=ANN, **fields)

    return remember_it


@pytest.fixture
def open_extraction(engine: MemoryEngine, settings: Settings) -> Iterator[OpenExtraction]:
    """Extraction with a model, or without one; further arguments are settings.

    The one before is closed, as it would else run jobs of the next one.
    """
    with ExitStack() as opened:

        def open_it(provider: LLMProvider | None, *, start: bool = True, **more: object) -> Extraction:
            opened.close()
            extraction = Extraction(engine, provider, settings.model_copy(update=more))
            opened.enter_context(closing(extraction))
            if start:
                extraction.start()
            return extraction

        yield open_it
    assert list(engine.check()) == []
