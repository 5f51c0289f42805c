"""Target models: with other directions and another dimension than the fake one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event

import numpy as np

from souvenir.core.errors import EmbeddingUnavailable
from souvenir.core.settings import EmbedProvider
from souvenir.core.types import FloatVector
from souvenir.models.embedding.specs import ModelSpec
from tests.fake_embedder import FakeEmbedder
from tests.jobs.handlers import PATIENCE_S

OTHER = ModelSpec(EmbedProvider.ONNX, "other")
FAKE = ModelSpec(EmbedProvider.ONNX, "fake")


class Held:
    """Blocks an embedder at its n-th batch; the probe is the first."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.reached, self.open = Event(), Event()

    def __call__(self, texts: Sequence[str]) -> None:
        self._left -= 1
        if self._left == 0:
            self.reached.set()
            assert self.open.wait(PATIENCE_S)


class OtherEmbedder(FakeEmbedder):
    """:param before: Called with the texts of each batch before they are embedded."""

    model_id = "other@1"
    dim = 96
    seed = 7

    def __init__(self, before: Callable[[Sequence[str]], None] = lambda texts: None) -> None:
        self._before = before
        self.closed = False

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        assert not self.closed, "it serves after it was closed"
        self._before(texts)
        return super().embed_documents(texts)

    def close(self) -> None:
        self.closed = True


class NarrowEmbedder(OtherEmbedder):
    """Has a smaller window than the passages of the fake model."""

    model_id = "narrow@1"
    max_tokens = 16

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        assert all(len(self.token_offsets(text)) <= self.max_tokens for text in texts)
        return super().embed_documents(texts)


class MuteEmbedder(OtherEmbedder):
    """Loads, but fails to embed."""

    model_id = "mute@1"

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        return np.zeros((len(texts), self.dim), dtype=np.float32)


class MissingEmbedder(OtherEmbedder):
    """Cannot be loaded."""

    model_id = "missing@1"

    def load(self) -> None:
        raise EmbeddingUnavailable("there is no such folder")


def make_any(spec: ModelSpec) -> FakeEmbedder:
    """Create a model by its name."""
    made: dict[str, type[FakeEmbedder]] = {
        "fake": FakeEmbedder,
        "other": OtherEmbedder,
        "narrow": NarrowEmbedder,
        "mute": MuteEmbedder,
        "missing": MissingEmbedder,
    }
    return made[spec.model]()
