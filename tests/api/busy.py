"""A service that stays busy until a test releases its model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic

from souvenir.core.types import FloatVector
from tests.fake_embedder import FakeEmbedder

PATIENCE_S = 20.0


class StoppableEmbedder(FakeEmbedder):
    """Texts with the word `stop` wait in it until `go` is set. `begun` are all texts that came, in their order."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        self._pass(texts)
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> FloatVector:
        self._pass([text])
        return super().embed_query(text)

    def _pass(self, texts: Sequence[str]) -> None:
        self.begun.extend(texts)
        if any("stop" in text for text in texts):
            assert self.go.wait(PATIENCE_S), "nobody let it go"


def until(happened: Callable[[], bool]) -> None:
    deadline = monotonic() + PATIENCE_S
    while not happened():
        assert monotonic() < deadline, "it did not happen in time"
        threading.Event().wait(0.001)


Ask = Callable[..., "Future[object]"]


@contextmanager
def asking(embedder: StoppableEmbedder) -> Iterator[ThreadPoolExecutor]:
    """Threads for requests that are not answered yet; whatever a test finds, the model goes on in the end."""
    with ThreadPoolExecutor(16) as threads:
        try:
            yield threads
        finally:
            embedder.go.set()
