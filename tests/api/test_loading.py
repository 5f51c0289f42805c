"""A start whose loading fails for a passing reason becomes ready by itself, and needs no index folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import Any

import apsw
import pytest
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from souvenir.server import service as service_module
from souvenir.store.namespace_view import NamespaceView
from tests.api.conftest import BASE_URL, loaded
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.index.access import replaced_by_a_file, unreadable

PATIENCE_S = 30.0


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A store of one memory with a snapshot of its index."""
    folder = tmp_path / "data"
    with opened(folder) as client:
        assert client.post("/memory/add", json={"text": "the ferry leaves at nine", "source": "notes"}).is_success
        assert client.post("/search", json={"query": "ferry"}).is_success
    assert (folder / "index").is_dir()
    return folder


def opened(folder: Path, **values: Any) -> TestClient:
    return TestClient(create_app(Settings(data_dir=folder, **values), FakeEmbedder(), fake_of), base_url=BASE_URL)


def wait_for(holds: Callable[[], bool]) -> None:
    give_up_at = monotonic() + PATIENCE_S
    while not holds():
        assert monotonic() < give_up_at
        sleep(0.02)


def codes(client: TestClient) -> set[str]:
    return {warning["code"] for warning in client.get("/health/ready").json()["warnings"]}


def test_loading_that_fails_is_tried_again_until_it_works(data_dir: Path, monkeypatch: pytest.MonkeyPatch):
    passages, fixed, failed = NamespaceView.passages, Event(), []

    def fail_at_first(view: NamespaceView, ids: Iterable[int] | None) -> Any:
        if not fixed.is_set():
            failed.append(True)
            raise apsw.IOError("disk I/O error")
        return passages(view, ids)

    monkeypatch.setattr(NamespaceView, "passages", fail_at_first)
    monkeypatch.setattr(service_module, "FIRST_RETRY_S", 0.02)
    with opened(data_dir) as client:
        wait_for(lambda: len(failed) >= 3)
        answer = client.get("/health/ready")
        assert (answer.status_code, answer.json()["detail"]["status"]) == (503, "error")
        fixed.set()
        wait_for(lambda: client.get("/health/ready").status_code == 200)
        assert client.get("/health/ready").json()["status"] == "ready"
        [hit] = client.post("/search", json={"query": "ferry"}).json()["results"]
        assert hit["text"] == "the ferry leaves at nine"


def test_a_service_stops_while_it_waits_to_load_again(data_dir: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(_: NamespaceView, __: Iterable[int] | None) -> Any:
        raise apsw.IOError("disk I/O error")

    monkeypatch.setattr(NamespaceView, "passages", fail)
    monkeypatch.setattr(service_module, "FIRST_RETRY_S", 3600.0)
    begun = monotonic()
    with opened(data_dir) as client:
        wait_for(lambda: client.get("/health/ready").json()["detail"]["status"] == "error")
    assert monotonic() - begun < PATIENCE_S


@pytest.mark.parametrize("fault", [unreadable, replaced_by_a_file], ids=lambda fault: fault.__name__)
def test_a_service_starts_and_searches_without_its_index_folder_and_recovers(
    data_dir: Path, fault: Callable[[Path], AbstractContextManager[None]]
):
    with fault(data_dir / "index"):
        running = opened(data_dir, snapshot_interval_s=0.05)
        client = running.__enter__()
        loaded(client)
        assert client.get("/health/ready").status_code == 200
        assert "index_unreadable" in codes(client)
        [hit] = client.post("/search", json={"query": "ferry"}).json()["results"]
        assert hit["text"] == "the ferry leaves at nine"
    try:
        wait_for(lambda: not codes(client))
    finally:
        running.__exit__(None, None, None)
    assert [path.suffix for path in (data_dir / "index").iterdir()] == [".index"]
