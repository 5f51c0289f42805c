"""The application over real SQLite and FAISS with the fake embedder; each test has a separate store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import structlog
from fastapi import FastAPI
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from souvenir.core.types import Embedder
from tests.api.learning import takes_everything
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.vendors.llm import LLMVendor

KEY = "k-4f9c2a7d6b1e"
BASE_URL = "http://localhost"
"""The service listens on loopback, where it answers to such names only."""
JSON = {"Accept": "application/json"}

START_TIMEOUT_S = 60

Add = Callable[..., int]
Start = Callable[..., TestClient]


@pytest.fixture(scope="session", autouse=True)
def _logging_of_others() -> Iterator[None]:
    """The application sets logging up for its whole process; other tests shall not notice."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start an application with these settings; it is stopped when the test ends."""
    with ExitStack() as running:

        def start_app(
            change: Callable[[FastAPI], Any] = lambda _: None, *, embedder: Embedder | None = None, **values: Any
        ) -> TestClient:
            settings = Settings(**{"data_dir": tmp_path / "data", **values})
            app = create_app(settings, embedder or FakeEmbedder(), fake_of)
            change(app)
            return running.enter_context(TestClient(app, base_url=BASE_URL))

        yield start_app


def loaded(client: TestClient) -> TestClient:
    """The same, once its first index is loaded: before that it says that it is starting."""
    client.app.state.service.loading.join(START_TIMEOUT_S)  # type: ignore[attr-defined]
    return client


def indexed(client: TestClient) -> TestClient:
    """The same, once all texts of its agents are indexed."""
    loaded(client).app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]
    return client


def keeps_backups(client: TestClient) -> bool:
    """Whether the service makes backups, of a file; those of PostgreSQL are made by its own tools."""
    return bool(client.app.state.service.engine.keeps_backups)  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def shared_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An open service for requests that change nothing, or that nobody reads back."""
    data_dir = tmp_path_factory.mktemp("shared")
    with TestClient(
        create_app(
            Settings(data_dir=data_dir, auth_rate_limit=10**6, extract_fallback_add=True), FakeEmbedder(), fake_of
        ),
        base_url=BASE_URL,
    ) as client:
        yield client


@pytest.fixture
def client(start: Start) -> TestClient:
    """An open service."""
    return start()


@pytest.fixture
def add(client: TestClient) -> Add:
    """Store a text and get its id."""

    def store(text: str, source: str = "notes", **metadata: Any) -> int:
        response = client.post("/memory/add", json={"text": text, "source": source, "metadata": metadata})
        assert response.status_code == 200, response.text
        return int(response.json()["id"])

    return store


@pytest.fixture
def learner() -> Iterator[LLMVendor]:
    """A model that learns each sentence as a fact."""
    model = LLMVendor()
    model.start()
    model.script(takes_everything)
    yield model
    model.stop()
