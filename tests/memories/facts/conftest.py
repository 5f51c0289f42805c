"""An engine whose facts come from a scripted model; tests start the background queue themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.facts import Facts
from tests.learning.scripted_model import Says, ScriptedModel

OpenFacts = Callable[..., Facts]


def model(says: Says) -> ScriptedModel:
    return ScriptedModel({"split": says})


def writes(*facts: str) -> ScriptedModel:
    """Return a model that always returns these facts."""
    return model(lambda prompt: {"facts": list(facts)})


@pytest.fixture
def open_facts(engine: MemoryEngine) -> Iterator[OpenFacts]:
    with ExitStack() as opened:

        def open_them(provider: ScriptedModel | None = None, **settings: Any) -> Facts:
            engine.facts = opened.enter_context(closing(Facts(engine, provider, Settings(**settings))))
            return engine.facts

        yield open_them
