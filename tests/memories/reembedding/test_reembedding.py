"""Replacing the model: correct results, concurrent searches and writes, and failures without effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from souvenir.conversations.messages import Conversations
from souvenir.core.errors import BackupDamaged, EmbeddingUnavailable, Overloaded, ServiceClosing
from souvenir.core.settings import EmbedProvider, Settings
from souvenir.core.types import FloatVector, MemoryDraft, MemoryPatch, MessageRole, Scope, SearchQuery
from souvenir.index.index_key import IndexKey
from souvenir.index.registry import IndexRegistry
from souvenir.jobs import worker
from souvenir.jobs.worker import Jobs
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories import reembedding as reembedding
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import Reembedding
from souvenir.models.embedding.specs import ModelSpec
from souvenir.store import meta
from souvenir.store.admin.jobs import REEMBED, JobStatus
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.namespace_view import NamespaceView
from souvenir.store.sql import Connection
from souvenir.store.sqlite import database
from tests.fake_embedder import FakeEmbedder
from tests.jobs.handlers import PATIENCE_S
from tests.memories.reembedding.conftest import (
    DEFAULT,
    QUERIES,
    OpenJobs,
    Reembed,
    answers,
    answers_of_a_fresh_store,
    fill,
    models_of_vectors,
)
from tests.memories.reembedding.embedders import FAKE, OTHER, Held, NarrowEmbedder, OtherEmbedder, make_any
from tests.thoroughness import sampled

ELSEWHERE = Scope("elsewhere")


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembedding, "PASSAGES_AT_ONCE", 8)
    monkeypatch.setattr(reembedding, "REMOVED_AT_ONCE", 8)


def test_searches_after_reembedding_equal_those_of_a_store_built_with_the_model(
    engine: MemoryEngine, reembed: Reembed, tmp_path: Path
):
    fill(engine, 60)
    fill(engine, 20, ELSEWHERE)
    engine.archive(DEFAULT, [3, 4])
    engine.delete(DEFAULT, 5)
    engine.add(DEFAULT, MemoryDraft("green garden " + "at length " * 300, "long"))
    before = answers(engine)
    job = reembed(OTHER)
    assert (job.status, job.error) == (JobStatus.COMPLETED, None)
    passages = engine.stats(DEFAULT).passages + engine.stats(ELSEWHERE).passages
    assert job.result == {"model": "other@1", "embedded": passages, "already_serving": False}
    assert (job.done, job.total) == (passages, passages)
    assert models_of_vectors(engine) == {"other@1": passages}
    assert (engine.stats(DEFAULT).model_id, engine.stats(DEFAULT).dim) == ("other@1", 96)
    assert answers(engine) != before
    for namespace in ("default", "elsewhere"):
        fresh = answers_of_a_fresh_store(tmp_path / namespace, OtherEmbedder(), engine, namespace)
        assert answers(engine, namespace) == fresh
    assert list(engine.check()) == []


def test_reembedding_back_restores_the_first_results(engine: MemoryEngine, reembed: Reembed):
    fill(engine, 30)
    engine.snapshot()
    before = answers(engine)
    reembed(OTHER)
    engine.add(DEFAULT, MemoryDraft("red apple of the other", "s"))
    assert reembed(FAKE).status is JobStatus.COMPLETED
    engine.delete(DEFAULT, 31)
    assert answers(engine) == before
    assert list(engine.check()) == []


def test_topics_follow_the_vectors_of_the_new_model(engine: MemoryEngine, reembed: Reembed):
    graph = KnowledgeServices.open(engine)
    # Many words, so that texts are similar in other ways in the 96 dimensions of the new model.
    texts = [f"Ann plays the violin in Lisbon {' '.join(f'w{n * 20 + k}' for k in range(20))}" for n in range(9)]
    drafts = [MessageDraft(MessageRole.USER, text, session_id=f"s{n % 3}") for n, text in enumerate(texts)]
    Conversations(engine).add(Scope("ann"), drafts)
    graph.indexer.catch_up()
    assert list(engine.check()) == []
    assert reembed(OTHER).status is JobStatus.COMPLETED
    assert list(engine.check()) == []
    graph.indexer.catch_up()
    with engine.namespace(Scope()) as (connection, _):
        assert meta.get(connection, "graph_model") == "other@1"
    assert list(engine.check()) == []


def test_searches_and_writes_run_during_reembedding(engine: MemoryEngine, reembed: Reembed, tmp_path: Path):
    fill(engine, 200)
    fill(engine, 50, ELSEWHERE)
    over, faults, counted = Event(), list[object](), dict[str, int]()

    def going_on(name: str, act: Callable[[int], None]) -> Thread:
        def run() -> None:
            number = 0
            try:
                while not over.is_set():
                    act(number)
                    number += 1
            except BaseException as error:  # noqa: BLE001 - the test's thread tells it
                faults.append(error)
            counted[name] = number

        return Thread(target=run)

    def search(number: int) -> None:
        scope = (DEFAULT, ELSEWHERE)[number % 2]
        result = engine.search(scope, SearchQuery(f"{QUERIES[number % 4]} {number % 7}", hybrid=bool(number % 3)))
        assert result.degraded == ()
        assert len(result.hits) == 5

    def write(number: int) -> None:
        added = engine.add(DEFAULT, MemoryDraft(f"red apple said meanwhile {number}", "meanwhile"))
        assert added.id is not None
        if number % 3 == 0:
            engine.update(DEFAULT, added.id, MemoryPatch(text=f"green garden changed meanwhile {number}"))
        if number % 5 == 0:
            # Not what the searches find: a memory that is deleted while it is ranked is left out of the answer.
            [short_lived] = engine.add_batch(DEFAULT, [MemoryDraft(f"nobody asks {number}", "meanwhile")])
            engine.delete(DEFAULT, short_lived)
        if number % 7 == 1:
            engine.archive(DEFAULT, [added.id])

    threads = [going_on("search", search), going_on("other search", search), going_on("write", write)]
    for thread in threads:
        thread.start()
    changes = (OTHER, FAKE, OTHER)[: sampled(1, 3)]
    jobs = [reembed(spec) for spec in changes]
    over.set()
    for thread in threads:
        thread.join()
    assert faults == []
    assert [job.status for job in jobs] == [JobStatus.COMPLETED] * len(changes)
    assert min(counted.values()) > sampled(3, 10)
    assert list(engine.check()) == []
    assert answers(engine) == answers_of_a_fresh_store(tmp_path / "fresh", OtherEmbedder(), engine, "default")


def test_memories_written_during_reembedding_are_embedded(engine: MemoryEngine, open_jobs: OpenJobs):
    fill(engine, 20)
    held = Held(at=3)
    jobs = open_jobs(lambda spec: OtherEmbedder(held))
    job = jobs.submit("reembed", DEFAULT, {"spec": OTHER.to_json()})
    assert held.reached.wait(PATIENCE_S)
    engine.update(DEFAULT, 1, MemoryPatch(text="a violin that was changed"))
    engine.delete(DEFAULT, 12)
    engine.add(ELSEWHERE, MemoryDraft("a new namespace", "s"))
    assert engine.models.serving.embedder.model_id == "fake@1"
    assert list(engine.check()) == []
    held.open.set()
    assert jobs.wait(job.id, PATIENCE_S).status is JobStatus.COMPLETED
    assert engine.search(DEFAULT, SearchQuery("a violin that was changed")).hits[0].memory.id == 1
    assert engine.search(ELSEWHERE, SearchQuery("a new namespace", hybrid=False)).hits[0].parts.similarity > 0.99
    assert list(engine.check()) == []


def test_a_write_prepared_with_the_old_model_is_embedded_again(engine: MemoryEngine, reembed: Reembed):
    fill(engine, 10)
    engine.add(DEFAULT, MemoryDraft("yellow pear", "s", facts=("pears are yellow",)))
    text = "red apple prepared before the change"
    draft = MemoryDraft(text, "s", facts=("apples are sweet", text))
    [passages] = engine.prepare_drafts([draft])
    reembed(OTHER)
    engine.write(DEFAULT, lambda tx: tx.insert(draft, passages))
    hit = engine.search(DEFAULT, SearchQuery(text, hybrid=False)).hits[0]
    assert (hit.memory.text, round(hit.parts.similarity, 5)) == (text, 1.0)
    for fact in ("apples are sweet", "pears are yellow"):
        hit = engine.search(DEFAULT, SearchQuery(fact, hybrid=False)).hits[0]
        assert (hit.facts[0].fact.text, round(hit.parts.similarity, 5)) == (fact, 1.0)
    assert models_of_vectors(engine) == {"other@1": 14}
    assert list(engine.check()) == []


@pytest.mark.sqlite_only(reason="no read waits for the switch on PostgreSQL")
def test_a_long_read_delays_only_the_switch(engine: MemoryEngine, open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database, "SWITCH_WAIT_S", 0.01)
    monkeypatch.setattr(reembedding, "SWITCH_PAUSE_S", 0.01)
    fill(engine, 10)
    tried = Event()
    switch = engine.models.switch

    def counted(spec: str, ready: Callable[[Connection], bool]) -> bool:
        try:
            return switch(spec, ready)
        except TimeoutError:
            tried.set()
            raise

    monkeypatch.setattr(engine.models, "switch", counted)
    with engine.namespace(DEFAULT):
        jobs = open_jobs()
        job = jobs.submit("reembed", DEFAULT, {"spec": OTHER.to_json()})
        assert tried.wait(PATIENCE_S)
        assert engine.search(DEFAULT, SearchQuery("red apple")).degraded == ()
        engine.add(DEFAULT, MemoryDraft("red apple written meanwhile", "s"))
        assert engine.stats(DEFAULT).model_id == "fake@1"
    assert jobs.wait(job.id, PATIENCE_S).status is JobStatus.COMPLETED
    assert models_of_vectors(engine) == {"other@1": 11}
    assert list(engine.check()) == []


def test_passages_too_long_for_the_new_model_are_embedded_in_parts(engine: MemoryEngine, reembed: Reembed):
    engine.add(DEFAULT, MemoryDraft("red apple " * 40, "long"))
    fill(engine, 5)
    assert reembed(ModelSpec(EmbedProvider.ONNX, "narrow")).status is JobStatus.COMPLETED
    hit = engine.search(DEFAULT, SearchQuery("red apple", hybrid=False)).hits[0]
    assert (hit.memory.id, round(hit.parts.similarity, 5)) == (1, 1.0)
    assert engine.stats(DEFAULT).model_id == NarrowEmbedder.model_id
    assert list(engine.check()) == []


@pytest.mark.parametrize(
    ("model", "reason"), [("missing", "there is no such folder"), ("mute", "does not give vectors of length 1")]
)
def test_a_model_that_does_not_embed_changes_nothing(engine: MemoryEngine, reembed: Reembed, model: str, reason: str):
    fill(engine, 10)
    before = answers(engine)
    job = reembed(ModelSpec(EmbedProvider.ONNX, model))
    assert job.status is JobStatus.FAILED
    assert job.error is not None
    assert job.error.startswith(f"The model {model!r} cannot be used (")
    assert reason in job.error
    assert answers(engine) == before
    assert models_of_vectors(engine) == {"fake@1": 10}
    assert list(engine.check()) == []


def test_a_model_that_fails_halfway_leaves_no_vectors(
    engine: MemoryEngine, open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(worker, "RETRY_PAUSES_S", (0.0,))
    fill(engine, 40)

    def fail_late(texts: Sequence[str]) -> None:
        if any("number30" in text for text in texts):
            raise EmbeddingUnavailable("The provider does not answer")

    jobs = open_jobs(lambda spec: OtherEmbedder(fail_late))
    job = jobs.wait(jobs.submit("reembed", DEFAULT, {"spec": OTHER.to_json()}).id, PATIENCE_S)
    assert (job.status, job.error, job.done) == (JobStatus.FAILED, "The provider does not answer", 24)
    assert models_of_vectors(engine) == {"fake@1": 40}
    engine.add(DEFAULT, MemoryDraft("still the old model", "s"))
    assert list(engine.check()) == []


@pytest.mark.parametrize("batch", [2, 4])
def test_a_cancelled_reembedding_leaves_no_vectors(engine: MemoryEngine, open_jobs: OpenJobs, batch: int):
    fill(engine, 30)
    before = answers(engine)
    held = Held(at=batch)
    made: list[OtherEmbedder] = []

    def make(spec: ModelSpec) -> OtherEmbedder:
        made.append(OtherEmbedder(held))
        return made[-1]

    jobs = open_jobs(make)
    job = jobs.submit("reembed", DEFAULT, {"spec": OTHER.to_json()})
    assert held.reached.wait(PATIENCE_S)
    jobs.cancel(DEFAULT, job.id)
    held.open.set()
    assert jobs.wait(job.id, PATIENCE_S).status is JobStatus.CANCELLED
    assert [embedder.closed for embedder in made] == [True]
    assert models_of_vectors(engine) == {"fake@1": 30}
    assert answers(engine) == before
    engine.add(DEFAULT, MemoryDraft("still the old model", "s"))
    assert models_of_vectors(engine) == {"fake@1": 31}
    assert list(engine.check()) == []


def test_an_interrupted_reembedding_resumes(engine: MemoryEngine, open_jobs: OpenJobs):
    fill(engine, 40)
    held, embedded = Held(at=3), list[str]()
    first = open_jobs(lambda spec: OtherEmbedder(held))
    job = first.submit("reembed", DEFAULT, {"spec": OTHER.to_json()})
    assert held.reached.wait(PATIENCE_S)
    stopping = Thread(target=first.close)
    stopping.start()
    assert first._closing.wait(PATIENCE_S)
    held.open.set()
    stopping.join()
    assert list(engine.check()) == []
    assert models_of_vectors(engine) == {"fake@1": 40, "other@1": 8}
    second = open_jobs(lambda spec: OtherEmbedder(embedded.extend))
    assert second.wait(job.id, PATIENCE_S).status is JobStatus.COMPLETED
    assert len(embedded) == 1 + 32
    assert models_of_vectors(engine) == {"other@1": 40}
    assert list(engine.check()) == []


def test_a_reembedding_interrupted_after_the_switch_removes_the_old_vectors(engine: MemoryEngine, open_jobs: OpenJobs):
    fill(engine, 40)
    adopted, closing_began = Event(), Event()

    def adopt(embedder: object) -> None:
        adopted.set()
        assert closing_began.wait(PATIENCE_S)

    first = open_jobs(adopt=adopt)
    job = first.submit("reembed", DEFAULT, {"spec": OTHER.to_json()})
    assert adopted.wait(PATIENCE_S)
    stopping = Thread(target=first.close)
    stopping.start()
    assert first._closing.wait(PATIENCE_S)
    closing_began.set()
    stopping.join()
    assert engine.stats(DEFAULT).model_id == "other@1"
    assert models_of_vectors(engine) == {"fake@1": 40, "other@1": 40}
    assert list(engine.check()) == []
    second = open_jobs()
    assert second.wait(job.id, PATIENCE_S).result == {"model": "other@1", "embedded": 40, "already_serving": False}
    assert models_of_vectors(engine) == {"other@1": 40}
    assert list(engine.check()) == []


def test_a_write_just_before_the_switch_is_included(
    engine: MemoryEngine, open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch
):
    fill(engine, 10)
    text = "red apple written at the last moment"
    [passages] = engine.prepare([text])
    switch, late = engine.models.switch, list[int]()

    def late_write(spec: str, ready: Callable[[Connection], bool]) -> bool:
        if not late:
            late.append(engine.write(DEFAULT, lambda tx: tx.insert(MemoryDraft(text, "s"), passages)).id)
        return switch(spec, ready)

    monkeypatch.setattr(engine.models, "switch", late_write)
    jobs = open_jobs()
    job = jobs.wait(jobs.submit("reembed", DEFAULT, {"spec": OTHER.to_json()}).id, PATIENCE_S)
    assert job.status is JobStatus.COMPLETED
    assert models_of_vectors(engine) == {"other@1": 11}
    assert engine.search(DEFAULT, SearchQuery(text, hybrid=False)).hits[0].memory.id == late[0]
    assert list(engine.check()) == []


def test_indexes_that_were_loaded_before_the_last_passages_were_embedded_are_complete(
    engine: MemoryEngine, open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch
):
    fill(engine, 10)
    engine.search(DEFAULT, SearchQuery("red apple"))
    text = "red apple written before the next model is expected"
    [passages] = engine.prepare([text])
    expect = engine.models.expect

    def late_write(embedder: OtherEmbedder, announcement: str) -> bool:
        engine.write(DEFAULT, lambda tx: tx.insert(MemoryDraft(text, "s"), passages))
        return expect(embedder, announcement)

    monkeypatch.setattr(engine.models, "expect", late_write)
    jobs = open_jobs()
    job = jobs.submit("reembed", DEFAULT, {"spec": OTHER.to_json()})
    assert jobs.wait(job.id, PATIENCE_S).status is JobStatus.COMPLETED
    serving = engine.models.serving.registry
    engine.models.cross_check()
    assert [one.code for one in engine.warnings.current()] == []
    assert engine.models.serving.registry is serving
    assert len(serving.loaded()) == 1
    assert engine.search(DEFAULT, SearchQuery(text, hybrid=False)).hits[0].memory.text == text
    assert list(engine.check()) == []


def test_an_index_that_cannot_be_completed_after_the_switch_is_loaded_again(
    engine: MemoryEngine, open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch
):
    fill(engine, 10)
    engine.search(DEFAULT, SearchQuery("red apple"))
    adopted = list[object]()

    def fail(registry: IndexRegistry, key: IndexKey, view: NamespaceView) -> bool:
        raise Overloaded("Too many requests are waiting; try again in a moment")

    monkeypatch.setattr(IndexRegistry, "settle", fail)
    jobs = open_jobs(adopt=adopted.append)
    job = jobs.submit("reembed", DEFAULT, {"spec": OTHER.to_json()})
    assert jobs.wait(job.id, PATIENCE_S).status is JobStatus.COMPLETED
    assert engine.models.serving.registry.loaded() == {}
    assert adopted == [engine.models.serving.embedder]
    engine.add(DEFAULT, MemoryDraft("red apple of the new model", "s"))
    assert engine.search(DEFAULT, SearchQuery("red apple of the new model")).hits[0].memory.id == 11
    assert list(engine.check()) == []


def test_a_next_model_whose_indexes_cannot_be_loaded_is_not_expected(
    engine: MemoryEngine, open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch
):
    fill(engine, 10)
    engine.search(DEFAULT, SearchQuery("red apple"))

    def fail(registry: IndexRegistry, key: IndexKey, change_seq: int) -> None:
        raise Overloaded("Too many requests are waiting; try again in a moment")

    with monkeypatch.context() as patch:
        patch.setattr(IndexRegistry, "get", fail)
        with pytest.raises(Overloaded):
            engine.models.expect(OtherEmbedder(), "by a test")
    assert not engine.models.expecting
    engine.add(DEFAULT, MemoryDraft("red apple", "s"))
    assert models_of_vectors(engine) == {"fake@1": 11}


def test_a_search_during_the_switch_is_answered_by_the_new_model(settings: Settings):
    class Replaced(FakeEmbedder):
        """An embedder that is closed while it embeds a query."""

        def embed_query(self, text: str) -> FloatVector:
            job = jobs.submit("reembed", DEFAULT, {"spec": OTHER.to_json()})
            assert jobs.wait(job.id, PATIENCE_S).status is JobStatus.COMPLETED
            raise ServiceClosing

    with closing(MemoryEngine.open(settings, Replaced())) as engine:
        fill(engine, 10)
        handler = Reembedding(engine, make_any, adopt=lambda embedder: None)
        with closing(Jobs(engine, [handler], queue_max=10, retention_days=1, lane=REEMBED)) as jobs:
            jobs.start()
            result = engine.search(DEFAULT, SearchQuery("red apple"))
    assert (result.degraded, len(result.hits)) == ((), 5)


def test_reembedding_with_the_same_model_does_nothing(engine: MemoryEngine, reembed: Reembed):
    fill(engine, 3)
    assert reembed(FAKE).result == {"model": "fake@1", "embedded": 0, "already_serving": True}
    assert models_of_vectors(engine) == {"fake@1": 3}


def test_an_empty_store_can_change_its_model(engine: MemoryEngine, reembed: Reembed):
    assert reembed(OTHER).result == {"model": "other@1", "embedded": 0, "already_serving": False}
    fill(engine, 3)
    assert models_of_vectors(engine) == {"other@1": 3}


@pytest.mark.sqlite_only(reason="restores a backup")
def test_a_backup_made_during_reembedding_is_restored_without_partial_vectors(
    engine: MemoryEngine, open_jobs: OpenJobs
):
    fill(engine, 30)
    before = answers(engine)
    held = Held(at=4)
    jobs = open_jobs(lambda spec: OtherEmbedder(held))
    job = jobs.submit("reembed", DEFAULT, {"spec": OTHER.to_json()})
    assert held.reached.wait(PATIENCE_S)
    engine.restore(engine.back_up(reason="manual").name)
    held.open.set()
    assert jobs.wait(job.id, PATIENCE_S).error == "a backup was restored"
    jobs.close()
    assert models_of_vectors(engine) == {"fake@1": 30}
    assert answers(engine) == before
    assert list(engine.check()) == []


@pytest.mark.sqlite_only(reason="restores a backup")
def test_the_refusal_of_a_backup_of_another_model_says_how_to_restore_it(engine: MemoryEngine, reembed: Reembed):
    fill(engine, 5)
    backup = engine.back_up(reason="manual")
    reembed(OTHER)
    sentence = rf"made by {FakeEmbedder.model_id}, .* stop the service and run `python app.py restore {backup.name}`"
    with pytest.raises(BackupDamaged, match=sentence):
        engine.restore(backup.name)
    assert list(engine.check()) == []
