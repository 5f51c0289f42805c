"""How a replica follows a change of the embedding model that another one makes.

The replica that runs the job announces the next model near the end. The others load it, and embed their writes with
both models; after the switch they serve with it. One that could not load it in time does so then; its requests wait.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic

import structlog

from souvenir.core.background import Maintenance
from souvenir.core.errors import DatabaseUnavailable, EmbeddingUnavailable, InvalidRequest, Overloaded, ServiceClosing
from souvenir.core.types import JsonObject, LoadableEmbedder, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import MakeEmbedder
from souvenir.models.embedding.specs import ModelSpec
from souvenir.store import meta
from souvenir.store.vectors import ANNOUNCED, MODEL, MODEL_SPEC, NEXT_MODEL

FOLLOWED_EVERY_S = 2.0
"""Between two looks at the model of the database. A request that notices a change causes one at once."""

LOADING_TIMEOUT_S = 30.0
"""How long closing waits for a model that is loaded."""

MODEL_NOT_LOADED = "model_not_loaded"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Expected:
    """:param announcement: By which the model was or will be chosen."""

    announcement: str | None
    embedder: LoadableEmbedder


class ModelFollower:
    """:param make: Creates the embedder of a spec. :param own: Takes ownership of one that serves."""

    def __init__(self, engine: MemoryEngine, make: MakeEmbedder, own: Callable[[LoadableEmbedder], None]) -> None:
        self._engine = engine
        self._make = make
        self._own = own
        self._expected: _Expected | None = None
        self._next_look_at = 0.0
        self._thread = Maintenance(self._follow, interval_s=FOLLOWED_EVERY_S)

    def start(self) -> None:
        self._engine.when_model_replaced(self._thread.ask)
        self._thread.start()

    def close(self) -> None:
        self._thread.close(LOADING_TIMEOUT_S)
        self._dismiss()

    def _follow(self) -> None:
        if monotonic() < self._next_look_at:
            return
        stored: Mapping[str, str | None] = {}
        try:
            with self._engine.namespace(Scope()) as (connection, _):
                stored = {key: meta.get(connection, key) for key in (MODEL, MODEL_SPEC, ANNOUNCED, NEXT_MODEL)}
            self._follow_to(stored)
            self._engine.warnings.clear(MODEL_NOT_LOADED)
        except (EmbeddingUnavailable, InvalidRequest) as error:
            self._next_look_at = monotonic() + FOLLOWED_EVERY_S / 2
            self._engine.warnings.put(
                MODEL_NOT_LOADED,
                f"Another replica changes the embedding model to {_name(stored)}, which cannot be loaded here "
                f"({error.message}); make it available to this replica, which tries again until then",
            )
        except (DatabaseUnavailable, Overloaded, ServiceClosing, TimeoutError) as error:
            log.info("model_not_followed", reason=str(error), action="looks again soon")

    def _follow_to(self, stored: Mapping[str, str | None]) -> None:
        """:param stored: What the database says about its model and the next one, by the keys in `meta`."""
        models, announcement = self._engine.models, stored[NEXT_MODEL]
        if stored[MODEL] != models.serving.embedder.model_id:
            self._serve(stored)
            return
        expected = self._expected
        if expected is not None and (expected.announcement != announcement or not models.expects(expected.embedder)):
            self._dismiss()
        # If one is expected, the job runs here, or this replica follows already.
        if announcement is not None and not models.expecting:
            self._expect(announcement)

    def _expect(self, announcement: str) -> None:
        announced: JsonObject = json.loads(announcement)
        embedder = self._loaded(announced["model"], announced["spec"])
        is_expected = False
        try:
            is_expected = self._engine.models.expect(embedder, announcement, replacing=False)
        finally:
            if is_expected:
                self._expected = _Expected(announcement, embedder)
            else:
                embedder.close()

    def _serve(self, stored: Mapping[str, str | None]) -> None:
        if self._expected is not None and self._expected.announcement != stored[ANNOUNCED]:
            self._dismiss()
        if self._expected is None:
            spec = stored[MODEL_SPEC]
            if spec is None:
                raise EmbeddingUnavailable("its configuration is not stored")
            self._expected = _Expected(stored[ANNOUNCED], self._loaded(stored[MODEL], json.loads(spec)))
        embedder = self._expected.embedder
        if not self._engine.models.adopt(embedder):
            self._dismiss()
            return
        self._expected = None
        log.info("model_adopted", model_id=embedder.model_id)
        self._own(embedder)

    def _dismiss(self) -> None:
        """Forget a model that did not become that of the database."""
        expected, self._expected = self._expected, None
        if expected is None:
            return
        self._engine.models.dismiss(expected.embedder)
        if self._engine.models.serving.embedder is expected.embedder:
            self._own(expected.embedder)
        else:
            expected.embedder.close()

    def _loaded(self, model_id: str | None, spec: JsonObject) -> LoadableEmbedder:
        embedder = self._make(ModelSpec.from_json(spec))
        try:
            embedder.load()
            if embedder.model_id != model_id:
                raise EmbeddingUnavailable(f"what is loaded is {embedder.model_id}")
        except BaseException:
            embedder.close()
            raise
        return embedder


def _name(stored: Mapping[str, str | None]) -> str | None:
    announcement = stored[NEXT_MODEL]
    return stored[MODEL] if announcement is None else json.loads(announcement)["model"]
