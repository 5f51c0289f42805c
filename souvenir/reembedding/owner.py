"""Whose embedder it is: the service loads and closes the one that serves, also after another one has taken over."""

from __future__ import annotations

from threading import Event, Lock

from memory_engine import MemoryEngine
from souvenir.embedding.specs import ModelSpec
from souvenir.errors import Conflict
from souvenir.reembedding.choice import MakeEmbedder, stored_spec
from souvenir.types import LoadableEmbedder


class ModelOwner:
    """:param own: The embedder of the engine if it is to be loaded and closed here; None if somebody else does that.

    :param named: The model of the settings.
    """

    def __init__(
        self, engine: MemoryEngine, make: MakeEmbedder, named: ModelSpec, own: LoadableEmbedder | None
    ) -> None:
        self._engine = engine
        self._make = make
        self._named = named
        self._own = own
        self._changing = Lock()
        self.load_failed = Event()

    @property
    def spec(self) -> ModelSpec:
        """What the model that serves was made from, or else would be."""
        return stored_spec(self._engine) or self._named

    def load(self) -> None:
        """Get ready for the first search."""
        try:
            if self._own is not None:
                self._own.load()
            self._engine.warm_up()
        except BaseException:
            self.load_failed.set()
            raise

    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def adopt(self, embedder: LoadableEmbedder) -> None:
        """Own one that has taken over. Of it and the one before, that is closed which does not serve."""
        with self._changing:
            serves = self._engine.models.serving.embedder is embedder
            idle, self._own = (self._own, embedder) if serves else (embedder, self._own)
        if idle is not None:
            idle.close()
        self._engine.warm_up()
        self.load_failed.clear()

    def reload(self) -> str:
        """Load the model that serves anew; returns its id.

        :raises Conflict: If what is loaded now is another model than the one that made the vectors.
        """
        embedder = self._make(self.spec)
        try:
            embedder.load()
            if not self._engine.models.reload(embedder):
                raise Conflict(
                    f"What is loaded now is {embedder.model_id}, which did not make the vectors; "
                    "POST /maintenance/reembed changes to another model"
                )
        except BaseException:
            embedder.close()
            raise
        self.adopt(embedder)
        return embedder.model_id
