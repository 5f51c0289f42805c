"""Conversations over a real engine with the fake embedder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.memories.engine import MemoryEngine


@pytest.fixture
def conversations(engine: MemoryEngine) -> Iterator[Conversations]:
    """What stands in database and indexes at the end agrees."""
    yield Conversations(engine)
    assert list(engine.check()) == []


@pytest.fixture
def sessions(engine: MemoryEngine) -> Sessions:
    return Sessions(engine)
