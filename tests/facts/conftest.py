"""Facts over an engine, with a model that says what a test wants; what is split later waits until a test starts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from memory_engine import MemoryEngine
from souvenir.facts.facts import Facts
from souvenir.settings import Settings
from tests.extraction.scripted_model import Says, ScriptedModel

OpenFacts = Callable[..., Facts]


def model(says: Says) -> ScriptedModel:
    return ScriptedModel({"split": says})


def writes(*facts: str) -> ScriptedModel:
    """A model that always gives these facts."""
    return model(lambda prompt: {"facts": list(facts)})


@pytest.fixture
def open_facts(engine: MemoryEngine) -> Iterator[OpenFacts]:
    with ExitStack() as opened:

        def open_them(provider: ScriptedModel | None = None, **settings: Any) -> Facts:
            return opened.enter_context(closing(Facts(engine, provider, Settings(**settings))))

        yield open_them
