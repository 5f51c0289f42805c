"""A change of the embedding model that one replica makes while all of them read and write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.errors import EmbeddingUnavailable, ModelReplaced, Overloaded, ServiceClosing, StoreUnusable
from souvenir.core.settings import EmbedProvider, Settings
from souvenir.core.types import FloatVector, JsonObject, MemoryDraft, Scope, SearchQuery
from souvenir.jobs.handler import RunningJob
from souvenir.jobs.worker import Jobs
from souvenir.memories import model_follower, reembedding
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.model_follower import MODEL_NOT_LOADED, ModelFollower
from souvenir.memories.reembedding import Reembedding
from souvenir.models.embedding.specs import ModelSpec
from souvenir.retrieval.serving_model import Models
from souvenir.store.admin.jobs import REEMBED, JobStatus
from souvenir.store.postgres import adopted_model
from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction
from tests.fake_embedder import FakeEmbedder
from tests.jobs.handlers import PATIENCE_S
from tests.memories.reembedding.conftest import answers, answers_of_a_fresh_store, fill, models_of_vectors
from tests.memories.reembedding.embedders import OTHER, Held, OtherEmbedder, make_any
from tests.store.postgres.waiting import Open, eventually
from tests.thoroughness import sampled

Start = Callable[..., TestClient]
FAKE = ModelSpec(EmbedProvider.ONNX, "fake")


class ClosableEmbedder(OtherEmbedder):
    """Refuses after it was closed, as real ones do: a write may have begun with it before."""

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        if self.closed:
            raise ServiceClosing
        return super().embed_documents(texts)


def make_closable(spec: ModelSpec) -> FakeEmbedder:
    return ClosableEmbedder() if spec.model == "other" else make_any(spec)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_follower, "FOLLOWED_EVERY_S", 0.1)
    monkeypatch.setattr(reembedding, "PASSAGES_AT_ONCE", 16)
    monkeypatch.setattr(reembedding, "ANNOUNCED_S", 0.3)


@pytest.fixture
def start(tmp_path: Path, postgres: PostgresConnection, server_address: str) -> Iterator[Start]:
    """Starts a service by the name of its folder."""
    with ExitStack() as running:

        def start_service(name: str, make: Callable[[ModelSpec], FakeEmbedder] = make_closable) -> TestClient:
            address = SecretStr(server_address)
            settings = Settings(data_dir=tmp_path / name, database_url=address, embed_model="fake")
            app = create_app(settings, make_embedder=make)
            client = running.enter_context(TestClient(app, base_url="http://localhost"))
            app.state.service.loading.join(PATIENCE_S)
            return client

        yield start_service


def engine_of(client: TestClient) -> MemoryEngine:
    found: MemoryEngine = client.app.state.service.engine  # type: ignore[attr-defined]
    return found


def change(client: TestClient, model: str) -> dict[str, Any]:
    answer = client.post("/maintenance/reembed", json={"model": model})
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def test_replicas_read_and_write_while_the_model_is_changed(start: Start, tmp_path: Path):
    replicas = [start(name) for name in ("one", "two", "three")]
    fill(engine_of(replicas[0]), 60)
    over = Event()

    def write(number: int) -> list[str]:
        """Add memories in turn on all replicas, and find each on another one; return their texts."""
        texts: list[str] = []
        for step in count():
            if over.is_set():
                return texts
            text = f"writer {number} says word{step} in step {step}"
            added = replicas[step % 3].post("/memory/add", json={"text": text, "source": f"writer/{number}"})
            assert added.status_code == 200, added.text
            texts.append(text)
            query = {"query": text, "k": 5}
            found = replicas[(step + 1 + number) % 3].post("/search", json=query)
            assert found.status_code == 200, found.text
            assert text in {one["text"] for one in found.json()["results"]}
        return texts

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, number) for number in range(4)]
        try:
            for number, model in enumerate(("other", "fake", "other")[: sampled(1, 3)]):
                assert change(replicas[number], model)["model"] == f"{model}@1"
                time.sleep(0.3)
        finally:
            over.set()
        texts = [text for writer in writers for text in writer.result(PATIENCE_S)]
    assert len(texts) > sampled(10, 40)
    engines = [engine_of(client) for client in replicas]
    assert eventually(lambda: {one.models.serving.embedder.model_id for one in engines} == {"other@1"})
    assert models_of_vectors(engines[0]) == {"other@1": 60 + len(texts)}
    fresh = answers_of_a_fresh_store(tmp_path / "fresh", OtherEmbedder(), engines[0], "default")
    for client, one in zip(replicas, engines, strict=True):
        assert answers(one) == fresh
        assert list(one.check()) == []
        assert client.get("/health/ready").status_code == 200


def test_a_replica_that_cannot_load_the_model_is_not_ready_and_writes_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(adopted_model, "ADOPTION_WAIT_S", 0.2)
    is_there = Event()

    def made_late(spec: ModelSpec) -> FakeEmbedder:
        if spec.model == "other" and not is_there.is_set():
            raise EmbeddingUnavailable("there is no such folder")
        return make_closable(spec)

    one, other = start("one"), start("other", made_late)
    fill(engine_of(one), 10)
    assert other.post("/search", json={"query": "red apple"}).status_code == 200
    change(one, "other")
    assert eventually(lambda: other.get("/health/ready").status_code == 503)
    assert eventually(lambda: bool(other.get("/health/ready").json()["detail"]["warnings"]))
    [warning] = other.get("/health/ready").json()["detail"]["warnings"]
    assert warning["code"] == MODEL_NOT_LOADED
    assert "other@1, which cannot be loaded here (there is no such folder)" in warning["message"]
    refused = other.post("/memory/add", json={"text": "ann plays the violin", "source": "notes"})
    assert (refused.status_code, refused.json()["code"]) == (503, "database_unavailable")
    assert refused.headers["Retry-After"] == "2"
    assert one.post("/memory/add", json={"text": "ben bakes bread", "source": "notes"}).status_code == 200
    assert other.post("/search", json={"query": "bread"}).status_code == 503
    is_there.set()
    assert eventually(lambda: other.get("/health/ready").status_code == 200)
    assert other.get("/health/ready").json()["warnings"] == []
    found = other.post("/search", json={"query": "ben bakes bread"}).json()["results"][0]
    assert found["text"] == "ben bakes bread"
    assert other.post("/memory/add", json={"text": "ann plays the violin", "source": "notes"}).status_code == 200
    assert models_of_vectors(engine_of(one)) == {"other@1": 12}
    assert list(engine_of(other).check()) == []


def test_replicas_embed_with_the_next_model_until_its_change_is_cancelled(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    one, other = start("one"), start("other")
    fill(engine_of(one), 10)
    held, tried = Event(), Event()
    switch = Models.switch

    def hold(models: Models, spec: str, ready: Callable[[Connection], bool]) -> bool:
        tried.set()
        assert held.wait(PATIENCE_S)
        return switch(models, spec, ready)

    monkeypatch.setattr(Models, "switch", hold)
    job = one.post("/maintenance/reembed?wait_s=0", json={"model": "other"}).json()["job_id"]
    assert tried.wait(PATIENCE_S)
    assert eventually(lambda: all(engine_of(client).models.expecting for client in (one, other)))
    for client, text in ((one, "ann plays the violin"), (other, "ben bakes bread")):
        assert client.post("/memory/add", json={"text": text, "source": "notes"}).status_code == 200
    assert models_of_vectors(engine_of(one)) == {"fake@1": 12, "other@1": 12}
    assert one.post(f"/jobs/{job}/cancel").status_code == 200
    held.set()
    assert eventually(lambda: one.get(f"/jobs/{job}").json()["status"] == "cancelled")
    assert other.post("/memory/add", json={"text": "rain in the north", "source": "notes"}).status_code == 200
    assert eventually(lambda: not any(engine_of(client).models.expecting for client in (one, other)))
    assert models_of_vectors(engine_of(one)) == {"fake@1": 13}
    for client in (one, other):
        assert list(engine_of(client).check()) == []


def test_what_a_late_replica_embedded_with_the_former_model_is_not_stored(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(adopted_model, "ADOPTION_WAIT_S", 0.05)
    one, late = open_engine("one"), open_engine("late")
    fill(one, 10)
    draft = MemoryDraft("written by a replica that was stopped meanwhile", "notes")
    [passages] = late.prepare([draft.text])
    before = late.search(Scope(), SearchQuery("red apple"))
    handler = Reembedding(one, make_any, lambda embedder: None)
    with closing(Jobs(one, [handler], queue_max=10, retention_days=1, lane=REEMBED)) as jobs:
        jobs.start()
        job = jobs.submit(REEMBED, Scope(), {"spec": OTHER.to_json()})
        assert jobs.wait(job.id, PATIENCE_S).error is None
    with pytest.raises(ModelReplaced):
        late.write(Scope(), lambda tx: tx.insert(draft, passages))
    # Its index is complete: nothing was written since.
    assert [hit.score for hit in late.search(Scope(), SearchQuery("red apple")).hits] == [
        hit.score for hit in before.hits
    ]
    one.add(Scope(), MemoryDraft("red apple", "notes"))
    with pytest.raises(ModelReplaced):
        late.search(Scope(), SearchQuery("red apple"))
    late.models.adopt(OtherEmbedder())
    late.write(Scope(), lambda tx: tx.insert(draft, passages))
    assert models_of_vectors(one) == {"other@1": 12}
    assert late.search(Scope(), SearchQuery(draft.text, hybrid=False)).hits[0].parts.similarity == pytest.approx(1.0)
    for replica in (one, late):
        assert list(replica.check()) == []


def test_all_searches_that_wait_for_one_index_wait_for_the_model(open_engine: Open, monkeypatch: pytest.MonkeyPatch):
    one, late = open_engine("one"), open_engine("late")
    fill(one, 20)
    with Lane(one) as lane:
        assert lane.jobs.wait(lane.submit(OTHER), PATIENCE_S).error is None
    require, opened = late._database.require_model, Event()

    def require_late(connection: Connection, model_id: str) -> None:
        assert opened.wait(PATIENCE_S)
        require(connection, model_id)

    monkeypatch.setattr(late._database, "require_model", require_late)
    with ThreadPoolExecutor(4) as pool:
        searches = [pool.submit(late.search, Scope(), SearchQuery("red apple")) for _ in range(4)]
        time.sleep(0.5)
        opened.set()
        late.models.adopt(OtherEmbedder())
        found = [one.result(PATIENCE_S).hits for one in searches]
    assert [len(hits) for hits in found] == [5] * 4


# --- jobs that change hands ------------------------------------------------------------------------------------------


class Lane:
    """A replica's queue of changes of the model. `ended` is set when a run of the handler has ended."""

    def __init__(self, engine: MemoryEngine, make: Callable[[ModelSpec], FakeEmbedder] = make_closable) -> None:
        self.handler = Reembedding(engine, make, lambda embedder: None)
        self.ended = Event()
        run = self.handler.run

        def run_and_tell(job: RunningJob) -> JsonObject:
            try:
                return run(job)
            finally:
                self.ended.set()

        self.handler.run = run_and_tell  # type: ignore[method-assign]
        self.jobs = Jobs(engine, [self.handler], queue_max=10, retention_days=1, lane=REEMBED)

    def __enter__(self) -> Lane:
        self.jobs.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.jobs.close()

    def submit(self, spec: ModelSpec) -> str:
        return self.jobs.submit(REEMBED, Scope(), {"spec": spec.to_json()}).id


def take_from(engine: MemoryEngine) -> None:
    """Let the running jobs be those of a replica that has ended."""
    engine.write_rows(lambda rows: rows.execute("UPDATE jobs SET replica = 'ended' WHERE status = 'running'"))


def test_a_replica_that_lost_its_job_leaves_the_vectors_of_the_next_one(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
):
    one, other = open_engine("one"), open_engine("other")
    fill(one, 20)
    held, opened, next_held, next_opened = Event(), Event(), Event(), Event()
    first, second = Lane(one), Lane(other)
    switch = other.models.switch

    def switch_late(spec: str, ready: Callable[[Connection], bool]) -> bool:
        next_held.set()
        assert next_opened.wait(PATIENCE_S)
        return switch(spec, ready)

    monkeypatch.setattr(other.models, "switch", switch_late)
    remove_old = first.handler._remove_old_counting

    def remove_late(job: RunningJob, state: Any) -> None:
        held.set()
        assert opened.wait(PATIENCE_S)
        remove_old(job, state)

    first.handler._remove_old_counting = remove_late  # type: ignore[method-assign]
    with first:
        job = first.submit(OTHER)
        assert held.wait(PATIENCE_S)
        other.models.adopt(ClosableEmbedder())
        take_from(one)
        with second:
            assert second.jobs.wait(job, PATIENCE_S).error is None
            following = second.submit(ModelSpec(EmbedProvider.ONNX, "narrow"))
            assert next_held.wait(PATIENCE_S)
            first.ended.clear()
            opened.set()
            assert first.ended.wait(PATIENCE_S)
            next_opened.set()
            assert second.jobs.wait(following, PATIENCE_S).error is None
    assert models_of_vectors(one) == {"narrow@1": 20}
    assert list(other.check()) == []


def test_a_replica_that_lost_its_job_before_the_switch_ends_it(open_engine: Open, monkeypatch: pytest.MonkeyPatch):
    one, other = open_engine("one"), open_engine("other")
    fill(one, 20)
    held, opened = Event(), Event()
    switch = one.models.switch

    def switch_late(spec: str, ready: Callable[[Connection], bool]) -> bool:
        held.set()
        assert opened.wait(PATIENCE_S)
        return switch(spec, ready)

    monkeypatch.setattr(one.models, "switch", switch_late)
    with Lane(one) as first:
        job = first.submit(OTHER)
        assert held.wait(PATIENCE_S)
        take_from(one)
        with Lane(other) as second:
            assert second.jobs.wait(job, PATIENCE_S).error is None
        monkeypatch.setattr(adopted_model, "ADOPTION_WAIT_S", 0.1)
        opened.set()
        assert first.ended.wait(PATIENCE_S)
    assert models_of_vectors(one) == {"other@1": 20}
    assert list(other.check()) == []


@pytest.mark.parametrize("follows_again", [True, False])
def test_an_index_of_an_earlier_announcement_is_not_served(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch, *, follows_again: bool
):
    one, other = open_engine("one"), open_engine("other")
    fill(one, 20)
    other.search(Scope(), SearchQuery("red apple"))
    follower = ModelFollower(other, make_closable, lambda embedder: None)
    missed = "a violin that was written while nobody embedded with the next model"
    switch, tried = one.models.switch, list[int]()

    def fail_first(spec: str, ready: Callable[[Connection], bool]) -> bool:
        tried.append(1)
        if len(tried) == 1:
            follower._follow()
            assert other.models.expecting
            one.models.dismiss()
            one.add(Scope(), MemoryDraft(missed, "notes"))
            other.add(Scope(), MemoryDraft("a later note", "notes"))
            raise Overloaded("Too many requests are waiting; try again in a moment")
        if follows_again:
            follower._follow()
        return switch(spec, ready)

    monkeypatch.setattr(one.models, "switch", fail_first)
    with Lane(one) as lane:
        job = lane.submit(OTHER)
        assert lane.jobs.wait(job, PATIENCE_S).error is None
    assert len(tried) == 2
    follower._follow()
    assert other.models.serving.embedder.model_id == "other@1"
    for replica in (one, other):
        assert replica.search(Scope(), SearchQuery(missed, hybrid=False)).hits[0].memory.text == missed
        replica.models.cross_check()
        assert list(replica.check()) == []
        assert [warning.code for warning in replica.warnings.current()] == []


def test_a_start_with_another_model_waits_for_the_first_write(open_engine: Open, tmp_path: Path, server_address: str):
    one = open_engine("one")
    held, opened = Event(), Event()

    def write(tx: Transaction) -> None:
        tx.insert(MemoryDraft("red apple", "notes"), passages)
        held.set()
        assert opened.wait(PATIENCE_S)

    [passages] = one.prepare(["red apple"])
    settings = Settings(data_dir=tmp_path / "late", database_url=SecretStr(server_address))
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(one.write, Scope(), write)
        assert held.wait(PATIENCE_S)
        starting = pool.submit(MemoryEngine.open, settings, OtherEmbedder())
        time.sleep(0.5)
        opened.set()
        writing.result(PATIENCE_S)
        with pytest.raises(StoreUnusable, match="if the model was changed just now, start again"):
            starting.result(PATIENCE_S)
    assert list(one.check()) == []


def test_changes_of_two_replicas_run_one_after_another(open_engine: Open):
    replicas = [open_engine("one"), open_engine("other")]
    fill(replicas[0], 10)
    held = Held(at=2)
    made: list[str] = []

    def make(spec: ModelSpec) -> FakeEmbedder:
        made.append(spec.model)
        return OtherEmbedder(held) if spec.model == "other" else make_any(spec)

    with Lane(replicas[0], make) as one, Lane(replicas[1], make) as other:
        first = one.submit(OTHER)
        assert held.reached.wait(PATIENCE_S)
        second = other.submit(ModelSpec(EmbedProvider.ONNX, "narrow"))
        time.sleep(0.5)
        assert made == ["other"]
        held.open.set()
        assert one.jobs.wait(first, PATIENCE_S).status is JobStatus.COMPLETED
        assert other.jobs.wait(second, PATIENCE_S).status is JobStatus.COMPLETED
    assert models_of_vectors(replicas[0]) == {"narrow@1": 10}
