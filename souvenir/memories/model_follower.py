"""How a replica follows a change of the embedding model that another one makes.

The replica that runs the job announces the next model near the end. The others load it, and embed their writes with
both models; after the switch they serve with it. One that could not load it in time does so then; its requests wait.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import structlog

from souvenir.core.background import Maintenance
from souvenir.core.errors import DatabaseUnavailable, EmbeddingUnavailable, InvalidRequest, ServiceClosing
from souvenir.core.types import LoadableEmbedder, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import MakeEmbedder
from souvenir.models.embedding.specs import ModelSpec
from souvenir.store import meta
from souvenir.store.vectors import MODEL, MODEL_SPEC, NEXT_MODEL, NEXT_MODEL_SPEC

FOLLOWED_EVERY_S = 2.0
"""Between two looks at the model of the database. A request that notices a change causes one at once."""

MODEL_NOT_LOADED = "model_not_loaded"

log = structlog.get_logger(__name__)


class ModelFollower:
    """:param make: Creates the embedder of a spec. :param own: Takes ownership of one that serves, or closes it."""

    def __init__(self, engine: MemoryEngine, make: MakeEmbedder, own: Callable[[LoadableEmbedder], None]) -> None:
        self._engine = engine
        self._make = make
        self._own = own
        self._expected: LoadableEmbedder | None = None
        self._thread = Maintenance(self._follow, interval_s=FOLLOWED_EVERY_S)

    def start(self) -> None:
        self._engine.when_model_replaced(self._thread.ask)
        self._thread.start()

    def close(self) -> None:
        self._thread.close()
        self._dismiss()

    def _follow(self) -> None:
        try:
            with self._engine.namespace(Scope()) as (connection, _):
                stored = {key: meta.get(connection, key) for key in (MODEL, MODEL_SPEC, NEXT_MODEL, NEXT_MODEL_SPEC)}
            self._follow_to(stored)
        except (DatabaseUnavailable, ServiceClosing) as error:  # it looks again soon
            log.info("model_not_followed", reason=error.message)

    def _follow_to(self, stored: Mapping[str, str | None]) -> None:
        """:param stored: What the database says about its model and the next one, by the keys in `meta`."""
        models = self._engine.models
        try:
            if stored[MODEL] != models.serving.embedder.model_id:
                self._serve(stored[MODEL], stored[MODEL_SPEC])
            elif stored[NEXT_MODEL] is None:
                self._dismiss()
            elif not models.expecting:
                self._expect(stored[NEXT_MODEL], stored[NEXT_MODEL_SPEC])
            self._engine.warnings.clear(MODEL_NOT_LOADED)
        except (EmbeddingUnavailable, InvalidRequest) as error:
            self._engine.warnings.put(
                MODEL_NOT_LOADED,
                f"Another replica changes the embedding model to {stored[NEXT_MODEL] or stored[MODEL]}, which cannot "
                f"be loaded here ({error.message}); make it available to this replica, which tries again until then",
            )

    def _expect(self, model_id: str | None, spec: str | None) -> None:
        self._dismiss()
        embedder = self._loaded(model_id, spec)
        if self._engine.models.expect(embedder, replacing=False):
            self._expected = embedder
        else:
            embedder.close()

    def _serve(self, model_id: str | None, spec: str | None) -> None:
        expected, self._expected = self._expected, None
        if expected is not None and expected.model_id != model_id:
            expected.close()
            expected = None
        embedder = self._loaded(model_id, spec) if expected is None else expected
        if self._engine.models.adopt(embedder):
            log.info("model_adopted", model_id=model_id)
        self._own(embedder)

    def _dismiss(self) -> None:
        """Forget a model that was announced and did not become that of the database."""
        expected, self._expected = self._expected, None
        if expected is not None:
            self._engine.models.dismiss(expected)
            expected.close()

    def _loaded(self, model_id: str | None, spec: str | None) -> LoadableEmbedder:
        if spec is None:
            raise EmbeddingUnavailable("its configuration is not stored")
        embedder = self._make(ModelSpec.from_json(json.loads(spec)))
        try:
            embedder.load()
            if embedder.model_id != model_id:
                raise EmbeddingUnavailable(f"what is loaded is {embedder.model_id}")
        except BaseException:
            embedder.close()
            raise
        return embedder
