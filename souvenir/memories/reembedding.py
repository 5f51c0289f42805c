"""Choose the embedding model at a start, and change it by a job that embeds every passage again.

A service starts with the model that made the stored vectors, even if the settings name another one.

The job inserts the new vectors in addition to the old ones in small transactions, each with its progress; texts written
in the meantime have greater ids and are processed later. Near the end every write is embedded by both models, so that
the job can catch up. The switch is one transaction; before it, searches are unaffected; after it, the old vectors are
removed in small parts. Passage boundaries stay unchanged.

Of several replicas on one database, one runs the job; the others follow (`souvenir.memories.model_follower`).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import structlog

from souvenir.core.errors import EmbeddingUnavailable, InvalidRequest, SouvenirError
from souvenir.core.passages import Embeddable, Passage
from souvenir.core.settings import EmbedProvider, Settings
from souvenir.core.stored_json import StoredJson, to_json
from souvenir.core.types import Embedder, JsonObject, LoadableEmbedder, Scope
from souvenir.jobs.handler import JobCancelled, RunningJob
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of
from souvenir.models.embedding.specs import ModelSpec
from souvenir.retrieval.preparation import embeddings_of
from souvenir.store import meta, vectors
from souvenir.store import vectors as rows
from souvenir.store.admin import jobs
from souvenir.store.engines import stored_model
from souvenir.store.sql import Connection

MakeEmbedder = Callable[[ModelSpec], LoadableEmbedder]

log = structlog.get_logger(__name__)


def chosen_model(settings: Settings, make: MakeEmbedder | None = None) -> tuple[LoadableEmbedder, ModelSpec]:
    """Return an embedder that is not loaded yet, and its spec.

    It is the settings' model if nothing is stored, or if the model that made the vectors is not available any more; the
    store's error then says what to do.
    """
    make = make or (lambda spec: embedder_of(settings, spec))
    named, stored = ModelSpec.of(settings), _stored(settings)
    if stored is not None and stored[1] == named and named.provider is EmbedProvider.OLLAMA and named.dim is None:
        # The id of the stored vectors' model ends with their dimension: Ollama need not be asked for it again.
        return make(replace(named, dim=int(stored[0].rpartition("/")[2]))), named
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
    """Return the spec of the current model, if it is stored."""
    with engine.namespace(Scope()) as (connection, _):
        spec = meta.get(connection, vectors.MODEL_SPEC)
    return None if spec is None else ModelSpec.from_json(json.loads(spec))


def _stored(settings: Settings) -> tuple[str, ModelSpec] | None:
    """Return id and spec of the model that made the vectors; None if there are none, or the spec is not stored."""
    stored = stored_model(settings)
    try:
        return None if stored is None else (stored[0], ModelSpec.from_json(json.loads(stored[1])))
    except (ValueError, TypeError, KeyError):
        # Opening the database for use reports what is wrong with it.
        return None


ACTOR = "souvenir"
"""The actor of a job that makes missing token vectors."""

PASSAGES_AT_ONCE = 64
"""Embedded and stored together: some hundreds of milliseconds with the default model, one request to a provider."""

REMOVED_AT_ONCE = 512

ANNOUNCED_S = 5.0
"""The time that other replicas get to load the model before the switch."""

WARNED_EVERY = 100
"""The switch is tried so often before a line in the log says that it waits."""

SWITCH_PAUSE_S = 1.0
"""Pause before the switch is retried, if a read takes long."""

PROBE = "Does this model embed?"


@dataclass(frozen=True, slots=True)
class _State:
    """`last` is the id of the last passage that was embedded or, after the switch, whose old vector was removed."""

    last: int = 0
    embedded: int = 0
    total: int = 0
    switched: bool = False


_STATE = StoredJson(_State)


class Reembedding:
    """Runs the jobs of its kind.

    :param make: Creates the embedder of a spec; it is loaded and closed here.
    :param adopt: Takes ownership of the new serving embedder, and closes the previous one.
    """

    kind = jobs.REEMBED

    def __init__(self, engine: MemoryEngine, make: MakeEmbedder, adopt: Callable[[LoadableEmbedder], None]) -> None:
        self._engine = engine
        self._make = make
        self._adopt = adopt

    def run(self, job: RunningJob) -> JsonObject:
        state = _STATE.load(job.state)
        if not state.switched:
            spec = ModelSpec.from_json(job.parameters["spec"])
            embedder = self._loaded(spec, begun=bool(job.state))
            try:
                if embedder.model_id == self._engine.models.serving.embedder.model_id:
                    return self._already_serving(job, spec, embedder)
                state = self._embed_all(job, embedder, spec)
            finally:
                if self._engine.models.serving.embedder is embedder:
                    self._adopt(embedder)
                else:
                    self._engine.models.dismiss(embedder)
                    embedder.close()
            log.info("model_changed", model_id=embedder.model_id)
        self._remove_old(job, state)
        with self._engine.namespace(Scope()) as (connection, _):
            model_id = meta.get(connection, rows.MODEL)
        return {"model": model_id, "embedded": state.embedded, "already_serving": False}

    def undo(self, job: RunningJob) -> None:
        """Remove the vectors of a model that does not take over, and old vectors that were not removed yet."""
        self._remove_leftovers(partial(_runs, job))

    def complete(self, submit: Callable[[ModelSpec], object]) -> None:
        """Submit a job that makes missing token vectors, for instance of passages that an older release embedded."""
        embedder = self._engine.models.serving.embedder
        with self._engine.namespace(Scope()) as (connection, _):
            complete = meta.get(connection, rows.TOKEN_SPACE) == embedder.token_space
            is_empty = not rows.count_passages(connection)
            waits = jobs.has_unfinished(connection, self.kind)
        spec = stored_spec(self._engine)
        if complete or waits or spec is None:
            return
        if embedder.token_space is None or is_empty:
            self._engine.write_rows(partial(_note_current_token_space, embedder=embedder))
        else:
            submit(spec)

    def clear_up(self) -> None:
        """Remove leftovers of a job that ended without cleaning up; an unfinished job still needs its vectors."""
        self._remove_leftovers(lambda connection: not jobs.has_unfinished(connection, self.kind))

    def _remove_leftovers(self, may: Callable[[Connection], bool]) -> None:
        """Remove the vectors of all models but the current one, if there may be any.

        :param may: Returns whether they are nobody's; asked in each transaction.
        """
        with self._engine.namespace(Scope()) as (connection, _):
            if rows.other_model(connection) is None or not may(connection):
                return

        def withdraw(connection: Connection) -> None:
            if may(connection):
                meta.forget(connection, rows.NEXT_MODEL)

        def remove(connection: Connection, after: int) -> int | None:
            if not may(connection):
                return None
            last = rows.remove_others(connection, after=after, limit=REMOVED_AT_ONCE)
            if last is None:
                rows.forget_other(connection)
            return last

        # From now on no process adds vectors of the next model.
        self._engine.write_rows(withdraw)
        last: int | None = 0
        while last is not None:
            last = self._engine.write_rows(partial(remove, after=last))

    def _loaded(self, spec: ModelSpec, *, begun: bool) -> LoadableEmbedder:
        """Return the loaded model after a test embedding.

        :param begun: True if it worked earlier in the job, so that a failure may be transient.
        """
        embedder: LoadableEmbedder | None = None
        try:
            embedder = self._make(spec)
            embedder.load()
            [vector] = embedder.embed_documents([PROBE])
            if vector.shape != (embedder.dim,) or not abs(float(np.linalg.norm(vector)) - 1.0) < 0.01:
                raise EmbeddingUnavailable("it does not give vectors of length 1")
        except SouvenirError as error:
            if embedder is not None:
                embedder.close()
            if begun and isinstance(error, EmbeddingUnavailable):
                raise
            raise InvalidRequest(
                f"The model {spec.model!r} cannot be used ({error.message}); nothing was changed"
            ) from error
        return embedder

    def _already_serving(self, job: RunningJob, spec: ModelSpec, embedder: Embedder) -> JsonObject:
        """Update the model's spec, which changes if its folder was moved, and make missing token vectors."""
        state, space = _STATE.load(job.state), embedder.token_space
        while space is not None and (lacking := self._without_tokens(embedder.model_id, space, after=state.last)):
            made = embeddings_of([passage.embeddable for _, passage in lacking], embedder)
            tokens = [one.tokens for one in made if one.tokens is not None]
            state = replace(state, last=lacking[-1][1].id, embedded=state.embedded + len(lacking))
            self._engine.models.add_tokens(embedder.model_id, lacking, tokens, partial(_save, job, state=state))

        def work(connection: Connection) -> None:
            if meta.get(connection, rows.MODEL) != embedder.model_id:
                raise EmbeddingUnavailable("The model was changed meanwhile")
            _save(job, connection, replace(state, total=state.embedded))
            meta.put(connection, rows.MODEL_SPEC, to_json(spec.to_json()))
            _note_token_space(connection, embedder)

        self._engine.write_rows(work)
        return {"model": embedder.model_id, "embedded": state.embedded, "already_serving": True}

    def _without_tokens(self, model_id: str, space: str, *, after: int) -> list[tuple[int, Passage]]:
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.without_tokens(connection, model_id, space, after=after, limit=PASSAGES_AT_ONCE)

    def _embed_all(self, job: RunningJob, embedder: Embedder, spec: ModelSpec) -> _State:
        """Embed all passages, including new ones, until none is missing, and switch."""
        state = self._begin(job, embedder)
        # What is stored, and what is written until that is done; it need not end while other replicas write fast.
        for _ in range(2):
            last = self._engine.write_rows(rows.last_id)
            while state.last < last and (missing := self._missing(embedder, after=state.last)):
                state = self._embed(job, embedder, missing, state)
        self._announce(job, embedder, spec, state)
        complete, tried = 0, 0
        while True:
            # No other write runs meanwhile, so that all passages up to this id are committed.
            last = self._engine.write_rows(rows.last_id)
            while (missing := self._missing(embedder, after=complete)) and missing[0][0] <= last:
                state = self._embed(job, embedder, missing, state, announced=True)
            complete, tried = last, tried + 1
            if missing:
                state = self._embed(job, embedder, missing, state, announced=True)
            switched = self._switch(job, embedder, spec, state, after=complete)
            if switched is not None:
                return switched
            if tried % WARNED_EVERY == 0:
                log.warning("model_change_waits", reason="another replica writes without the new model", tried=tried)
            job.checkpoint(done=state.embedded, total=state.total, state=_STATE.dump(state))

    def _announce(self, job: RunningJob, embedder: Embedder, spec: ModelSpec, state: _State) -> None:
        """Let everything be embedded with both models, here and by the other replicas, which first load the new one."""
        announcement = to_json({"model": embedder.model_id, "spec": spec.to_json(), "by": uuid.uuid4().hex})
        self._engine.models.expect(embedder, announcement)

        def work(connection: Connection) -> int:
            _save(job, connection, state)
            meta.put(connection, rows.NEXT_MODEL, announcement)
            return rows.replicas(connection)

        if self._engine.write_rows(work) > 1:
            job.closing.wait(ANNOUNCED_S)

    def _missing(self, embedder: Embedder, *, after: int) -> list[tuple[int, Embeddable]]:
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.missing(connection, embedder.model_id, after=after, limit=PASSAGES_AT_ONCE)

    def _begin(self, job: RunningJob, embedder: Embedder) -> _State:
        if job.state:
            return _STATE.load(job.state)
        self._remove_leftovers(partial(_runs, job))

        def work(connection: Connection) -> _State:
            state = _State(total=rows.count_passages(connection))
            _save(job, connection, state)
            meta.put(connection, rows.OTHER_MODEL, embedder.model_id)
            return state

        return self._engine.write_rows(work)

    def _embed(
        self,
        job: RunningJob,
        embedder: Embedder,
        missing: list[tuple[int, Embeddable]],
        state: _State,
        *,
        announced: bool = False,
    ) -> _State:
        made = embeddings_of([one for _, one in missing], embedder)
        after = replace(
            state,
            last=max(state.last, missing[-1][0]),
            embedded=state.embedded + len(missing),
            total=max(state.total, state.embedded + len(missing)),
        )
        by_id = {id_: embedding for (id_, _), embedding in zip(missing, made, strict=True)}
        save = partial(_save, job, state=after)
        self._engine.models.add_embeddings(embedder.model_id, by_id, save, announced=announced)
        return after

    def _switch(
        self, job: RunningJob, embedder: Embedder, spec: ModelSpec, state: _State, *, after: int
    ) -> _State | None:
        """Return the state after the switch, or None if more is to be embedded or a read takes long.

        :param after: A passage id up to which all passages are embedded.
        """
        switched = replace(state, last=0, switched=True)

        def ready(connection: Connection) -> bool:
            if rows.missing(connection, embedder.model_id, after=after, limit=1):
                return False
            _save(job, connection, switched)
            _note_token_space(connection, embedder)
            return True

        if not self._engine.models.expects(embedder):
            raise EmbeddingUnavailable("The indexes were dropped meanwhile, since the database was replaced")
        try:
            return switched if self._engine.models.switch(to_json(spec.to_json()), ready) else None
        except TimeoutError:
            log.info("model_change_waits", reason="a long read is not over")
            job.closing.wait(SWITCH_PAUSE_S)
            return None

    def _remove_old(self, job: RunningJob, state: _State) -> None:
        """Remove the old vectors. It is too late to cancel: a cancellation only ends the progress reports."""
        try:
            self._remove_old_counting(job, state)
        except JobCancelled:
            self._remove_leftovers(partial(_runs, job))

    def _remove_old_counting(self, job: RunningJob, state: _State) -> None:
        while True:

            def work(connection: Connection, state: _State = state) -> int | None:
                last = rows.remove_others(connection, after=state.last, limit=REMOVED_AT_ONCE)
                _save(job, connection, state if last is None else replace(state, last=last))
                if last is None:
                    rows.forget_other(connection)
                return last

            last = self._engine.write_rows(work)
            if last is None:
                return
            state = replace(state, last=last)


def _runs(job: RunningJob, connection: Connection) -> bool:
    """Return whether a job, which may be cancelled, is still run here."""
    return jobs.kept(connection, job.id, job.turn) is not None


def _note_current_token_space(connection: Connection, embedder: Embedder) -> None:
    if meta.get(connection, rows.MODEL) == embedder.model_id:
        _note_token_space(connection, embedder)


def _note_token_space(connection: Connection, embedder: Embedder) -> None:
    """Record that no token vectors of this model are missing."""
    if embedder.token_space is None:
        meta.forget(connection, rows.TOKEN_SPACE)
    else:
        meta.put(connection, rows.TOKEN_SPACE, embedder.token_space)


def _save(job: RunningJob, connection: Connection, state: _State) -> None:
    job.save(connection, done=state.embedded, total=state.total, state=_STATE.dump(state))
