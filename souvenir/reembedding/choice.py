"""Which model a service starts with: the one that made the vectors, whatever the settings name by now."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing

import apsw
import structlog

from memory_engine import MemoryEngine
from souvenir.embedding.factory import embedder_of
from souvenir.embedding.specs import ModelSpec
from souvenir.errors import EmbeddingUnavailable, InvalidRequest
from souvenir.settings import Settings
from souvenir.store import reads, vectors
from souvenir.store.connections import open_reader
from souvenir.types import LoadableEmbedder, Scope

MakeEmbedder = Callable[[ModelSpec], LoadableEmbedder]

log = structlog.get_logger(__name__)


def chosen_model(settings: Settings, make: MakeEmbedder | None = None) -> tuple[LoadableEmbedder, ModelSpec]:
    """An embedder that is not loaded yet, and what it is made from.

    The settings' model if nothing is stored, or if the model that made the vectors cannot be had any more: the store
    then says what to do about it.
    """
    make = make or (lambda spec: embedder_of(settings, spec))
    named, stored = ModelSpec.of(settings), _stored(settings)
    if stored is not None and stored[1] != named:
        model_id, spec = stored
        try:
            embedder = make(spec)
            if embedder.model_id == model_id:
                log.warning(
                    "other_model_named",
                    serving=spec.model,
                    named=named.model,
                    action="POST /maintenance/reembed to change to the one that is named, or set EMBED_MODEL back",
                )
                return embedder, spec
            embedder.close()
        except (EmbeddingUnavailable, InvalidRequest) as error:
            log.warning("stored_model_unavailable", model=spec.model, reason=error.message)
    return make(named), named


def stored_spec(engine: MemoryEngine) -> ModelSpec | None:
    """What the present model was made from, if that is noted."""
    with engine.namespace(Scope()) as (connection, _):
        spec = reads.meta(connection, vectors.MODEL_SPEC)
    return None if spec is None else ModelSpec.from_json(json.loads(spec))


def _stored(settings: Settings) -> tuple[str, ModelSpec] | None:
    """Id and spec of the model that made the vectors; None if there are none, or nothing is noted of it."""
    if not settings.database_path.exists():
        return None
    try:
        with closing(open_reader(settings.database_path)) as connection:
            model_id = reads.meta(connection, vectors.MODEL)
            spec = reads.meta(connection, vectors.MODEL_SPEC)
            if model_id is None or spec is None or not reads.counts(connection).passages:
                return None
            return model_id, ModelSpec.from_json(json.loads(spec))
    except (apsw.Error, ValueError, TypeError, KeyError):
        # Whoever opens the database for good says what is wrong with it.
        return None
