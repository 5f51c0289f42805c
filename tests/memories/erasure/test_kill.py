"""A removal whose process is killed is resumed and finished at the next start."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app import create_app
from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from souvenir.server.service import Service
from souvenir.store.pending_removals import AT_ONCE
from tests.api.conftest import BASE_URL
from tests.conversations.talk import ANN, BEN, draft, found
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.killing import lines_until_killed
from tests.memories.erasure.canaries import found_in

pytestmark = pytest.mark.sqlite_only(reason="erases from backups too")

PROCESS = "tests.memories.erasure.erasing_process"
PATIENCE_S = 60.0
CANARY, NEIGHBOUR = "Quizzaciously", "Wolframite"
MESSAGES = 12 * AT_ONCE


@pytest.fixture
def filled(tmp_path: Path) -> Settings:
    """A store with a large agent, a small one, and a backup."""
    settings = Settings(data_dir=tmp_path / "data")
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        conversations = Conversations(engine)
        for first in range(0, MESSAGES, 512):
            numbers = range(first, min(first + 512, MESSAGES))
            conversations.add(ANN, [draft(f"{CANARY} number {n}", session_id=f"s{n % 7}", user="mia") for n in numbers])
        conversations.add(BEN, [draft(f"{NEIGHBOUR} of ben")])
        assert found(conversations, CANARY)
        engine.back_up(reason="manual")
    return settings


def removed_rows(settings: Settings) -> int:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        assert list(engine.check()) == []
        with engine.namespace(ANN) as (connection, namespace):
            assert namespace is None
            return MESSAGES - int(connection.execute("SELECT count(*) - 1 FROM messages").get)


@pytest.mark.parametrize("lines", [1, 3, 6])
def test_a_killed_erasure_is_finished_at_the_next_start_with_every_row_counted(filled: Settings, lines: int):
    lines_until_killed(PROCESS, filled.data_dir, "erase", lines=lines)
    assert 0 <= removed_rows(filled) < MESSAGES
    with TestClient(create_app(filled, FakeEmbedder(), fake_of), base_url=BASE_URL) as client:
        service: Service = client.app.state.service  # type: ignore[attr-defined]
        listed, _ = service.jobs.list(ANN, kind="erase", limit=10)
        if listed:
            result = service.erasure_jobs.wait(listed[0].id, PATIENCE_S).result
            assert result is not None
            assert result["removed"]["messages"] == MESSAGES
            assert result["postings"] >= MESSAGES
            assert result["backups_rewritten"]
        else:  # it was killed before there was a job: the backups are asked for again
            service.removals.finish()
            again = client.post(
                "/erase", json={"selector": {"agent_name": "ann_agent"}, "confirm": True, "backups": True}
            )
            assert again.json()["backups_rewritten"]
        assert found_in(filled.data_dir, [CANARY]) == {}
        assert found(service.conversations, NEIGHBOUR, BEN) == [f"{NEIGHBOUR} of ben"]
        assert list(service.engine.check()) == []


def test_a_killed_deletion_is_finished_at_the_next_start(filled: Settings):
    lines_until_killed(PROCESS, filled.data_dir, "delete", lines=3)
    assert 0 < removed_rows(filled) < MESSAGES
    with TestClient(create_app(filled, FakeEmbedder(), fake_of), base_url=BASE_URL) as client:
        service: Service = client.app.state.service  # type: ignore[attr-defined]
        service.removals.finish()
        with service.engine.namespace(BEN) as (connection, _):
            assert connection.execute("SELECT count(*) FROM messages").get == 1
            assert connection.execute("SELECT count(*) FROM removals").get == 0
        assert list(service.engine.check()) == []
        assert found(service.conversations, NEIGHBOUR, BEN) == [f"{NEIGHBOUR} of ben"]
