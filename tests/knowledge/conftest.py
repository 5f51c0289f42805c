"""An engine, its graph, and the jobs that ask a model about concepts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from souvenir.core.settings import Settings
from souvenir.knowledge.model_claims import ModelClaims
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.provider import LLMProvider
from tests.knowledge.model_claims_setup import OpenModelClaims


@pytest.fixture
def open_model_claims(engine: MemoryEngine) -> Iterator[OpenModelClaims]:
    """What is derived agrees with what is stored at the end."""
    with ExitStack() as opened:

        def open_it(provider: LLMProvider | None, **settings: Any) -> ModelClaims:
            return opened.enter_context(closing(ModelClaims(engine, provider, Settings(**settings))))

        yield open_it
    assert list(engine.check()) == []
