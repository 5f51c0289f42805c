"""An engine, its graph, and the jobs that ask a model about its concepts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from llm_provider import LLMProvider
from memory_engine import MemoryEngine
from souvenir.graph.model_claims import Describing
from souvenir.settings import Settings
from tests.graph.describe import OpenDescribing


@pytest.fixture
def open_describing(engine: MemoryEngine) -> Iterator[OpenDescribing]:
    """What is derived agrees with what is stored at the end."""
    with ExitStack() as opened:

        def open_it(provider: LLMProvider | None, **settings: Any) -> Describing:
            return opened.enter_context(closing(Describing(engine, provider, Settings(**settings))))

        yield open_it
    assert list(engine.check()) == []
