"""An agent in an engine of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from tests.knowledge.agent import Agent


@pytest.fixture
def ann(engine: MemoryEngine) -> Iterator[Agent]:
    """What is derived agrees with what is stored at the end."""
    agent = Agent(engine, KnowledgeServices.open(engine))
    with agent.opened:
        yield agent
    assert list(engine.check()) == []
