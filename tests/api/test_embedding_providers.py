"""The service with a vendor's embedding model: during normal operation, during an outage, and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.errors import InvalidRequest
from souvenir.core.settings import Settings
from tests.api.conftest import BASE_URL
from tests.vendors.embeddings import DIM, VendorServer

MODEL_ID = f"openai/their-model/{DIM}"

Serve = Callable[..., TestClient]


@pytest.fixture
def serve(vendor: VendorServer, tmp_path: Path) -> Iterator[Serve]:
    """Start an application whose embedder asks the vendor; it is stopped when the test ends."""
    with ExitStack() as running:

        def start(**values: Any) -> TestClient:
            settings: dict[str, Any] = {
                "data_dir": tmp_path / "data",
                "embed_provider": "openai",
                "embed_model": "their-model",
                "embed_dim": DIM,
                "embed_base_url": f"{vendor.url}/v1",
                "embed_rest_s": 0,
            }
            app = create_app(Settings(**{**settings, **values}))
            return running.enter_context(TestClient(app, base_url=BASE_URL))

        yield start


def add(client: TestClient, text: str) -> Any:
    return client.post("/memory/add", json={"text": text, "source": "notes"})


def search(client: TestClient, query: str) -> Any:
    response = client.post("/search", json={"query": query})
    assert response.status_code == 200, response.text
    return response.json()


def texts(answer: Any) -> list[str]:
    return [hit["text"] for hit in answer["results"]]


def test_a_vendor_that_fails_costs_meaning_and_writes_and_nothing_that_was_stored(serve, vendor):
    client = serve()
    assert add(client, "the red fox sleeps").status_code == 200
    assert add(client, "a blue whale swims").status_code == 200
    answer = search(client, "red fox")
    assert (texts(answer)[0], answer["degraded"]) == ("the red fox sleeps", [])
    assert client.get("/stats").json()["model"] == MODEL_ID

    vendor.stop()
    answer = search(client, "whale")
    assert (texts(answer)[0], answer["degraded"]) == ("a blue whale swims", ["vector"])
    refused = add(client, "the green frog jumps")
    assert (refused.status_code, refused.json()["code"]) == (503, "embedding_unavailable")
    assert client.get("/stats").json()["total_memories"] == 2
    assert client.get("/health/ready").status_code == 200

    vendor.start()
    assert add(client, "the green frog jumps").status_code == 200
    answer = search(client, "frog jumps")
    assert (texts(answer)[0], answer["degraded"]) == ("the green frog jumps", [])


def test_the_service_starts_without_its_vendor(serve, vendor):
    vendor.stop()
    client = serve()
    assert client.get("/health").status_code == 200
    assert add(client, "too early").status_code == 503
    vendor.start()
    assert add(client, "in time").status_code == 200


def test_ollama_serves_under_the_settings_of_other_systems(vendor, monkeypatch, tmp_path):
    monkeypatch.setenv("MEMORY_EMBEDDING_BACKEND", "ollama")
    monkeypatch.setenv("MEMORY_EMBEDDING_MODEL", "their-model")
    monkeypatch.setenv("OLLAMA_BASE_URL", vendor.url)
    app = create_app(Settings(data_dir=tmp_path / "data", embed_dim=DIM))
    with TestClient(app, base_url=BASE_URL) as client:
        assert add(client, "kept").status_code == 200
        assert client.get("/stats").json()["model"] == f"ollama/their-model/{DIM}"
    assert vendor.batches == [["kept"]]


def test_ollama_is_asked_once_for_a_dimension_that_is_not_known(serve, vendor):
    settings = {"embed_provider": "ollama", "embed_dim": None, "embed_base_url": vendor.url}
    client = serve(**settings)
    assert add(client, "kept").status_code == 200
    assert client.get("/stats").json()["model"] == f"ollama/their-model/{DIM}"
    assert vendor.batches == [["dimension"], ["kept"]]
    client.__exit__()
    vendor.stop()
    again = serve(**settings)
    assert texts(search(again, "kept")) == ["kept"]


def test_a_start_without_a_dimension_and_without_ollama_says_what_to_set(serve, vendor):
    vendor.stop()
    with pytest.raises(InvalidRequest, match="set EMBED_DIM"):
        serve(embed_provider="ollama", embed_dim=None, embed_base_url=vendor.url)
