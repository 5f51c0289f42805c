"""The job that embeds every passage with another model and lets it take over.

The new vectors grow beside the old ones in small transactions, each with the progress that it makes; texts that are
written meanwhile have greater ids, and their turn comes. Near the end every write is embedded by both models, so that
the job catches up with whoever writes. The switch is one transaction; before it nothing that is searched has changed,
after it the old vectors are removed in small parts. Passages stay cut as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

import apsw
import numpy as np
import structlog

from memory_engine import MemoryEngine
from souvenir.embedding.specs import ModelSpec
from souvenir.engine.preparation import vectors_of
from souvenir.errors import EmbeddingUnavailable, InvalidRequest, SouvenirError
from souvenir.jobs.running import JobCancelled, RunningJob
from souvenir.passages import Embeddable
from souvenir.reembedding.choice import MakeEmbedder
from souvenir.store import jobs
from souvenir.store import vectors as rows
from souvenir.store.rows import to_json
from souvenir.types import Embedder, JsonObject, LoadableEmbedder, Scope

PASSAGES_AT_ONCE = 64
"""Embedded and stored together: some hundreds of milliseconds with the default model, one request to a provider."""

REMOVED_AT_ONCE = 512

SWITCH_PAUSE_S = 1.0
"""Before the switch is tried again, if something is read for long."""

PROBE = "Does this model embed?"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _State:
    """`last` is the id of the last passage that the new model has embedded, or of which the old vector is removed."""

    last: int = 0
    embedded: int = 0
    total: int = 0
    switched: bool = False


class Reembedding:
    """Handles the jobs of its kind.

    :param make: Makes the embedder of a spec; it is loaded and closed here.
    :param adopt: Takes the embedder that has taken over, and closes the one before.
    """

    kind = "reembed"

    def __init__(self, engine: MemoryEngine, make: MakeEmbedder, adopt: Callable[[LoadableEmbedder], None]) -> None:
        self._engine = engine
        self._make = make
        self._adopt = adopt

    def run(self, job: RunningJob) -> JsonObject:
        state = _State(**job.state)
        if not state.switched:
            spec = ModelSpec.from_json(job.parameters["spec"])
            embedder = self._loaded(spec, begun=bool(job.state))
            taken_over = False
            try:
                if embedder.model_id == self._engine.models.serving.embedder.model_id:
                    return self._already_serving(job, spec, embedder)
                state = self._embed_all(job, embedder, spec)
                taken_over = True
            finally:
                if not taken_over:
                    self._engine.models.dismiss()
                    embedder.close()
            self._adopt(embedder)
            log.info("model_changed", model_id=embedder.model_id)
        self._remove_old(job, state)
        model_id = self._engine.models.serving.embedder.model_id
        return {"model": model_id, "embedded": state.embedded, "already_serving": False}

    def undo(self, job: RunningJob) -> None:
        """Remove the vectors of a model that does not take over; also old ones that were not removed yet."""
        self.remove_leftovers()

    def clear_up(self) -> None:
        """At a start: remove what a job left that ended without clearing up; one that goes on needs what it has."""
        with self._engine.namespace(Scope()) as (connection, _):
            if jobs.has_unfinished(connection, self.kind):
                return
        self.remove_leftovers()

    def remove_leftovers(self) -> None:
        """Remove vectors of other models than the present one, if there may be some."""
        with self._engine.namespace(Scope()) as (connection, _):
            if rows.other_model(connection) is None:
                return
        last: int | None = 0
        while last is not None:
            last = self._engine.write_rows(partial(rows.remove_others, after=last, limit=REMOVED_AT_ONCE))
        self._engine.write_rows(lambda connection: rows.forget(connection, rows.OTHER_MODEL))

    def _loaded(self, spec: ModelSpec, *, begun: bool) -> LoadableEmbedder:
        """The model, which has shown that it embeds.

        :param begun: It did before: if it does not now, that may pass.
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
        """Only what the model is made from may have changed, as when its folder was moved."""

        def work(connection: apsw.Connection) -> None:
            job.save(connection, done=0, total=0, state={})
            rows.note(connection, rows.MODEL_SPEC, to_json(spec.to_json()))

        self._engine.write_rows(work)
        return {"model": embedder.model_id, "embedded": 0, "already_serving": True}

    def _embed_all(self, job: RunningJob, embedder: Embedder, spec: ModelSpec) -> _State:
        """Embed what is there and what comes, until nothing is missing, and switch."""
        state = self._begin(job, embedder)
        while True:
            # Those that come have greater ids; before the last step all of them are looked at once more.
            last_look = not self._engine.models.expecting
            missing = self._missing(embedder, after=state.last) or (last_look and self._missing(embedder, after=0))
            if missing:
                state = self._embed(job, embedder, missing, state)
            elif not self._engine.models.expecting:
                self._engine.models.expect(embedder)
            else:
                switched = self._switch(job, embedder, spec, state)
                if switched is not None:
                    return switched

    def _missing(self, embedder: Embedder, *, after: int) -> list[tuple[int, Embeddable]]:
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.missing(connection, embedder.model_id, after=after, limit=PASSAGES_AT_ONCE)

    def _begin(self, job: RunningJob, embedder: Embedder) -> _State:
        if job.state:
            return _State(**job.state)
        self.remove_leftovers()

        def work(connection: apsw.Connection) -> _State:
            state = _State(total=rows.count_passages(connection))
            _save(job, connection, state)
            rows.note(connection, rows.OTHER_MODEL, embedder.model_id)
            return state

        return self._engine.write_rows(work)

    def _embed(
        self, job: RunningJob, embedder: Embedder, missing: list[tuple[int, Embeddable]], state: _State
    ) -> _State:
        made = vectors_of([one for _, one in missing], embedder)
        after = replace(
            state,
            last=missing[-1][0],
            embedded=state.embedded + len(missing),
            total=max(state.total, state.embedded + len(missing)),
        )
        by_id = {id_: vector for (id_, _), vector in zip(missing, made, strict=True)}
        self._engine.models.add_vectors(embedder.model_id, by_id, lambda connection: _save(job, connection, after))
        return after

    def _switch(self, job: RunningJob, embedder: Embedder, spec: ModelSpec, state: _State) -> _State | None:
        """The state after the switch, or None if something was written meanwhile or is read for long."""
        after = replace(state, last=0, switched=True)

        def ready(connection: apsw.Connection) -> bool:
            if rows.missing(connection, embedder.model_id, after=state.last, limit=1):
                return False
            _save(job, connection, after)
            return True

        try:
            return after if self._engine.models.switch(to_json(spec.to_json()), ready) else None
        except TimeoutError:
            log.info("model_change_waits", reason="a long read is not over")
            job.closing.wait(SWITCH_PAUSE_S)
            job.checkpoint(done=state.embedded, total=state.total, state=asdict(state))
            return None

    def _remove_old(self, job: RunningJob, state: _State) -> None:
        """It is too late to cancel now: that only ends the counting."""
        try:
            self._remove_old_counting(job, state)
        except JobCancelled:
            self.remove_leftovers()

    def _remove_old_counting(self, job: RunningJob, state: _State) -> None:
        while True:

            def work(connection: apsw.Connection, state: _State = state) -> int | None:
                last = rows.remove_others(connection, after=state.last, limit=REMOVED_AT_ONCE)
                _save(job, connection, state if last is None else replace(state, last=last))
                if last is None:
                    rows.forget(connection, rows.OTHER_MODEL)
                return last

            last = self._engine.write_rows(work)
            if last is None:
                return
            state = replace(state, last=last)


def _save(job: RunningJob, connection: apsw.Connection, state: _State) -> None:
    job.save(connection, done=state.embedded, total=state.total, state=asdict(state))
