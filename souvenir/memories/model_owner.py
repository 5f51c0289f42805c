"""The serving embedder of a service: loaded, replaced when the model changes, and closed."""

from __future__ import annotations

from threading import Event, Lock

from souvenir.core.errors import Conflict
from souvenir.core.types import LoadableEmbedder
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import MakeEmbedder, stored_spec
from souvenir.models.embedding.specs import ModelSpec


class ModelOwner:
    """Owns the serving embedder, and replaces it when the model changes.

    :param make: Creates the embedder of a spec.
    :param own: The engine's embedder if it is loaded and closed here; None if the caller does that.
    :param named: The model of the settings.
    """

    def __init__(
        self, engine: MemoryEngine, make: MakeEmbedder, named: ModelSpec, own: LoadableEmbedder | None
    ) -> None:
        self._engine = engine
        self.make = make
        self._named = named
        self._own = own
        self._changing = Lock()
        self.load_failed = Event()

    @property
    def spec(self) -> ModelSpec:
        """The spec of the serving model, or else of the settings' model."""
        return stored_spec(self._engine) or self._named

    def load(self) -> None:
        """Load the model and the default index before the first search; what is loaded already is kept."""
        try:
            if self._own is not None:
                self._own.load()
            self._engine.warm_up()
        except BaseException:
            self.load_failed.set()
            raise
        self.load_failed.clear()

    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def adopt(self, embedder: LoadableEmbedder) -> None:
        """Take ownership of a new embedder. Of it and the previous one, the one that does not serve is closed."""
        with self._changing:
            serves = self._engine.models.serving.embedder is embedder
            idle, self._own = (self._own, embedder) if serves else (embedder, self._own)
        if idle is not None:
            idle.close()
        self._engine.warm_up()
        self.load_failed.clear()

    def reload(self) -> str:
        """Load the serving model again; returns its id.

        :raises Conflict: If the loaded model is not the one that made the vectors.
        """
        embedder = self.make(self.spec)
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
