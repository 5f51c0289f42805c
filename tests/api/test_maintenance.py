"""Re-embedding over HTTP: with another model, and with the same model loaded again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from souvenir.jobs.worker import Jobs
from souvenir.memories import reembedding as reembedding
from souvenir.models.embedding.specs import ModelSpec
from tests.api.conftest import BASE_URL
from tests.fake_embedder import FakeEmbedder
from tests.jobs.handlers import PATIENCE_S
from tests.memories.reembedding.embedders import Held, OtherEmbedder, make_any

Start = Callable[..., TestClient]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A service that makes its own embedders; the one before is stopped first."""
    with ExitStack() as running:

        def start_app(model: str, make: Callable[[ModelSpec], FakeEmbedder] = make_any) -> TestClient:
            running.close()
            settings = Settings(data_dir=tmp_path / "data", embed_model=model)
            return running.enter_context(TestClient(create_app(settings, make_embedder=make), base_url=BASE_URL))

        yield start_app


def add(client: TestClient, text: str) -> None:
    assert client.post("/memory/add", json={"text": text, "source": "s"}).status_code == 200


def model_of(client: TestClient) -> str:
    return str(client.get("/stats").json()["model"])


@pytest.mark.sqlite_only(reason="re-embedding is not possible on PostgreSQL")
def test_the_model_of_the_settings_takes_over_when_it_is_asked_to(start: Start):
    add(start("fake"), "red apple")
    client = start("other")
    assert model_of(client) == "fake@1"
    changed = client.post("/maintenance/reembed")
    assert (changed.status_code, changed.json()) == (200, {"model": "other@1", "embedded": 1, "already_serving": False})
    assert model_of(client) == client.get("/health").json()["model"] == "other@1"
    [found] = client.post("/search", json={"query": "red apple", "hybrid": False}).json()["results"]
    assert found["similarity"] == pytest.approx(1.0, abs=1e-5)
    assert model_of(start("fake")) == "other@1"


@pytest.mark.sqlite_only(reason="re-embedding is not possible on PostgreSQL")
def test_another_model_can_be_named(start: Start):
    client = start("fake")
    add(client, "red apple")
    assert client.post("/maintenance/reembed", json={"model": "other"}).json()["model"] == "other@1"
    assert client.post("/maintenance/reembed", json={"model": "other"}).json()["already_serving"] is True
    assert client.post("/maintenance/reembed").json()["model"] == "fake@1"
    [kind] = {job["kind"] for job in client.get("/jobs").json()["jobs"]}
    assert kind == "reembed"


def test_an_unloadable_model_is_reported_and_changes_nothing(start: Start):
    client = start("fake")
    add(client, "red apple")
    response = client.post("/maintenance/reembed", json={"model": "missing"})
    assert (response.status_code, response.json()["code"]) == (422, "job_refused")
    assert "The model 'missing' cannot be used (there is no such folder)" in response.json()["detail"]
    assert model_of(client) == "fake@1"


@pytest.mark.sqlite_only(reason="re-embedding is not possible on PostgreSQL")
def test_a_store_whose_model_does_not_load_any_more_can_be_given_another(start: Start):
    class Lost(FakeEmbedder):
        """A provider has taken it from its list: its id is known, and nothing else."""

        ready = False

        def load(self) -> None:
            raise RuntimeError("it is gone")

    add(start("fake"), "red apple")
    client = start("other", lambda spec: Lost() if spec.model == "fake" else OtherEmbedder())
    assert client.post("/maintenance/reembed").json()["model"] == "other@1"
    assert client.get("/health/ready").status_code == 200
    assert client.post("/search", json={"query": "red apple"}).json()["count"] == 1


def test_an_interrupted_job_resumes_after_a_restart(start: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reembedding, "PASSAGES_AT_ONCE", 4)
    held, embedded = Held(at=3), list[str]()
    client = start("fake", lambda spec: OtherEmbedder(held) if spec.model == "other" else FakeEmbedder())
    memories = [{"text": f"red apple {number}", "source": "s"} for number in range(12)]
    client.post("/memory/add-batch", json={"memories": memories})
    job_id = client.post("/maintenance/reembed?wait_s=0", json={"model": "other"}).json()["job_id"]
    assert held.reached.wait(PATIENCE_S)
    jobs: Jobs = client.app.state.service.reembedding_jobs  # type: ignore[attr-defined]  # an application

    def let_go() -> None:
        assert jobs._closing.wait(PATIENCE_S)
        held.open.set()

    stopping = Thread(target=let_go)
    stopping.start()
    client = start("fake", lambda spec: OtherEmbedder(embedded.extend) if spec.model == "other" else FakeEmbedder())
    stopping.join()
    service = client.app.state.service  # type: ignore[attr-defined]  # an application
    assert service.reembedding_jobs.wait(job_id, PATIENCE_S).result == {
        "model": "other@1",
        "embedded": 12,
        "already_serving": False,
    }
    assert len(embedded) == 1 + 8
    assert list(service.engine.check()) == []


def test_the_model_is_reloaded_while_serving(start: Start):
    loaded: list[FakeEmbedder] = []

    class Counted(FakeEmbedder):
        closed = False

        def load(self) -> None:
            loaded.append(self)

        def close(self) -> None:
            self.closed = True

    client = start("fake", lambda spec: Counted())
    add(client, "red apple")
    assert client.post("/maintenance/embedder/reload").json() == {"success": True, "model": "fake@1"}
    assert [getattr(embedder, "closed", None) for embedder in loaded] == [True, False]
    assert client.post("/search", json={"query": "red apple"}).json()["count"] == 1


def test_a_reload_refuses_a_different_model(start: Start):
    made = [FakeEmbedder, OtherEmbedder]
    client = start("fake", lambda spec: made.pop(0)())
    add(client, "red apple")
    response = client.post("/maintenance/embedder/reload")
    assert (response.status_code, response.json()["code"]) == (409, "conflict")
    assert "What is loaded now is other@1" in response.json()["detail"]
    assert model_of(client) == "fake@1"
