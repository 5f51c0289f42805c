"""An engine on an empty folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder


@pytest.fixture
def engine(settings: Settings) -> Iterator[MemoryEngine]:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as opened:
        yield opened
