"""An engine with conversations, and their removals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from souvenir.conversations.messages import Conversations
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import Removals


def no_jobs() -> None:
    return None


@pytest.fixture
def removals(engine: MemoryEngine) -> Iterator[Removals]:
    """Checks at the end that database and indexes agree."""
    with closing(Removals(engine, on_jobs_gone=no_jobs)) as removals:
        removals.start()
        yield removals
    assert list(engine.check()) == []


@pytest.fixture
def conversations(engine: MemoryEngine) -> Conversations:
    return Conversations(engine)
