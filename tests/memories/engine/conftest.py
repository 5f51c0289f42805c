"""An engine on an empty folder, and one whose embedder can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing

import pytest

from souvenir.core.errors import EmbeddingUnavailable
from souvenir.core.settings import Settings
from souvenir.core.types import FloatVector
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder

OpenEngine = Callable[..., MemoryEngine]


class BreakableEmbedder(FakeEmbedder):
    """Fails while `broken`, like a model that cannot be loaded; its known share is configurable."""

    broken = False
    share = 1.0

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        self._fail_if_broken()
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> FloatVector:
        self._fail_if_broken()
        return super().embed_query(text)

    def known_share(self, text: str) -> float:
        return self.share

    def _fail_if_broken(self) -> None:
        if self.broken:
            raise EmbeddingUnavailable("The embedding model cannot be loaded; look at the service's log")


@pytest.fixture
def embedder() -> BreakableEmbedder:
    return BreakableEmbedder()


@pytest.fixture
def open_engine(settings: Settings, embedder: BreakableEmbedder) -> Iterator[OpenEngine]:
    """Opens the folder of `settings`, with changes given as keywords."""
    with ExitStack() as opened:

        def open_it(**changes: object) -> MemoryEngine:
            changed = settings.model_copy(update=changes)
            return opened.enter_context(closing(MemoryEngine.open(changed, embedder)))

        yield open_it


@pytest.fixture
def engine(open_engine: OpenEngine) -> MemoryEngine:
    return open_engine()
